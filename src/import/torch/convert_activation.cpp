// Functions of one operand, element by element: activations, roundings, transcendental functions.
#include <cmath>

#include "import/compose/composer.h"
#include "import/torch/aten_node.h"
#include "import/torch/names.h"

namespace polyphase {
namespace {

// Integers and bools become PyTorch's default float.
Value* as_float(AtenNode& node, std::string_view parameter) {
  const DType dtype = node.promoted({parameter});
  return node.tensor_as(parameter, is_float(dtype) ? dtype : DType::f32);
}

// The IR has the operator by this name; it keeps the dtype.
template <const char* name>
Result<Values> convert_plain(AtenNode& node) {
  Composer c(node);
  return c.results({c.op(name, {node.tensor("self")})});
}

// Bools multiply as i64.
Result<Values> convert_square(AtenNode& node) {
  Composer c(node);
  Value* x = node.tensor("self");
  if (c.dtype(x) == DType::boolean) x = c.cast(x, DType::i64);
  return c.results({is_float(x->type.dtype) ? c.op("square", {x}) : c.mul(x, x)});
}

// Its result is a float.
template <const char* name>
Result<Values> convert_real(AtenNode& node) {
  Composer c(node);
  return c.results({c.op(name, {as_float(node, "self")})});
}

// Integers are whole already.
template <const char* name>
Result<Values> convert_rounding(AtenNode& node) {
  Value* const x = node.tensor("self");
  if (!is_float(x->type.dtype)) return Values{x};
  Composer c(node);
  return c.results({c.op(name, {x})});
}

Result<Values> convert_rsqrt(AtenNode& node) {
  Composer c(node);
  return c.results({c.op("reciprocal", {c.op("sqrt", {as_float(node, "self")})})});
}

Result<Values> convert_truncate(AtenNode& node) {
  Value* const x = node.tensor("self");
  if (!is_float(x->type.dtype)) return Values{x};
  Composer c(node);
  return c.results({c.truncate(x)});
}

// Logarithms and powers of other bases: f(x)·factor.
template <int base>
Result<Values> convert_log(AtenNode& node) {
  Composer c(node);
  return c.results({c.mul(c.op("log", {as_float(node, "self")}), 1 / std::log(static_cast<double>(base)))});
}

Result<Values> convert_log1p(AtenNode& node) {
  // log(1 + x) = x·log(u)/(u - 1) with u = 1 + x rounded keeps the digits of small x (Goldberg 1991, theorem 4).
  Composer c(node);
  Value* const x = as_float(node, "self");
  Value* const u = c.add(x, 1);
  Value* const difference = c.add(u, -1);
  Value* const nothing = c.op(
      "or", {c.op("equal", {difference, c.number(0, c.dtype(x))}), c.op("equal", {u, c.number(INFINITY, c.dtype(x))})});
  Value* const divisor = c.where(nothing, c.number(1, c.dtype(x)), difference);
  return c.results({c.where(nothing, x, c.mul(x, c.div(c.op("log", {u}), divisor)))});
}

Result<Values> convert_expm1(AtenNode& node) {
  // exp(x) - 1 = tanh(x/2)·(exp(x) + 1), of which nothing overflows before the result does.
  Composer c(node);
  Value* const x = as_float(node, "self");
  return c.results({c.mul(c.op("tanh", {c.mul(x, 0.5)}), c.add(c.op("exp", {x}), 1))});
}

Result<Values> convert_exp2(AtenNode& node) {
  Composer c(node);
  Value* const x = as_float(node, "self");
  return c.results({c.op("pow", {c.number(2, c.dtype(x)), x})});
}

Result<Values> convert_logical_not(AtenNode& node) {
  Composer c(node);
  return c.results({c.op("not", {c.cast(node.tensor("self"), DType::boolean)})});
}

Result<Values> convert_bitwise_not(AtenNode& node) {
  Composer c(node);
  Value* const x = node.tensor("self");
  return c.results({c.op(c.dtype(x) == DType::boolean ? "not" : "bitwise_not", {x})});
}

// Beyond beta·x > threshold PyTorch takes x itself; from 15 on that is softplus to the last bit of f32.
Result<Values> convert_softplus(AtenNode& node) {
  Composer c(node);
  const double beta = node.real("beta");
  const double threshold = node.real("threshold");
  Value* const x = as_float(node, "self");
  Value* const scaled = c.mul(x, beta);
  Value* const soft = c.mul(c.op("softplus", {scaled}), 1 / beta);
  constexpr double equal_from = 15;
  if (threshold >= equal_from && c.dtype(x) != DType::f64) return c.results({soft});
  return c.results({c.where(c.op("greater", {scaled, c.number(threshold, c.dtype(x))}), x, soft)});
}

Result<Values> convert_elu(AtenNode& node) {
  Composer c(node);
  const double scale = node.real("scale");
  const double input_scale = node.real("input_scale");
  Value* const x = as_float(node, "self");
  Value* y = c.op("elu", {c.mul(x, input_scale)}, Attributes({{"alpha", node.real("alpha")}}));
  if (input_scale != 1) y = c.where(c.op("greater", {x, c.number(0, c.dtype(x))}), x, y);
  return c.results({c.mul(y, scale)});
}

Result<Values> convert_celu(AtenNode& node) {
  Composer c(node);
  return c.results({c.op("celu", {as_float(node, "self")}, Attributes({{"alpha", node.real("alpha")}}))});
}

Result<Values> convert_gelu(AtenNode& node) {
  Composer c(node);
  const std::string formula = node.word("approximate");
  if (formula != "none" && formula != "tanh")
    return broken_program("approximate argument must be either none or tanh.");
  return c.results({c.op("gelu", {as_float(node, "self")}, Attributes({{"approximate", formula}}))});
}

Result<Values> convert_leaky_relu(AtenNode& node) {
  Composer c(node);
  return c.results(
      {c.op("leaky_relu", {as_float(node, "self")}, Attributes({{"alpha", node.real("negative_slope")}}))});
}

Result<Values> convert_hardsigmoid(AtenNode& node) {
  Composer c(node);
  return c.results({c.op("hard_sigmoid", {as_float(node, "self")}, Attributes({{"alpha", 1.0 / 6}, {"beta", 0.5}}))});
}

Result<Values> convert_log_sigmoid(AtenNode& node) {
  Composer c(node);
  return c.results({c.op("neg", {c.op("softplus", {c.op("neg", {as_float(node, "self")})})})});
}

Result<Values> convert_glu(AtenNode& node) {
  Composer c(node);
  Value* const x = as_float(node, "self");
  TRY(const std::int64_t axis, node.axis("dim", c.rank(x)));
  const Dim half = floor_div(c.size(x, static_cast<int>(axis)), 2);
  c.require_equal(half * 2, c.size(x, static_cast<int>(axis)), "Halving dimension must be even");
  Value* const gate = c.slice(x, static_cast<int>(axis), half, half);
  return c.results({c.mul(c.slice(x, static_cast<int>(axis), 0, half), c.op("sigmoid", {gate}))});
}

// A slope per channel, axis 1.
// PyTorch's constants are FP64, ONNX's (the operator's defaults) FP32.
Result<Values> convert_selu(AtenNode& node) {
  Composer c(node);
  return c.results({c.op("selu", {as_float(node, "self")},
                         Attributes({{"alpha", 1.6732632423543772848}, {"gamma", 1.0507009873554804934}}))});
}

Result<Values> convert_prelu(AtenNode& node) {
  Composer c(node);
  Value* const x = node.tensor("self");
  Value* slope = node.tensor("weight");
  if (c.rank(slope) == 1 && c.rank(x) >= 2) {
    Composer::Sizes shape(static_cast<std::size_t>(c.rank(x)) - 1, Dim(1));
    shape[0] = c.size(slope, 0);
    slope = c.reshape(slope, std::move(shape));
  }
  return c.results({c.reshape(c.op("prelu", {x, slope}), c.sizes(x))});
}

Value* bounded(Composer& c, Value* x, double low, double high) {
  return c.op("clip", {x}, Attributes({{"low", low}, {"high", high}}));
}

Result<Values> convert_relu6(AtenNode& node) {
  Composer c(node);
  return c.results({bounded(c, node.tensor("self"), 0, 6)});
}

Result<Values> convert_hardtanh(AtenNode& node) {
  Composer c(node);
  return c.results({bounded(c, node.tensor("self"), node.real("min_val"), node.real("max_val"))});
}

// Bounds may be numbers or tensors, either may be absent.
Result<Values> clamp(AtenNode& node, const std::vector<std::string_view>& lows,
                     const std::vector<std::string_view>& highs) {
  std::vector<std::string_view> all{"self"};
  all.insert(all.end(), lows.begin(), lows.end());
  all.insert(all.end(), highs.begin(), highs.end());
  const DType dtype = node.promoted(all);
  Composer c(node);
  Value* y = node.tensor_as("self", dtype);
  const auto bound = [&](const char* op_name, const std::vector<std::string_view>& parameters, bool low) {
    for (const std::string_view parameter : parameters) {
      if (!node.has(parameter)) continue;
      if (node.is_number(parameter) && is_float(dtype)) {
        const double limit = node.real(parameter);
        y = bounded(c, y, low ? limit : -INFINITY, low ? INFINITY : limit);
      } else {
        y = c.op(op_name, {y, node.tensor_as(parameter, dtype)});
      }
    }
  };
  bound("max", lows, true);
  bound("min", highs, false);
  return c.results({y});
}

Result<Values> convert_clamp(AtenNode& node) { return clamp(node, {"min"}, {"max"}); }
Result<Values> convert_clamp_min(AtenNode& node) { return clamp(node, {"min"}, {}); }
Result<Values> convert_clamp_max(AtenNode& node) { return clamp(node, {}, {"max"}); }

Error dropping() { return lacking("dropout is in training mode.", "Call eval() on the module before the export."); }

Result<Values> convert_dropout(AtenNode& node) {
  if (node.flag("train")) return dropping();
  return Values{node.tensor(node.takes("self") ? "self" : "input")};
}

// Beside the result which elements were kept: all of them. With train=None PyTorch drops some.
Result<Values> convert_native_dropout(AtenNode& node) {
  if (!node.has("train") || node.flag("train")) return dropping();
  Composer c(node);
  Value* const x = node.tensor("input");
  return c.results({x, c.expand(node.Emitter::scalar(DType::boolean, 1), c.sizes(x))});
}

}  // namespace

std::vector<AtenEntry> aten_activation_entries() {
  return {
      {"abs(Tensor self) -> Tensor", convert_plain<name_abs>, true},
      {"acos(Tensor self) -> Tensor", convert_real<name_acos>, true},
      {"acosh(Tensor self) -> Tensor", convert_real<name_acosh>, true},
      {"alpha_dropout(Tensor input, float p, bool train) -> Tensor", convert_dropout, true},
      {"asin(Tensor self) -> Tensor", convert_real<name_asin>, true},
      {"asinh(Tensor self) -> Tensor", convert_real<name_asinh>, true},
      {"atan(Tensor self) -> Tensor", convert_real<name_atan>, true},
      {"atanh(Tensor self) -> Tensor", convert_real<name_atanh>, true},
      {"bitwise_not(Tensor self) -> Tensor", convert_bitwise_not, true},
      {"ceil(Tensor self) -> Tensor", convert_rounding<name_ceil>, true},
      {"celu(Tensor self, Scalar alpha=1.) -> Tensor", convert_celu, true},
      {"clamp(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor", convert_clamp, true},
      {"clamp.Tensor(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor", convert_clamp, true},
      {"clamp_max(Tensor self, Scalar max) -> Tensor", convert_clamp_max, true},
      {"clamp_min(Tensor self, Scalar min) -> Tensor", convert_clamp_min, true},
      {"cos(Tensor self) -> Tensor", convert_real<name_cos>, true},
      {"cosh(Tensor self) -> Tensor", convert_real<name_cosh>, true},
      {"dropout(Tensor input, float p, bool train) -> Tensor", convert_dropout, true},
      {"elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor", convert_elu, true},
      {"erf(Tensor self) -> Tensor", convert_real<name_erf>, true},
      {"exp(Tensor self) -> Tensor", convert_real<name_exp>, true},
      {"exp2(Tensor self) -> Tensor", convert_exp2, true},
      {"expm1(Tensor self) -> Tensor", convert_expm1, true},
      {"feature_dropout(Tensor input, float p, bool train) -> Tensor", convert_dropout, true},
      {"floor(Tensor self) -> Tensor", convert_rounding<name_floor>, true},
      {"gelu(Tensor self, *, str approximate=\"none\") -> Tensor", convert_gelu, true},
      {"glu(Tensor self, int dim=-1) -> Tensor", convert_glu},
      {"hardsigmoid(Tensor self) -> Tensor", convert_hardsigmoid, true},
      {"hardswish(Tensor self) -> Tensor", convert_real<name_hard_swish>, true},
      {"hardtanh(Tensor self, Scalar min_val=-1, Scalar max_val=1) -> Tensor", convert_hardtanh, true},
      {"isinf(Tensor self) -> Tensor", convert_real<name_is_inf>},
      {"isnan(Tensor self) -> Tensor", convert_real<name_is_nan>},
      {"leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor", convert_leaky_relu, true},
      {"log(Tensor self) -> Tensor", convert_real<name_log>, true},
      {"log10(Tensor self) -> Tensor", convert_log<10>, true},
      {"log1p(Tensor self) -> Tensor", convert_log1p, true},
      {"log2(Tensor self) -> Tensor", convert_log<2>, true},
      {"log_sigmoid(Tensor self) -> Tensor", convert_log_sigmoid},
      {"logical_not(Tensor self) -> Tensor", convert_logical_not, true},
      {"mish(Tensor self) -> Tensor", convert_real<name_mish>, true},
      {"native_dropout(Tensor input, float p, bool? train) -> (Tensor, Tensor)", convert_native_dropout},
      {"neg(Tensor self) -> Tensor", convert_plain<name_neg>, true},
      {"prelu(Tensor self, Tensor weight) -> Tensor", convert_prelu},
      {"reciprocal(Tensor self) -> Tensor", convert_real<name_reciprocal>, true},
      {"relu(Tensor self) -> Tensor", convert_plain<name_relu>, true},
      {"relu6(Tensor self) -> Tensor", convert_relu6, true},
      {"round(Tensor self) -> Tensor", convert_rounding<name_round>, true},
      {"rsqrt(Tensor self) -> Tensor", convert_rsqrt, true},
      {"selu(Tensor self) -> Tensor", convert_selu, true},
      {"sigmoid(Tensor self) -> Tensor", convert_real<name_sigmoid>, true},
      {"silu(Tensor self) -> Tensor", convert_real<name_silu>, true},
      {"sin(Tensor self) -> Tensor", convert_real<name_sin>, true},
      {"sinh(Tensor self) -> Tensor", convert_real<name_sinh>, true},
      {"softplus(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor", convert_softplus},
      {"sqrt(Tensor self) -> Tensor", convert_real<name_sqrt>, true},
      {"square(Tensor self) -> Tensor", convert_square, true},
      {"tan(Tensor self) -> Tensor", convert_real<name_tan>, true},
      {"tanh(Tensor self) -> Tensor", convert_real<name_tanh>, true},
      {"trunc(Tensor self) -> Tensor", convert_truncate, true},
  };
}

}  // namespace polyphase
