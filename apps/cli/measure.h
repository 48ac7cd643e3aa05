// Running sessions again and again, and what the process used.
#pragma once

#include <functional>
#include <vector>

#include "polyphase/polyphase.h"

namespace polyphase::cli {

struct MeasureOptions {
  double warm_up_seconds = 0.5;
  double least_seconds = 2;
  std::size_t least_runs = 10;
  // Called from one thread with the share that is done.
  std::function<void(double done)> progress;
};

struct Measured {
  std::vector<std::vector<double>> seconds;  // by session, by run in order
  double wall_seconds = 0;                   // of the measured part
  std::size_t runs() const;
};

// Every session runs in a thread of its own until all have run long enough and often enough. The first error ends it.
Result<Measured> measure(const std::vector<api::Session>& sessions, const std::vector<api::Tensor>& inputs,
                         const MeasureOptions& options);

// The most memory this process held at once (VmHWM); 0 where the system does not tell.
std::uint64_t peak_memory_bytes();

}  // namespace polyphase::cli
