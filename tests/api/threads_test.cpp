// One session under many threads gives what it gives to one.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <thread>

#include "api/state.h"
#include "polyphase/tiles.h"
#include "suite_size.h"
#include "temporary_folder.h"

namespace polyphase::api {
namespace {

struct Request {
  std::vector<float> pixels;
  std::vector<std::int64_t> sizes;
  std::vector<std::byte> answer;
};

// Small pictures of a dozen sizes, so that plans are made, found and dropped while others run.
std::vector<Request> requests(const Session& session) {
  std::vector<Request> out;
  for (std::int64_t i = 0; i < 12; ++i) {
    Request request;
    request.sizes = {1, 1, 3 + i % 4, 4 + i};
    for (std::int64_t at = 0; at < request.sizes[2] * request.sizes[3]; ++at)
      request.pixels.push_back(static_cast<float>((at * 37 + i * 11) % 64) / 64.0F);
    const auto result = session.run({view(request.pixels.data(), request.sizes)});
    EXPECT_TRUE(result.ok()) << (result.ok() ? "" : result.error().text());
    const auto* bytes = static_cast<const std::byte*>(result->front().data());
    request.answer.assign(bytes, bytes + result->front().size_bytes());
    out.push_back(std::move(request));
  }
  return out;
}

const char* enlarging() { return POLYPHASE_SOURCE_DIR "/models/fsrcnn_x3/fsrcnn_x3.onnx"; }

// Calls f(i) on `count` threads at a time.
template <typename F>
void on_threads(int count, F&& f) {
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) threads.emplace_back([&f, i] { f(i); });
  for (std::thread& thread : threads) thread.join();
}

TEST(Threads, SixtyFourOfThemOnOneSessionGetTheSerialBits) {
  const auto engine = compile(enlarging());
  ASSERT_TRUE(engine.ok()) << engine.error().text();
  const auto session = Session::create(*engine, {.threads = 4, .memory_limit_bytes = 0});
  ASSERT_TRUE(session.ok()) << session.error().text();
  const std::vector<Request> asked = requests(*session);
  const int runs = test::full_size() ? 100000 : POLYPHASE_SANITIZED != 0 ? 640 : 3200;
  std::atomic<int> next{0};
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 64; ++i) {
    threads.emplace_back([&] {
      for (int run = next.fetch_add(1); run < runs; run = next.fetch_add(1)) {
        const Request& request = asked[static_cast<std::size_t>(run) % asked.size()];
        const auto result = session->run({view(request.pixels.data(), request.sizes)});
        const bool right = result.ok() && result->front().size_bytes() == request.answer.size() &&
                           std::memcmp(result->front().data(), request.answer.data(), request.answer.size()) == 0;
        if (!right) wrong.fetch_add(1);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(0, wrong.load()) << "of " << runs;
  EXPECT_EQ(12U, session->counters().plans);
}

TEST(Threads, TiledRunsOfOneSessionGetTheSerialBits) {
  const auto engine = compile(enlarging());
  ASSERT_TRUE(engine.ok()) << engine.error().text();
  const auto session = Session::create(*engine, {.threads = 3, .memory_limit_bytes = 0});
  ASSERT_TRUE(session.ok()) << session.error().text();
  const std::vector<std::int64_t> sizes = {1, 1, 45, 38};
  std::vector<float> pixels(45 * 38);
  for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<float>(i * 37 % 64) / 64.0F;
  const std::vector<TensorView> inputs = {view(pixels.data(), sizes)};
  const auto whole = session->run(inputs);
  ASSERT_TRUE(whole.ok()) << whole.error().text();
  std::atomic<int> wrong{0};
  on_threads(6, [&](int i) {
    for (int run = 0; run < 4; ++run) {
      TileOptions options;
      for (const TileAxis& axis : tile_axes(*engine)) options.own[axis.size] = 8 + 4 * ((i + run) % 3);
      const auto tiled = i % 3 == 2 ? session->run(inputs) : run_tiled(*session, inputs, options);
      const bool right = tiled.ok() && tiled->front().size_bytes() == whole->front().size_bytes() &&
                         std::memcmp(tiled->front().data(), whole->front().data(), whole->front().size_bytes()) == 0;
      if (!right) wrong.fetch_add(1);
    }
  });
  EXPECT_EQ(0, wrong.load());
}

TEST(Threads, CompilationsThatTuneShareATimingCache) {
  const TemporaryFolder folder;
  std::vector<Engine> engines(3);
  std::atomic<int> wrong{0};
  on_threads(3, [&](int i) {
    CompileOptions options;
    options.tune = true;
    options.tune_threads = 2;
    options.tune_for["y"] = {1, 1, 16, 16};
    options.timing_cache = folder.file("timings.txt");
    auto engine = compile(enlarging(), options);
    if (engine.ok()) engines[static_cast<std::size_t>(i)] = *engine;
    if (!engine.ok()) wrong.fetch_add(1);
  });
  ASSERT_EQ(0, wrong.load());
  // The tuner of one of them, asked by sessions of many threads.
  on_threads(6, [&](int) {
    const auto session = Session::create(engines[0], {.threads = 2, .memory_limit_bytes = 0});
    const auto explained = session->explain({{1, 1, 16, 16}});
    std::size_t measured = 0;
    for (const StepReport& step : explained->steps) {
      for (const RowReport& row : step.rows) measured += row.measured ? 1 : 0;
    }
    if (measured == 0) wrong.fetch_add(1);
  });
  EXPECT_EQ(0, wrong.load());
}

TEST(Threads, CompilationsIntoOneFileLeaveOneWholeEngine) {
  const TemporaryFolder folder;
  const auto right = compile(enlarging())->to_bytes();
  std::atomic<int> wrong{0};
  on_threads(4, [&](int) {
    CompileOptions options;
    options.engine_file = folder.file("demo.ppe");
    const auto engine = compile(enlarging(), options);
    if (!engine.ok() || *engine->to_bytes() != *right) wrong.fetch_add(1);
  });
  EXPECT_EQ(0, wrong.load());
  EXPECT_EQ(*Engine::load(folder.file("demo.ppe"))->to_bytes(), *right);
  EXPECT_EQ(1, std::distance(std::filesystem::directory_iterator(folder.path()), std::filesystem::directory_iterator()))
      << "no temporary file is left";
}

}  // namespace
}  // namespace polyphase::api
