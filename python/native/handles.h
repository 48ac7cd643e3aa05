// What the Python classes hold.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include "polyphase/polyphase.h"

namespace polyphase::python {

// How many forks lie between this process and the first that loaded the module.
unsigned fork_generation();

// Which runs need no watch for Ctrl-C: those of the sizes whose last run took less than a millisecond. The watch's
// system calls are a seventh of what the call of a tiny network costs. Where elements decide how long a run takes
// (integers may be sizes, loops go on while something holds) every run is watched. Used with the interpreter's lock
// held.
class BriefRuns {
 public:
  bool hold(const std::vector<api::TensorView>& inputs) const;
  void note(const api::Engine& engine, const std::vector<api::TensorView>& inputs,
            std::chrono::steady_clock::duration took);

 private:
  std::optional<bool> depends_on_sizes_alone_;
  std::vector<std::vector<std::int64_t>> sizes_;  // one for each input; empty: no run was brief
};

// A session's workers are threads, and a forked child has none of its parent's: there it can neither run nor be
// destroyed.
class SessionHandle {
 public:
  explicit SessionHandle(api::Session session) : session_(std::move(session)) {}
  ~SessionHandle() {
    if (!is_here()) new api::Session(std::move(session_));  // given up
  }
  SessionHandle(const SessionHandle&) = delete;
  SessionHandle& operator=(const SessionHandle&) = delete;

  bool is_here() const { return generation_ == fork_generation(); }
  // Raises in a forked child.
  const api::Session& get() const;

  mutable BriefRuns brief_runs;

 private:
  api::Session session_;
  unsigned generation_ = fork_generation();
};

// An engine with the session that its calls share, made by the first of them. All is read and written with the
// interpreter's lock held: whoever releases it takes a copy before, since refit puts another engine here.
struct EngineHandle {
  api::Engine engine;
  std::shared_ptr<SessionHandle> own;
  unsigned refits = 0;
};

}  // namespace polyphase::python
