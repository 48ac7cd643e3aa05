// compile: options and their refusals, every target, symbolic sizes, engines through files. On the network of the demo.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <numeric>
#include <set>

#include "polyphase/diagnose.h"
#include "polyphase/polyphase.h"

namespace polyphase::api {
namespace {

std::string demo() { return std::string(POLYPHASE_SOURCE_DIR) + "/models/fsrcnn_x3/fsrcnn_x3.onnx"; }

std::string compile_refusal(const CompileOptions& options, const std::string& path = demo()) {
  const auto engine = compile(path, options);
  return engine.ok() ? "it compiled" : engine.error().text();
}

std::vector<float> ramp(std::int64_t count) {
  std::vector<float> out(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<float>(i * 37 % 101) / 101.0F;
  return out;
}

// The network on an image of these sizes.
std::vector<float> run_on(const Session& session, std::int64_t height, std::int64_t width) {
  std::vector<std::int64_t> sizes;
  for (std::size_t i = 0; i < session.engine().inputs()[0].sizes.size(); ++i) sizes.push_back(1);
  sizes[sizes.size() - 2] = height;
  sizes.back() = width;
  const std::vector<float> image = ramp(height * width);
  const auto found = session.run({view(image.data(), sizes)});
  EXPECT_TRUE(found.ok()) << (found.ok() ? "" : found.error().text());
  if (!found.ok()) return {};
  const Tensor& result = found->front();
  EXPECT_EQ(result.sizes()[result.sizes().size() - 2], 3 * height);
  EXPECT_EQ(result.sizes().back(), 3 * width);
  return {result.as<float>(), result.as<float>() + result.element_count()};
}

TEST(Compile, GivesTheSamePictureOnEveryTarget) {
  std::vector<float> first;
  for (const char* target : {"native", "portable", "scalar", "avx2", "avx512"}) {
    CompileOptions options;
    options.target = target;
    const auto engine = compile(demo(), options);
    ASSERT_TRUE(engine.ok()) << engine.error().text();
    for (const StepInfo& step : engine->info().steps) EXPECT_FALSE(step.reference) << target << ": " << step.node;
    const auto session = Session::create(*engine, {.threads = 2, .memory_limit_bytes = 0});
    if (!session.ok()) {
      EXPECT_EQ(session.error().code, ErrorCode::incompatible) << session.error().text();
      continue;
    }
    const std::vector<float> picture = run_on(*session, 21, 34);
    if (first.empty()) first = picture;
    ASSERT_EQ(picture.size(), first.size());
    for (std::size_t i = 0; i < first.size(); ++i) ASSERT_NEAR(picture[i], first[i], 1e-4) << target;
  }
}

TEST(Compile, LeavesSizesOpenOrFixesThem) {
  const auto open_engine = compile(demo());
  ASSERT_TRUE(open_engine.ok()) << open_engine.error().text();
  const Port& port = open_engine->inputs()[0];
  const auto one = Session::create(*open_engine, {.threads = 1, .memory_limit_bytes = 0});
  const auto three = Session::create(*open_engine, {.threads = 3, .memory_limit_bytes = 0});
  for (const std::int64_t height : {5, 40, 17, 5}) {
    const std::vector<float> a = run_on(*one, height, 30);
    const std::vector<float> b = run_on(*three, height, 30);
    ASSERT_EQ(a.size(), b.size());
    EXPECT_EQ(0, std::memcmp(a.data(), b.data(), a.size() * sizeof(float)))
        << "one thread and three give the same bits";
  }
  EXPECT_EQ(one->counters().packs, 0U);
  EXPECT_EQ(one->counters().plans, 3U);
  CompileOptions options;
  options.shapes[port.name] = std::vector<std::string>(port.sizes.size(), "1");
  options.shapes[port.name][port.sizes.size() - 2] = "tall";
  options.shapes[port.name].back() = "64";
  options.dims["tall"] = {8, 32};
  options.tune_for[port.name] = std::vector<std::int64_t>(port.sizes.size(), 1);
  options.tune_for[port.name][port.sizes.size() - 2] = 16;
  options.tune_for[port.name].back() = 64;
  const auto bounded = compile(demo(), options);
  ASSERT_TRUE(bounded.ok()) << bounded.error().text();
  EXPECT_EQ(bounded->inputs()[0].sizes.back(), "64");
  const auto session = Session::create(*bounded);
  run_on(*session, 32, 64);
  std::vector<std::int64_t> tall(port.sizes.size(), 1);
  tall[tall.size() - 2] = 33;
  tall.back() = 64;
  const auto refused = session->output_sizes({tall});
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().text().find("(tall) must lie in 8..32, found 33."), std::string::npos)
      << refused.error().text();
}

TEST(Compile, RefusesOptionsInFullWords) {
  CompileOptions options;
  options.target = "sparc";
  EXPECT_EQ(compile_refusal(options),
            "there is no target 'sparc'. Targets are native, portable, scalar, avx2, avx512, avx512_bf16 and amx.");
  options = {};
  options.dims["H"] = {9, 3};
  EXPECT_EQ(compile_refusal(options),
            "the range of size 'H', 9..3, holds no size. Give low and high with 0 <= low <= high.");
  options = {};
  options.tune_for["nobody"] = {1};
  EXPECT_EQ(compile_refusal(options).rfind(
                "sizes to tune for are given for input 'nobody', which is not there. The model's inputs are: ", 0),
            0U)
      << compile_refusal(options);
  options = {};
  options.tune = true;
  options.target = "portable";
  EXPECT_EQ(compile_refusal(options),
            "tune is given with the target portable, whose kernels every CPU shares. Leave tune out, or compile for "
            "native.");
  options.target = "native";
  options.tune_threads = -1;
  EXPECT_EQ(compile_refusal(options),
            "tune_threads is -1; expected 0 to 4096. Give the number of threads of the sessions to come, or 0 for one "
            "per core.");
  options = {};
  options.shapes["x"] = {"1", "-3"};
  EXPECT_EQ(compile_refusal(options),
            "the shape given for input 'x' has the size '-3'. A size is a number or a name, as in x=1x3xHxW.");
  options = {};
  options.without = {"make_it_fast"};
  EXPECT_NE(compile_refusal(options).find("make_it_fast"), std::string::npos);
  EXPECT_NE(compile_refusal({}, "/nowhere/model.onnx").find("/nowhere/model.onnx"), std::string::npos);
}

TEST(Compile, TunesAndSaysWhatItDid) {
  const auto cache =
      (std::filesystem::temp_directory_path() / ("polyphase_tune_test_" + std::to_string(getpid()) + ".txt")).string();
  TuneReport report;
  CompileOptions options;
  options.tune = true;
  options.tune_threads = 2;
  options.timing_cache = cache;
  options.tuned = &report;
  const auto first = compile(demo(), options);
  ASSERT_TRUE(first.ok()) << first.error().text();
  EXPECT_GT(report.measured_steps, 0U);
  EXPECT_EQ(report.cached_steps, 0U);
  EXPECT_EQ(report.timing_cache, cache);
  EXPECT_EQ(report.warnings, std::vector<std::string>());
  const std::size_t measured = report.measured_steps;
  const auto second = compile(demo(), options);
  ASSERT_TRUE(second.ok()) << second.error().text();
  EXPECT_EQ(report.measured_steps, 0U);
  EXPECT_EQ(report.cached_steps, measured);
  EXPECT_EQ(*second->to_bytes(), *first->to_bytes());
  const std::vector<float> a = run_on(*Session::create(*first), 12, 9);
  const std::vector<float> b = run_on(*Session::create(*compile(demo())), 12, 9);
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 1e-4);
  // One that was measured says so, and what its rivals took.
  const auto session = Session::create(*first);
  const auto explained = session->explain({{1, 1, 128, 128}});
  ASSERT_TRUE(explained.ok()) << explained.error().text();
  std::size_t told = 0;
  for (const StepReport& step : explained->steps) {
    for (const RowReport& row : step.rows) told += row.measured && row.taken ? 1 : 0;
  }
  EXPECT_GT(told, 0U);
  std::filesystem::remove(cache);
  std::filesystem::remove(cache + ".lock");
}

TEST(Compile, OpensModelsAndEngines) {
  const auto path =
      (std::filesystem::temp_directory_path() / ("polyphase_compile_test_" + std::to_string(getpid()) + ".ppe"))
          .string();
  const auto engine = api::open(demo());
  ASSERT_TRUE(engine.ok()) << engine.error().text();
  ASSERT_TRUE(engine->save(path).ok());
  const auto again = api::open(path);
  std::filesystem::remove(path);
  ASSERT_TRUE(again.ok()) << again.error().text();
  const std::vector<float> a = run_on(*Session::create(*engine), 12, 9);
  const std::vector<float> b = run_on(*Session::create(*again), 12, 9);
  EXPECT_EQ(a, b);
}

TEST(Compile, WritesTheEngineWhileItIsCompiled) {
  const auto folder =
      std::filesystem::temp_directory_path() / ("polyphase_compile_test_" + std::to_string(getpid()) + "_folder");
  std::filesystem::create_directory(folder);
  for (const bool refittable : {false, true}) {
    for (const char* target : {"native", "portable"}) {
      CompileOptions options;
      options.refittable = refittable;
      options.target = target;
      const auto in_memory = compile(demo(), options);
      ASSERT_TRUE(in_memory.ok()) << in_memory.error().text();
      options.engine_file = (folder / "demo.ppe").string();
      const auto engine = compile(demo(), options);
      ASSERT_TRUE(engine.ok()) << engine.error().text();
      EXPECT_EQ(*Engine::load(options.engine_file)->to_bytes(), *in_memory->to_bytes());
      std::filesystem::remove(options.engine_file);
      EXPECT_EQ(*engine->to_bytes(), *in_memory->to_bytes());
      EXPECT_EQ(run_on(*Session::create(*engine), 12, 9), run_on(*Session::create(*in_memory), 12, 9));
    }
  }
  CompileOptions options;
  options.engine_file = (folder / "none" / "demo.ppe").string();
  EXPECT_EQ(compile(demo(), options).error().text(),
            "cannot create a file beside '" + options.engine_file +
                "': No such file or directory. Choose a folder that exists and can be written.");
  options.engine_file = folder.string();
  EXPECT_EQ(compile(demo(), options).error().code, ErrorCode::io);
  options.engine_file = (folder / "demo.ppe").string();
  std::atomic<bool> cancelled{true};
  options.cancelled = &cancelled;
  EXPECT_EQ(compile(demo(), options).error().code, ErrorCode::cancelled);
  EXPECT_TRUE(std::filesystem::is_empty(folder));
  std::filesystem::remove_all(folder);
}

TEST(Compile, TellsHowFarItIsAndPrintsGraphs) {
  CompileOptions options;
  double last = -1;
  int steps = 0;
  options.progress = [&](std::string_view, double done) {
    EXPECT_GE(done, last);
    last = done;
    ++steps;
  };
  std::string printed;
  options.print_after = {"fuse_endings"};
  options.print = [&](std::string_view pass, std::string_view text) {
    printed += std::string(pass) + ": " + std::string(text.substr(0, 5));
  };
  ASSERT_TRUE(compile(demo(), options).ok());
  EXPECT_EQ(last, 1);
  EXPECT_GT(steps, 5);
  EXPECT_EQ(printed.rfind("fuse_endings: ", 0), 0U) << printed;
}

TEST(Compile, CanBeCancelledAtEveryStage) {
  std::atomic<bool> cancelled{false};
  CompileOptions options;
  options.cancelled = &cancelled;
  int told = 0;
  options.progress = [&](std::string_view, double) { ++told; };
  ASSERT_TRUE(compile(demo(), options).ok());
  const int stages = told;
  // The last is told when the engine is there.
  for (const int stop : {0, 1, stages / 2, stages - 2}) {
    told = 0;
    cancelled = false;
    options.progress = [&](std::string_view, double) { cancelled = cancelled || told++ == stop; };
    const auto engine = compile(demo(), options);
    ASSERT_FALSE(engine.ok()) << stop;
    EXPECT_EQ(engine.error().code, ErrorCode::cancelled);
    EXPECT_EQ(engine.error().text(), "the compilation was cancelled. Compile again to have the engine.");
    EXPECT_EQ(told, stop + 1);
  }
}

TEST(Compile, RecordsTheGraphAroundEachPass) {
  PassHistory history;
  CompileOptions options;
  options.history = &history;
  options.without = {"fuse_beginnings"};
  const auto engine = compile(demo(), options);
  ASSERT_TRUE(engine.ok());
  std::size_t changes = 0;
  std::set<std::string> names;
  for (const PassRun& pass : history.passes) {
    names.insert(pass.name);
    EXPECT_EQ(pass.ran, pass.name != "fuse_beginnings");
    EXPECT_FALSE(pass.why_here.empty());
    changes += pass.changed ? 1 : 0;
    EXPECT_EQ(pass.graph, static_cast<int>(changes)) << pass.name;
  }
  const std::vector<std::string> all = pass_names();
  EXPECT_EQ(names, std::set<std::string>(all.begin(), all.end()));
  ASSERT_EQ(history.graphs.size(), changes + 1);
  // Every value is written before it is read; what nobody writes is an input.
  for (const GraphState& graph : history.graphs) {
    std::set<std::string> known = {engine->inputs()[0].name};
    for (const int index : graph.nodes) {
      const GraphNode& node = history.nodes.at(static_cast<std::size_t>(index));
      EXPECT_EQ(node.depth, 0);
      EXPECT_EQ(node.writes.size(), node.types.size());
      for (const std::string& value : node.reads) EXPECT_TRUE(value.empty() || known.count(value) != 0) << value;
      known.insert(node.writes.begin(), node.writes.end());
    }
    ASSERT_EQ(graph.outputs.size(), 1U);
    EXPECT_EQ(known.count(graph.outputs[0]), 1U);
  }
  EXPECT_LT(history.nodes.size(), history.graphs.size() * history.graphs[0].nodes.size()) << "graphs share their nodes";
}

TEST(Compile, TellsWhoseBytesItHoldsAndHowOftenStepsRan) {
  const auto engine = compile(demo());
  ASSERT_TRUE(engine.ok()) << engine.error().text();
  const EngineInfo info = engine->info();
  std::uint64_t bytes = 0;
  for (const ConstantInfo& constant : info.constants) {
    bytes += constant.size_bytes;
    ASSERT_FALSE(constant.steps.empty()) << constant.name;
    ASSERT_FALSE(constant.values.empty()) << constant.name;
    for (const int value : constant.values)
      EXPECT_EQ(info.values.at(static_cast<std::size_t>(value)).storage, "constant");
  }
  EXPECT_EQ(bytes, info.constant_bytes);
  const auto session = Session::create(*engine);
  ASSERT_TRUE(session.ok());
  const std::vector<float> image = ramp(20);
  const std::vector<TensorView> inputs = {view(image.data(), {1, 1, 4, 5})};
  std::vector<double> seconds;
  std::vector<std::uint64_t> runs;
  RunOptions options;
  options.step_seconds = &seconds;
  options.step_runs = &runs;
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(session->run(inputs, options).ok());
  EXPECT_EQ(runs, std::vector<std::uint64_t>(info.steps.size(), 2));
  runs.pop_back();
  const auto refused = session->run(inputs, options);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().message, "step_runs holds " + std::to_string(runs.size()) + " numbers; the engine has " +
                                         std::to_string(info.steps.size()) + " steps.");
}

TEST(Machine, MeasuresAPeakAndABandwidth) {
  EXPECT_GT(measured_peak_flops(1), 1e8);
  EXPECT_GT(measured_bandwidth(2, 1 << 20), 1e8);
  EXPECT_GT(measured_bandwidth(1, 0), 0) << "less than an element is one";
}

}  // namespace
}  // namespace polyphase::api
