// The threads of tasks take shares of what has begun before they begin more.
#include "base/tasks.h"

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <new>
#include <optional>
#include <system_error>
#include <thread>

namespace polyphase {
namespace {

class Tasks {
 public:
  explicit Tasks(std::vector<Task> tasks) : tasks_(std::move(tasks)), open_(tasks_.size()) {}

  void work() {
    std::unique_lock lock(mutex_);
    while (!error_.has_value()) {
      if (Open* open = next_open()) {
        run_share(*open, lock);
      } else if (begun_ < tasks_.size()) {
        begin(begun_++, lock);
      } else if (beginning_ > 0) {
        changed_.wait(lock);
      } else {
        return;
      }
    }
  }

  Result<void> outcome() && {
    if (error_.has_value()) return *std::move(error_);
    return {};
  }

 private:
  struct Open {
    Task* task = nullptr;
    std::int64_t shares = 0;
    std::int64_t next = 0;
    std::int64_t done = 0;
  };

  Open* next_open() {
    while (first_open_ < begun_ && open_[first_open_].next == open_[first_open_].shares && is_begun(first_open_))
      ++first_open_;
    for (std::size_t i = first_open_; i < begun_; ++i) {
      if (open_[i].next < open_[i].shares) return &open_[i];
    }
    return nullptr;
  }
  bool is_begun(std::size_t i) const { return open_[i].task != nullptr; }

  void begin(std::size_t at, std::unique_lock<std::mutex>& lock) {
    ++beginning_;
    lock.unlock();
    Result<std::int64_t> shares = caught([&]() -> Result<std::int64_t> { return tasks_[at].begin(); });
    lock.lock();
    --beginning_;
    changed_.notify_all();
    if (!shares.ok()) {
      if (!error_.has_value()) error_ = std::move(shares).error();
      return;
    }
    open_[at] = {&tasks_[at], *shares, 0, 0};
    if (*shares == 0) drop(tasks_[at], lock);
  }

  // What a task holds may be large.
  static void drop(Task& task, std::unique_lock<std::mutex>& lock) {
    Task last = std::move(task);
    lock.unlock();
    last = {};
    lock.lock();
  }

  void run_share(Open& open, std::unique_lock<std::mutex>& lock) {
    const std::int64_t share = open.next++;
    lock.unlock();
    auto done = caught([&]() -> Result<std::int64_t> {
      open.task->run(share, open.shares);
      return share;
    });
    lock.lock();
    if (!done.ok() && !error_.has_value()) {
      error_ = std::move(done).error();
      changed_.notify_all();
    }
    if (++open.done == open.shares) drop(*open.task, lock);
  }

  // Threads let no exception out.
  template <typename F>
  static Result<std::int64_t> caught(F&& f) {
    try {
      return f();
    } catch (const std::bad_alloc&) {
      return Error{ErrorCode::out_of_memory, "out of memory.", "Use less of it."};
    }
  }

  std::vector<Task> tasks_;
  std::vector<Open> open_;  // by task
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t begun_ = 0;
  std::size_t first_open_ = 0;
  int beginning_ = 0;
  std::optional<Error> error_;
};

}  // namespace

Result<void> run_tasks(std::vector<Task> given, int threads) {
  Tasks tasks(std::move(given));
  std::vector<std::thread> others;
  try {
    for (int i = 1; i < threads; ++i) others.emplace_back([&tasks] { tasks.work(); });
  } catch (const std::system_error&) {
    // The system has no more threads for us. Fewer do the same.
  } catch (const std::bad_alloc&) {
  }
  tasks.work();
  for (std::thread& other : others) other.join();
  return std::move(tasks).outcome();
}

}  // namespace polyphase
