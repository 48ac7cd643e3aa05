// Einsum: compose/einsum.h.
#include "import/compose/einsum.h"

#include "import/onnx/node_context.h"

namespace polyphase {
namespace {

Result<Values> convert_einsum(NodeContext& node) {
  if (!node.has_attribute("equation")) return broken_rule("attribute 'equation' is missing.");
  Values operands;
  for (std::size_t i = 0; i < node.input_count(); ++i) {
    if (!node.has(i)) return broken_rule("operand " + std::to_string(i) + " is missing.");
    operands.push_back(node.input(i));
  }
  TRY(Value * value, einsum(node, node.word("equation", ""), operands));
  return Values{value};
}

}  // namespace

std::vector<Converter> einsum_converters() { return {{"Einsum", {12, 28}, 1, any_number, convert_einsum}}; }

}  // namespace polyphase
