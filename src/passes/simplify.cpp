// simplify: nodes that do nothing go, and two that do one thing become one.
//
//   %a = transpose(%x) order=[0, 2, 1]
//   %b = transpose(%a) order=[0, 2, 1]  →   (%x)
//   %y = mul(%b, 1)
//
// Every rule keeps each element as a number; only the sign of a zero may change (x + 0). The rules stand in
// simplify_arithmetic.cpp and simplify_movement.cpp.
#include "passes/passes.h"
#include "passes/simplify_rules.h"

namespace polyphase {
namespace {

constexpr SimplifyRule rules[] = {simplify_arithmetic, simplify_movement};
constexpr int most_rounds = 32;

bool one_round(Graph& graph) {
  bool changed = false;
  for (Node* node : graph.node_list()) {
    if (node->fused() || !node->regions().empty() || node->outputs().size() != 1) continue;
    for (const SimplifyRule rule : rules) {
      if (!rule(graph, node)) continue;
      changed = true;
      break;
    }
  }
  return changed;
}

}  // namespace

bool simplify(Graph& graph, const Target&) {
  return in_every_graph(graph, [](Graph& each) {
    bool changed = false;
    for (int round = 0; round < most_rounds && one_round(each); ++round) changed = true;
    return changed;
  });
}

}  // namespace polyphase
