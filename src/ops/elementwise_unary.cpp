// Elementwise operators of one operand: one table of name, meaning, formula over double, exact formula over integers.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "ops/cut.h"
#include "ops/elements.h"
#include "ops/families.h"
#include "ops/rules.h"

namespace polyphase {
namespace {

// A line's attributes as numbers, in the order of their names: reals as they are, a word 0 if it is "none", else 1.
using Settings = std::array<double, 2>;

Settings settings_of(const Attributes& attributes) {
  Settings out{};
  std::size_t i = 0;
  for (const auto& [name, value] : attributes.values()) {
    const auto* number = std::get_if<double>(&value);
    out[i++] = number != nullptr ? *number : (std::get<std::string>(value) == "none" ? 0.0 : 1.0);
  }
  return out;
}

struct NoUnaryFormula {};  // stands where a line has no formula

// Formulas take (value) or (value, settings).
template <typename Formula, typename T>
auto apply_unary(T value, const Settings& settings) {
  if constexpr (std::is_invocable_v<Formula, T, const Settings&>) {
    return Formula{}(value, settings);
  } else {
    return Formula{}(value);
  }
}

// As uint64 for u64, so that order and sign see the true value.
template <typename Formula, typename Number>
void apply_all(Number* values, std::int64_t count, bool is_unsigned, const Settings& settings) {
  if constexpr (std::is_integral_v<Number>) {
    if (is_unsigned) {
      for (std::int64_t i = 0; i < count; ++i) {
        values[i] = static_cast<Number>(apply_unary<Formula>(static_cast<std::uint64_t>(values[i]), settings));
      }
      return;
    }
  }
  for (std::int64_t i = 0; i < count; ++i) values[i] = static_cast<Number>(apply_unary<Formula>(values[i], settings));
}

template <typename Number>
using UnaryBlock = void (*)(Number* values, std::int64_t count, bool is_unsigned, const Settings&);

template <typename Number>
void run_unary_blocks(const TensorView& x, const TensorView& y, const Settings& settings, UnaryBlock<Number> compute) {
  for_each_block<2>(y.size_span(), {y.strides.data(), x.strides.data()}, RowOrder::any,
                    [&](const auto& at, std::int64_t count, const auto& step) {
                      Number values[block_elements];
                      read_block(element_at(x, at[1]), x.dtype, step[1], count, values);
                      compute(values, count, x.dtype == DType::u64, settings);
                      write_block(element_at(y, at[0]), y.dtype, step[0], count, values);
                    });
}

template <DTypeSet set, bool gives_bool>
Result<std::vector<Type>> infer_unary(const InferContext& context) {
  TRY_VOID(expect_dtype(context, 0, set));
  return std::vector<Type>{{gives_bool ? DType::boolean : context.input(0).dtype, context.shape(0)}};
}

template <typename DimFormula>
Contents unary_contents(const InferContext& context) {
  const DType dtype = context.input(0).dtype;
  if (context.contents(0) == nullptr || (dtype != DType::i64 && dtype != DType::i32 && dtype != DType::boolean))
    return std::nullopt;
  std::vector<Dim> out;
  for (const Dim& x : *context.contents(0)) {
    const std::optional<Dim> y = DimFormula{}(x);
    if (!y.has_value() || y->overflowed()) return std::nullopt;
    out.push_back(*y);
  }
  return out;
}

// One line of the table.
template <typename Floats, typename Integers, typename Dims = NoUnaryFormula>
OpDef unary_line(const char* name, const char* doc, DTypeSet set, Floats, Integers,
                 std::vector<AttributeSpec> attributes = {}, Dims = {}, bool gives_bool = false) {
  OpDef op{.name = name,
           .doc = doc,
           .inputs = {{"x", "any shape"}},
           .outputs = {{"y", "the shape of x"}},
           .attributes = std::move(attributes),
           .infer = nullptr,
           .reference = nullptr,
           .layout = LayoutRule::elementwise};
  op.elementwise = true;
  op.cut = cut_elementwise;
  switch (set) {
    case DTypeSet::floats:
      op.infer = gives_bool ? infer_unary<DTypeSet::floats, true> : infer_unary<DTypeSet::floats, false>;
      break;
    case DTypeSet::integers:
      op.infer = infer_unary<DTypeSet::integers, false>;
      break;
    case DTypeSet::booleans:
      op.infer = infer_unary<DTypeSet::booleans, false>;
      break;
    default:
      op.infer = infer_unary<DTypeSet::numbers, false>;
      break;
  }
  op.reference = [](const ReferenceContext& context) -> Result<void> {
    const TensorView& x = context.inputs[0];
    const Settings settings = settings_of(context.attributes);
    if constexpr (!std::is_same_v<Floats, NoUnaryFormula>) {
      if (is_float(x.dtype)) run_unary_blocks<double>(x, context.outputs[0], settings, apply_all<Floats, double>);
    }
    if constexpr (!std::is_same_v<Integers, NoUnaryFormula>) {
      if (!is_float(x.dtype))
        run_unary_blocks<std::int64_t>(x, context.outputs[0], settings, apply_all<Integers, std::int64_t>);
    }
    return {};
  };
  if constexpr (!std::is_same_v<Dims, NoUnaryFormula>) op.contents = unary_contents<Dims>;
  return op;
}

template <typename Floats>
OpDef unary_line(const char* name, const char* doc, Floats formula, std::vector<AttributeSpec> attributes = {}) {
  return unary_line(name, doc, DTypeSet::floats, formula, NoUnaryFormula{}, std::move(attributes));
}

AttributeSpec real(const char* name, const char* doc, double default_value) {
  return {name, AttributeKind::real, doc, Attribute(default_value)};
}

double clamped(double value, double low, double high) { return value < low ? low : value > high ? high : value; }
double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double softplus(double x) { return std::fmax(x, 0.0) + std::log1p(std::exp(-std::fabs(x))); }

double gelu(double x, const Settings& settings) {
  if (settings[0] == 0) return 0.5 * x * std::erfc(-x / std::numbers::sqrt2);
  const double inner = std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x);
  return x / (1 + std::exp(-2 * inner));  // x/2 * (1 + tanh(inner)) without its cancellation
}

// A real limit as the nearest integer inside it.
template <typename T>
T integer_limit(double limit, bool low) {
  const double whole = low ? std::ceil(limit) : std::floor(limit);
  if (!(whole > static_cast<double>(std::numeric_limits<T>::min()))) return std::numeric_limits<T>::min();
  if (whole >= static_cast<double>(std::numeric_limits<T>::max())) return std::numeric_limits<T>::max();
  return static_cast<T>(whole);
}

template <typename T>
T clip_integer(T x, const Settings& settings) {
  const T high = integer_limit<T>(settings[0], false);
  const T low = integer_limit<T>(settings[1], true);
  return std::min(std::max(x, low), high);
}

std::optional<Dim> absolute(const Dim& x) {
  const DimRange range = x.range();
  if (range.low >= 0) return x;
  return range.high <= 0 ? -x : max(x, -x);
}

std::vector<OpDef> unary_arithmetic_lines() {
  constexpr DTypeSet numbers = DTypeSet::numbers;
  const auto same = [](auto x) { return x; };
  return {
      unary_line(
          "abs", "|x|.", numbers, [](double x) { return std::fabs(x); },
          [](auto x) { return x < 0 ? wrapping_subtract<decltype(x)>(0, x) : x; }, {},
          [](const Dim& x) { return absolute(x); }),
      unary_line(
          "neg", "-x; integers wrap.", numbers, [](double x) { return -x; },
          [](auto x) { return wrapping_subtract<decltype(x)>(0, x); }, {},
          [](const Dim& x) { return std::optional<Dim>(-x); }),
      unary_line(
          "sign", "1, 0 or -1 with the sign of x; NaN stays NaN.", numbers,
          [](double x) {
            return x > 0 ? 1.0 : x < 0 ? -1.0 : x == 0 ? 0.0 : x;
          },
          [](auto x) {
            return static_cast<decltype(x)>(x > 0 ? 1 : x < 0 ? -1 : 0);
          }),
      unary_line(
          "floor", "The greatest integer <= x.", numbers, [](double x) { return std::floor(x); }, same),
      unary_line(
          "ceil", "The least integer >= x.", numbers, [](double x) { return std::ceil(x); }, same),
      unary_line(
          "round", "The nearest integer, ties to even.", numbers, [](double x) { return std::nearbyint(x); }, same),
      unary_line("reciprocal", "1 / x.", [](double x) { return 1 / x; }),
      unary_line("square", "x * x.", [](double x) { return x * x; }),
      unary_line("sqrt", "The square root; NaN below 0.", [](double x) { return std::sqrt(x); }),
      unary_line(
          "clip", "min(max(x, low), high); NaN stays NaN.", numbers,
          [](double x, const Settings& settings) {
            const double raised = x < settings[1] ? settings[1] : x;
            return raised > settings[0] ? settings[0] : raised;
          },
          [](auto x, const Settings& settings) { return clip_integer(x, settings); },
          {real("low", "the least result", -std::numeric_limits<double>::infinity()),
           real("high", "the greatest result", std::numeric_limits<double>::infinity())}),
  };
}

std::vector<OpDef> function_lines() {
  return {
      unary_line("exp", "e to the power x.", [](double x) { return std::exp(x); }),
      unary_line("log", "The natural logarithm.", [](double x) { return std::log(x); }),
      unary_line("sin", "The sine of x in radians.", [](double x) { return std::sin(x); }),
      unary_line("cos", "The cosine of x in radians.", [](double x) { return std::cos(x); }),
      unary_line("tan", "The tangent of x in radians.", [](double x) { return std::tan(x); }),
      unary_line("asin", "The arc sine.", [](double x) { return std::asin(x); }),
      unary_line("acos", "The arc cosine.", [](double x) { return std::acos(x); }),
      unary_line("atan", "The arc tangent.", [](double x) { return std::atan(x); }),
      unary_line("sinh", "The hyperbolic sine.", [](double x) { return std::sinh(x); }),
      unary_line("cosh", "The hyperbolic cosine.", [](double x) { return std::cosh(x); }),
      unary_line("tanh", "The hyperbolic tangent.", [](double x) { return std::tanh(x); }),
      unary_line("asinh", "The inverse hyperbolic sine.", [](double x) { return std::asinh(x); }),
      unary_line("acosh", "The inverse hyperbolic cosine.", [](double x) { return std::acosh(x); }),
      unary_line("atanh", "The inverse hyperbolic tangent.", [](double x) { return std::atanh(x); }),
      unary_line("erf", "The error function.", [](double x) { return std::erf(x); }),
  };
}

std::vector<OpDef> activation_lines() {
  return {
      unary_line(
          "relu", "max(x, 0); NaN stays NaN.", DTypeSet::numbers, [](double x) { return x <= 0 ? 0.0 : x; },
          [](auto x) { return x < 0 ? decltype(x){0} : x; }),
      unary_line("sigmoid", "1 / (1 + exp(-x)).", [](double x) { return sigmoid(x); }),
      unary_line("softplus", "log(1 + exp(x)).", [](double x) { return softplus(x); }),
      unary_line("softsign", "x / (1 + |x|).", [](double x) { return x / (1 + std::fabs(x)); }),
      unary_line("mish", "x * tanh(softplus(x)).", [](double x) { return x * std::tanh(softplus(x)); }),
      unary_line("silu", "x * sigmoid(x).", [](double x) { return x / (1 + std::exp(-x)); }),
      unary_line("hard_swish", "x * clip(x / 6 + 1/2, 0, 1).", [](double x) { return x * clamped(x / 6 + 0.5, 0, 1); }),
      unary_line("hard_sigmoid", "clip(alpha * x + beta, 0, 1).",
                 [](double x, const Settings& settings) { return clamped(settings[0] * x + settings[1], 0, 1); },
                 {real("alpha", "the slope", 0.2), real("beta", "the value at 0", 0.5)}),
      unary_line("leaky_relu", "x where x >= 0, else alpha * x.",
                 [](double x, const Settings& settings) { return x < 0 ? settings[0] * x : x; },
                 {real("alpha", "the slope below 0", 0.01)}),
      unary_line("elu", "x where x > 0, else alpha * (exp(x) - 1).",
                 [](double x, const Settings& settings) { return x > 0 ? x : settings[0] * std::expm1(x); },
                 {real("alpha", "the scale below 0", 1)}),
      unary_line(
          "celu", "x where x > 0, else alpha * (exp(x / alpha) - 1).",
          [](double x, const Settings& settings) { return x > 0 ? x : settings[0] * std::expm1(x / settings[0]); },
          {real("alpha", "the scale below 0", 1)}),
      unary_line(
          "selu", "gamma * x where x > 0, else gamma * alpha * (exp(x) - 1).",
          [](double x, const Settings& settings) { return settings[1] * (x > 0 ? x : settings[0] * std::expm1(x)); },
          {real("alpha", "the scale below 0", 1.67326319217681884765625),
           real("gamma", "the scale", 1.05070102214813232421875)}),
      unary_line("thresholded_relu", "x where x > alpha, else 0.",
                 [](double x, const Settings& settings) { return x > settings[0] ? x : 0.0; },
                 {real("alpha", "the threshold", 1)}),
      unary_line(
          "gelu", "x * Phi(x), Phi the standard normal distribution; or its tanh approximation.",
          [](double x, const Settings& settings) { return gelu(x, settings); },
          {{"approximate", AttributeKind::word, "which formula", Attribute(std::string("none")), {"none", "tanh"}}}),
  };
}

std::vector<OpDef> predicate_lines() {
  const auto negate = [](const Dim& x) { return x.is_constant() ? std::optional<Dim>(x == 0 ? 1 : 0) : std::nullopt; };
  return {
      unary_line(
          "not", "Logical not.", DTypeSet::booleans, NoUnaryFormula{},
          [](auto x) { return static_cast<decltype(x)>(x == 0 ? 1 : 0); }, {}, negate),
      unary_line("bitwise_not", "Every bit flipped.", DTypeSet::integers, NoUnaryFormula{},
                 [](auto x) { return static_cast<decltype(x)>(~x); }),
      unary_line(
          "is_nan", "Whether x is NaN.", DTypeSet::floats, [](double x) { return std::isnan(x) ? 1.0 : 0.0; },
          NoUnaryFormula{}, {}, NoUnaryFormula{}, true),
      unary_line(
          "is_inf", "Whether x is infinite.", DTypeSet::floats, [](double x) { return std::isinf(x) ? 1.0 : 0.0; },
          NoUnaryFormula{}, {}, NoUnaryFormula{}, true),
  };
}

}  // namespace

std::vector<OpDef> elementwise_unary_operators() {
  std::vector<OpDef> out;
  for (const auto lines : {unary_arithmetic_lines, function_lines, activation_lines, predicate_lines}) {
    for (OpDef& op : lines()) out.push_back(std::move(op));
  }
  return out;
}

}  // namespace polyphase
