// Which nodes are computed before any run, again and again as weights change.
#include "graph/constant_nodes.h"

#include <algorithm>

namespace polyphase {
namespace {

// The reference loops compute it, and no size that a run decides has a say.
bool is_computable(const Node& node) {
  if (node.fused() || !node.regions().empty() || node.inputs().empty() || node.op().reference == nullptr) return false;
  std::map<std::string, DimRange, std::less<>> symbols;
  node.attributes().collect_symbols(symbols);
  const auto is_static = [](const auto& output) { return output->type.shape.is_static(); };
  return symbols.empty() && std::all_of(node.outputs().begin(), node.outputs().end(), is_static);
}

}  // namespace

FoldCandidate fold_candidate(const Node& node) {
  FoldCandidate out{&node.op(), {}, {}};
  for (const int operand : node.anchor_part().operands) {
    const Value* value = operand < 0 ? nullptr : node.input(static_cast<std::size_t>(operand));
    out.inputs.push_back(value == nullptr ? nullptr : &value->type);
  }
  for (const auto& output : node.outputs()) out.outputs.push_back(&output->type);
  return out;
}

std::unordered_set<const Node*> nodes_on_weights(const Graph& graph) {
  std::unordered_set<const Node*> out;
  FoldBudget budget;
  for (const auto& node : graph.nodes()) {
    bool all = true;
    bool any = false;
    for (const Value* input : node->inputs()) {
      if (input == nullptr) continue;
      const Node* producer = input->producer;
      const bool on_weights = producer != nullptr && (producer->weight() != nullptr || out.count(producer) != 0);
      any = any || on_weights;
      all = all && (on_weights || (producer != nullptr && producer->constant() != nullptr));
    }
    if (!any || !all || !is_computable(*node)) continue;
    const FoldCandidate candidate = fold_candidate(*node);
    if (!budget.takes(candidate)) continue;
    budget.spend(candidate);
    out.insert(node.get());
  }
  return out;
}

}  // namespace polyphase
