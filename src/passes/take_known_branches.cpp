// take_known_branches: an `if` whose condition is known gives way to what its branch does.
//
//   %y = if(true, %x)
//     graph "then" (%a) { %r = relu(%a) return %r }      →   %y = relu(%x)
//     graph "else" (%a) { … }
//
// Condition: the condition is a constant, or known as a size, and the branch gives the types that the `if` has.
#include <unordered_map>

#include "passes/passes.h"
#include "passes/rewrite.h"

namespace polyphase {
namespace {

std::optional<bool> known_condition(const Value* condition) {
  if (condition->contents.has_value() && condition->contents->size() == 1) {
    const Dim& element = condition->contents->front();
    if (element.is_constant()) return element.value() != 0;
    if (surely_different(element, 0)) return true;
  }
  const auto element = repeated_element(condition);
  if (!element.has_value()) return std::nullopt;
  return *element != 0;
}

class Inliner {
 public:
  Inliner(Graph& graph, Node* branch, const Graph& taken) : graph_(graph), branch_(branch), taken_(taken) {}

  bool run() {
    for (std::size_t i = 0; i < taken_.inputs().size(); ++i) twin_[taken_.inputs()[i].get()] = branch_->input(i + 1);
    const std::size_t checks_before = graph_.checks().size();
    if (!copy_nodes() || !fits()) {
      for (auto node = added_.rbegin(); node != added_.rend(); ++node) graph_.erase(*node);
      graph_.checks().resize(checks_before);
      return false;
    }
    graph_.checks().insert(graph_.checks().end(), taken_.checks().begin(), taken_.checks().end());
    for (std::size_t i = 0; i < branch_->outputs().size(); ++i)
      graph_.replace_uses(branch_->output(i), twin_.at(taken_.outputs()[i]));
    erase_unused(graph_, branch_);
    return true;
  }

 private:
  bool copy_nodes() {
    for (const auto& node : taken_.nodes()) {
      std::vector<Value*> inputs;
      for (const Value* input : node->inputs()) inputs.push_back(input == nullptr ? nullptr : twin_.at(input));
      std::vector<std::unique_ptr<Graph>> regions;
      for (const auto& region : node->regions()) regions.push_back(clone(*region));
      auto copied =
          graph_.add_parts(node->parts(), node->anchor(), std::move(inputs), node->name(), branch_, std::move(regions));
      if (!copied.ok()) return false;
      added_.push_back(*copied);
      for (std::size_t i = 0; i < node->outputs().size(); ++i) twin_[node->output(i)] = (*copied)->output(i);
    }
    return true;
  }

  bool fits() const {
    for (std::size_t i = 0; i < branch_->outputs().size(); ++i) {
      if (!(twin_.at(taken_.outputs()[i])->type == branch_->output(i)->type)) return false;
    }
    return true;
  }

  Graph& graph_;
  Node* branch_;
  const Graph& taken_;
  std::unordered_map<const Value*, Value*> twin_;
  std::vector<Node*> added_;
};

// One round: what a branch brings may hold an `if` that is known now.
bool take(Graph& graph) {
  bool changed = false;
  for (Node* node : graph.node_list()) {
    if (!node->is("if")) continue;
    const auto condition = known_condition(node->input(0));
    if (!condition.has_value()) continue;
    changed = Inliner(graph, node, *node->regions()[*condition ? 0 : 1]).run() || changed;
  }
  return changed;
}

}  // namespace

bool take_known_branches(Graph& graph, const Target&) {
  return in_every_graph(graph, [](Graph& each) {
    bool changed = false;
    for (bool again = true; again; changed = changed || again) again = take(each);
    return changed;
  });
}

}  // namespace polyphase
