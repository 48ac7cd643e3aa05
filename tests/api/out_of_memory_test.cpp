// Every allocation refused once, or from there on all: compile, load and run say out_of_memory, and the next call is
// right.
//
// operator new is ours in this program, for the shared libraries too; malloc, calloc and aligned_alloc are wrapped by
// the linker in what is linked statically, which is all of Polyphase. POLYPHASE_FULL=1 refuses each allocation of load
// and run, otherwise an even sample.
#include <gtest/gtest.h>

#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <new>
#include <string>

#include "api/c_handles.h"
#include "polyphase/network.h"
#include "suite_size.h"

namespace {

std::atomic<bool> armed{false};
std::atomic<bool> all_after{false};
std::atomic<long> calls{0};
std::atomic<long> refused_call{0};

bool refuse() {
  if (!armed.load(std::memory_order_relaxed)) return false;
  const long call = calls.fetch_add(1) + 1;
  return all_after ? call >= refused_call : call == refused_call;
}

}  // namespace

// The names that the linker's --wrap asks for.
// NOLINTBEGIN(bugprone-reserved-identifier, readability-identifier-naming)
extern "C" {
void* __real_malloc(std::size_t size);
void* __real_calloc(std::size_t count, std::size_t size);
void* __real_aligned_alloc(std::size_t alignment, std::size_t size);
void* __wrap_malloc(std::size_t size) { return refuse() ? nullptr : __real_malloc(size); }
void* __wrap_calloc(std::size_t count, std::size_t size) { return refuse() ? nullptr : __real_calloc(count, size); }
void* __wrap_aligned_alloc(std::size_t alignment, std::size_t size) {
  return refuse() ? nullptr : __real_aligned_alloc(alignment, size);
}
}
// NOLINTEND(bugprone-reserved-identifier, readability-identifier-naming)

void* operator new(std::size_t size) {
  void* const memory = refuse() ? nullptr : __real_malloc(size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return refuse() ? nullptr : __real_malloc(size);
}
void* operator new(std::size_t size, std::align_val_t alignment) {
  const auto step = static_cast<std::size_t>(alignment);
  void* const memory = refuse() ? nullptr : __real_aligned_alloc(step, (size + step - 1) / step * step);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

namespace polyphase::api {
namespace {

const std::string model_path = POLYPHASE_SOURCE_DIR "/models/fsrcnn_x3/fsrcnn_x3.onnx";
const std::vector<std::int64_t> sizes = {1, 1, 5, 6};

struct Outcome {
  bool ok = false;
  std::string refusal;  // its code; empty: it went well
  std::vector<float> pixels;
};

// What the test itself keeps of a result is not refused.
template <typename T>
Outcome outcome_of(const Result<T>& result) {
  armed = false;
  return {result.ok(), result.ok() ? "" : std::string(name_of(result.error().code)), {}};
}

Outcome pixels_of(const Result<std::vector<Tensor>>& result) {
  Outcome out = outcome_of(result);
  if (result.ok()) {
    const float* first = result->front().as<float>();
    out.pixels.assign(first, first + result->front().element_count());
  }
  return out;
}

class OutOfMemory : public testing::Test {
 protected:
  void SetUp() override {
    for (std::size_t i = 0; i < pixels_.size(); ++i) pixels_[i] = static_cast<float>(i % 7) / 7.0F;
    inputs_.push_back(view(pixels_.data(), sizes));
    auto engine = compile(model_path);
    ASSERT_TRUE(engine.ok());
    engine_ = *engine;
    path_ = std::filesystem::temp_directory_path() / ("polyphase_oom_" + std::to_string(::getpid()) + ".ppe");
    ASSERT_TRUE(engine_.save(path_).ok());
    session_ = Session::create(engine_, {.threads = 2, .memory_limit_bytes = 0}).value();
    const Outcome right = pixels_of(run(session_));
    ASSERT_TRUE(right.ok);
    right_ = right.pixels;
  }
  void TearDown() override { std::filesystem::remove(path_); }

  Result<std::vector<Tensor>> run(const Session& session) { return session.run(inputs_); }

  // Refuses one allocation after the other of what `act` does, at most about `sample` of them, 40 times as many at full
  // size.
  template <typename F>
  void refuse_each(const std::string& what, long sample, F&& act) {
    const long total = count_calls(act);
    ASSERT_GT(total, 0) << what;
    const long most = test::full_size() ? 40 * sample : sample;
    const long step = std::max(1L, total / most);
    long refusals = 0;
    for (const bool after : {false, true}) {
      for (long call = 1; call <= total; call += step) {
        calls = 0;
        refused_call = call;
        all_after = after;
        armed = true;
        Outcome out = act();
        armed = false;
        refusals += out.ok ? 0 : 1;
        if (out.ok) {
          if (!out.pixels.empty()) {
            EXPECT_EQ(out.pixels, right_) << what << ": call " << call;
          }
        } else {
          EXPECT_EQ(out.refusal, "out_of_memory") << what << ": call " << call << " of " << total;
        }
        const Outcome next = pixels_of(run(session_));
        ASSERT_TRUE(next.ok && next.pixels == right_) << what << ": the run after call " << call << " was refused";
      }
    }
    EXPECT_GT(refusals, 0) << what;
    std::printf("%s: %ld allocations, every %ld refused, %ld refusals told\n", what.c_str(), total, step, refusals);
  }

  template <typename F>
  static long count_calls(F&& act) {
    calls = 0;
    refused_call = -1;
    all_after = false;
    armed = true;
    const Outcome out = act();
    armed = false;
    EXPECT_TRUE(out.ok) << out.refusal;
    return calls;
  }

  std::vector<float> pixels_ = std::vector<float>(30);
  std::vector<TensorView> inputs_;
  std::vector<float> right_;
  Engine engine_;
  Session session_;
  std::string path_;
};

TEST_F(OutOfMemory, InARunThatHasItsPlan) {
  refuse_each("run", 400, [&] { return pixels_of(run(session_)); });
}

TEST_F(OutOfMemory, FromTheFileToTheFirstResult) {
  refuse_each("load, create, run", POLYPHASE_SANITIZED != 0 ? 100 : 300, [&] {
    const auto engine = Engine::load(path_);
    if (!engine.ok()) return outcome_of(engine);
    const auto session = Session::create(*engine, {.threads = 3, .memory_limit_bytes = 0});
    if (!session.ok()) return outcome_of(session);
    return pixels_of(run(*session));
  });
}

TEST_F(OutOfMemory, SavingLeavesTheOldFileOrTheNewOne) {
  refuse_each("save", 100, [&] { return outcome_of(engine_.save(path_)); });
  EXPECT_TRUE(Engine::load(path_).ok());
}

TEST_F(OutOfMemory, InCompile) {
  refuse_each("compile", POLYPHASE_SANITIZED != 0 ? 30 : 100, [&] { return outcome_of(compile(model_path)); });
}

TEST_F(OutOfMemory, InCompileIntoAFile) {
  CompileOptions options;
  options.engine_file = path_;
  refuse_each("compile into a file", POLYPHASE_SANITIZED != 0 ? 30 : 100,
              [&] { return outcome_of(compile(model_path, options)); });
  EXPECT_TRUE(Engine::load(path_).ok());
}

// A call that ran out of memory leaves a network that can be written on.
TEST_F(OutOfMemory, WhileANetworkIsWritten) {
  const std::vector<float> taps(9, 1.0F);
  refuse_each("network", POLYPHASE_SANITIZED != 0 ? 200 : 1000, [&]() -> Outcome {
    armed = false;
    Network network;
    const auto x = network.add_input("x", DType::f32, {1, 1, "H", "W"});
    const auto flag = network.add_input("flag", DType::boolean, {});
    armed = true;
    Outcome out;
    try {
      const auto w = network.add_constant(view(taps.data(), {1, 1, 3, 3}), "w");
      const auto up = network.add_deconvolution_nd(
          x, w, {}, {.stride = {2}, .pre_padding = {1}, .output_size = {"2*H", "2*W"}}, "up");
      const auto chosen = network.add_if(
          flag,
          [&]() -> Result<std::vector<Operand>> {
            const auto looped = network.add_loop(
                3, {}, {network.mul(up, 0.5)},
                [&](const NetworkTensor&, const std::vector<NetworkTensor>& carried) -> Result<LoopTurn> {
                  return LoopTurn{.again = {}, .carried = {network.concat({carried[0], up}, {.axis = 1})}, .rows = {}};
                });
            if (!looped.ok()) return looped.error();
            return std::vector<Operand>{network.cast(looped->front(), {.to = DType::bf16}, "inside")};
          },
          [&]() -> Result<std::vector<Operand>> {
            return std::vector<Operand>{network.cast(up, {.to = DType::bf16})};
          });
      out = outcome_of(chosen);
    } catch (const std::bad_alloc&) {  // of the vectors that this test gives
      armed = false;
      out = {false, "out_of_memory", {}};
    }
    const auto more = network.cast(network.relu(x, "more"), {.to = DType::f64}, "inside too");
    EXPECT_TRUE(more.ok()) << more.error().text();
    EXPECT_TRUE(network.mark_output(more).ok());
    EXPECT_NE(network.text().find("more"), std::string::npos);
    return out;
  });
}

TEST_F(OutOfMemory, ThroughTheCAbi) {
  polyphase_session handle{session_};
  DLManagedTensorVersioned* input = nullptr;
  ASSERT_EQ(POLYPHASE_OK,
            polyphase_tensor_borrow(POLYPHASE_F32, 4, sizes.data(), nullptr, pixels_.data(), &input, nullptr));
  refuse_each("C run", 400, [&] {
    DLManagedTensorVersioned* output = nullptr;
    polyphase_error* error = nullptr;
    const polyphase_status status = polyphase_session_run(&handle, 1, &input, 1, &output, nullptr, &error);
    armed = false;
    Outcome out{status == POLYPHASE_OK, {}, {}};
    if (!out.ok) {
      const bool told = polyphase_error_status(error) == status && *polyphase_error_text(error) != '\0';
      out.refusal = told && status == POLYPHASE_OUT_OF_MEMORY ? "out_of_memory" : "something else";
    }
    polyphase_error_free(error);
    polyphase_tensor_free(output);
    return out;
  });
  polyphase_tensor_free(input);
}

}  // namespace
}  // namespace polyphase::api
