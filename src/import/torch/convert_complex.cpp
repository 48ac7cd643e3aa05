// Complex numbers: made, taken apart, computed with.
#include <cmath>

#include "import/compose/einsum.h"
#include "import/torch/complex_parts.h"
#include "import/torch/names.h"

namespace polyphase {
namespace {

using Integers = Composer::Integers;

// Of the parts that the program declares for the result.
DType dtype_of_result(AtenNode& node) { return node.result_dtype().value_or(DType::f32); }

// ---------------------------------------------------------------- made and taken apart

Result<Values> convert_complex_of(AtenNode& node) {
  Composer c(node);
  Value* const real = node.tensor("real");
  Value* const imaginary = node.tensor("imag");
  if (!is_float(c.dtype(real)) || c.dtype(real) != c.dtype(imaginary) || size_bytes(c.dtype(real)) < 4)
    return lacking("complex() of " + real->type.text() + " and " + imaginary->type.text() + ".",
                   "Give it two tensors of float32 or of float64.");
  Value* const both = c.add(real, imaginary);  // for its sizes
  return c.results({joined(c, {c.expand(real, c.sizes(both)), c.expand(imaginary, c.sizes(both))})});
}

Value* by_angle(Composer& c, Value* size, Value* angle) {
  Value* const cosine = c.op("cos", {angle});
  Value* const sine = c.op("sin", {angle});
  return size == nullptr ? joined(c, {cosine, sine}) : joined(c, {c.mul(size, cosine), c.mul(size, sine)});
}

Result<Values> convert_polar(AtenNode& node) {
  Composer c(node);
  const DType dtype = dtype_of_result(node);
  return c.results({by_angle(c, node.tensor_as("abs", dtype), node.tensor_as("angle", dtype))});
}

Result<Values> convert_view_as_complex(AtenNode& node) {
  Composer c(node);
  Value* const x = node.tensor("self");
  if (node.is_complex("self") || c.rank(x) == 0 || !(is_float(c.dtype(x)) && size_bytes(c.dtype(x)) >= 4))
    return lacking("view_as_complex of " + x->type.text() + ".", "Give it real numbers of float32 or float64.");
  c.require_equal(c.size(x, -1), 2, "view_as_complex: tensor must have a last dimension of size 2.");
  if (!c.ok()) return c.results({});
  Composer::Sizes sizes = c.sizes(x);
  sizes.back() = 2;
  return c.results({c.reshape(x, std::move(sizes))});
}

Result<Values> convert_pairs_as_they_are(AtenNode& node) {
  if (!node.is_complex("self")) return broken_program("view_as_real is only supported for complex tensors");
  return Values{node.tensor("self")};
}

Result<Values> convert_real_part(AtenNode& node) {
  Composer c(node);
  Value* const x = node.tensor("self");
  return c.results({node.is_complex("self") ? parts_of(c, x).real : x});
}

Result<Values> convert_imaginary(AtenNode& node) {
  if (!node.is_complex("self")) return broken_program("imag is not implemented for tensors with non-complex dtypes.");
  Composer c(node);
  return c.results({parts_of(c, node.tensor("self")).imaginary});
}

Result<Values> convert_conjugate(AtenNode& node) {
  Composer c(node);
  Value* const x = node.tensor("self");
  if (!node.is_complex("self")) return Values{x};
  const ComplexParts z = parts_of(c, x);
  return c.results({joined(c, {z.real, c.op("neg", {z.imaginary})})});
}

Result<Values> convert_negative(AtenNode& node) {
  Composer c(node);
  return c.results({c.op("neg", {node.tensor("self")})});
}

Result<Values> convert_unchanged(AtenNode& node) { return Values{node.tensor("self")}; }

// Between real and complex; what becomes real loses its imaginary parts.
Result<Values> convert_complex_to(AtenNode& node) {
  Composer c(node);
  Value* const x = node.tensor("self");
  const DType dtype = dtype_of_result(node);
  if (node.gives_complex()) return c.results({as_pairs(c, x, node.is_complex("self"), dtype)});
  return c.results({c.cast(parts_of(c, x).real, dtype)});
}

// ---------------------------------------------------------------- functions of one

Result<Values> convert_magnitude(AtenNode& node) {
  Composer c(node);
  return c.results({magnitude(c, node.tensor("self"))});
}

// Of real numbers: 0 or a half turn.
Result<Values> convert_angle(AtenNode& node) {
  Composer c(node);
  Value* x = node.tensor("self");
  if (node.is_complex("self")) {
    const ComplexParts z = parts_of(c, x);
    return c.results({angle_of(c, z.imaginary, z.real)});
  }
  if (!is_float(c.dtype(x))) x = c.cast(x, DType::f32);
  const DType dtype = c.dtype(x);
  Value* const turned = c.where(c.op("less", {x, c.number(0, dtype)}), c.number(M_PI, dtype), c.number(0, dtype));
  return c.results({c.where(c.op("is_nan", {x}), x, turned)});
}

// exp(a + ib) = exp(a) · (cos b + i·sin b)
Result<Values> convert_exp(AtenNode& node) {
  Composer c(node);
  const ComplexParts z = parts_of(c, node.tensor("self"));
  return c.results({by_angle(c, is_nothing(z.real) ? nullptr : c.op("exp", {z.real}), z.imaginary)});
}

Result<Values> convert_sign(AtenNode& node) {
  Composer c(node);
  Value* const x = node.tensor("self");
  if (c.dtype(x) == DType::boolean) return Values{x};
  if (!node.is_complex("self")) {
    Value* const y = c.op("sign", {x});
    if (!is_float(c.dtype(x))) return c.results({y});
    return c.results({c.where(c.op("is_nan", {x}), c.number(0, c.dtype(x)), y)});  // of NaN PyTorch's sign is 0
  }
  Value* const size = magnitude(c, x);
  Value* const nowhere = c.op("equal", {size, c.number(0, c.dtype(size))});
  Value* const divisor = c.where(nowhere, c.number(1, c.dtype(size)), size);
  return c.results({c.div(x, c.unsqueeze(divisor, c.rank(divisor)))});
}

// Whole powers that are products.
Result<Values> convert_complex_pow(AtenNode& node) {
  Composer c(node);
  const AtenScalar& exponent = node.scalar("exponent");
  Value* const z = as_pairs(node, c, "self", dtype_of_result(node));
  if (exponent.kind != AtenScalar::Kind::complex && exponent.imaginary == 0) {
    if (exponent.value == 1) return c.results({z});
    if (exponent.value == 2) return c.results({product(c, z, z)});
    if (exponent.value == 3) return c.results({product(c, product(c, z, z), z)});
  }
  return lacking("a power of complex numbers other than 1, 2 and 3.", "Write it with abs(), angle() and polar().");
}

Result<Values> convert_complex_square(AtenNode& node) {
  Composer c(node);
  Value* const z = node.tensor("self");
  return c.results({product(c, z, z)});
}

// ---------------------------------------------------------------- functions of two

// self ± alpha·other
template <const char* name>
Result<Values> convert_complex_scaled(AtenNode& node) {
  Composer c(node);
  const DType dtype = dtype_of_result(node);
  Value* const other = c.mul(as_pairs(node, c, "other", dtype), node.real("alpha"));
  return c.results({c.op(name, {as_pairs(node, c, "self", dtype), other})});
}

Result<Values> convert_complex_rsub(AtenNode& node) {
  Composer c(node);
  const DType dtype = dtype_of_result(node);
  Value* const self = c.mul(as_pairs(node, c, "self", dtype), node.real("alpha"));
  return c.results({c.sub(as_pairs(node, c, "other", dtype), self)});
}

bool is_real(AtenNode& node, const char* parameter) {
  if (node.is_number(parameter)) return node.scalar(parameter).kind != AtenScalar::Kind::complex;
  return !node.is_complex(parameter);
}

// A real operand, one number for each pair.
Value* factors(AtenNode& node, Composer& c, const char* parameter, DType dtype) {
  Value* const x = node.tensor_as(parameter, dtype);
  return node.is_number(parameter) ? x : c.unsqueeze(x, c.rank(x));
}

// A real tensor times a complex number.
Value* real_product(AtenNode& node, Composer& c, const char* real, const char* number, DType dtype) {
  Value* const x = node.tensor_as(real, dtype);
  const AtenScalar& by = node.scalar(number);
  const auto part = [&](double value) { return value == 0 ? nothing_like(c, x) : c.mul(x, value); };
  return joined(c, {part(by.value), part(by.imaginary)});
}

Result<Values> convert_mul(AtenNode& node) {
  Composer c(node);
  const DType dtype = dtype_of_result(node);
  const bool left = is_real(node, "self");
  const bool right = is_real(node, "other");
  if (left && node.is_number("other") && !node.is_number("self"))
    return c.results({real_product(node, c, "self", "other", dtype)});
  if (right && node.is_number("self") && !node.is_number("other"))
    return c.results({real_product(node, c, "other", "self", dtype)});
  if (left) return c.results({c.mul(as_pairs(node, c, "other", dtype), factors(node, c, "self", dtype))});
  if (right) return c.results({c.mul(as_pairs(node, c, "self", dtype), factors(node, c, "other", dtype))});
  return c.results({product(c, as_pairs(node, c, "self", dtype), as_pairs(node, c, "other", dtype))});
}

// a / b = a · conj(b) / |b|², b first divided by its larger part, whose square may lie beyond all numbers.
Value* complex_quotient(Composer& c, Value* a, Value* b) {
  const ComplexParts parts = parts_of(c, b);
  Value* const largest = c.op("max", {c.op("abs", {parts.real}), c.op("abs", {parts.imaginary})});
  Value* const real = c.div(parts.real, largest);
  Value* const imaginary = c.div(parts.imaginary, largest);
  Value* const above = product(c, a, joined(c, {real, c.op("neg", {imaginary})}));
  Value* const below = c.mul(c.add(c.op("square", {real}), c.op("square", {imaginary})), largest);
  return c.div(above, c.unsqueeze(below, c.rank(below)));
}

Result<Values> convert_complex_div(AtenNode& node) {
  Composer c(node);
  const DType dtype = dtype_of_result(node);
  Value* const self = as_pairs(node, c, "self", dtype);
  if (is_real(node, "other")) return c.results({c.div(self, factors(node, c, "other", dtype))});
  return c.results({complex_quotient(c, self, as_pairs(node, c, "other", dtype))});
}

Result<Values> convert_reciprocal(AtenNode& node) {
  Composer c(node);
  Value* const z = node.tensor("self");
  Value* const one = node.constant(Tensor::from_values(c.dtype(z), Integers{2}, std::vector<double>{1, 0}));
  return c.results({complex_quotient(c, one, z)});
}

Result<Values> convert_complex_where(AtenNode& node) {
  Composer c(node);
  const DType dtype = dtype_of_result(node);
  Value* const condition = c.cast(node.tensor("condition"), DType::boolean);
  return c.results({c.where(c.unsqueeze(condition, c.rank(condition)), as_pairs(node, c, "self", dtype),
                            as_pairs(node, c, "other", dtype))});
}

Result<Values> convert_complex_masked_fill(AtenNode& node) {
  Composer c(node);
  const DType dtype = dtype_of_result(node);
  Value* const mask = c.cast(node.tensor("mask"), DType::boolean);
  return c.results(
      {c.where(c.unsqueeze(mask, c.rank(mask)), as_pairs(node, c, "value", dtype), as_pairs(node, c, "self", dtype))});
}

// A product that is linear in both operands, by the converter of real numbers: (a + ib)(c + id) = ac - bd + i(ad + bc).
template <const char* first, const char* second>
Result<Values> convert_bilinear(AtenNode& node) {
  Composer c(node);
  const DType dtype = dtype_of_result(node);
  const ComplexParts a = parts_of(c, as_pairs(node, c, first, dtype));
  const ComplexParts b = parts_of(c, as_pairs(node, c, second, dtype));
  if (!c.ok()) return c.results({});
  const auto times = [&](Value* x, Value* y) -> Result<Value*> {
    node.change(first).tensors = {x};
    node.change(second).tensors = {y};
    TRY(const Values found, node.converter().convert(node));
    return found.at(0);
  };
  TRY(Value * ac, times(a.real, b.real));
  TRY(Value * bd, times(a.imaginary, b.imaginary));
  TRY(Value * ad, times(a.real, b.imaginary));
  TRY(Value * bc, times(a.imaginary, b.real));
  return c.results({joined(c, {c.sub(ac, bd), c.add(ad, bc)})});
}

Result<Values> convert_complex_einsum(AtenNode& node) {
  Composer c(node);
  const DType dtype = dtype_of_result(node);
  std::vector<ComplexParts> given;
  const Values tensors = node.tensors("tensors");
  for (std::size_t i = 0; i < tensors.size(); ++i)
    given.push_back(parts_of(c, as_pairs(c, tensors[i], node.is_complex("tensors", i), dtype)));
  if (!c.ok()) return c.results({});
  const std::string equation = node.word("equation");
  const auto of = [&](const Values& operands) { return einsum(node, equation, operands); };
  if (given.size() == 1) {
    TRY(Value * real, of({given[0].real}));
    TRY(Value * imaginary, of({given[0].imaginary}));
    return c.results({joined(c, {real, imaginary})});
  }
  if (given.size() != 2)
    return lacking("einsum of " + std::to_string(given.size()) + " complex tensors.", "Multiply two at a time.");
  TRY(Value * ac, of({given[0].real, given[1].real}));
  TRY(Value * bd, of({given[0].imaginary, given[1].imaginary}));
  TRY(Value * ad, of({given[0].real, given[1].imaginary}));
  TRY(Value * bc, of({given[0].imaginary, given[1].real}));
  return c.results({joined(c, {c.sub(ac, bd), c.add(ad, bc)})});
}

}  // namespace

std::vector<AtenEntry> aten_complex_entries() {
  return {
      {"_conj(Tensor(a) self) -> Tensor(a)", convert_conjugate, false, convert_conjugate},
      {"_conj_physical(Tensor self) -> Tensor", convert_conjugate, false, convert_conjugate},
      {"_neg_view(Tensor(a) self) -> Tensor(a)", convert_negative, false, convert_negative},
      {"angle(Tensor self) -> Tensor", convert_angle, false, convert_angle},
      {"complex(Tensor real, Tensor imag) -> Tensor", convert_complex_of, false, convert_complex_of},
      {"conj(Tensor(a) self) -> Tensor(a)", convert_conjugate, false, convert_conjugate},
      {"conj_physical(Tensor self) -> Tensor", convert_conjugate, true, convert_conjugate},
      {"imag(Tensor(a) self) -> Tensor(a)", convert_imaginary, false, convert_imaginary},
      {"polar(Tensor abs, Tensor angle) -> Tensor", convert_polar, false, convert_polar},
      {"real(Tensor(a) self) -> Tensor(a)", convert_real_part, false, convert_real_part},
      {"resolve_conj(Tensor(a) self) -> Tensor(a)", convert_unchanged, false, convert_unchanged},
      {"resolve_neg(Tensor(a) self) -> Tensor(a)", convert_unchanged, false, convert_unchanged},
      {"sgn(Tensor self) -> Tensor", convert_sign, true, convert_sign},
      {"view_as_complex(Tensor(a) self) -> Tensor(a)", convert_view_as_complex, false, convert_view_as_complex},
      {"view_as_real(Tensor(a) self) -> Tensor(a)", convert_pairs_as_they_are, false, convert_pairs_as_they_are},
  };
}

std::vector<AtenComplexEntry> aten_complex_arithmetic() {
  return {
      {"_to_copy", convert_complex_to},
      {"abs", convert_magnitude},
      {"add.Scalar", convert_complex_scaled<name_add>},
      {"add.Tensor", convert_complex_scaled<name_add>},
      {"bmm", convert_bilinear<name_self, name_mat2>},
      {"div.Scalar", convert_complex_div},
      {"div.Tensor", convert_complex_div},
      {"einsum", convert_complex_einsum},
      {"exp", convert_exp},
      {"masked_fill.Scalar", convert_complex_masked_fill},
      {"masked_fill.Tensor", convert_complex_masked_fill},
      {"matmul", convert_bilinear<name_self, name_other>},
      {"mm", convert_bilinear<name_self, name_mat2>},
      {"mul.Scalar", convert_mul},
      {"mul.Tensor", convert_mul},
      {"mv", convert_bilinear<name_self, name_vec>},
      {"neg", convert_negative},
      {"pow.Tensor_Scalar", convert_complex_pow},
      {"reciprocal", convert_reciprocal},
      {"rsub.Scalar", convert_complex_rsub},
      {"rsub.Tensor", convert_complex_rsub},
      {"square", convert_complex_square},
      {"sub.Scalar", convert_complex_scaled<name_sub>},
      {"sub.Tensor", convert_complex_scaled<name_sub>},
      {"to.device", convert_complex_to},
      {"to.dtype", convert_complex_to},
      {"to.dtype_layout", convert_complex_to},
      {"to.other", convert_complex_to},
      {"type_as", convert_complex_to},
      {"where.ScalarOther", convert_complex_where},
      {"where.ScalarSelf", convert_complex_where},
      {"where.self", convert_complex_where},
  };
}

}  // namespace polyphase
