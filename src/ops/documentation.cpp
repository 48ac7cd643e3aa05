// The operators' page.
#include "ops/documentation.h"

namespace polyphase {
namespace {

// Bars would end a table's cell.
std::string cell(std::string_view text) {
  std::string out;
  for (const char c : text) out += c == '|' ? std::string("\\|") : std::string(1, c);
  return out;
}

std::string operand_rows(const std::vector<OperandSpec>& operands, std::string_view role) {
  std::string out;
  for (const OperandSpec& operand : operands) {
    std::string mark;
    if (operand.optional && !operand.variadic) mark = ", optional";
    if (operand.variadic) mark = operand.optional ? ", any number" : ", one or more";
    out += "| " + std::string(role) + " | `" + operand.name + "`" + mark + " | " + cell(operand.doc) + " |\n";
  }
  return out;
}

std::string attribute_row(const AttributeSpec& spec) {
  std::string kind(name_of(spec.kind));
  if (!spec.words.empty()) {
    kind.clear();
    for (const std::string& word : spec.words) kind += (kind.empty() ? "" : ", ") + ("`" + word + "`");
  }
  std::string value = "required";
  if (spec.default_value.has_value()) {
    const auto* word = std::get_if<std::string>(&*spec.default_value);
    value = "default `" + (word != nullptr ? *word : print_attribute(*spec.default_value)) + "`";
  }
  return "| attribute | `" + spec.name + "` (" + kind + "; " + value + ") | " + cell(spec.doc) + " |\n";
}

std::string properties(const OpDef& op) {
  std::string out;
  const auto add = [&](bool holds, const char* words) {
    if (holds) out += (out.empty() ? "" : "; ") + std::string(words);
  };
  add(op.elementwise, "may be fused before or after another operator");
  add(op.moves_elements, "moves elements only");
  add(op.contents != nullptr || op.moves_elements, "computes with sizes");
  add(op.region_count == 1, "owns one graph");
  add(op.region_count == 2, "owns two graphs");
  return out.empty() ? "" : "Properties: " + out + ".\n\n";
}

}  // namespace

std::string document_operators(const Registry& registry) {
  std::string out =
      "# Operators\n\n"
      "<!-- Written by polyphase_operator_docs from the definitions in src/ops; a test compares. -->\n\n"
      "Every operator of the IR. By definition each one computes floats in double precision and rounds once; integers "
      "are exact.\n"
      "Sizes may be expressions of named dimensions. Importers turn what models say into these; nothing here is "
      "implied.\n\n";
  for (const auto& [name, op] : registry.all()) out += "- [" + name + "](#" + name + ")\n";
  for (const auto& [name, op] : registry.all()) {
    out += "\n## " + name + "\n\n" + op->doc + "\n\n" + properties(*op);
    out += "| | | |\n|---|---|---|\n";
    out += operand_rows(op->inputs, "operand") + operand_rows(op->outputs, "result");
    for (const AttributeSpec& spec : op->attributes) out += attribute_row(spec);
  }
  return out;
}

}  // namespace polyphase
