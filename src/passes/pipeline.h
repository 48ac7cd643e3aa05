// The pipeline: which passes run, in which order and why; and the runner that checks, shows and times each.
#pragma once

#include <atomic>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "graph/graph.h"
#include "kernel/target.h"

namespace polyphase {

using PassFunction = bool (*)(Graph&, const Target&);

struct Pass {
  std::string_view name;  // the function, its file, its test, its flag and its label in timings
  PassFunction run = nullptr;
  std::string_view why_here;  // one line: what it does and why at this place
};

// In order; a name may stand several times.
std::span<const Pass> pass_table();

// What one run of one pass did.
struct PassReport {
  std::string_view name;
  std::size_t position = 0;  // in the table
  std::size_t count = 0;     // of the table
  bool changed = false;
  double seconds = 0;
  std::size_t nodes = 0;  // afterwards, in the outermost graph
};

struct PassOptions {
  std::vector<std::string> without;              // names to leave out
  std::vector<std::string> print_after;          // names, or "all": print the graph where such a pass changed it
  std::string stop_after;                        // the name after whose first run the pipeline ends; empty: at the end
  const std::atomic<bool>* cancelled = nullptr;  // set to true from elsewhere: no further pass runs
  std::function<void(std::string_view pass, std::string_view text)> print;  // takes what print_after asks for
  std::function<void(const PassReport&)> progress;                          // after each pass
  std::function<void(const PassReport&, const Graph&)> watch;               // the same with what the pass left
};

// Runs the table. Errors: an option names a pass that does not exist (the message lists those that do); a pass left a
// graph that does not verify (the message names the pass to leave out); cancelled.
Result<void> run_passes(Graph& graph, const Target& target, const PassOptions& options = {});

}  // namespace polyphase
