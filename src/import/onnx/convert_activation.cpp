// Elementwise functions of one operand, Clip and PRelu.
#include <array>
#include <cmath>

#include "import/onnx/node_context.h"

namespace polyphase {
namespace {

// Operators that are one IR operator without attributes.
constexpr std::array<std::pair<std::string_view, std::string_view>, 32> plain = {{
    {"Abs", "abs"},
    {"Acos", "acos"},
    {"Acosh", "acosh"},
    {"Asin", "asin"},
    {"Asinh", "asinh"},
    {"Atan", "atan"},
    {"Atanh", "atanh"},
    {"BitwiseNot", "bitwise_not"},
    {"Ceil", "ceil"},
    {"Cos", "cos"},
    {"Cosh", "cosh"},
    {"Erf", "erf"},
    {"Exp", "exp"},
    {"Floor", "floor"},
    {"HardSwish", "hard_swish"},
    {"IsNaN", "is_nan"},
    {"Log", "log"},
    {"Mish", "mish"},
    {"Neg", "neg"},
    {"Not", "not"},
    {"Reciprocal", "reciprocal"},
    {"Relu", "relu"},
    {"Round", "round"},
    {"Sigmoid", "sigmoid"},
    {"Sign", "sign"},
    {"Sin", "sin"},
    {"Sinh", "sinh"},
    {"Softplus", "softplus"},
    {"Softsign", "softsign"},
    {"Sqrt", "sqrt"},
    {"Tan", "tan"},
    {"Tanh", "tanh"},
}};

Result<Values> convert_plain(NodeContext& node) {
  for (const auto& [op_type, op_name] : plain) {
    if (op_type == node.op_type()) return single(node.emit(op_name, {}, {node.input(0)}));
  }
  CHECK(false, "the table names an operator that the list lacks");
  return Values{};
}

Result<Values> convert_identity(NodeContext& node) { return Values{node.input(0)}; }

struct Parameter {
  std::string_view op_type;
  std::string_view op_name;
  std::string_view attribute;
  double otherwise;
  std::string_view second = {};
  double second_otherwise = 0;
};

// Operators whose float attributes carry over; the defaults are ONNX's, as binary32.
constexpr std::array parametric = {
    Parameter{"Celu", "celu", "alpha", 1.0},
    Parameter{"Elu", "elu", "alpha", 1.0},
    Parameter{"HardSigmoid", "hard_sigmoid", "alpha", static_cast<double>(0.2F), "beta", 0.5},
    Parameter{"LeakyRelu", "leaky_relu", "alpha", static_cast<double>(0.01F)},
    Parameter{"Selu", "selu", "alpha", 1.67326319217681884765625, "gamma", 1.05070102214813232421875},
    Parameter{"ThresholdedRelu", "thresholded_relu", "alpha", 1.0},
};

Result<Values> convert_parametric(NodeContext& node) {
  for (const Parameter& parameter : parametric) {
    if (parameter.op_type != node.op_type()) continue;
    Attributes attributes;
    attributes.set(std::string(parameter.attribute), node.real(parameter.attribute, parameter.otherwise));
    if (!parameter.second.empty())
      attributes.set(std::string(parameter.second), node.real(parameter.second, parameter.second_otherwise));
    return single(node.emit(parameter.op_name, std::move(attributes), {node.input(0)}));
  }
  CHECK(false, "the table names an operator that the list lacks");
  return Values{};
}

Result<Values> convert_gelu(NodeContext& node) {
  const std::string approximate = node.word("approximate", "none");
  if (approximate != "none" && approximate != "tanh")
    return broken_rule("approximate is '" + approximate.substr(0, 40) + "'; it must be none or tanh.");
  return single(node.emit("gelu", Attributes({{"approximate", approximate}}), {node.input(0)}));
}

// x * sigmoid(alpha * x)
Result<Values> convert_swish(NodeContext& node) {
  const double alpha = node.real("alpha", 1.0);
  if (alpha == 1.0) return single(node.emit("silu", {}, {node.input(0)}));
  TRY(Value * scaled, node.emit("mul", {}, {node.input(0), node.scalar(node.type(0).dtype, alpha)}));
  TRY(Value * gate, node.emit("sigmoid", {}, {scaled}));
  return single(node.emit("mul", {}, {node.input(0), gate}));
}

Result<Values> convert_is_inf(NodeContext& node) {
  const bool negative = node.flag("detect_negative", true);
  const bool positive = node.flag("detect_positive", true);
  TRY(Value * infinite, node.emit("is_inf", {}, {node.input(0)}));
  if (negative && positive) return Values{infinite};
  Value* zero = node.scalar(node.type(0).dtype, 0);
  if (!negative && !positive) {
    TRY(Value * none, node.emit("not", {}, {infinite}));
    return single(node.emit("and", {}, {infinite, none}));
  }
  TRY(Value * side, node.emit(positive ? "greater" : "less", {}, {node.input(0), zero}));
  return single(node.emit("and", {}, {infinite, side}));
}

// A bound that the model fixes, or nothing. Integer bounds beyond 2^53 are not exact as reals.
std::optional<double> fixed_bound(NodeContext& node, std::size_t i) {
  if (!node.has(i)) return std::nullopt;
  const auto tensor = node.fixed(i);
  if (!tensor.has_value() || tensor->view().element_count() != 1) return std::nullopt;
  const double bound = load_double(tensor->view().data, tensor->dtype());
  if (!is_float(tensor->dtype()) && std::fabs(bound) > 9007199254740992.0) return std::nullopt;
  return bound;
}

Result<Values> convert_clip(NodeContext& node) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (node.version() < 11) {
    const bool has_low = node.has_attribute("min");
    const bool has_high = node.has_attribute("max");
    const double low = node.real("min", -infinity);
    const double high = node.real("max", infinity);
    return single(node.emit("clip",
                            Attributes({{"low", has_low ? low : -infinity}, {"high", has_high ? high : infinity}}),
                            {node.input(0)}));
  }
  for (const std::size_t i : {1, 2}) {
    if (node.has(i) && node.type(i).dtype != node.type(0).dtype) {
      return broken_rule("the bounds of Clip must have the operand's type, found " + node.type(0).text() + " and " +
                         node.type(i).text() + ".");
    }
  }
  const auto low = fixed_bound(node, 1);
  const auto high = fixed_bound(node, 2);
  const bool are_fixed = (low.has_value() || !node.has(1)) && (high.has_value() || !node.has(2));
  if (are_fixed && is_float(node.type(0).dtype)) {
    return single(node.emit("clip", Attributes({{"low", low.value_or(-infinity)}, {"high", high.value_or(infinity)}}),
                            {node.input(0)}));
  }
  Value* value = node.input(0);
  if (node.has(1)) {
    TRY(value, node.emit("max", {}, {value, node.input(1)}));
  }
  if (node.has(2)) {
    TRY(value, node.emit("min", {}, {value, node.input(2)}));
  }
  if (value == node.input(0)) {
    TRY(value, node.emit("identity", {}, {value}));
  }
  return Values{value};
}

Result<Values> convert_prelu(NodeContext& node) {
  return single(node.emit("prelu", {}, {node.input(0), node.input(1)}));
}

// Dropout drops nothing at inference; its mask then is true everywhere.
Result<Values> convert_dropout(NodeContext& node) {
  double ratio = node.real("ratio", 0.5);
  node.ignore("seed");
  if (node.has(2)) {
    TRY(const auto training, node.fixed_reals(2, "training_mode"));
    if (!training.empty() && training[0] != 0) {
      if (node.has(1)) {
        TRY(const auto ratios, node.fixed_reals(1, "ratio"));
        if (ratios.size() == 1) ratio = ratios[0];
      }
      if (ratio != 0) {
        return lacking("training_mode is true: the result would be random.",
                       "Export the model in evaluation mode (model.eval()).");
      }
    }
  }
  if (node.output_count() < 2) return Values{node.input(0)};
  Value* yes = node.constant(Tensor::from_integers(DType::boolean, {}, std::vector<std::int64_t>{1}));
  TRY(Value * mask, node.emit("expand", Attributes({{"shape", node.shape(0).dims()}}), {yes}));
  return Values{node.input(0), mask};
}

}  // namespace

std::vector<Converter> activation_converters() {
  return {
      {"Abs", {6, 13}, 1, 1, convert_plain},
      {"Acos", {7, 22}, 1, 1, convert_plain},
      {"Acosh", {9, 22}, 1, 1, convert_plain},
      {"Asin", {7, 22}, 1, 1, convert_plain},
      {"Asinh", {9, 22}, 1, 1, convert_plain},
      {"Atan", {7, 22}, 1, 1, convert_plain},
      {"Atanh", {9, 22}, 1, 1, convert_plain},
      {"BitwiseNot", {18}, 1, 1, convert_plain},
      {"Ceil", {6, 13}, 1, 1, convert_plain},
      {"Celu", {12, 28}, 1, 1, convert_parametric},
      {"Clip", {6, 11, 12, 13}, 1, 3, convert_clip},
      {"Cos", {7, 22}, 1, 1, convert_plain},
      {"Cosh", {9, 22}, 1, 1, convert_plain},
      {"Dropout", {7, 10, 12, 13, 22}, 1, 3, convert_dropout},
      {"Elu", {6, 22}, 1, 1, convert_parametric},
      {"Erf", {9, 13}, 1, 1, convert_plain},
      {"Exp", {6, 13}, 1, 1, convert_plain},
      {"Floor", {6, 13}, 1, 1, convert_plain},
      {"Gelu", {20}, 1, 1, convert_gelu},
      {"HardSigmoid", {6, 22}, 1, 1, convert_parametric},
      {"HardSwish", {14, 22}, 1, 1, convert_plain},
      {"Identity", {1, 13, 14, 16, 19, 21, 23, 24, 25}, 1, 1, convert_identity},
      {"IsInf", {10, 20}, 1, 1, convert_is_inf},
      {"IsNaN", {9, 13, 20}, 1, 1, convert_plain},
      {"LeakyRelu", {6, 16}, 1, 1, convert_parametric},
      {"Log", {6, 13}, 1, 1, convert_plain},
      {"Mish", {18, 22}, 1, 1, convert_plain},
      {"Neg", {6, 13}, 1, 1, convert_plain},
      {"Not", {1}, 1, 1, convert_plain},
      {"PRelu", {7, 9, 16}, 2, 2, convert_prelu},
      {"Reciprocal", {6, 13}, 1, 1, convert_plain},
      {"Relu", {6, 13, 14}, 1, 1, convert_plain},
      {"Round", {11, 22}, 1, 1, convert_plain},
      {"Selu", {6, 22}, 1, 1, convert_parametric},
      {"Sigmoid", {6, 13}, 1, 1, convert_plain},
      {"Sign", {9, 13}, 1, 1, convert_plain},
      {"Sin", {7, 22}, 1, 1, convert_plain},
      {"Sinh", {9, 22}, 1, 1, convert_plain},
      {"Softplus", {1, 22}, 1, 1, convert_plain},
      {"Softsign", {1, 22}, 1, 1, convert_plain},
      {"Sqrt", {6, 13}, 1, 1, convert_plain},
      {"Swish", {24}, 1, 1, convert_swish},
      {"Tan", {7, 22}, 1, 1, convert_plain},
      {"Tanh", {6, 13}, 1, 1, convert_plain},
      {"ThresholdedRelu", {10, 22}, 1, 1, convert_parametric},
  };
}

}  // namespace polyphase
