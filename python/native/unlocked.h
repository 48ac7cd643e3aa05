// Work without the interpreter's lock.
#pragma once

#include <cxxabi.h>
#include <nanobind/nanobind.h>
#include <unistd.h>

namespace polyphase::python {

// While one lives, other Python threads run. A daemon thread that comes back after the interpreter has ended is made to
// end by Python, in the middle of our frames, whose objects it could no longer release: it waits for the end of the
// process instead.
class Unlocked {
 public:
  Unlocked() : state_(PyEval_SaveThread()) {}
  ~Unlocked() {
    try {
      PyEval_RestoreThread(state_);
    } catch (abi::__forced_unwind&) {
      for (;;) pause();
    }
  }
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

 private:
  PyThreadState* state_;
};

}  // namespace polyphase::python
