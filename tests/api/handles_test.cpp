// The public handles: files, names, sizes, reports, refusals.
#include <gtest/gtest.h>

#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "api/state.h"
#include "graph/graph.h"
#include "lower/lower.h"

namespace polyphase::api {
namespace {

Engine engine_of(std::string_view text, bool portable = false) {
  const auto workshop = built_in_workshop();
  auto graph = parse_graph(text, workshop->registry());
  EXPECT_TRUE(graph.ok()) << (graph.ok() ? "" : graph.error().text());
  const Target target = portable ? workshop->target(Cluster::scalar, true) : workshop->native_target();
  auto engine = lower(**graph, target, {.model_name = "net", .producer = "test", .likely = {}});
  EXPECT_TRUE(engine.ok()) << (engine.ok() ? "" : engine.error().text());
  return Access::engine(workshop, std::move(engine).value());
}

constexpr std::string_view net = R"(symbol H = 1..99
graph "net" (%x: f32[1, 1, H], %k: f32[1]) {
  %w = constant() value=f32[1, 1, 2]{1, 1} -> f32[1, 1, 2]
  %c = conv_transpose(%x, %w) dilation=[1] post=[0] pre=[1] stride=[2]
  %y = mul(%c, %k)
  return %y as "out"
}
)";

std::string run_refusal(const Result<std::vector<Tensor>>& result) {
  return result.ok() ? "it ran" : result.error().text();
}

TEST(Handles, RunTheSanityCaseByPositionAndByName) {
  for (const bool portable : {false, true}) {
    const Engine engine = engine_of(net, portable);
    ASSERT_EQ(engine.inputs().size(), 2U);
    EXPECT_EQ(engine.inputs()[0].name, "x");
    EXPECT_EQ(engine.inputs()[0].sizes, (std::vector<std::string>{"1", "1", "H"}));
    EXPECT_EQ(engine.outputs()[0].name, "out");
    EXPECT_EQ(engine.outputs()[0].sizes, (std::vector<std::string>{"1", "1", "2*H - 1"}));
    auto session = Session::create(engine, {.threads = 2, .memory_limit_bytes = 0});
    ASSERT_TRUE(session.ok()) << session.error().text();
    const float x[] = {1, 2, 3};
    const float k[] = {10};
    const auto y = session->run({view(x, {1, 1, 3}), view(k, {1})});
    ASSERT_TRUE(y.ok()) << y.error().text();
    EXPECT_EQ(std::vector<float>(y->front().as<float>(), y->front().as<float>() + 5),
              (std::vector<float>{10, 20, 20, 30, 30}));
    const NamedView named[] = {{"k", view(k, {1})}, {"x", view(x, {1, 1, 3})}};
    EXPECT_TRUE(session->run_named(named).ok());
    const NamedView wrong[] = {{"z", view(k, {1})}};
    EXPECT_EQ(run_refusal(session->run_named(wrong)), "there is no input 'z'. The model's inputs are: x, k.");
    EXPECT_EQ(run_refusal(session->run_named(std::span(named, 1))),
              "input 'x' is missing. Give every input of the engine.");
    EXPECT_EQ(run_refusal(session->run({view(x, {1, 1, 3}), view(static_cast<const float*>(nullptr), {1})})),
              "input 'k' has no memory: its data is null. Set data to the first element.");
    EXPECT_EQ(session->output_sizes({{1, 1, 9}, {1}})->front(), (std::vector<std::int64_t>{1, 1, 17}));
    EXPECT_LE(session->counters().packs, portable ? 1U : 0U);
  }
}

TEST(Handles, SaveAndLoadGiveTheSameBits) {
  const std::string path =
      std::filesystem::temp_directory_path() / ("polyphase_handles_test_" + std::to_string(getpid()) + ".ppe");
  const Engine engine = engine_of(net);
  ASSERT_TRUE(engine.save(path).ok());
  const auto loaded = Engine::load(path);
  std::filesystem::remove(path);
  ASSERT_TRUE(loaded.ok()) << loaded.error().text();
  const float x[] = {0.1F, 2.7F, 3.3F};
  const float k[] = {1.7F};
  const auto a = Session::create(engine)->run({view(x, {1, 1, 3}), view(k, {1})});
  const auto b = Session::create(*loaded)->run({view(x, {1, 1, 3}), view(k, {1})});
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_EQ(0, std::memcmp(a->front().data(), b->front().data(), a->front().size_bytes()));
}

TEST(Handles, ExplainNamesRowsRefusalsAndMemory) {
  const auto session = Session::create(engine_of(net), {.threads = 1, .memory_limit_bytes = 0});
  const auto report = session->explain({{1, 1, 50}, {1}});
  ASSERT_TRUE(report.ok()) << report.error().text();
  ASSERT_FALSE(report->steps.empty());
  const StepReport& step = report->steps.front();
  EXPECT_EQ(step.flops, 2.0 * 50 * 2);
  int taken = 0;
  for (const RowReport& row : step.rows) {
    taken += row.taken ? 1 : 0;
    EXPECT_TRUE(!row.taken || row.refusal.empty());
  }
  EXPECT_EQ(taken, 1);
  EXPECT_FALSE(step.rows.back().row.empty());
  EXPECT_GE(report->arena_bytes, report->lower_bound_bytes);
}

TEST(Handles, MeasureEveryStep) {
  const auto session = Session::create(engine_of(net), {.threads = 1, .memory_limit_bytes = 0});
  const float x[] = {1, 2, 3};
  std::vector<double> seconds;
  const TensorView inputs[] = {view(x, {1, 1, 3}), view(x, {1})};
  ASSERT_TRUE(
      session->run(inputs, {.cancelled = nullptr, .deadline = {}, .step_seconds = &seconds, .observe = {}}).ok());
  EXPECT_EQ(seconds.size(), session->engine().info().steps.size());
  for (const double each : seconds) EXPECT_GT(each, 0);
}

TEST(Handles, ReadSizes) {
  EXPECT_EQ(*parse_sizes("1x3xHxW"), (std::vector<std::string>{"1", "3", "H", "W"}));
  EXPECT_EQ(*parse_sizes(""), std::vector<std::string>{});
  EXPECT_EQ(*parse_sizes("batchx64"), (std::vector<std::string>{"batch", "64"}));
  EXPECT_EQ(parse_sizes("1xx3").error().text(),
            "the sizes '1xx3' cannot be read: a piece is empty. Write numbers or names with x between them: 1x3xHxW.");
  EXPECT_EQ(parse_sizes("1x-3").error().message,
            "the sizes '1x-3' cannot be read: '-' is neither a digit nor a letter.");
  EXPECT_EQ(parse_sizes("12H").error().message, "the sizes '12H' cannot be read: 'H' stands behind a number.");
}

TEST(Handles, KnowTheMachine) {
  const auto machine = devices();
  ASSERT_EQ(machine.size(), 1U);
  EXPECT_GE(machine[0].cores, 1);
  EXPECT_GT(machine[0].memory_bytes, 1U << 20);
}

}  // namespace
}  // namespace polyphase::api
