// Ctrl-C while Polyphase works without the interpreter.
#include "native/interrupt.h"

#include <nanobind/nanobind.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "native/handles.h"

namespace polyphase::python {
namespace {

static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler sets it");
std::atomic<bool> interrupted{false};
// Both are of the main thread alone.
int depth = 0;
struct sigaction previous;

void on_interrupt(int number, siginfo_t* info, void* context) {
  interrupted.store(true);
  if ((previous.sa_flags & SA_SIGINFO) != 0) {
    previous.sa_sigaction(number, info, context);
  } else {
    previous.sa_handler(number);
  }
}

bool is_ours(const struct sigaction& action) {
  return (action.sa_flags & SA_SIGINFO) != 0 && action.sa_sigaction == on_interrupt;
}

// Asked for each run, so the answer is kept: a thread that forks is its child's main thread.
bool on_main_thread() {
  thread_local unsigned asked_in = 0;
  thread_local bool answer = syscall(SYS_gettid) == getpid();
  if (asked_in != fork_generation()) {
    asked_in = fork_generation();
    answer = syscall(SYS_gettid) == getpid();
  }
  return answer;
}

}  // namespace

Interruption::Interruption() {
  if (!on_main_thread()) return;
  if (depth++ > 0) {
    installed_ = true;
    return;
  }
  interrupted.store(false);
  struct sigaction now;
  if (sigaction(SIGINT, nullptr, &now) != 0 || is_ours(now) || now.sa_handler == SIG_DFL || now.sa_handler == SIG_IGN) {
    --depth;
    return;
  }
  previous = now;
  struct sigaction ours = {};
  ours.sa_sigaction = on_interrupt;
  ours.sa_flags = SA_SIGINFO | (now.sa_flags & (SA_ONSTACK | SA_RESTART));
  ours.sa_mask = now.sa_mask;
  installed_ = sigaction(SIGINT, &ours, nullptr) == 0;
  if (!installed_) --depth;
}

Interruption::~Interruption() {
  if (!installed_ || --depth > 0) return;
  struct sigaction now;
  // Whoever exchanged the handler meanwhile keeps theirs.
  if (sigaction(SIGINT, &previous, &now) == 0 && !is_ours(now)) sigaction(SIGINT, &now, nullptr);
}

std::atomic<bool>* Interruption::shared() { return &interrupted; }

bool Interruption::settle() {
  if (!installed_ || !interrupted.load()) return false;
  if (PyErr_CheckSignals() != 0) throw nanobind::python_error();
  interrupted.store(false);
  return true;
}

}  // namespace polyphase::python
