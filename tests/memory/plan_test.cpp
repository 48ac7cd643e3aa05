// plan_memory: told cases (plan.cases), and what must hold for any lifetimes.
#include "memory/plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <fstream>
#include <random>
#include <sstream>

namespace polyphase {
namespace {

constexpr std::size_t unit_bytes = 64;

void expect_sound(const std::vector<Lifetime>& blocks, const MemoryPlan& plan) {
  ASSERT_EQ(plan.offsets.size(), blocks.size());
  EXPECT_GE(plan.arena_bytes, plan.lower_bound_bytes);
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    EXPECT_EQ(plan.offsets[i] % 64, 0U);
    if (blocks[i].size_bytes == 0) {
      EXPECT_EQ(plan.offsets[i], 0U);
      continue;
    }
    ASSERT_LE(plan.offsets[i] + blocks[i].size_bytes, plan.arena_bytes);
    for (std::size_t j = 0; j < i; ++j) {
      if (blocks[j].last_step < blocks[i].first_step || blocks[j].first_step > blocks[i].last_step) continue;
      if (blocks[j].size_bytes == 0) continue;
      const bool apart = plan.offsets[i] + blocks[i].size_bytes <= plan.offsets[j] ||
                         plan.offsets[j] + blocks[j].size_bytes <= plan.offsets[i];
      ASSERT_TRUE(apart) << "blocks " << j << " and " << i << " overlap";
    }
  }
}

std::size_t largest_live_sum(const std::vector<Lifetime>& blocks) {
  std::size_t largest = 0;
  for (const Lifetime& at : blocks) {  // the maximum is reached where some block starts
    std::size_t live = 0;
    for (const Lifetime& block : blocks) {
      if (block.first_step <= at.first_step && at.first_step <= block.last_step)
        live += (block.size_bytes + 63) / 64 * 64;
    }
    largest = std::max(largest, live);
  }
  return largest;
}

TEST(MemoryPlan, ToldCases) {
  std::ifstream file(POLYPHASE_SOURCE_DIR "/tests/memory/plan.cases");
  ASSERT_TRUE(file.good());
  int cases = 0;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line.substr(0, line.find('#')));
    std::string name;
    std::size_t arena = 0;
    if (!(words >> name >> arena)) continue;
    ++cases;
    std::vector<Lifetime> blocks;
    char at = 0;
    char dash = 0;
    for (Lifetime block; words >> block.size_bytes >> at >> block.first_step >> dash >> block.last_step;) {
      block.size_bytes *= unit_bytes;
      blocks.push_back(block);
    }
    SCOPED_TRACE(name);
    const MemoryPlan plan = plan_memory(blocks);
    expect_sound(blocks, plan);
    EXPECT_EQ(plan.arena_bytes / unit_bytes, arena);
  }
  EXPECT_GE(cases, 10);
}

TEST(MemoryPlan, RandomLifetimes) {
  std::mt19937 random(20240229);
  for (int round = 0; round < 400; ++round) {
    SCOPED_TRACE(round);
    const auto count = std::uniform_int_distribution<std::size_t>(1, 60)(random);
    const auto steps = std::uniform_int_distribution<int>(1, 40)(random);
    std::vector<Lifetime> blocks(count);
    for (Lifetime& block : blocks) {
      block.size_bytes = std::uniform_int_distribution<std::size_t>(0, 5000)(random);
      block.first_step = std::uniform_int_distribution<int>(0, steps)(random);
      block.last_step = std::uniform_int_distribution<int>(block.first_step, steps)(random);
    }
    const MemoryPlan plan = plan_memory(blocks);
    expect_sound(blocks, plan);
    EXPECT_EQ(plan.lower_bound_bytes, largest_live_sum(blocks));
    EXPECT_EQ(plan_memory(blocks).offsets, plan.offsets);
  }
}

// An encoder whose levels wait for the decoder, two convolutions a level, channel counts that double while sizes fall.
std::vector<Lifetime> unet(std::mt19937& random, int levels, bool three_d) {
  const auto pick = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  const int down_steps = 3 * levels;
  std::vector<Lifetime> blocks;
  std::size_t size = static_cast<std::size_t>(pick(1 << 18, 1 << 20));
  std::vector<std::size_t> level_bytes;
  std::int32_t step = 0;
  for (int level = 0; level < levels; ++level) {
    level_bytes.push_back(size);
    blocks.push_back({size, step, step + 1});
    const std::int32_t concat_step = 2 * down_steps - 3 * level;
    blocks.push_back({size, step + 1, concat_step});
    blocks.push_back({three_d ? size / 8 : size / 4, step + 2, step + 3});
    step += 3;
    size = (three_d ? size / 4 : size / 2) + static_cast<std::size_t>(pick(0, 3000));
  }
  for (int level = levels - 1; level >= 0; --level) {
    const std::size_t bytes = level_bytes[static_cast<std::size_t>(level)];
    blocks.push_back({bytes, step, step + 1});
    blocks.push_back({bytes, step + 1, step + 2});
    blocks.push_back({bytes, step + 2, step + 3});
    step += 3;
  }
  return blocks;
}

TEST(MemoryPlan, UNetsAreWithinATenthOfTheBound) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    SCOPED_TRACE(round);
    const auto blocks = unet(random, 2 + round % 6, round % 2 == 0);
    const MemoryPlan plan = plan_memory(blocks);
    expect_sound(blocks, plan);
    EXPECT_LE(static_cast<double>(plan.arena_bytes), 1.10 * static_cast<double>(plan.lower_bound_bytes));
  }
}

TEST(MemoryPlan, ThousandsOfBlocksTakeNoTime) {
  std::mt19937 random(11);
  std::vector<Lifetime> blocks;
  for (int i = 0; i < 5000; ++i) {
    const int first = std::uniform_int_distribution<int>(0, 4000)(random);
    blocks.push_back({std::uniform_int_distribution<std::size_t>(1, 1 << 20)(random), first,
                      first + std::uniform_int_distribution<int>(0, 30)(random)});
  }
  const std::clock_t start = std::clock();  // of this process: what else the machine does is no fact about the plan
  const MemoryPlan plan = plan_memory(blocks);
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  EXPECT_LT(seconds, 10.0);  // a fraction of a second, a few under sanitizers
  EXPECT_LE(static_cast<double>(plan.arena_bytes), 1.35 * static_cast<double>(plan.lower_bound_bytes));
}

TEST(MemoryPlan, SizesBeyondTheAddressSpaceSaturate) {
  const std::vector<Lifetime> blocks(4, Lifetime{SIZE_MAX / 2, 0, 0});
  const MemoryPlan plan = plan_memory(blocks);
  EXPECT_EQ(plan.arena_bytes, SIZE_MAX);
  EXPECT_EQ(plan.lower_bound_bytes, SIZE_MAX);
}

}  // namespace
}  // namespace polyphase
