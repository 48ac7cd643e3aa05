// Functions of several operands, element by element, by PyTorch's type promotion.
#include "import/compose/composer.h"
#include "import/torch/aten_node.h"
#include "import/torch/names.h"

namespace polyphase {
namespace {

// An operator that is defined on numbers, of bools: on 0 and 1, the result a bool again (1 + 1 is true).
Value* of_numbers(Composer& c, const char* name, Value* x, Value* y) {
  if (c.dtype(x) != DType::boolean) return c.op(name, {x, y});
  return c.cast(c.op(name, {c.cast(x, DType::u8), c.cast(y, DType::u8)}), DType::boolean);
}

template <const char* name>
Result<Values> convert_binary(AtenNode& node) {
  const DType dtype = node.promoted({"self", "other"});
  Composer c(node);
  return c.results({of_numbers(c, name, node.tensor_as("self", dtype), node.tensor_as("other", dtype))});
}

// self ± alpha·other
template <const char* name>
Result<Values> convert_scaled(AtenNode& node) {
  const DType dtype = node.promoted({"self", "other"});
  Composer c(node);
  Value* const self = node.tensor_as("self", dtype);
  if (dtype == DType::boolean) {
    const bool counts = node.real("alpha") != 0;
    return c.results({counts ? of_numbers(c, name, self, node.tensor_as("other", dtype)) : self});
  }
  return c.results({c.op(name, {self, c.scaled(node.tensor_as("other", dtype), node.real("alpha"))})});
}

Result<Values> convert_rsub(AtenNode& node) {
  const DType dtype = node.promoted({"self", "other"});
  Composer c(node);
  Value* const self = c.scaled(node.tensor_as("self", dtype), node.real("alpha"));
  return c.results({c.sub(node.tensor_as("other", dtype), self)});
}

// True division: of integers a float.
Value* quotient(AtenNode& node, Composer& c) {
  DType dtype = node.promoted({"self", "other"});
  if (!is_float(dtype)) dtype = DType::f32;
  return c.div(node.tensor_as("self", dtype), node.tensor_as("other", dtype));
}

Result<Values> convert_div(AtenNode& node) {
  Composer c(node);
  return c.results({quotient(node, c)});
}

// The quotient towards minus infinity. Of integers (x - x mod y) / y. Of floats as PyTorch computes it: what is left by
// truncation goes first, and where it has not the sign of y the quotient is one less. x / 0 stays x / 0.
Value* floor_quotient(Composer& c, Value* x, Value* y) {
  if (!is_float(c.dtype(x))) return c.div(c.sub(x, c.op("mod", {x, y})), y);
  Value* const zero = c.number(0, c.dtype(x));
  Value* const rest = c.op("mod", {x, y}, Attributes({{"fmod", true}}));
  Value* const crosses = c.op("xor", {c.op("less", {rest, zero}), c.op("less", {y, zero})});
  Value* const exact = c.op("equal", {rest, zero});
  Value* const below = c.op("and", {crosses, c.op("not", {exact})});
  Value* const whole = c.op("round", {c.sub(c.div(c.sub(x, rest), y), c.cast(below, c.dtype(x)))});
  return c.where(c.op("equal", {y, zero}), c.div(x, y), whole);
}

Result<Values> convert_div_mode(AtenNode& node) {
  Composer c(node);
  if (!node.has("rounding_mode")) return c.results({quotient(node, c)});
  const std::string mode = node.word("rounding_mode");
  const DType dtype = node.promoted({"self", "other"});
  Value* const x = node.tensor_as("self", dtype);
  Value* const y = node.tensor_as("other", dtype);
  if (mode == "floor") return c.results({floor_quotient(c, x, y)});
  if (mode != "trunc")
    return broken_program("div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '" + mode + "'");
  Value* const whole = c.div(x, y);
  return c.results({is_float(dtype) ? c.truncate(whole) : whole});
}

Result<Values> convert_floor_divide(AtenNode& node) {
  const DType dtype = node.promoted({"self", "other"});
  Composer c(node);
  return c.results({floor_quotient(c, node.tensor_as("self", dtype), node.tensor_as("other", dtype))});
}

template <bool sign_of_self>
Result<Values> convert_mod(AtenNode& node) {
  const DType dtype = node.promoted({"self", "other"});
  Composer c(node);
  return c.results({c.op("mod", {node.tensor_as("self", dtype), node.tensor_as("other", dtype)},
                         Attributes({{"fmod", sign_of_self}}))});
}

Result<Values> convert_pow(AtenNode& node) {
  const DType dtype = node.promoted({"self", "exponent"});
  Composer c(node);
  Value* const x = node.tensor_as("self", dtype);
  if (node.is_number("exponent")) {
    const double exponent = node.real("exponent");
    if (exponent == 1) return c.results({x});
    if (exponent == 2) return c.results({is_float(dtype) ? c.op("square", {x}) : c.mul(x, x)});
    if (exponent == 0.5 && is_float(dtype)) return c.results({c.op("sqrt", {x})});
  }
  return c.results({c.op("pow", {x, node.tensor_as("exponent", dtype)})});
}

template <const char* name, bool negated>
Result<Values> convert_comparison(AtenNode& node) {
  const DType dtype = node.promoted({"self", "other"});
  Composer c(node);
  Value* const found = of_numbers(c, name, node.tensor_as("self", dtype), node.tensor_as("other", dtype));
  return c.results({negated ? c.op("not", {found}) : found});
}

template <const char* name>
Result<Values> convert_logical(AtenNode& node) {
  Composer c(node);
  return c.results(
      {c.op(name, {c.cast(node.tensor("self"), DType::boolean), c.cast(node.tensor("other"), DType::boolean)})});
}

template <const char* of_bools, const char* of_integers>
Result<Values> convert_bitwise(AtenNode& node) {
  const DType dtype = node.promoted({"self", "other"});
  Composer c(node);
  return c.results({c.op(dtype == DType::boolean ? of_bools : of_integers,
                         {node.tensor_as("self", dtype), node.tensor_as("other", dtype)})});
}

template <const char* name>
Result<Values> convert_shift(AtenNode& node) {
  const DType dtype = node.promoted({"self", "other"});
  if (!is_integer(dtype)) return lacking("a shift of numbers that are no integers.", "Multiply by a power of 2.");
  Composer c(node);
  return c.results({c.op(name, {node.tensor_as("self", dtype), node.tensor_as("other", dtype)})});
}

Result<Values> convert_where(AtenNode& node) {
  const DType dtype = node.promoted({"self", "other"});
  Composer c(node);
  Value* const condition = c.cast(node.tensor("condition"), DType::boolean);
  return c.results({c.where(condition, node.tensor_as("self", dtype), node.tensor_as("other", dtype))});
}

Result<Values> convert_masked_fill(AtenNode& node) {
  Composer c(node);
  Value* const self = node.tensor("self");
  return c.results(
      {c.where(c.cast(node.tensor("mask"), DType::boolean), node.tensor_as("value", c.dtype(self)), self)});
}

// self + value·tensor1·tensor2, or with a quotient.
template <const char* name>
Result<Values> convert_addc(AtenNode& node) {
  DType dtype = node.promoted({"self", "tensor1", "tensor2"});
  Composer c(node);
  Value* product = c.op(name, {node.tensor_as("tensor1", dtype), node.tensor_as("tensor2", dtype)});
  const double value = node.real("value");
  if (value != 1) product = c.mul(product, value);
  return c.results({c.add(node.tensor_as("self", dtype), product)});
}

Result<Values> convert_lerp(AtenNode& node) {
  const DType dtype = node.promoted({"self", "end"});
  Composer c(node);
  Value* const self = node.tensor_as("self", dtype);
  Value* const end = node.tensor_as("end", dtype);
  return c.results({c.add(self, c.mul(c.sub(end, self), node.tensor_as("weight", dtype)))});
}

}  // namespace

std::vector<AtenEntry> aten_arithmetic_entries() {
  return {
      {"__and__.Scalar(Tensor self, Scalar other) -> Tensor", convert_bitwise<name_and, name_bitwise_and>},
      {"__and__.Tensor(Tensor self, Tensor other) -> Tensor", convert_bitwise<name_and, name_bitwise_and>},
      {"bitwise_and.Scalar(Tensor self, Scalar other) -> Tensor", convert_bitwise<name_and, name_bitwise_and>, true},
      {"__lshift__.Scalar(Tensor self, Scalar other) -> Tensor", convert_shift<name_shift_left>},
      {"__lshift__.Tensor(Tensor self, Tensor other) -> Tensor", convert_shift<name_shift_left>},
      {"__rshift__.Scalar(Tensor self, Scalar other) -> Tensor", convert_shift<name_shift_right>},
      {"__rshift__.Tensor(Tensor self, Tensor other) -> Tensor", convert_shift<name_shift_right>},
      {"bitwise_left_shift.Tensor(Tensor self, Tensor other) -> Tensor", convert_shift<name_shift_left>, true},
      {"bitwise_left_shift.Tensor_Scalar(Tensor self, Scalar other) -> Tensor", convert_shift<name_shift_left>, true},
      {"bitwise_right_shift.Tensor(Tensor self, Tensor other) -> Tensor", convert_shift<name_shift_right>, true},
      {"bitwise_right_shift.Tensor_Scalar(Tensor self, Scalar other) -> Tensor", convert_shift<name_shift_right>, true},
      {"__or__.Scalar(Tensor self, Scalar other) -> Tensor", convert_bitwise<name_or, name_bitwise_or>},
      {"__or__.Tensor(Tensor self, Tensor other) -> Tensor", convert_bitwise<name_or, name_bitwise_or>},
      {"bitwise_or.Scalar(Tensor self, Scalar other) -> Tensor", convert_bitwise<name_or, name_bitwise_or>, true},
      {"__xor__.Scalar(Tensor self, Scalar other) -> Tensor", convert_bitwise<name_xor, name_bitwise_xor>},
      {"__xor__.Tensor(Tensor self, Tensor other) -> Tensor", convert_bitwise<name_xor, name_bitwise_xor>},
      {"bitwise_xor.Scalar(Tensor self, Scalar other) -> Tensor", convert_bitwise<name_xor, name_bitwise_xor>, true},
      {"add.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor", convert_scaled<name_add>, true},
      {"add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor", convert_scaled<name_add>, true},
      {"addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor", convert_addc<name_div>,
       true},
      {"addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor", convert_addc<name_mul>,
       true},
      {"bitwise_and.Tensor(Tensor self, Tensor other) -> Tensor", convert_bitwise<name_and, name_bitwise_and>, true},
      {"bitwise_or.Tensor(Tensor self, Tensor other) -> Tensor", convert_bitwise<name_or, name_bitwise_or>, true},
      {"bitwise_xor.Tensor(Tensor self, Tensor other) -> Tensor", convert_bitwise<name_xor, name_bitwise_xor>, true},
      {"div.Scalar(Tensor self, Scalar other) -> Tensor", convert_div, true},
      {"div.Scalar_mode(Tensor self, Scalar other, *, str? rounding_mode) -> Tensor", convert_div_mode, true},
      {"div.Tensor(Tensor self, Tensor other) -> Tensor", convert_div, true},
      {"div.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor", convert_div_mode, true},
      {"eq.Scalar(Tensor self, Scalar other) -> Tensor", convert_comparison<name_equal, false>},
      {"eq.Tensor(Tensor self, Tensor other) -> Tensor", convert_comparison<name_equal, false>},
      {"floor_divide(Tensor self, Tensor other) -> Tensor", convert_floor_divide},
      {"fmod.Scalar(Tensor self, Scalar other) -> Tensor", convert_mod<true>, true},
      {"fmod.Tensor(Tensor self, Tensor other) -> Tensor", convert_mod<true>, true},
      {"ge.Scalar(Tensor self, Scalar other) -> Tensor", convert_comparison<name_greater_equal, false>},
      {"ge.Tensor(Tensor self, Tensor other) -> Tensor", convert_comparison<name_greater_equal, false>},
      {"gt.Scalar(Tensor self, Scalar other) -> Tensor", convert_comparison<name_greater, false>},
      {"gt.Tensor(Tensor self, Tensor other) -> Tensor", convert_comparison<name_greater, false>},
      {"le.Scalar(Tensor self, Scalar other) -> Tensor", convert_comparison<name_less_equal, false>},
      {"le.Tensor(Tensor self, Tensor other) -> Tensor", convert_comparison<name_less_equal, false>},
      {"lerp.Scalar(Tensor self, Tensor end, Scalar weight) -> Tensor", convert_lerp, true},
      {"logical_and(Tensor self, Tensor other) -> Tensor", convert_logical<name_and>},
      {"logical_or(Tensor self, Tensor other) -> Tensor", convert_logical<name_or>},
      {"logical_xor(Tensor self, Tensor other) -> Tensor", convert_logical<name_xor>},
      {"lt.Scalar(Tensor self, Scalar other) -> Tensor", convert_comparison<name_less, false>},
      {"lt.Tensor(Tensor self, Tensor other) -> Tensor", convert_comparison<name_less, false>},
      {"masked_fill.Scalar(Tensor self, Tensor mask, Scalar value) -> Tensor", convert_masked_fill, true},
      {"masked_fill.Tensor(Tensor self, Tensor mask, Tensor value) -> Tensor", convert_masked_fill, true},
      {"maximum(Tensor self, Tensor other) -> Tensor", convert_binary<name_max>},
      {"minimum(Tensor self, Tensor other) -> Tensor", convert_binary<name_min>},
      {"mul.Scalar(Tensor self, Scalar other) -> Tensor", convert_binary<name_mul>, true},
      {"mul.Tensor(Tensor self, Tensor other) -> Tensor", convert_binary<name_mul>, true},
      {"ne.Scalar(Tensor self, Scalar other) -> Tensor", convert_comparison<name_equal, true>},
      {"ne.Tensor(Tensor self, Tensor other) -> Tensor", convert_comparison<name_equal, true>},
      {"pow.Scalar(Scalar self, Tensor exponent) -> Tensor", convert_pow},
      {"pow.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor", convert_pow},
      {"pow.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor", convert_pow},
      {"remainder.Scalar(Tensor self, Scalar other) -> Tensor", convert_mod<false>, true},
      {"remainder.Tensor(Tensor self, Tensor other) -> Tensor", convert_mod<false>, true},
      {"rsub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor", convert_rsub},
      {"rsub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor", convert_rsub},
      {"sub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor", convert_scaled<name_sub>, true},
      {"sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor", convert_scaled<name_sub>, true},
      {"where.Scalar(Tensor condition, Scalar self, Scalar other) -> Tensor", convert_where},
      {"where.ScalarOther(Tensor condition, Tensor self, Scalar other) -> Tensor", convert_where},
      {"where.ScalarSelf(Tensor condition, Scalar self, Tensor other) -> Tensor", convert_where},
      {"where.self(Tensor condition, Tensor self, Tensor other) -> Tensor", convert_where},
  };
}

}  // namespace polyphase
