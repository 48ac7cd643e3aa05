// A graph through passes, lower and session, beside the interpreter.
#pragma once

#include <optional>
#include <string>

#include "api/state.h"
#include "passes/random_graph.h"

namespace polyphase::api {

struct Aim {
  Target target;
  bool passes;
  int threads;
  int runs = 2;                          // legal ones that are compared, at most
  std::optional<double> tolerance = {};  // of random_data.h's difference; else as far as the graph is exact
};

struct Compared {
  int legal = 0;        // runs that were compared
  std::string program;  // as program_text has it; empty: there was none
};

// Failures are gtest's, with the graph and the program in words.
Compared compare_runs(const RandomGraph& random, std::uint64_t seed, const Aim& aim, const Workshop& workshop);

}  // namespace polyphase::api
