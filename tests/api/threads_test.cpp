// One session under many threads gives what it gives to one.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include "api/state.h"

namespace polyphase::api {
namespace {

bool full_size() {
  const char* full = std::getenv("POLYPHASE_FULL");
  return full != nullptr && std::string_view(full) == "1";
}

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

TEST(Threads, SixtyFourOfThemOnOneSessionGetTheSerialBits) {
  const auto engine = compile(POLYPHASE_SOURCE_DIR "/models/fsrcnn_x3/fsrcnn_x3.onnx");
  ASSERT_TRUE(engine.ok()) << engine.error().text();
  const auto session = Session::create(*engine, {.threads = 4, .memory_limit_bytes = 0});
  ASSERT_TRUE(session.ok()) << session.error().text();
  const std::vector<Request> asked = requests(*session);
  const int runs = full_size() ? 100000 : POLYPHASE_SANITIZED != 0 ? 640 : 3200;
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

}  // namespace
}  // namespace polyphase::api
