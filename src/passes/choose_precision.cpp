// choose_precision: what no kernel computes in f16 or bf16 is computed in f32 between casts, and stored as before.
//
//   %y = conv(%x, %w) -> f16            %a = cast(%x) to=f32      %b = cast(%w) to=f32
//                                →      %c = conv(%a, %b) -> f32
//                                       %y = cast(%c) to=f16
//
// The result is rounded once, as the definition has it; casts of weights fold. Condition: some kernel takes the step in
// f32 and none in its own type. Steps that only move elements stay. Runs on fused nodes, so that a chain is rounded
// once; the casts that it writes may then join their neighbours.
#include <algorithm>

#include "passes/describe.h"
#include "passes/passes.h"
#include "passes/rewrite.h"

namespace polyphase {
namespace {

bool is_narrow(DType dtype) { return dtype == DType::f16 || dtype == DType::bf16; }

bool has_narrow(const Node& node) {
  const auto narrow = [](const Value* value) { return value != nullptr && is_narrow(value->type.dtype); };
  return std::any_of(node.inputs().begin(), node.inputs().end(), narrow) ||
         std::any_of(node.outputs().begin(), node.outputs().end(),
                     [&](const auto& output) { return narrow(output.get()); });
}

StepDesc widened(StepDesc desc) {
  const auto widen = [](OperandDesc& operand) {
    if (!operand.present || !is_narrow(operand.type.dtype)) return;
    operand.type.dtype = DType::f32;
    operand.value = nullptr;
  };
  std::for_each(desc.inputs.begin(), desc.inputs.end(), widen);
  std::for_each(desc.outputs.begin(), desc.outputs.end(), widen);
  return desc;
}

// A step that only moves elements, or casts, has nothing to compute.
bool computes(const Node& node) {
  if (!node.regions().empty() || node.inputs().empty() || node.outputs().size() != 1 || node.anchors("bind"))
    return false;
  return !node.op().moves_elements && !node.is("cast");
}

bool widen(Graph& graph, Node* node, const Target& target) {
  const StepDesc own = describe(*node);
  // Pieces of a fused step count by themselves: `lower` may have to cut it.
  StepDesc bare = own;
  bare.parts = {own.anchor_part()};
  bare.anchor = 0;
  const bool whole = cost_of_kernels(widened(own), target).has_value();
  if (!whole && (node->anchor() != 0 || !cost_of_kernels(widened(bare), target).has_value())) return false;
  if (cost_of_kernels(own, target).has_value()) return false;

  Rewrite rewrite(graph, node);
  std::vector<Value*> inputs = node->inputs();
  for (Value*& input : inputs) {
    if (input != nullptr && is_narrow(input->type.dtype)) input = rewrite.cast(input, DType::f32);
  }
  Value* wide = rewrite.add_parts(node->parts(), node->anchor(), std::move(inputs));
  if (!rewrite.ok()) return false;
  return rewrite.commit(node->output(), rewrite.cast(wide, node->output()->type.dtype));
}

}  // namespace

bool choose_precision(Graph& graph, const Target& target) {
  return in_every_graph(graph, [&](Graph& each) {
    bool changed = false;
    for (Node* node : each.node_list())
      changed = (computes(*node) && has_narrow(*node) && widen(each, node, target)) || changed;
    return changed;
  });
}

}  // namespace polyphase
