// Elementwise operators of two operands with numpy's broadcasting: one table of name, meaning, formula over double,
// exact formula over integers, formula over Dim.
#include <cmath>
#include <cstring>

#include "ops/cut.h"
#include "ops/elements.h"
#include "ops/families.h"
#include "ops/rules.h"

namespace polyphase {
namespace {

struct NoBinaryFormula {};  // stands where a line has no formula

using OptionalDim = std::optional<Dim>;

// Formulas take (x, y) or (x, y, fmod).
template <typename Formula, typename T>
auto apply_binary(T x, T y, bool setting) {
  if constexpr (std::is_invocable_v<Formula, T, T, bool>) {
    return Formula{}(x, y, setting);
  } else {
    return Formula{}(x, y);
  }
}

// As uint64 for u64, so that order, division and shifts see the true value.
template <typename Formula, typename Number>
void combine_all(Number* x, const Number* y, std::int64_t count, bool is_unsigned, bool setting) {
  if constexpr (std::is_integral_v<Number>) {
    if (is_unsigned) {
      for (std::int64_t i = 0; i < count; ++i) {
        const auto left = static_cast<std::uint64_t>(x[i]);
        const auto right = static_cast<std::uint64_t>(y[i]);
        x[i] = static_cast<Number>(apply_binary<Formula>(left, right, setting));
      }
      return;
    }
  }
  for (std::int64_t i = 0; i < count; ++i) x[i] = static_cast<Number>(apply_binary<Formula>(x[i], y[i], setting));
}

template <typename Number>
using BinaryBlock = void (*)(Number* x, const Number* y, std::int64_t count, bool is_unsigned, bool setting);

template <typename Number>
void run_binary_blocks(const ReferenceContext& context, bool setting, BinaryBlock<Number> compute) {
  const TensorView& result = context.outputs[0];
  const TensorView x = broadcast_view(context.inputs[0], result.size_span());
  const TensorView y = broadcast_view(context.inputs[1], result.size_span());
  for_each_block<3>(result.size_span(), {result.strides.data(), x.strides.data(), y.strides.data()}, RowOrder::any,
                    [&](const auto& at, std::int64_t count, const auto& step) {
                      Number left[block_elements];
                      Number right[block_elements];
                      read_block(element_at(x, at[1]), x.dtype, step[1], count, left);
                      read_block(element_at(y, at[2]), y.dtype, step[2], count, right);
                      compute(left, right, count, x.dtype == DType::u64, setting);
                      write_block(element_at(result, at[0]), result.dtype, step[0], count, left);
                    });
}

struct ProductFormula {
  double operator()(double x, double y) const { return x * y; }
};

// Single weights by a double scale, which is how scales are folded into them (engine/recipe_evaluate.cpp,
// passes/scaled_constants.h): rows are the few taps of a channel, too short for blocks. False: it is something else.
bool scale_singles(const ReferenceContext& context) {
  const TensorView& result = context.outputs[0];
  if (context.inputs[0].dtype != DType::f32 || context.inputs[1].dtype != DType::f64 || result.dtype != DType::f32)
    return false;
  const TensorView x = broadcast_view(context.inputs[0], result.size_span());
  const TensorView y = broadcast_view(context.inputs[1], result.size_span());
  for_each_row<3>(result.size_span(), {result.strides.data(), x.strides.data(), y.strides.data()}, RowOrder::any,
                  [&](const auto& at, std::int64_t count, const auto& step) {
                    const std::byte* from = element_at(x, at[1]);
                    const std::byte* by = element_at(y, at[2]);
                    std::byte* to = element_at(result, at[0]);
                    const auto scale = [&](std::int64_t to_step, std::int64_t from_step, std::int64_t by_step) {
                      for (std::int64_t i = 0; i < count; ++i) {
                        float single = 0;
                        double factor = 0;
                        std::memcpy(&single, from + i * from_step * 4, 4);
                        std::memcpy(&factor, by + i * by_step * 8, 8);
                        single = static_cast<float>(static_cast<double>(single) * factor);
                        std::memcpy(to + i * to_step * 4, &single, 4);
                      }
                    };
                    step[0] == 1 && step[1] == 1 && step[2] == 0 ? scale(1, 1, 0) : scale(step[0], step[1], step[2]);
                  });
  return true;
}

template <DTypeSet set, bool gives_bool>
Result<std::vector<Type>> infer_binary(const InferContext& context) {
  TRY_VOID(expect_dtype(context, 0, set));
  TRY_VOID(expect_same_dtype(context, 0, 1));
  TRY(Shape shape, broadcast_operands(context, 0, 1));
  return std::vector<Type>{{gives_bool ? DType::boolean : context.input(0).dtype, std::move(shape)}};
}

Result<std::vector<Type>> infer_mixed(const InferContext& context) {
  TRY_VOID(expect_dtype(context, 0, DTypeSet::floats));
  TRY_VOID(expect_dtype(context, 1, DTypeSet::floats));
  TRY(Shape shape, broadcast_operands(context, 0, 1));
  return std::vector<Type>{{context.input(0).dtype, std::move(shape)}};
}

bool setting_of(const Attributes& attributes) { return attributes.has("fmod") && attributes.get<bool>("fmod"); }

// The least and greatest value of the dtypes that carry sizes.
bool fits(const Dim& value, DType dtype) {
  if (!value.is_constant()) return dtype == DType::i64 || dtype == DType::i32;
  return dtype != DType::i32 || (value.value() >= INT32_MIN && value.value() <= INT32_MAX);
}

template <typename Dims>
Contents binary_contents(const InferContext& context) {
  const DType dtype = context.input(0).dtype;
  if (dtype != DType::i64 && dtype != DType::i32 && dtype != DType::boolean) return std::nullopt;
  const std::vector<Dim>* x = context.contents(0);
  const std::vector<Dim>* y = context.contents(1);
  if (x == nullptr || y == nullptr) return std::nullopt;
  const auto x_sizes = context.shape(0).evaluate({});
  const auto y_sizes = context.shape(1).evaluate({});
  const auto shape = broadcast_operands(context, 0, 1);
  if (!x_sizes.has_value() || !y_sizes.has_value() || !shape.ok()) return std::nullopt;
  const std::vector<std::int64_t> sizes = shape->evaluate({}).value();
  const TensorView left = broadcast_view({TensorDesc::row_major(dtype, *x_sizes), nullptr}, sizes);
  const TensorView right = broadcast_view({TensorDesc::row_major(dtype, *y_sizes), nullptr}, sizes);
  const bool setting = setting_of(context.attributes());
  std::vector<Dim> out;
  bool known = true;
  for_each_index<2>(sizes, {left.strides.data(), right.strides.data()}, [&](const auto& at) {
    if (!known) return;
    const OptionalDim value =
        apply_binary<Dims>((*x)[static_cast<std::size_t>(at[0])], (*y)[static_cast<std::size_t>(at[1])], setting);
    known = value.has_value() && !value->overflowed() && (dtype == DType::boolean || fits(*value, dtype));
    if (known) out.push_back(*value);
  });
  return known ? Contents(std::move(out)) : std::nullopt;
}

// One line of the table.
template <typename Floats, typename Integers, typename Dims>
OpDef binary_line(const char* name, const char* doc, DTypeSet set, Floats, Integers, Dims, bool gives_bool = false) {
  OpDef op{.name = name,
           .doc = doc,
           .inputs = {{"x", "any shape"}, {"y", "a shape that broadcasts with x"}},
           .outputs = {{"z", gives_bool ? "bool, the broadcast shape" : "the broadcast shape"}},
           .one_dtype = 0b11,
           .layout = LayoutRule::elementwise};
  op.elementwise = true;
  op.cut = cut_elementwise;
  switch (set) {
    case DTypeSet::numbers:
      op.infer = gives_bool ? infer_binary<DTypeSet::numbers, true> : infer_binary<DTypeSet::numbers, false>;
      break;
    case DTypeSet::integers:
      op.infer = infer_binary<DTypeSet::integers, false>;
      break;
    case DTypeSet::booleans:
      op.infer = infer_binary<DTypeSet::booleans, false>;
      break;
    default:
      op.infer = infer_binary<DTypeSet::any, true>;
      break;
  }
  op.reference = [](const ReferenceContext& context) -> Result<void> {
    if constexpr (std::is_same_v<Floats, ProductFormula>) {
      if (scale_singles(context)) return {};
    }
    const bool setting = setting_of(context.attributes);
    if constexpr (!std::is_same_v<Floats, NoBinaryFormula>) {
      if (is_float(context.inputs[0].dtype)) run_binary_blocks<double>(context, setting, combine_all<Floats, double>);
    }
    if constexpr (!std::is_same_v<Integers, NoBinaryFormula>) {
      if (!is_float(context.inputs[0].dtype))
        run_binary_blocks<std::int64_t>(context, setting, combine_all<Integers, std::int64_t>);
    }
    return {};
  };
  if constexpr (!std::is_same_v<Dims, NoBinaryFormula>) op.contents = binary_contents<Dims>;
  return op;
}

// One formula for floats and integers alike.
template <typename Formula, typename Dims>
OpDef comparison(const char* name, const char* doc, DTypeSet set, Formula formula, Dims dims) {
  return binary_line(name, doc, set, formula, formula, dims, true);
}

double remainder_of(double x, double y, bool truncate) {
  const double rest = std::fmod(x, y);
  return !truncate && rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
}

// x - y * (x / y); 0 for y == 0.
template <typename T>
T remainder_of(T x, T y, bool truncate) {
  if (y == 0) return 0;
  const T rest = wrapping_subtract(x, wrapping_multiply(y, total_divide(x, y)));
  return !truncate && rest != 0 && (rest < 0) != (y < 0) ? wrapping_add(rest, y) : rest;
}

// Square and multiply; negative exponents give what 1 / x^-y truncates to.
template <typename T>
T integer_power(T x, T y) {
  if (y < 0) {
    const bool odd = (y & 1) != 0;
    if (x == 1 || (x == wrapping_subtract(T{0}, T{1}) && !odd)) return 1;
    return x == wrapping_subtract(T{0}, T{1}) ? x : T{0};
  }
  T result = 1;
  for (auto exponent = static_cast<std::uint64_t>(y); exponent != 0; exponent >>= 1U) {
    if ((exponent & 1U) != 0) result = wrapping_multiply(result, x);
    x = wrapping_multiply(x, x);
  }
  return result;
}

// Shifts by 64 or more, or by negative counts, move every bit out.
template <typename T>
T shifted(T x, T y, bool left) {
  const auto count = static_cast<std::uint64_t>(y);
  if (count >= 64) return left || x >= 0 ? T{0} : static_cast<T>(-1);
  return left ? static_cast<T>(static_cast<std::uint64_t>(x) << count) : static_cast<T>(x >> count);
}

bool never_negative(const Dim& x) { return x.range().low >= 0; }

// Towards zero, as C divides: one of the two floors is 0.
OptionalDim divide(const Dim& x, const Dim& y) {
  if (x.is_constant() && y.is_constant()) return Dim(total_divide(x.value(), y.value()));
  if (y.range().low <= 0) return std::nullopt;
  if (never_negative(x)) return floor_div(x, y);
  return floor_div(max(x, 0), y) - floor_div(max(-x, 0), y);
}

OptionalDim modulo(const Dim& x, const Dim& y, bool truncate) {
  if (x.is_constant() && y.is_constant()) return Dim(remainder_of(x.value(), y.value(), truncate));
  if (y.range().low <= 0) return std::nullopt;
  if (!truncate || never_negative(x)) return floor_mod(x, y);
  return floor_mod(max(x, 0), y) - floor_mod(max(-x, 0), y);
}

OptionalDim truth(bool surely, bool surely_not) {
  return surely ? OptionalDim(Dim(1)) : surely_not ? OptionalDim(Dim(0)) : std::nullopt;
}
OptionalDim less(const Dim& x, const Dim& y) { return truth(surely_less_equal(x + 1, y), surely_less_equal(y, x)); }
OptionalDim less_equal(const Dim& x, const Dim& y) {
  return truth(surely_less_equal(x, y), surely_less_equal(y + 1, x));
}

std::vector<OpDef> binary_arithmetic_lines() {
  constexpr DTypeSet numbers = DTypeSet::numbers;
  OpDef mod = binary_line(
      "mod", "x modulo y with the sign of y; with the sign of x if fmod. An integer modulo 0 is 0.", numbers,
      [](double x, double y, bool fmod) { return remainder_of(x, y, fmod); },
      [](auto x, auto y, bool fmod) { return remainder_of(x, y, fmod); },
      [](const Dim& x, const Dim& y, bool fmod) { return modulo(x, y, fmod); });
  mod.attributes = {{"fmod", AttributeKind::boolean, "the sign of x, as C's fmod", Attribute(false)}};
  return {
      binary_line(
          "add", "x + y; integers wrap.", numbers, [](double x, double y) { return x + y; },
          [](auto x, auto y) { return wrapping_add(x, y); },
          [](const Dim& x, const Dim& y) { return OptionalDim(x + y); }),
      binary_line(
          "sub", "x - y; integers wrap.", numbers, [](double x, double y) { return x - y; },
          [](auto x, auto y) { return wrapping_subtract(x, y); },
          [](const Dim& x, const Dim& y) { return OptionalDim(x - y); }),
      binary_line(
          "mul", "x * y; integers wrap.", numbers, ProductFormula{},
          [](auto x, auto y) { return wrapping_multiply(x, y); },
          [](const Dim& x, const Dim& y) { return OptionalDim(x * y); }),
      binary_line(
          "div", "x / y; integers truncate towards zero, and an integer divided by 0 is 0.", numbers,
          [](double x, double y) { return x / y; }, [](auto x, auto y) { return total_divide(x, y); },
          [](const Dim& x, const Dim& y) { return divide(x, y); }),
      std::move(mod),
      binary_line(
          "min", "The lesser of x and y; NaN if either is.", numbers,
          [](double x, double y) { return x < y || std::isnan(x) ? x : y; },
          [](auto x, auto y) { return x < y ? x : y; },
          [](const Dim& x, const Dim& y) { return OptionalDim(min(x, y)); }),
      binary_line(
          "max", "The greater of x and y; NaN if either is.", numbers,
          [](double x, double y) { return x > y || std::isnan(x) ? x : y; },
          [](auto x, auto y) { return x > y ? x : y; },
          [](const Dim& x, const Dim& y) { return OptionalDim(max(x, y)); }),
      binary_line(
          "pow", "x to the power y; integers wrap, and negative exponents of integers truncate 1 / x^-y.", numbers,
          [](double x, double y) { return std::pow(x, y); }, [](auto x, auto y) { return integer_power(x, y); },
          NoBinaryFormula{}),
      binary_line(
          "prelu", "x where x >= 0, else y * x: y is the slope.", numbers,
          [](double x, double y) { return x < 0 ? y * x : x; },
          [](auto x, auto y) { return x < 0 ? wrapping_multiply(y, x) : x; }, NoBinaryFormula{}),
  };
}

// Of its own, since its operands differ in dtype: a kernel widens what is stored half as wide as it adds it.
OpDef mixed_sum() {
  OpDef op = binary_line(
      "add_mixed", "x + y of any two float dtypes, rounded once, to x's.", DTypeSet::numbers,
      [](double x, double y) { return x + y; }, NoBinaryFormula{}, NoBinaryFormula{});
  op.infer = infer_mixed;
  op.one_dtype = 0;
  return op;
}

std::vector<OpDef> comparison_lines() {
  constexpr DTypeSet numbers = DTypeSet::numbers;
  return {
      comparison(
          "equal", "Whether x == y; NaN equals nothing.", DTypeSet::any, [](auto x, auto y) { return x == y ? 1 : 0; },
          [](const Dim& x, const Dim& y) { return truth(x == y, surely_different(x, y)); }),
      comparison(
          "less", "Whether x < y.", numbers, [](auto x, auto y) { return x < y ? 1 : 0; },
          [](const Dim& x, const Dim& y) { return less(x, y); }),
      comparison(
          "less_equal", "Whether x <= y.", numbers, [](auto x, auto y) { return x <= y ? 1 : 0; },
          [](const Dim& x, const Dim& y) { return less_equal(x, y); }),
      comparison(
          "greater", "Whether x > y.", numbers, [](auto x, auto y) { return x > y ? 1 : 0; },
          [](const Dim& x, const Dim& y) { return less(y, x); }),
      comparison(
          "greater_equal", "Whether x >= y.", numbers, [](auto x, auto y) { return x >= y ? 1 : 0; },
          [](const Dim& x, const Dim& y) { return less_equal(y, x); }),
  };
}

std::vector<OpDef> logic_lines() {
  constexpr DTypeSet booleans = DTypeSet::booleans;
  constexpr DTypeSet integers = DTypeSet::integers;
  return {
      binary_line(
          "and", "Logical and.", booleans, NoBinaryFormula{}, [](auto x, auto y) { return x & y; },
          [](const Dim& x, const Dim& y) { return OptionalDim(x * y); }),
      binary_line(
          "or", "Logical or.", booleans, NoBinaryFormula{}, [](auto x, auto y) { return x | y; },
          [](const Dim& x, const Dim& y) { return OptionalDim(max(x, y)); }),
      binary_line(
          "xor", "Logical exclusive or.", booleans, NoBinaryFormula{}, [](auto x, auto y) { return x ^ y; },
          [](const Dim& x, const Dim& y) { return OptionalDim(x + y - Dim(2) * x * y); }),
      binary_line(
          "bitwise_and", "And of every bit.", integers, NoBinaryFormula{}, [](auto x, auto y) { return x & y; },
          NoBinaryFormula{}),
      binary_line(
          "bitwise_or", "Or of every bit.", integers, NoBinaryFormula{}, [](auto x, auto y) { return x | y; },
          NoBinaryFormula{}),
      binary_line(
          "bitwise_xor", "Exclusive or of every bit.", integers, NoBinaryFormula{},
          [](auto x, auto y) { return x ^ y; }, NoBinaryFormula{}),
      binary_line(
          "shift_left", "x moved up by y bits; zeros come in.", integers, NoBinaryFormula{},
          [](auto x, auto y) { return shifted(x, y, true); }, NoBinaryFormula{}),
      binary_line(
          "shift_right", "x moved down by y bits; copies of the sign come in if the dtype has one.", integers,
          NoBinaryFormula{}, [](auto x, auto y) { return shifted(x, y, false); }, NoBinaryFormula{}),
  };
}

}  // namespace

std::vector<OpDef> elementwise_binary_operators() {
  std::vector<OpDef> out;
  for (const auto lines : {binary_arithmetic_lines, comparison_lines, logic_lines}) {
    for (OpDef& op : lines()) out.push_back(std::move(op));
  }
  out.push_back(mixed_sum());
  return out;
}

}  // namespace polyphase
