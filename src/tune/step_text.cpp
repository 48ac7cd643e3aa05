// Parts, wires, operands, results.
#include "tune/step_text.h"

#include <algorithm>

namespace polyphase {
namespace {

constexpr std::size_t max_text = 4096;

std::string text_of_wire(int operand) {
  if (operand == Part::running) return "-";
  return operand < 0 ? "_" : std::to_string(operand);
}

std::string text_of_part(const Part& part) {
  std::string out = part.op->name + "{" + print_attributes(part.attributes, &part.op->attributes) + "}(";
  for (std::size_t i = 0; i < part.operands.size(); ++i) out += (i == 0 ? "" : " ") + text_of_wire(part.operands[i]);
  return out + ")";
}

std::string text_of_operand(const OperandDesc& operand) {
  if (!operand.present) return " _";
  return " " + operand.type.text() + "@" + operand.layout.text() + (operand.constant ? "!" : "");
}

}  // namespace

std::string text_of(const StepDesc& desc) {
  std::string out;
  for (std::size_t i = 0; i < desc.parts.size() && out.size() <= max_text; ++i)
    out += (i == 0 ? "" : " + ") + text_of_part(desc.parts[i]) + (i == desc.anchor ? "*" : "");
  out += " :";
  for (const OperandDesc& input : desc.inputs) out += text_of_operand(input);
  out += " >";
  for (const OperandDesc& output : desc.outputs) out += text_of_operand(output);
  const bool one_line =
      std::all_of(out.begin(), out.end(), [](char c) { return static_cast<unsigned char>(c) >= ' ' && c != '\x7f'; });
  return one_line && out.size() <= max_text ? out : std::string();
}

}  // namespace polyphase
