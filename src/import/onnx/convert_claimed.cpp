// Nodes that a plugin claims: operands by position, attributes by the names that the plugin lists.
#include "import/onnx/node_context.h"
#include "ops/custom.h"

namespace polyphase {
namespace {

Result<void> read_attribute(NodeContext& node, const AttributeSpec& spec, Attributes& out) {
  if (!node.has_attribute(spec.name)) return {};  // its default holds, or the operator says that it is missing
  switch (spec.kind) {
    case AttributeKind::boolean:
      out.set(spec.name, node.flag(spec.name, false));
      break;
    case AttributeKind::integer:
      out.set(spec.name, node.integer(spec.name, 0));
      break;
    case AttributeKind::real:
      out.set(spec.name, node.real(spec.name, 0));
      break;
    case AttributeKind::word:
      out.set(spec.name, node.word(spec.name, ""));
      break;
    case AttributeKind::integers:
      out.set(spec.name, node.integers(spec.name).value_or(std::vector<std::int64_t>()));
      break;
    case AttributeKind::reals:
      out.set(spec.name, node.reals(spec.name).value_or(std::vector<double>()));
      break;
    case AttributeKind::tensor: {
      TRY(Tensor tensor, node.tensor(spec.name));
      out.set(spec.name, std::move(tensor));
      break;
    }
    default:
      CHECK(false, "plugins have no attributes of this kind");
  }
  return {};
}

Result<Values> convert_claimed(NodeContext& node) {
  const OpDef& op = *node.claimed_by();
  Attributes attributes;
  for (const AttributeSpec& spec : op.attributes) TRY_VOID(read_attribute(node, spec, attributes));
  TRY_VOID(node.finish());
  return node.emit_all(op.name, std::move(attributes), node.inputs());
}

}  // namespace

const OpDef* NodeContext::claimed_by() {
  return graph().registry().find_claim(onnx_claim(converter_.domain, converter_.op_type));
}

Converter claimed_converter(std::string_view domain, std::string_view op_type) {
  return {.op_type = op_type,
          .versions = {1},
          .min_inputs = 0,
          .max_inputs = any_number,
          .convert = convert_claimed,
          .domain = domain};
}

}  // namespace polyphase
