// Session: runs one program, from many threads at once. It is an immutable program, a cache of plans by sizes, workers,
// and a pool of contexts; a run borrows a context.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "base/tensor.h"
#include "runtime/arena.h"
#include "runtime/level_plan.h"
#include "runtime/plan_cache.h"
#include "runtime/program.h"
#include "runtime/thread_pool.h"

namespace polyphase {

class Context;

// Sees the values of a run one by one.
class RunObserver {
 public:
  virtual ~RunObserver() = default;
  // `value` is complete now and may be overwritten after the call: it was just written by the flat step `step` on `row`
  // (null: a step that runs none), or, put together of windows or a view of another, is about to be read by it.
  // Constants and the caller's inputs are not shown. An Error ends the run.
  virtual Result<void> see(int value, const TensorView& view, int step, const Row* row) = 0;
  // The same for what part `part` of the step yielded, in sessions that show parts.
  virtual Result<void> see_part(int /*step*/, std::size_t /*part*/, const TensorView& /*view*/, const Row& /*row*/) {
    return {};
  }
};

// One run. Inputs by port; outputs: given memory where `outputs` holds a view with data, else allocated.
struct RunRequest {
  std::vector<TensorView> inputs;
  std::vector<TensorView> outputs;  // empty: all are allocated
  const std::atomic<bool>* cancelled = nullptr;
  std::optional<std::chrono::steady_clock::time_point> deadline;
  std::vector<double>* step_seconds = nullptr;      // by flat step; added to
  std::vector<std::uint64_t>* step_runs = nullptr;  // likewise; read where step_seconds is set
  RunObserver* observer = nullptr;
  LevelPlans* plans = nullptr;  // becomes what the run was planned as
};

class Session {
 public:
  struct Options {
    int threads = 1;                                // workers in all, a run's own thread included
    std::uint64_t memory_limit_bytes = UINT64_MAX;  // of one run's arenas together
    std::size_t cached_plans = 64;
    bool show_parts = false;  // observers see what parts yield (see PlanOptions)
  };

  Session(std::shared_ptr<const Program> program, Options options);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // The outputs, row-major. Errors: invalid_argument, shape_mismatch, out_of_memory, cancelled, and faults found in
  // data.
  Result<std::vector<Tensor>> run(const RunRequest& request);

  // The plan of level 0 for inputs of these sizes.
  Result<std::shared_ptr<const LevelPlan>> plan_for(const std::vector<std::vector<std::int64_t>>& input_sizes);

  // The symbols' values for inputs of these sizes, which pass the program's checks; nothing is planned.
  Result<DimBindings> bindings_for(const std::vector<std::vector<std::int64_t>>& input_sizes) const;

  const Program& program() const { return *program_; }
  int threads() const { return pool_.threads(); }
  // Weights packed while loading, and computed weights packed at runs.
  std::uint64_t packs() const { return program_->packs + run_packs_.load(); }
  std::uint64_t plans() const { return plans_.load(); }
  std::uint64_t plan_hits() const { return plan_hits_.load(); }

 private:
  friend class Context;
  // Finds or makes the plan of the level for these sizes of all symbols known then.
  Result<std::shared_ptr<const LevelPlan>> plan(int level, const LevelPlans& lower, std::vector<std::int64_t> sizes);
  Result<std::vector<std::int64_t>> bind_inputs(const std::vector<std::vector<std::int64_t>>& input_sizes) const;
  std::unique_ptr<Context> borrow();
  void give_back(std::unique_ptr<Context> context);

  std::shared_ptr<const Program> program_;
  Options options_;
  PlanCache cache_;
  ThreadPool pool_;
  std::shared_ptr<ResultPool> results_ = std::make_shared<ResultPool>();
  std::mutex mutex_;  // of the free contexts
  std::vector<std::unique_ptr<Context>> free_;
  std::atomic<std::uint64_t> plans_{0};
  std::atomic<std::uint64_t> plan_hits_{0};
  std::atomic<std::uint64_t> run_packs_{0};
};

}  // namespace polyphase
