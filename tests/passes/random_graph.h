// Random legal graphs over the operators that passes rewrite: 5 to 30 nodes, sizes known or symbolic.
#pragma once

#include "passes/random_data.h"

namespace polyphase {

struct RandomGraph {
  std::unique_ptr<Graph> graph;
  // Every value of a run is a number that its dtype holds exactly, whatever the order of summation. Otherwise compare
  // within a tolerance.
  bool exact = true;
};

// The same seed gives the same graph.
RandomGraph random_graph(const Registry& registry, std::uint64_t seed);

}  // namespace polyphase
