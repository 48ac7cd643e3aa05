// Nodes of overloads that a plugin claims: tensors and numbers by the names that the plugin lists.
#include "base/check.h"
#include "import/torch/aten_node.h"
#include "ops/custom.h"

namespace polyphase {
namespace {

void read_attribute(AtenNode& node, const AttributeSpec& spec, Attributes& out) {
  if (!node.has(spec.name)) return;  // its default holds, or the operator says that it is missing
  switch (spec.kind) {
    case AttributeKind::boolean:
      out.set(spec.name, node.flag(spec.name));
      break;
    case AttributeKind::integer:
      out.set(spec.name, node.integer(spec.name));
      break;
    case AttributeKind::real:
      out.set(spec.name, node.real(spec.name));
      break;
    case AttributeKind::word:
      out.set(spec.name, node.word(spec.name));
      break;
    case AttributeKind::integers:
      out.set(spec.name, node.integers(spec.name));
      break;
    case AttributeKind::reals:
      out.set(spec.name, node.reals(spec.name));
      break;
    default:
      break;  // a tensor: only models of ONNX have such attributes
  }
}

Result<Values> convert_claimed(AtenNode& node) {
  const OpDef& op = *node.graph().registry().find_claim(node.converter().declaration);
  Attributes attributes;
  for (const AttributeSpec& spec : op.attributes) {
    if (spec.kind == AttributeKind::tensor) continue;
    read_attribute(node, spec, attributes);
  }
  Values operands;
  for (const OperandSpec& operand : op.inputs) {
    if (!operand.variadic) {
      operands.push_back(node.tensor(operand.name));
    } else if (node.has(operand.name)) {
      const Values list = node.tensors(operand.name);
      operands.insert(operands.end(), list.begin(), list.end());
    }
  }
  while (!operands.empty() && operands.back() == nullptr) operands.pop_back();
  TRY_VOID(node.finish());
  return node.emit_all(op.name, std::move(attributes), operands);
}

std::string type_of(AttributeKind kind) {
  switch (kind) {
    case AttributeKind::boolean:
      return "bool?";
    case AttributeKind::integer:
      return "SymInt?";
    case AttributeKind::real:
      return "float?";
    case AttributeKind::integers:
      return "SymInt[]?";
    case AttributeKind::reals:
      return "float[]?";
    default:
      return "str?";
  }
}

AtenParameter parameter(std::string name, std::string type, bool may_lack) {
  AtenParameter out{
      .name = std::move(name), .type = std::move(type), .alias = {}, .has_default = may_lack, .value = {}};
  ProgramItem none;
  none.kind = ProgramItem::Kind::none;
  out.value.items.push_back(std::move(none));
  return out;
}

}  // namespace

AtenConverter claimed_converter(const OpDef& op, std::string_view claim) {
  AtenConverter out{.declaration = claim, .schema = {}, .convert = convert_claimed};
  out.schema.name = op.name;
  for (const OperandSpec& operand : op.inputs) {
    const std::string type = operand.variadic ? "Tensor[]" : "Tensor";
    out.schema.parameters.push_back(parameter(operand.name, type + (operand.optional ? "?" : ""), operand.optional));
  }
  for (const AttributeSpec& spec : op.attributes) {
    if (spec.kind != AttributeKind::tensor)
      out.schema.parameters.push_back(parameter(spec.name, type_of(spec.kind), true));
  }
  for (std::size_t i = 0; i < op.outputs.size(); ++i) {
    out.schema.results.emplace_back("Tensor");
    out.schema.result_aliases.emplace_back();
  }
  return out;
}

}  // namespace polyphase
