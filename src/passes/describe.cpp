// From a node to the description that kernel rows judge.
#include "passes/describe.h"

#include "passes/rewrite.h"

namespace polyphase {

StepDesc describe(const Node& node, const std::vector<Layout>& inputs, const std::vector<Layout>& outputs) {
  StepDesc desc;
  desc.name = node.name();
  desc.parts = node.parts();
  desc.anchor = node.anchor();
  for (std::size_t i = 0; i < node.inputs().size(); ++i) {
    OperandDesc operand;
    const Value* value = node.input(i);
    operand.present = value != nullptr;
    if (value != nullptr) {
      operand.type = value->type;
      operand.layout = inputs[i];
      operand.constant = is_constant(value);
      const Tensor* tensor = constant_of(value);
      operand.value = tensor == nullptr ? nullptr : &tensor->view();
    }
    desc.inputs.push_back(std::move(operand));
  }
  for (std::size_t i = 0; i < node.outputs().size(); ++i) {
    OperandDesc result;
    result.type = node.output(i)->type;
    result.layout = outputs[i];
    desc.outputs.push_back(std::move(result));
  }
  return desc;
}

}  // namespace polyphase
