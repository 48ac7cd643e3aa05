// LevelPlan: everything about one level of a program for one set of sizes: where each value lies, which row each step
// takes, the rows' plans, and the memory plan. Made on the first sight of the sizes, then shared by all contexts.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "memory/plan.h"
#include "runtime/program.h"

namespace polyphase {

// A value in memory: `offset_bytes` from the start of its root's memory.
struct Place {
  TensorDesc desc;
  std::int64_t offset_bytes = 0;
};

// Whether a step that is estimated to take so long is not done before another worker has noticed it. Many phases are
// the steps of a recurrence: each waits for all workers. Who computes a tile changes no bits.
bool worth_sharing(double seconds, int phases);

struct StepPlan {
  const Row* row = nullptr;  // null: nothing to compute (empty results), or a step that runs no row
  StepDesc desc;             // concrete; the plan may point into it, so a StepPlan never moves
  Plan plan;
  bool worth_sharing = false;       // long enough that waking other workers pays
  std::vector<std::int64_t> tiles;  // by phase
  std::size_t scratch_bytes = 0;    // of one worker
  std::size_t shared_offset = 0;    // in the arena of the step's level
  std::size_t pack_offset = 0;      // pack_at_run: where the pack goes
  std::vector<TensorDesc> inputs;
  std::vector<TensorDesc> outputs;
  std::vector<KeptPart> kept;  // of a session that shows parts
};

struct PlacedRoot {
  int value = -1;
  std::size_t offset_bytes = 0;
  std::size_t size_bytes = 0;
};

// What a step needs for itself in the arena: its row's shared workspace, or the pack of its weights.
struct PlacedWorkspace {
  int step = -1;  // flat
  std::size_t offset_bytes = 0;
  std::size_t size_bytes = 0;
};

struct LevelPlan {
  int level = 0;
  std::vector<std::int64_t> sizes;  // of all symbols known at this level, in Program::symbols' order
  DimBindings bindings;
  std::vector<Place> places;                     // by value; of this level's values only
  std::vector<std::size_t> roots;                // by value: a root's offset in this level's arena
  std::vector<std::unique_ptr<StepPlan>> steps;  // by flat step; null: of another level
  std::vector<PlacedRoot> arena_roots;           // for reports
  std::vector<PlacedWorkspace> workspaces;       // for reports
  std::size_t arena_bytes = 0;
  std::size_t lower_bound_bytes = 0;
  std::size_t scratch_bytes = 0;  // the most that a worker needs
  std::size_t kept_bytes = 0;     // the most that a step keeps of its parts
};

// The plans of a run so far: [i] is of level i; null: not known yet.
using LevelPlans = std::vector<std::shared_ptr<const LevelPlan>>;

// What a session wants of its plans.
struct PlanOptions {
  std::uint64_t memory_limit_bytes = UINT64_MAX;  // of one run's arenas together
  // Steps also write down what their parts yield, where the part has a name for it and the row can.
  bool show_parts = false;
};

// Tests what the program demands of the sizes of this level. Error: shape_mismatch.
Result<void> test_checks(const Program& program, int level, const DimBindings& bindings);

// Plans `level` for these sizes, which all that it sees has been planned for in `lower`. Errors: shape_mismatch (a
// check fails, or a size is negative or too large), out_of_memory (the arena is beyond the limit).
Result<std::shared_ptr<const LevelPlan>> plan_level(const Program& program, int level, const LevelPlans& lower,
                                                    std::vector<std::int64_t> sizes, const PlanOptions& options);

}  // namespace polyphase
