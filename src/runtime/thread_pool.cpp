// Workers, desks, and the protocol between them.
#include "runtime/thread_pool.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <system_error>

namespace polyphase {
namespace {

// How long a worker looks for work before it sleeps: between two runs, and in the middle of one, where others compute
// their last tiles or the run a step of a single tile. Waking up takes longer than most steps do.
constexpr std::chrono::microseconds watch_between_runs{100};
constexpr std::chrono::microseconds watch_in_run{1000};
constexpr int spins_before_yield = 5000;

// Of a job's tiles; more threads share them.
constexpr int most_ranges = 64;

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

// A worker's own scratch; grows, never shrinks while the worker lives.
class Scratch {
 public:
  ~Scratch() { std::free(memory_); }
  Scratch() = default;
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  bool holds(std::size_t size_bytes) const { return size_bytes <= size_bytes_; }
  // False: the system has no more memory; the worker then leaves the tiles to others.
  bool hold(std::size_t size_bytes) {
    if (holds(size_bytes)) return true;
    std::free(memory_);
    const std::size_t rounded = (size_bytes + 63) / 64 * 64;
    memory_ = static_cast<std::byte*>(std::aligned_alloc(64, rounded));
    size_bytes_ = memory_ == nullptr ? 0 : rounded;
    return memory_ != nullptr;
  }
  std::byte* data() const { return memory_; }

 private:
  std::byte* memory_ = nullptr;
  std::size_t size_bytes_ = 0;
};

Scratch& scratch_of_this_worker() {
  thread_local Scratch scratch;
  return scratch;
}

}  // namespace

// The job's fields are written only while the desk is closed and nobody helps. A worker first counts itself into
// `helpers`, then looks whether the desk is (still) open; the owner first closes, then waits for no helpers. All four
// are sequentially consistent, so either the worker sees the desk closed or the owner sees the worker.
//
// The tiles are about as many ranges as there are threads. Each begins with its own, and goes on with the others':
// steps that follow each other then mostly find what the one before wrote in their own core's cache.
struct alignas(64) ThreadPool::Desk {
  using Clock = std::chrono::steady_clock;

  // Whether a run's helpers are worth waiting for. Where a run waited for them longer than they saved it, over its last
  // jobs, the machine is crowded: the system puts helpers aside in the middle of a tile. The run then works alone for
  // some jobs, for twice as many each time that this happens again.
  class HelpersWorth {
   public:
    // Whether the next job is to be done alone.
    bool alone() {
      if (alone_ == 0) return false;
      --alone_;
      return true;
    }

    void count(Clock::duration saved, Clock::duration waited) {
      saved_ += saved - saved_ / jobs_remembered;
      waited_ += waited - waited_ / jobs_remembered;
      if (++jobs_ < least_jobs) return;
      penalty_ = std::max(least_penalty, penalty_ - 1);
      if (waited_ < saved_ + patience) return;
      *this = HelpersWorth(penalty_, std::min(2 * penalty_, greatest_penalty));
    }

    HelpersWorth() = default;

   private:
    HelpersWorth(int alone, int penalty) : alone_(alone), penalty_(penalty) {}

    static constexpr int least_penalty = 8;
    static constexpr int greatest_penalty = 1024;
    static constexpr int least_jobs = 16;  // a few long waits are no reason
    static constexpr int jobs_remembered = 64;
    static constexpr std::chrono::microseconds patience{300};

    Clock::duration saved_{};
    Clock::duration waited_{};
    int jobs_ = 0;
    int alone_ = 0;  // jobs that are left
    int penalty_ = least_penalty;
  };

  struct alignas(64) Range {
    std::atomic<std::int64_t> next{0};
    std::int64_t end = 0;
    std::atomic<Clock::rep> busy{0};  // how long the worker that began with it computed tiles
  };

  std::atomic<bool> open{false};
  std::atomic<int> helpers{0};
  std::atomic<std::int64_t> ranges_left{0};  // that have a tile which nobody has taken
  Job job;
  bool taken = false;
  std::vector<Range> ranges;
  std::int64_t range_count = 0;        // those that the job has
  std::atomic<bool> has_grown{false};  // a helper's scratch, which takes longer than the tiles
  HelpersWorth worth;                  // the owner's own

  void offer(const Job& offered) {
    job = offered;
    range_count = std::min(job.tiles, static_cast<std::int64_t>(ranges.size()));
    const std::int64_t each = job.tiles / range_count;
    const std::int64_t longer = job.tiles % range_count;
    std::int64_t begin = 0;
    for (std::int64_t i = 0; i < range_count; ++i) {
      Range& range = ranges[static_cast<std::size_t>(i)];
      range.next.store(begin, std::memory_order_relaxed);
      begin += each + (i < longer ? 1 : 0);
      range.end = begin;
      range.busy.store(0, std::memory_order_relaxed);
    }
    ranges_left.store(range_count, std::memory_order_relaxed);
    has_grown.store(false, std::memory_order_relaxed);
    open.store(true);
  }

  bool has_tiles() const { return ranges_left.load(std::memory_order_relaxed) > 0; }

  // As worker `index` of the pool; the owner of the run is 0.
  void take_tiles(std::size_t index, std::byte* scratch) {
    const auto own = static_cast<std::int64_t>(index) % range_count;
    const Clock::time_point start = Clock::now();
    bool computed = false;
    for (std::int64_t i = 0; i < range_count && has_tiles(); ++i) {
      if (take_tiles(ranges[static_cast<std::size_t>((own + i) % range_count)], scratch, computed)) continue;
      ranges_left.store(0, std::memory_order_relaxed);
      break;
    }
    if (!computed) return;
    ranges[static_cast<std::size_t>(own)].busy.fetch_add((Clock::now() - start).count(), std::memory_order_relaxed);
  }

  // The owner's time that helpers saved, when all tiles are done. Each did as much as the middle one of all workers:
  // whoever was put aside seems to have been busy meanwhile.
  Clock::duration saved() const {
    std::array<Clock::rep, most_ranges> busy;
    std::size_t count = 0;
    for (std::int64_t i = 0; i < range_count; ++i) {
      const Clock::rep each = ranges[static_cast<std::size_t>(i)].busy.load(std::memory_order_relaxed);
      if (each > 0) busy[count++] = each;
    }
    if (count == 0) return {};
    auto* const middle = busy.data() + (count - 1) / 2;
    std::nth_element(busy.data(), middle, busy.data() + count);
    return Clock::duration(*middle * static_cast<Clock::rep>(count - 1));
  }

 private:
  // False: the job is not to go on.
  bool take_tiles(Range& range, std::byte* scratch, bool& computed) {
    while (range.next.load(std::memory_order_relaxed) < range.end && has_tiles()) {
      const std::int64_t tile = range.next.fetch_add(1, std::memory_order_relaxed);
      if (tile + 1 == range.end) ranges_left.fetch_sub(1, std::memory_order_relaxed);
      if (tile >= range.end) return true;
      if (!job.run(job.state, tile, scratch)) return false;
      computed = true;
    }
    return true;
  }
};

ThreadPool::ThreadPool(int threads) : desks_(std::make_unique<Desk[]>(desk_count)) {
  const auto ranges = static_cast<std::size_t>(std::min(threads, most_ranges));
  for (std::size_t i = 0; threads > 1 && i < desk_count; ++i) desks_[i].ranges = std::vector<Desk::Range>(ranges);
  try {
    for (int i = 1; i < threads; ++i) {
      workers_.threads.emplace_back([this, i] { work(static_cast<std::size_t>(i)); });
    }
  } catch (const std::system_error&) {
    // The system has no more threads for us. Fewer compute the same.
  }
}

ThreadPool::~ThreadPool() = default;

ThreadPool::Workers::~Workers() {
  pool.stopping_.store(true);
  pool.wake();
  for (std::thread& worker : threads) worker.join();
}

ThreadPool::Desk* ThreadPool::take_desk() {
  if (workers_.threads.empty()) return nullptr;
  const std::lock_guard lock(mutex_);
  for (std::uint32_t i = 0; i < desk_count; ++i) {
    if (desks_[i].taken) continue;
    desks_[i].taken = true;
    runs_.fetch_add(1, std::memory_order_relaxed);
    if (i >= desks_used_.load()) desks_used_.store(i + 1);
    return &desks_[i];
  }
  return nullptr;
}

void ThreadPool::return_desk(Desk* desk) {
  if (desk == nullptr) return;
  runs_.fetch_sub(1, std::memory_order_relaxed);
  const std::lock_guard lock(mutex_);
  desk->taken = false;
}

void ThreadPool::run(Desk* desk, const Job& job, std::byte* scratch) {
  if (desk == nullptr || job.tiles <= 1 || desk->worth.alone()) {
    for (std::int64_t tile = 0; tile < job.tiles; ++tile) {
      if (!job.run(job.state, tile, scratch)) return;
    }
    return;
  }
  desk->offer(job);
  if (sleepers_.load() > 0) wake();
  desk->take_tiles(0, scratch);
  desk->open.store(false);
  const Desk::Clock::time_point done = Desk::Clock::now();
  for (int spins = 0; desk->helpers.load() != 0; ++spins) {
    if (spins < spins_before_yield) {
      pause();
    } else {
      std::this_thread::yield();
    }
  }
  if (!desk->has_grown.load(std::memory_order_relaxed)) desk->worth.count(desk->saved(), Desk::Clock::now() - done);
}

bool ThreadPool::help_somebody(std::size_t index) {
  const std::uint32_t used = desks_used_.load();
  bool helped = false;
  for (std::uint32_t i = 0; i < used; ++i) {
    Desk& desk = desks_[(i + index) % used];
    if (!desk.open.load() || !desk.has_tiles()) continue;
    desk.helpers.fetch_add(1);
    if (desk.open.load() && desk.has_tiles()) {
      Scratch& scratch = scratch_of_this_worker();
      if (!scratch.holds(desk.job.scratch_bytes)) desk.has_grown.store(true, std::memory_order_relaxed);
      if (scratch.hold(desk.job.scratch_bytes)) {
        desk.take_tiles(index, scratch.data());
        helped = true;
      }
    }
    desk.helpers.fetch_sub(1);
  }
  return helped;
}

bool ThreadPool::anything_open() const {
  const std::uint32_t used = desks_used_.load();
  for (std::uint32_t i = 0; i < used; ++i) {
    if (desks_[i].open.load()) return true;
  }
  return false;
}

void ThreadPool::wake() {
  wakes_.fetch_add(1);
  wakes_.notify_all();
}

// A sleeper announces itself before it looks a last time; whoever opens a desk looks for sleepers after opening.
void ThreadPool::work(std::size_t index) {
  using Clock = std::chrono::steady_clock;
  Clock::time_point idle_since = Clock::now();
  while (!stopping_.load(std::memory_order_relaxed)) {
    if (help_somebody(index)) {
      idle_since = Clock::now();
      continue;
    }
    const Clock::duration idle = Clock::now() - idle_since;
    if (idle < watch_between_runs) {
      pause();
      continue;
    }
    if (idle < watch_in_run && runs_.load(std::memory_order_relaxed) > 0) {
      std::this_thread::yield();
      continue;
    }
    const std::uint32_t wakes = wakes_.load();
    sleepers_.fetch_add(1);
    if (!stopping_.load() && !anything_open()) wakes_.wait(wakes);
    sleepers_.fetch_sub(1);
    idle_since = Clock::now();
  }
}

}  // namespace polyphase
