// Elementwise operators of two and more operands, and casts.
#include <array>

#include "import/onnx/node_context.h"
#include "wire/dtype_map.h"

namespace polyphase {
namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 19> binary = {{
    {"Add", "add"},
    {"Sub", "sub"},
    {"Mul", "mul"},
    {"Div", "div"},
    {"And", "and"},
    {"Or", "or"},
    {"Xor", "xor"},
    {"Equal", "equal"},
    {"Less", "less"},
    {"LessOrEqual", "less_equal"},
    {"Greater", "greater"},
    {"GreaterOrEqual", "greater_equal"},
    {"BitwiseAnd", "bitwise_and"},
    {"BitwiseOr", "bitwise_or"},
    {"BitwiseXor", "bitwise_xor"},
    {"Max", "max"},
    {"Min", "min"},
    {"Sum", "add"},
    {"Mean", "add"},
}};

std::string_view binary_name(const NodeContext& node) {
  for (const auto& [op_type, op_name] : binary) {
    if (op_type == node.op_type()) return op_name;
  }
  CHECK(false, "the table names an operator that the list lacks");
  return {};
}

Result<Values> convert_binary(NodeContext& node) {
  return single(node.emit(binary_name(node), {}, {node.input(0), node.input(1)}));
}

// Max, Min, Sum: any number of operands, from the left.
Result<Values> convert_variadic(NodeContext& node) {
  Value* value = node.input(0);
  for (std::size_t i = 1; i < node.input_count(); ++i) {
    if (!node.has(i)) return broken_rule("operand " + std::to_string(i) + " is missing.");
    TRY(value, node.emit(binary_name(node), {}, {value, node.input(i)}));
  }
  if (node.input_count() == 1) {
    TRY(value, node.emit("identity", {}, {value}));
  }
  if (node.op_type() == "Mean" && node.input_count() > 1) {
    TRY(value, node.emit("div", {}, {value, node.scalar(value->type.dtype, static_cast<double>(node.input_count()))}));
  }
  return Values{value};
}

// The base's type is the result's; the exponent may have another.
Result<Values> convert_pow(NodeContext& node) {
  const DType base = node.type(0).dtype;
  const DType exponent = node.type(1).dtype;
  if (base == exponent) return single(node.emit("pow", {}, {node.input(0), node.input(1)}));
  if (is_float(base) || is_integer(exponent)) {
    TRY(Value * as_base, node.emit("cast", Attributes({{"to", base}}), {node.input(1)}));
    return single(node.emit("pow", {}, {node.input(0), as_base}));
  }
  // An integer to a broken power: in FP64, then back.
  TRY(Value * wide, node.emit("cast", Attributes({{"to", DType::f64}}), {node.input(0)}));
  TRY(Value * power, node.emit("cast", Attributes({{"to", DType::f64}}), {node.input(1)}));
  TRY(Value * result, node.emit("pow", {}, {wide, power}));
  return single(node.emit("cast", Attributes({{"to", base}}), {result}));
}

Result<Values> convert_mod(NodeContext& node) {
  const bool fmod = node.flag("fmod", false);
  if (!fmod && node.version() < 28 && is_float(node.type(0).dtype)) {
    node.warn("Mod of floats without fmod is defined from opset 28 on only; taken as there");
  }
  return single(node.emit("mod", Attributes({{"fmod", fmod}}), {node.input(0), node.input(1)}));
}

Result<Values> convert_bit_shift(NodeContext& node) {
  const std::string direction = node.word("direction", "");
  if (direction != "LEFT" && direction != "RIGHT")
    return broken_rule("direction is '" + direction.substr(0, 40) + "'; it must be LEFT or RIGHT.");
  return single(node.emit(direction == "LEFT" ? "shift_left" : "shift_right", {}, {node.input(0), node.input(1)}));
}

Result<Values> convert_where(NodeContext& node) {
  return single(node.emit("where", {}, {node.input(0), node.input(1), node.input(2)}));
}

// Casts to 8-bit floats saturate unless the model says otherwise; the IR's cast turns what overflows into NaN.
Result<Value*> cast(NodeContext& node, DType to, bool saturate) {
  Value* value = node.input(0);
  const bool is_small = to == DType::f8e4m3 || to == DType::f8e5m2;
  if (is_small && saturate && is_float(value->type.dtype) && value->type.dtype != to) {
    const double most = to == DType::f8e4m3 ? 448.0 : 57344.0;
    TRY(value, node.emit("clip", Attributes({{"low", -most}, {"high", most}}), {value}));
  }
  if (to == DType::i64 && is_float(value->type.dtype) && value->type.shape.rank() <= 1) {
    if (auto sizes = node.whole_sizes(0)) return node.sizes_as_data(std::move(*sizes), value->type.shape.rank() == 0);
  }
  // Out of range, ONNX's own cases keep the low four bits.
  if ((to == DType::i4 || to == DType::u4) && is_float(value->type.dtype)) {
    TRY(value, node.emit("cast", Attributes({{"to", DType::i32}}), {value}));
  }
  return node.emit("cast", Attributes({{"to", to}}), {value});
}

Result<Values> convert_cast(NodeContext& node) {
  const bool saturate = node.flag("saturate", true);
  node.ignore("round_mode");  // of FLOAT8E8M0 alone, which we refuse
  if (!node.has_attribute("to")) return broken_rule("attribute 'to' (the element type) is missing.");
  const std::int64_t to = node.integer("to", 0);
  TRY(const DType dtype, wire::dtype_from_onnx(static_cast<int>(std::clamp<std::int64_t>(to, -1, 1000))));
  return single(cast(node, dtype, saturate));
}

Result<Values> convert_cast_like(NodeContext& node) {
  const bool saturate = node.flag("saturate", true);
  node.ignore("round_mode");
  return single(cast(node, node.type(1).dtype, saturate));
}

}  // namespace

std::vector<Converter> arithmetic_converters() {
  return {
      {"Add", {7, 13, 14}, 2, 2, convert_binary},
      {"And", {7}, 2, 2, convert_binary},
      {"BitShift", {11, 28}, 2, 2, convert_bit_shift},
      {"BitwiseAnd", {18}, 2, 2, convert_binary},
      {"BitwiseOr", {18}, 2, 2, convert_binary},
      {"BitwiseXor", {18}, 2, 2, convert_binary},
      {"Cast", {6, 9, 13, 19, 21, 23, 24, 25, 28}, 1, 1, convert_cast},
      {"CastLike", {15, 19, 21, 23, 24, 25}, 2, 2, convert_cast_like},
      {"Div", {7, 13, 14}, 2, 2, convert_binary},
      {"Equal", {7, 11, 13, 19}, 2, 2, convert_binary},
      {"Greater", {7, 9, 13}, 2, 2, convert_binary},
      {"GreaterOrEqual", {12, 16}, 2, 2, convert_binary},
      {"Less", {7, 9, 13}, 2, 2, convert_binary},
      {"LessOrEqual", {12, 16}, 2, 2, convert_binary},
      {"Max", {6, 8, 12, 13}, 1, any_number, convert_variadic},
      {"Mean", {6, 8, 13}, 1, any_number, convert_variadic},
      {"Min", {6, 8, 12, 13}, 1, any_number, convert_variadic},
      {"Mod", {10, 13, 28}, 2, 2, convert_mod},
      {"Mul", {7, 13, 14}, 2, 2, convert_binary},
      {"Or", {7}, 2, 2, convert_binary},
      {"Pow", {7, 12, 13, 15}, 2, 2, convert_pow},
      {"Sub", {7, 13, 14}, 2, 2, convert_binary},
      {"Sum", {6, 8, 13}, 1, any_number, convert_variadic},
      {"Where", {9, 16}, 3, 3, convert_where},
      {"Xor", {7}, 2, 2, convert_binary},
  };
}

}  // namespace polyphase
