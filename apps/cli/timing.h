// Where a run's time goes, step by step, and what this machine could do at best.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "polyphase/polyphase.h"

namespace polyphase::cli {

struct StepTimes {
  std::vector<double> seconds;      // by step, of one run of the network: medians; all trips of a loop together
  std::vector<std::uint64_t> runs;  // by step: how often it runs in one run of the network
  double steps_seconds = 0;         // sum over the steps of the program itself: those of blocks are in their owners'
  double run_seconds = 0;           // median of whole runs
  double fastest_seconds = 0;       // of a whole run
  std::size_t run_count = 0;
  std::string noise;  // why not to believe the times; empty: nothing speaks against it
};

inline constexpr double longest_timing_seconds = 30;

// Medians over at least 5 runs and about a second; of a network that takes longer, over as many runs as fit into
// `budget_seconds`, the first among them. `report` becomes what the first run says.
Result<StepTimes> time_steps(const api::Session& session, const std::vector<api::Tensor>& inputs, double budget_seconds,
                             api::Report& report);

struct Roof {
  double peak_flops = 0;                                     // FP32 multiply-adds on registers alone
  std::vector<std::pair<std::uint64_t, double>> bandwidths;  // bytes touched again and again → bytes per second
};

// Measured now, with as many threads; takes about half a second.
Roof measure_roof(int threads);

}  // namespace polyphase::cli
