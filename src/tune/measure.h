// measure: how long each of several rows takes for a step, on data of the step's shapes.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "kernel/row.h"
#include "runtime/thread_pool.h"

namespace polyphase {

struct MeasureLimits {
  double seconds_per_row = 0.03;  // of runs that are counted; a row that runs longer still gets two of them
  std::uint64_t memory_bytes = std::uint64_t{4} << 30;
  const std::atomic<bool>* cancelled = nullptr;
};

struct Measured {
  std::vector<double> seconds;  // by row; empty: none, and `problem` says why, unless it was cancelled
  std::string problem;
};

// The least seconds of one run of each row, packing aside, after one that is not counted. The rows take turns, and one
// that is twice as slow as the fastest so far drops out with what it has shown. With one thread processor time counts,
// so that other programs matter little. Constants with elements keep them; other floats are normally distributed, and
// integers 0. Every size of the step is a number, and every operand dense.
Measured measure_rows(const StepDesc& desc, const std::vector<const Row*>& rows, const Target& target, ThreadPool& pool,
                      const MeasureLimits& limits);

}  // namespace polyphase
