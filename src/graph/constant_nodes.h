// Which nodes follow from the model's weights and constants alone.
#pragma once

#include <unordered_set>

#include "graph/graph.h"
#include "ops/fold_budget.h"

namespace polyphase {

FoldCandidate fold_candidate(const Node& node);

// The nodes of `graph`, without those of its regions, whose results follow from weights that may be exchanged later and
// from constants alone: lower computes them, not the engine when it runs. Types decide, no elements do. Empty where
// there is no such weight.
std::unordered_set<const Node*> nodes_on_weights(const Graph& graph);

}  // namespace polyphase
