// Recipes by the values that they give, and what depends on what.
#include "engine/recipes.h"

#include <algorithm>

namespace polyphase {

RecipeIndex::RecipeIndex(const Recipes& recipes) : recipes_(recipes), node_of_(recipes.leaf_count(), -1) {
  for (std::size_t i = 0; i < recipes.nodes.size(); ++i) {
    first_.push_back(value_count());
    node_of_.insert(node_of_.end(), recipes.nodes[i].results.size(), static_cast<int>(i));
  }
}

Type RecipeIndex::type_of(int value) const {
  const auto at = static_cast<std::size_t>(value);
  if (at < recipes_.weights.size()) return recipes_.weights[at].type();
  if (at < recipes_.leaf_count()) return recipes_.tables[at - recipes_.weights.size()].type();
  const int node = node_of(value);
  return recipes_.nodes[static_cast<std::size_t>(node)].results[static_cast<std::size_t>(value - first_result(node))];
}

std::vector<int> RecipeIndex::nodes_below(int value) const {
  std::vector<int> pending;
  std::vector<bool> seen(recipes_.nodes.size(), false);
  const auto visit = [&](int operand) {
    const int node = node_of(operand);
    if (node < 0 || seen[static_cast<std::size_t>(node)]) return;
    seen[static_cast<std::size_t>(node)] = true;
    pending.push_back(node);
  };
  visit(value);
  for (std::size_t i = 0; i < pending.size(); ++i) {
    for (const int input : recipes_.nodes[static_cast<std::size_t>(pending[i])].inputs) visit(input);
  }
  std::sort(pending.begin(), pending.end());
  return pending;
}

std::vector<int> RecipeIndex::weights_of(int value) const {
  const auto is_weight = [&](int operand) { return static_cast<std::size_t>(operand) < recipes_.weights.size(); };
  std::vector<int> out;
  if (is_weight(value)) out.push_back(value);
  for (const int node : nodes_below(value)) {
    const std::vector<int>& inputs = recipes_.nodes[static_cast<std::size_t>(node)].inputs;
    std::copy_if(inputs.begin(), inputs.end(), std::back_inserter(out), is_weight);
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

std::vector<bool> RecipeIndex::dependents(const std::vector<bool>& weights) const {
  std::vector<bool> out(static_cast<std::size_t>(value_count()), false);
  std::copy(weights.begin(), weights.end(), out.begin());
  for (std::size_t i = 0; i < recipes_.nodes.size(); ++i) {
    const RecipeNode& node = recipes_.nodes[i];
    const bool any = std::any_of(node.inputs.begin(), node.inputs.end(),
                                 [&](int input) { return input >= 0 && out[static_cast<std::size_t>(input)]; });
    for (std::size_t k = 0; any && k < node.results.size(); ++k) out[static_cast<std::size_t>(first_[i]) + k] = true;
  }
  return out;
}

}  // namespace polyphase
