// Ctrl-C while Polyphase works without the interpreter: SIGINT ends a run or a compilation that the main thread waits
// for.
#pragma once

#include <atomic>

namespace polyphase::python {

// While one lives on the main thread, SIGINT sets the flag and then goes to the handler that was there before, which is
// Python's. On other threads, and where Python leaves SIGINT alone, only stop() sets it. On the main thread they nest,
// and share one flag.
//
// Python's own handler only notes the signal; its effect waits until the main thread is back in the interpreter. So
// after work that ended as cancelled: call settle() with the interpreter's lock held.
class Interruption {
 public:
  Interruption();
  ~Interruption();
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;

  const std::atomic<bool>* flag() const { return installed_ ? shared() : &own_; }
  void stop() { (installed_ ? shared() : &own_)->store(true); }
  // True: SIGINT came, and Python's handler for it raised nothing, so the work is to be done again. Raises what the
  // handler raises (KeyboardInterrupt). False: no SIGINT came.
  bool settle();

 private:
  static std::atomic<bool>* shared();

  std::atomic<bool> own_{false};
  bool installed_ = false;
};

}  // namespace polyphase::python
