// Tasks on several threads: everything once, in shares, and what happens when one fails.
#include "base/tasks.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <new>
#include <thread>

namespace polyphase {
namespace {

TEST(Tasks, EveryShareRunsOnceAfterItsTaskHasBegun) {
  for (const int threads : {1, 2, 5}) {
    for (const int count : {0, 1, 7, 40}) {
      std::vector<std::vector<std::atomic<int>>> seen;
      std::vector<std::atomic<bool>> begun(static_cast<std::size_t>(count));
      for (int i = 0; i < count; ++i) seen.emplace_back(static_cast<std::size_t>(i % 5));
      std::atomic<int> wrong{0};
      std::vector<Task> tasks;
      for (std::size_t i = 0; i < seen.size(); ++i) {
        tasks.push_back({[&, i]() -> Result<std::int64_t> {
                           if (begun[i].exchange(true)) ++wrong;
                           return static_cast<std::int64_t>(seen[i].size());
                         },
                         [&, i](std::int64_t share, std::int64_t shares) {
                           if (!begun[i] || shares != static_cast<std::int64_t>(seen[i].size())) ++wrong;
                           ++seen[i][static_cast<std::size_t>(share)];
                         }});
      }
      ASSERT_TRUE(run_tasks(std::move(tasks), threads).ok());
      EXPECT_EQ(wrong, 0);
      for (std::size_t i = 0; i < seen.size(); ++i) {
        EXPECT_TRUE(begun[i]);
        for (const auto& times : seen[i]) EXPECT_EQ(times, 1);
      }
    }
  }
}

TEST(Tasks, AnErrorEndsThem) {
  for (const int threads : {1, 3}) {
    std::atomic<int> begun{0};
    std::vector<Task> tasks;
    for (int i = 0; i < 100; ++i) {
      tasks.push_back({[&begun, i]() -> Result<std::int64_t> {
        ++begun;
        if (i == 3) return Error{ErrorCode::corrupt, "the fourth.", "Take another."};
        return 0;
      }});
    }
    const auto done = run_tasks(std::move(tasks), threads);
    ASSERT_FALSE(done.ok());
    EXPECT_EQ(done.error().code, ErrorCode::corrupt);
    EXPECT_LT(begun, 100);
  }
}

TEST(Tasks, NoMemoryIsAnError) {
  for (const bool at_begin : {true, false}) {
    std::vector<Task> tasks;
    tasks.push_back({[at_begin]() -> Result<std::int64_t> {
                       if (at_begin) throw std::bad_alloc();
                       return 2;
                     },
                     [](std::int64_t, std::int64_t) { throw std::bad_alloc(); }});
    const auto done = run_tasks(std::move(tasks), 2);
    ASSERT_FALSE(done.ok());
    EXPECT_EQ(done.error().code, ErrorCode::out_of_memory);
  }
}

// One thread has what a large task holds freed before the next begins.
TEST(Tasks, WhatATaskHoldsGoesWhenItIsDone) {
  auto held = std::make_shared<int>(1);
  const std::weak_ptr<int> first = held;
  bool gone = false;
  std::vector<Task> tasks;
  tasks.push_back({[held]() -> Result<std::int64_t> { return *held; }, [held](std::int64_t, std::int64_t) {}});
  tasks.push_back({[&]() -> Result<std::int64_t> {
    gone = first.expired();
    return 0;
  }});
  held.reset();
  ASSERT_TRUE(run_tasks(std::move(tasks), 1).ok());
  EXPECT_TRUE(gone);
}

// A large task falls to all threads: this one would never end on one.
TEST(Tasks, SharesOfOneTaskRunSideBySide) {
  std::atomic<int> inside{0};
  std::vector<Task> tasks;
  tasks.push_back({[]() -> Result<std::int64_t> { return 2; },
                   [&](std::int64_t, std::int64_t) {
                     ++inside;
                     while (inside < 2) std::this_thread::yield();
                   }});
  ASSERT_TRUE(run_tasks(std::move(tasks), 2).ok());
}

}  // namespace
}  // namespace polyphase
