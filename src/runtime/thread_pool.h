// ThreadPool: workers that help whichever runs have tiles left. A run always works on its own tiles; workers join in.
//
//   run A   open job: tile tile tile, close   open the next job …
//   run B       open job: tile tile, close …
//
// Each run owns one Desk, where its open job lies; workers walk the desks, take tiles and move on.
// Each thread begins with a range of the tiles that is its own in every job, and then takes others'.
//
// Which thread computes a tile never changes its result, so neither does the number of workers or of concurrent runs.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace polyphase {

// Tiles of one phase of one step. `run` computes one tile with a worker's private scratch and tells whether to go on.
struct Job {
  bool (*run)(void* state, std::int64_t tile, std::byte* scratch) = nullptr;
  void* state = nullptr;
  std::int64_t tiles = 0;
  std::size_t scratch_bytes = 0;
};

class ThreadPool {
 public:
  // `threads` counts the caller of a run too: threads - 1 workers are started, or as many as the system lets start.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return static_cast<int>(workers_.threads.size()) + 1; }

  // Where one run at a time offers its jobs.
  struct Desk;
  // A free desk; null when all are taken: then the run works alone, which is right too.
  Desk* take_desk();
  void return_desk(Desk* desk);

  // Computes all tiles of the job, the caller's own thread among the workers, and returns when the last is done.
  // `scratch` is the caller's private scratch.
  void run(Desk* desk, const Job& job, std::byte* scratch);

 private:
  void work(std::size_t index);
  bool help_somebody(std::size_t index);
  bool anything_open() const;
  void wake();

  static constexpr std::size_t desk_count = 64;
  std::unique_ptr<Desk[]> desks_;
  std::atomic<std::uint32_t> desks_used_{0};  // desks beyond were never taken
  std::mutex mutex_;                          // of desks' ownership
  std::atomic<int> runs_{0};                  // that have a desk
  std::atomic<std::uint32_t> wakes_{0};
  std::atomic<int> sleepers_{0};
  std::atomic<bool> stopping_{false};

  // Ends and joins them, also when the constructor fails at one of them. Last: they use all of the above.
  struct Workers {
    ~Workers();
    ThreadPool& pool;
    std::vector<std::thread> threads = {};
  };
  Workers workers_{*this};
};

}  // namespace polyphase
