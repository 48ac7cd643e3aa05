// Every tile is computed once, whoever helps, and nobody waits for ever.
#include "runtime/thread_pool.h"

#include <gtest/gtest.h>

namespace polyphase {
namespace {

struct Count {
  std::vector<std::atomic<int>> tiles;
  explicit Count(std::size_t n) : tiles(n) {}
};

bool count_tile(void* state, std::int64_t tile, std::byte* scratch) {
  scratch[0] = std::byte{1};
  static_cast<Count*>(state)->tiles[static_cast<std::size_t>(tile)].fetch_add(1);
  return true;
}

void run_many(ThreadPool& pool, int jobs) {
  alignas(64) std::byte scratch[64];
  ThreadPool::Desk* desk = pool.take_desk();
  for (int job = 0; job < jobs; ++job) {
    const auto tiles = static_cast<std::size_t>(job % 17);
    Count count(tiles);
    pool.run(desk, {count_tile, &count, static_cast<std::int64_t>(tiles), 64}, scratch);
    for (const auto& tile : count.tiles) ASSERT_EQ(tile.load(), 1);
  }
  pool.return_desk(desk);
}

TEST(ThreadPool, ComputesEveryTileOnce) {
  for (const int threads : {1, 2, 4}) {
    ThreadPool pool(threads);
    run_many(pool, 500);
  }
}

TEST(ThreadPool, ServesManyCallersAtOnce) {
  ThreadPool pool(3);
  std::vector<std::thread> callers;
  for (int i = 0; i < 8; ++i) callers.emplace_back([&] { run_many(pool, 200); });
  for (std::thread& caller : callers) caller.join();
}

TEST(ThreadPool, StopsWhenATileSaysSo) {
  ThreadPool pool(2);
  std::atomic<int> done{0};
  alignas(64) std::byte scratch[64];
  ThreadPool::Desk* desk = pool.take_desk();
  const auto stop_at_ten = [](void* state, std::int64_t, std::byte*) {
    return static_cast<std::atomic<int>*>(state)->fetch_add(1) < 10;
  };
  pool.run(desk, {stop_at_ten, &done, 1'000'000, 64}, scratch);
  EXPECT_LT(done.load(), 1000);
  pool.return_desk(desk);
}

// How many of sixty jobs of eight tiles the owner does alone. tile(is_owner, tile) waits for as long as a tile takes.
template <class Tile>
int jobs_alone(int threads, Tile tile) {
  struct Work {
    Tile& tile;
    std::thread::id owner = std::this_thread::get_id();
    std::atomic<int> by_owner{0};  // of the present job
  };
  ThreadPool pool(threads);
  Work work = {tile};
  alignas(64) std::byte scratch[64];
  ThreadPool::Desk* desk = pool.take_desk();
  const auto run = [](void* state, std::int64_t number, std::byte*) {
    auto& all = *static_cast<Work*>(state);
    const bool is_owner = std::this_thread::get_id() == all.owner;
    if (is_owner) all.by_owner.fetch_add(1);
    all.tile(is_owner, number);
    return true;
  };
  int alone = 0;
  for (int job = 0; job < 60; ++job) {
    work.by_owner = 0;
    pool.run(desk, {run, &work, 8, 64}, scratch);
    if (work.by_owner == 8) ++alone;
  }
  pool.return_desk(desk);
  return alone;
}

TEST(ThreadPool, KeepsHelpersThatTakeLongerThanTheOwner) {
  const auto sleep = [](bool is_owner, std::int64_t) {
    std::this_thread::sleep_for(std::chrono::milliseconds(is_owner ? 2 : 4));
  };
  EXPECT_LT(jobs_alone(8, sleep), 8);
}

TEST(ThreadPool, LeavesAHelperThatCostsMoreThanItSaves) {
  const auto stall = [](bool is_owner, std::int64_t tile) {
    if (!is_owner && tile == 4) std::this_thread::sleep_for(std::chrono::milliseconds(8));
    const auto start = std::chrono::steady_clock::now();
    while (std::chrono::steady_clock::now() - start < std::chrono::microseconds(30)) {
    }
  };
  EXPECT_GE(jobs_alone(2, stall), 8);
}

TEST(ThreadPool, HasWorkersThatSleepAndWake) {
  ThreadPool pool(2);
  for (int i = 0; i < 3; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    run_many(pool, 20);
  }
}

}  // namespace
}  // namespace polyphase
