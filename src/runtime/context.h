// Context: what one run at a time needs for itself: arenas, scratch, a desk among the workers.
#pragma once

#include <vector>

#include "runtime/session.h"

namespace polyphase {

class Context {
 public:
  explicit Context(Session& session) : session_(session), desk_(session.pool_.take_desk()) {}
  ~Context() { session_.pool_.return_desk(desk_); }
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  Result<std::vector<Tensor>> run(const RunRequest& request, std::shared_ptr<const LevelPlan> plan);

 private:
  Result<void> enter(std::shared_ptr<const LevelPlan> plan);
  Result<void> stage_inputs();
  Result<void> make_output(std::size_t port);
  Result<void> run_block(std::size_t block);
  Result<void> run_step(int index);
  Result<void> run_observed(int index);
  Result<void> show(int value, int index, bool is_result);
  Result<void> show_parts(int index);
  Result<void> run_row(const ProgramStep& step, const StepPlan& plan);
  Result<void> run_bind(const ProgramStep& step);
  Result<void> run_branch(const ProgramStep& step);
  Result<void> run_loop(const ProgramStep& step);
  // Opens the level with these sizes, and with those of the level around it.
  Result<void> give(int level, const DimBindings& sizes);
  Result<void> bind_size(const Dim& symbol, std::int64_t size, DimBindings& sizes) const;
  Result<void> stopped() const;
  Error fault_of(const ProgramStep& step, const StepPlan& plan, const char* fault);
  void hand_out();

  const Place& place_of(int value) const;
  std::byte* data_of(int value) const;
  TensorView view_of(int value) const { return {place_of(value).desc, data_of(value)}; }

  friend class LoopRun;
  std::uint64_t memory_limit_bytes() const { return session_.options_.memory_limit_bytes; }

  Session& session_;
  ThreadPool::Desk* desk_;
  std::vector<Arena> arenas_;  // by level
  Arena scratch_;
  Arena kept_;  // what the parts of the step at hand yield
  // Of the run at hand:
  const RunRequest* request_ = nullptr;
  LevelPlans plans_;
  std::vector<const std::byte*> inputs_;  // by port, dense row-major
  std::vector<Tensor> staged_;            // by port; valid where the caller's strides had to be undone
  std::vector<Tensor> outputs_;           // by port; what the steps write
  std::vector<bool> shown_;               // by value, of an observed run
  std::vector<const std::byte*> input_pointers_;
  std::vector<std::byte*> output_pointers_;
  std::vector<std::byte*> kept_pointers_;
};

}  // namespace polyphase
