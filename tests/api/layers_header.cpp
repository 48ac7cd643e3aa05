// The text of the generated header.
#include "api/layers_header.h"

#include <algorithm>
#include <cctype>

#include "base/scanner.h"

namespace polyphase {
namespace {

constexpr std::size_t line_length = 118;

// Words in lines behind `margin`.
std::string wrapped(const std::string& text, const std::string& margin) {
  std::string out;
  std::string line;
  const auto flush = [&] {
    if (!line.empty()) out += margin + line + "\n";
    line.clear();
  };
  std::string word;
  const auto add_word = [&] {
    if (!line.empty() && margin.size() + line.size() + 1 + word.size() > line_length) flush();
    if (!word.empty()) line += (line.empty() ? "" : " ") + word;
    word.clear();
  };
  for (const char c : text + "\n") {
    if (c != ' ' && c != '\n') {
      word += c;
      continue;
    }
    add_word();
    if (c == '\n') flush();
  }
  return out;
}

std::string struct_name(const std::string& op) {
  std::string out;
  bool upper = true;
  for (const char c : op) {
    if (c != '_') out += upper ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
    upper = c == '_';
  }
  return out;
}

std::string type_name(AttributeKind kind) {
  switch (kind) {
    case AttributeKind::boolean:
      return "bool";
    case AttributeKind::integer:
      return "std::int64_t";
    case AttributeKind::real:
      return "double";
    case AttributeKind::word:
      return "std::string";
    case AttributeKind::dtype:
      return "DType";
    case AttributeKind::integers:
      return "std::vector<std::int64_t>";
    case AttributeKind::reals:
      return "std::vector<double>";
    case AttributeKind::dim:
      return "Size";
    case AttributeKind::dims:
      return "std::vector<Size>";
    case AttributeKind::tensor:
      return "Tensor";
  }
  return "";
}

std::string real_literal(double value) {
  const std::string text = shortest(value);
  if (text == "inf") return "std::numeric_limits<double>::infinity()";
  if (text == "-inf") return "-std::numeric_limits<double>::infinity()";
  return text;
}

std::string default_literal(const Attribute& value) {
  if (const auto* boolean = std::get_if<bool>(&value)) return *boolean ? "true" : "false";
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return std::to_string(*integer);
  if (const auto* real = std::get_if<double>(&value)) return real_literal(*real);
  if (const auto* word = std::get_if<std::string>(&value)) return quote(*word);
  if (const auto* dtype = std::get_if<DType>(&value)) return "DType::" + std::string(name_of(*dtype));
  if (const auto* dim = std::get_if<Dim>(&value)) return dim->text();
  std::string text = print_attribute(value);  // a list: [] or [1, 2]
  std::replace(text.begin(), text.end(), '[', '{');
  std::replace(text.begin(), text.end(), ']', '}');
  return text;
}

bool has_own_method(const OpDef& op) { return op.region_count > 0 || op.name == "constant"; }

bool needs_settings(const OpDef& op) {
  return std::any_of(op.attributes.begin(), op.attributes.end(),
                     [](const AttributeSpec& spec) { return !spec.default_value.has_value(); });
}

std::string settings_struct(const OpDef& op) {
  std::string out = "struct " + struct_name(op.name) + " {\n";
  for (const AttributeSpec& spec : op.attributes) {
    std::string words = spec.doc;
    for (std::size_t i = 0; i < spec.words.size(); ++i) words += (i == 0 ? ": " : ", ") + spec.words[i];
    out += wrapped(words, "  // ");
    out += spec.default_value.has_value()
               ? "  " + type_name(spec.kind) + " " + spec.name + " = " + default_literal(*spec.default_value) + ";\n"
               : "  Required<" + type_name(spec.kind) + "> " + spec.name + ";\n";
  }
  return out + "};\n";
}

std::string results_struct(const OpDef& op) {
  std::string out = "struct " + struct_name(op.name) + "Results {\n";
  for (const OperandSpec& result : op.outputs)
    out += "  Result<NetworkTensor> " + result.name + ";  // " + result.doc + "\n";
  return out + "};\n";
}

std::string parameters(const OpDef& op) {
  const bool all_optional = !needs_settings(op);
  // What stands behind it may be left out, so it may as well.
  std::size_t first_optional = op.inputs.size();
  while (first_optional > 0 && op.inputs[first_optional - 1].optional) --first_optional;
  std::string out;
  for (std::size_t i = 0; i < op.inputs.size(); ++i) {
    const OperandSpec& operand = op.inputs[i];
    out += operand.variadic ? "const std::vector<Operand>& " : "const Operand& ";
    out += operand.name + (all_optional && i >= first_optional ? " = {}, " : ", ");
  }
  if (!op.attributes.empty())
    out += "const layers::" + struct_name(op.name) + "& with" + (all_optional ? " = {}, " : ", ");
  return out + "std::string_view name = {}";
}

std::string call(const OpDef& op) {
  std::string operands;
  if (!op.inputs.empty() && op.inputs.back().variadic) {
    operands = op.inputs.front().name;  // concat: the one list is all of its operands
  } else {
    for (const OperandSpec& operand : op.inputs) operands += (operands.empty() ? "" : ", ") + operand.name;
    operands = "{" + operands + "}";
  }
  std::string attributes;
  for (const AttributeSpec& spec : op.attributes) {
    attributes += (attributes.empty() ? "" : ", ") + ("{\"" + spec.name + "\", with." + spec.name) +
                  (spec.default_value.has_value() ? "}" : ".value()}");
  }
  return "add_layer(\"" + op.name + "\", " + operands + ", {" + attributes + "}, name)";
}

std::string method(const OpDef& op) {
  std::string words = op.doc;
  for (const OperandSpec& operand : op.inputs)
    words += "\n" + operand.name + ": " + operand.doc + (operand.optional ? " (optional)" : "");
  const std::string name = method_name(op.name) + "(" + parameters(op) + ") {\n";
  std::string out = wrapped(words, "  // ");
  if (op.outputs.size() == 1) {
    return out + "  Result<NetworkTensor> " + name + "    return result(" + call(op) + ", 0);\n  }\n";
  }
  out +=
      "  layers::" + struct_name(op.name) + "Results " + name + "    const auto all = " + call(op) + ";\n    return {";
  for (std::size_t i = 0; i < op.outputs.size(); ++i)
    out += (i == 0 ? "result(all, " : ", result(all, ") + std::to_string(i) + ")";
  return out + "};\n  }\n";
}

}  // namespace

std::string method_name(const std::string& op) {
  constexpr std::string_view words[] = {"and", "or", "not", "xor", "if"};
  return std::find(std::begin(words), std::end(words), op) == std::end(words) ? op : op + "_";
}

std::string layers_header(const Registry& registry) {
  std::string structs;
  std::string methods;
  for (const auto& [name, op] : registry.all()) {
    if (has_own_method(*op)) continue;
    if (!op->attributes.empty()) structs += "\n" + settings_struct(*op);
    if (op->outputs.size() > 1) structs += "\n" + results_struct(*op);
    methods += "\n" + method(*op);
  }
  return "// A method for every operator: written by polyphase_network_layers from the definitions in src/ops; a test "
         "compares.\n"
         "// Settings are given by name: network.softmax(x, {.axis = 1}, \"attend\"). docs/operators.md has the same "
         "in a table.\n"
         "// clang-format off\n"
         "// NOLINTBEGIN(readability-identifier-naming): and_, not_, or_ and xor_ are no words of C++\n"
         "#pragma once\n\n"
         "#include <limits>\n\n"
         "#include \"polyphase/network_tensor.h\"\n\n"
         "namespace polyphase::api {\n\n"
         "// Settings of the operators that have any, and the results of those that have several.\n"
         "namespace layers {\n" +
         structs +
         "\n}  // namespace layers\n\n"
         "class NetworkLayers : public NetworkBase {\n public:\n" +
         methods.substr(1) +
         "\n protected:\n  using NetworkBase::NetworkBase;\n};\n\n"
         "}  // namespace polyphase::api\n"
         "// NOLINTEND(readability-identifier-naming)\n";
}

}  // namespace polyphase
