// From a node to the description that kernel rows judge.
#include "passes/describe.h"

#include <algorithm>

#include "kernel/catalogue.h"
#include "kernel/concrete.h"
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

StepDesc describe(const Node& node) {
  const bool spatial = node.op().layout == LayoutRule::spatial;
  const auto usual = [&](const Value& value, bool is_table) {
    const int rank = value.type.shape.rank();
    return spatial && !is_table ? Layout::channels_last(rank) : Layout::row_major(rank);
  };
  std::vector<Layout> inputs(node.inputs().size());
  std::vector<Layout> outputs;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (node.input(i) != nullptr) inputs[i] = usual(*node.input(i), is_constant(node.input(i)));
  }
  for (const auto& output : node.outputs()) outputs.push_back(usual(*output, false));
  return describe(node, inputs, outputs);
}

std::optional<double> cost_of_kernels(const StepDesc& step, const Target& target, const DimBindings& likely) {
  if (target.catalogue == nullptr) return std::nullopt;
  const auto concrete = evaluate(step, likely);
  std::optional<double> best;
  for (const RowAnswer& answer : target.catalogue->ask(step, concrete.has_value() ? *concrete : step, target)) {
    if (!answer.refusal.empty() || answer.row->reference) continue;
    if (!best.has_value() || answer.cost_seconds < *best) best = answer.cost_seconds;
  }
  return best;
}

bool has_kernel(const StepDesc& step, const Target& target) {
  if (target.catalogue == nullptr) return false;
  const std::vector<const Row*>& rows = target.catalogue->rows_for(step.anchor_part().op->name);
  return std::any_of(rows.begin(), rows.end(),
                     [&](const Row* row) { return !row->reference && refusal_of(*row, step, target).empty(); });
}

}  // namespace polyphase
