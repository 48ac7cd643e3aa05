// Tuner: times of rows for one compilation: from the cache where they are known, else measured and put there.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "kernel/row_times.h"
#include "runtime/thread_pool.h"
#include "tune/measure.h"
#include "tune/timing_cache.h"

namespace polyphase {

struct TuneOptions {
  std::string processor;  // the CPU as its maker names it
  int threads = 1;        // of the sessions to come
  MeasureLimits limits = {};
  // Before a step is measured: its name, and how many there were.
  std::function<void(std::string_view node, std::size_t count)> tell = nullptr;
};

class Tuner : public RowTimes {
 public:
  Tuner(TimingCache cache, TuneOptions options);

  // A step whose operands lie far apart (strided views) has no times: its own memory would have to be imitated.
  std::vector<double> seconds(const StepDesc& desc, const std::vector<const Row*>& rows, const Target& target) override;

  // Writes the cache, and measures nothing from now on: what is known can still be asked for, from any thread.
  // Errors: as TimingCache::save.
  Result<void> finish();

  std::size_t measured_steps() const { return measured_; }
  std::size_t cached_steps() const { return used_.size(); }
  // "NODE: WHY", of steps that kept their estimates though they have a choice.
  const std::vector<std::string>& skipped() const { return skipped_; }
  const TimingCache& cache() const { return cache_; }
  // Where times hold, but for the cluster.
  std::string machine() const;

 private:
  std::vector<double> times_of(const std::string& machine, const std::string& step, const Target& target,
                               const std::vector<const Row*>& rows) const;
  bool measure(const StepDesc& desc, const std::vector<const Row*>& rows, const Target& target,
               const std::string& machine, const std::string& step);

  TimingCache cache_;
  TuneOptions options_;
  std::unique_ptr<ThreadPool> pool_;
  bool finished_ = false;
  double since_save_ = 0;
  std::size_t measured_ = 0;
  std::set<std::string> mine_;        // texts of steps that were measured here
  std::set<std::string> used_;        // that the cache had
  std::set<std::string> unmeasured_;  // that cannot be measured
  std::vector<std::string> skipped_;
};

}  // namespace polyphase
