// Tasks for several threads that are started for them: each begins on one thread, and what it then falls into, its
// shares, goes on all that are free. For work of milliseconds; a run of an engine has runtime/thread_pool.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/result.h"

namespace polyphase {

struct Task {
  // Says how many shares are left, which may be none.
  std::function<Result<std::int64_t>()> begin;
  std::function<void(std::int64_t share, std::int64_t count)> run = nullptr;
};

// Runs them all, beginning the first ones first; a task is dropped with what its functions hold once it is done. At
// most `threads` work at a time, the caller's among them; fewer where the system starts no more. After an Error nothing
// further is begun. Errors: the first that a task gives; out_of_memory where one throws bad_alloc.
Result<void> run_tasks(std::vector<Task> tasks, int threads);

}  // namespace polyphase
