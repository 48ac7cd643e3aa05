// The passes by name. Each takes a graph to a better one of the same meaning and says whether it changed anything; each
// stands in the file of its name, whose head shows what it does. pipeline.cpp has their order.
#pragma once

#include "graph/graph.h"
#include "kernel/target.h"

namespace polyphase {

bool fold_constants(Graph& graph, const Target& target);
bool merge_common_subexpressions(Graph& graph, const Target& target);
bool remove_dead_nodes(Graph& graph, const Target& target);

}  // namespace polyphase
