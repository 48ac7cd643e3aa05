// The tuner: rows are chosen by what they take, once, and what cannot be measured keeps its estimates.
#include "tune/tuner.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <thread>

#include "kernel/catalogue.h"
#include "tune/step_text.h"

namespace polyphase {
namespace {

std::atomic<int> runs{0};

std::string takes_all(const StepDesc&, const Target&) { return {}; }
Plan plan_bytes(const PlanRequest& request, const Target&) {
  return Plan::of(request.outputs[0].extent() * static_cast<std::int64_t>(sizeof(float)));
}
std::int64_t one_tile(const Plan&, int) { return 1; }

template <int microseconds>
Fault copy_slowly(const Plan& plan, const Pointers& pointers, int, std::int64_t, std::byte*) {
  runs.fetch_add(1);
  const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(microseconds);
  std::memcpy(pointers.outputs[0], pointers.inputs[0],
              static_cast<std::size_t>(*reinterpret_cast<const std::int64_t*>(plan.bytes())));
  while (std::chrono::steady_clock::now() < end) {
  }
  return nullptr;
}
// A part of the whole per tile, for several threads.
constexpr std::int64_t parts = 16;
std::int64_t many_tiles(const Plan&, int) { return parts; }
Fault copy_part(const Plan& plan, const Pointers& pointers, int, std::int64_t tile, std::byte*) {
  runs.fetch_add(1);
  const std::int64_t size = *reinterpret_cast<const std::int64_t*>(plan.bytes());
  const std::int64_t first = size * tile / parts;
  std::memcpy(pointers.outputs[0] + first, pointers.inputs[0] + first,
              static_cast<std::size_t>(size * (tile + 1) / parts - first));
  return nullptr;
}
Fault find_fault(const Plan&, const Pointers&, int, std::int64_t, std::byte*) { return "an index is 0"; }

Row row(std::string_view name, std::string_view op, double (*cost)(const StepDesc&, const Target&),
        Fault (*run)(const Plan&, const Pointers&, int, std::int64_t, std::byte*)) {
  return {.name = name,
          .op = op,
          .doc = "for tests",
          .takes = Density::strided,
          .accepts = takes_all,
          .cost = cost,
          .packing = {},
          .plan = plan_bytes,
          .workspace = nullptr,
          .phases = nullptr,
          .tiles = one_tile,
          .run = run};
}

double low(const StepDesc&, const Target&) { return 1e-6; }
double high(const StepDesc&, const Target&) { return 2e-6; }

const Registry& registry() {
  static const Registry built_in = Registry::built_in();
  return built_in;
}

// relu: the estimates prefer the slow row. neg: one row. abs: rows that find fault. exp: rows of many tiles.
const Catalogue& catalogue() {
  static const Row rows[] = {row("slow", "relu", low, copy_slowly<3000>), row("fast", "relu", high, copy_slowly<0>),
                             row("alone", "neg", low, copy_slowly<0>), row("picky", "abs", low, find_fault),
                             row("picky too", "abs", high, find_fault)};
  static const auto tiled = [](std::string_view name) {
    Row out = row(name, "exp", low, copy_part);
    out.tiles = many_tiles;
    return out;
  };
  static const Row wide[] = {tiled("wide"), tiled("wide too")};
  static const Catalogue built({&rows[0], &rows[1], &rows[2], &rows[3], &rows[4], &wide[0], &wide[1]}, registry());
  return built;
}

StepDesc step(std::string_view op, std::vector<Dim> sizes = {Dim(2), Dim(8)}) {
  StepDesc out;
  out.name = "node of " + std::string(op);
  out.parts.push_back({&registry().at(op), {}, {0}});
  OperandDesc operand;
  operand.type = {DType::f32, Shape(sizes)};
  operand.layout = Layout::row_major(static_cast<int>(sizes.size()));
  out.inputs.push_back(operand);
  out.outputs.push_back(operand);
  return out;
}

class TunerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    path_ = std::filesystem::temp_directory_path() / ("polyphase_tuner_test_" + std::to_string(getpid()));
    runs = 0;
  }
  void TearDown() override {
    std::filesystem::remove(path_);
    std::filesystem::remove(path_.string() + ".lock");
  }
  std::unique_ptr<Tuner> tuner(const std::string& processor = "cpu", int threads = 1, MeasureLimits limits = {}) const {
    auto cache = TimingCache::open(path_);
    EXPECT_TRUE(cache.ok());
    return std::make_unique<Tuner>(std::move(cache).value(), TuneOptions{processor, threads, limits});
  }
  static std::vector<RowAnswer> choose(const StepDesc& desc, Tuner* tuner) {
    Target target;
    target.catalogue = &catalogue();
    target.times = tuner;
    return catalogue().choose(desc, desc, target);
  }

  std::filesystem::path path_;
};

TEST_F(TunerTest, MeasuredTimesDecide) {
  EXPECT_EQ(choose(step("relu"), nullptr).front().row->name, "slow");
  const auto tuning = tuner();
  const auto chosen = choose(step("relu"), tuning.get());
  ASSERT_EQ(chosen.size(), 1U);  // a run would choose by estimates again
  EXPECT_EQ(chosen.front().row->name, "fast");
  EXPECT_TRUE(chosen.front().measured);
  EXPECT_LT(chosen.front().cost_seconds, 2e-3);
  EXPECT_EQ(tuning->measured_steps(), 1U);
}

TEST_F(TunerTest, EqualStepsAreMeasuredOnce) {
  const auto tuning = tuner();
  choose(step("relu"), tuning.get());
  const int once = runs;
  StepDesc other = step("relu");
  other.name = "another node";
  choose(other, tuning.get());
  EXPECT_EQ(runs, once);
  other.inputs[0].density = Density::pitched;  // a window of a larger tensor
  choose(other, tuning.get());
  EXPECT_EQ(runs, once);
  EXPECT_EQ(tuning->measured_steps(), 1U);
  EXPECT_EQ(tuning->cached_steps(), 0U);
  choose(step("relu", {Dim(2), Dim(9)}), tuning.get());
  EXPECT_GT(runs, once);
}

TEST_F(TunerTest, TheCacheSparesMeasuring) {
  const auto first = tuner();
  choose(step("relu"), first.get());
  ASSERT_TRUE(first->finish().ok());
  const int once = runs;
  const auto second = tuner();
  EXPECT_EQ(choose(step("relu"), second.get()).front().row->name, "fast");
  EXPECT_EQ(runs, once);
  EXPECT_EQ(second->measured_steps(), 0U);
  EXPECT_EQ(second->cached_steps(), 1U);
  // Times of another CPU, or for other threads, say nothing here.
  const auto elsewhere = tuner("another cpu");
  choose(step("relu"), elsewhere.get());
  EXPECT_EQ(elsewhere->measured_steps(), 1U);
  const auto wider = tuner("cpu", 2);
  choose(step("relu"), wider.get());
  EXPECT_EQ(wider->measured_steps(), 1U);
}

TEST_F(TunerTest, MeasuresNothingOnceFinished) {
  const auto tuning = tuner();
  choose(step("relu"), tuning.get());
  ASSERT_TRUE(tuning->finish().ok());
  const int once = runs;
  EXPECT_TRUE(choose(step("relu"), tuning.get()).front().measured);
  EXPECT_FALSE(choose(step("relu", {Dim(3)}), tuning.get()).front().measured);
  EXPECT_EQ(runs, once);
}

TEST_F(TunerTest, MeasuresOnSeveralThreads) {
  const auto tuning = tuner("cpu", 4);
  EXPECT_TRUE(choose(step("exp", {Dim(64), Dim(512)}), tuning.get()).front().measured);
  EXPECT_EQ(tuning->measured_steps(), 1U);
  EXPECT_GE(runs, 2 * parts);
  EXPECT_EQ(runs % parts, 0);
}

TEST_F(TunerTest, ManyThreadsAskAFinishedOne) {
  const auto tuning = tuner();
  choose(step("relu"), tuning.get());
  ASSERT_TRUE(tuning->finish().ok());
  const int once = runs;
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      for (int ask = 0; ask < 50; ++ask) {
        if (choose(step("relu"), tuning.get()).front().row->name != "fast") wrong.fetch_add(1);
        if (choose(step("relu", {Dim(3)}), tuning.get()).front().measured) wrong.fetch_add(1);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(runs, once);
}

TEST_F(TunerTest, WhereThereIsNoChoiceNothingIsMeasured) {
  const auto tuning = tuner();
  EXPECT_FALSE(choose(step("neg"), tuning.get()).front().measured);
  EXPECT_EQ(tuning->measured_steps(), 0U);
  EXPECT_EQ(runs, 0);
}

TEST_F(TunerTest, WhatCannotBeMeasuredKeepsItsEstimates) {
  const auto tuning = tuner();
  EXPECT_EQ(choose(step("abs"), tuning.get()).front().row->name, "picky");
  choose(step("abs"), tuning.get());
  EXPECT_EQ(tuning->skipped(), std::vector<std::string>{"node of abs: it refuses zeros for integers: an index is 0."});
  const auto symbol = Dim::symbol("H", {1, 100});
  EXPECT_EQ(choose(step("relu", {Dim(2), symbol}), tuning.get()).front().row->name, "slow");
  EXPECT_EQ(choose(step("relu", {Dim(2), Dim(0)}), tuning.get()).front().row->name, "slow");
  StepDesc contradiction = step("relu");  // what a bad guess of open sizes may come to
  contradiction.outputs[0].type.shape = Shape({Dim(2), Dim(9)});
  EXPECT_EQ(choose(contradiction, tuning.get()).front().row->name, "slow");
  const Dim huge(std::int64_t{1} << 40);
  EXPECT_EQ(choose(step("relu", {huge, huge}), tuning.get()).front().row->name, "slow");  // beyond 64 bits
  EXPECT_EQ(choose(step("relu", {huge}), tuning.get()).front().row->name, "slow");
  EXPECT_EQ(tuning->skipped().size(), 2U);
  EXPECT_NE(tuning->skipped().back().find("are allowed"), std::string::npos);
  StepDesc strided = step("relu");
  strided.inputs[0].density = Density::strided;
  EXPECT_EQ(choose(strided, tuning.get()).front().row->name, "slow");
  const auto small = tuner("cpu", 1, {.seconds_per_row = 0.03, .memory_bytes = 1000, .cancelled = nullptr});
  EXPECT_EQ(choose(step("relu", {Dim(1), Dim(200)}), small.get()).front().row->name, "slow");
  EXPECT_EQ(small->skipped(),
            std::vector<std::string>{"node of relu: measuring it needs 1600 bytes, and 1000 are allowed."});
  EXPECT_EQ(runs, 0);
}

TEST_F(TunerTest, StopsWhenCancelled) {
  std::atomic<bool> cancelled{true};
  const auto tuning = tuner("cpu", 1, {.seconds_per_row = 0.03, .memory_bytes = 1 << 20, .cancelled = &cancelled});
  EXPECT_FALSE(choose(step("relu"), tuning.get()).front().measured);
  EXPECT_TRUE(tuning->skipped().empty());
  EXPECT_EQ(runs, 0);
}

TEST_F(TunerTest, TheTextSaysAllThatDecides) {
  EXPECT_EQ(text_of(step("relu")), "relu{}(0)* : f32[2, 8]@0,1 > f32[2, 8]@0,1");
  StepDesc constant = step("relu");
  constant.inputs[0].constant = true;
  EXPECT_EQ(text_of(constant), "relu{}(0)* : f32[2, 8]@0,1! > f32[2, 8]@0,1");
  StepDesc fused = step("relu");
  fused.parts.push_back({&registry().at("add"), {}, {Part::running, 1}});
  fused.inputs.push_back({});
  fused.inputs.back().present = false;
  EXPECT_EQ(text_of(fused), "relu{}(0)* + add{}(- 1) : f32[2, 8]@0,1 _ > f32[2, 8]@0,1");
  fused.anchor = 1;
  EXPECT_EQ(text_of(fused), "relu{}(0) + add{}(- 1)* : f32[2, 8]@0,1 _ > f32[2, 8]@0,1");
}

}  // namespace
}  // namespace polyphase
