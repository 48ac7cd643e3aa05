// The C ABI and DLPack: what C programs rely on.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <thread>

#include "api/c_handles.h"
#include "graph/graph.h"
#include "lower/lower.h"
#include "polyphase/dlpack.h"

namespace polyphase::api {
namespace {

constexpr std::string_view doubling_net = R"(symbol H = 1..99999
graph "net" (%x: f32[2, H], %k: f32[1]) {
  %y = mul(%x, %k)
  %z = transpose(%y) order=[1, 0]
  return %y as "y", %z as "z"
}
)";

struct Free {
  void operator()(polyphase_engine* p) const { polyphase_engine_free(p); }
  void operator()(polyphase_session* p) const { polyphase_session_free(p); }
  void operator()(polyphase_error* p) const { polyphase_error_free(p); }
  void operator()(polyphase_cancel* p) const { polyphase_cancel_free(p); }
  void operator()(DLManagedTensorVersioned* p) const { polyphase_tensor_free(p); }
};
template <typename T>
using Handle = std::unique_ptr<T, Free>;

Engine compiled() {
  const auto workshop = built_in_workshop();
  auto graph = parse_graph(doubling_net, workshop->registry());
  EXPECT_TRUE(graph.ok()) << (graph.ok() ? "" : graph.error().text());
  auto engine = lower(**graph, workshop->native_target(), {.model_name = "net", .producer = "test", .likely = {}});
  EXPECT_TRUE(engine.ok()) << (engine.ok() ? "" : engine.error().text());
  return Access::engine(workshop, std::move(engine).value());
}

Handle<DLManagedTensorVersioned> borrow(float* data, std::vector<std::int64_t> sizes,
                                        std::vector<std::int64_t> strides = {}) {
  DLManagedTensorVersioned* out = nullptr;
  EXPECT_EQ(POLYPHASE_OK, polyphase_tensor_borrow(POLYPHASE_F32, static_cast<std::int32_t>(sizes.size()), sizes.data(),
                                                  strides.empty() ? nullptr : strides.data(), data, &out, nullptr));
  return Handle<DLManagedTensorVersioned>(out);
}

class CApi : public testing::Test {
 protected:
  void SetUp() override {
    engine_.reset(engine_handle(compiled()));
    polyphase_session* session = nullptr;
    const polyphase_session_options options{sizeof(options), 2, 0};
    ASSERT_EQ(POLYPHASE_OK, polyphase_session_create(engine_.get(), &options, &session, nullptr));
    session_.reset(session);
  }

  // The status of a run; `text_` becomes what is wrong.
  polyphase_status run(std::vector<const DLManagedTensorVersioned*> inputs, const polyphase_run_options* options = {}) {
    DLManagedTensorVersioned* outputs[2] = {};
    polyphase_error* error = nullptr;
    const polyphase_status status =
        polyphase_session_run(session_.get(), inputs.size(), inputs.data(), 2, outputs, options, &error);
    y_.reset(outputs[0]);
    z_.reset(outputs[1]);
    text_ = polyphase_error_text(error);
    EXPECT_EQ(polyphase_error_status(error), status);
    polyphase_error_free(error);
    return status;
  }

  Handle<polyphase_engine> engine_;
  Handle<polyphase_session> session_;
  Handle<DLManagedTensorVersioned> y_;
  Handle<DLManagedTensorVersioned> z_;
  std::string text_;
  float x_[6] = {1, 2, 3, 4, 5, 6};
  float k_[1] = {10};
};

std::vector<float> numbers(const DLManagedTensorVersioned& tensor) {
  const auto* data = static_cast<const float*>(tensor.dl_tensor.data);
  std::int64_t count = 1;
  for (int i = 0; i < tensor.dl_tensor.ndim; ++i) count *= tensor.dl_tensor.shape[i];
  return {data, data + count};
}

TEST_F(CApi, TellsItsPorts) {
  ASSERT_EQ(2U, polyphase_engine_input_count(engine_.get()));
  polyphase_port port{};
  ASSERT_EQ(POLYPHASE_OK, polyphase_engine_input(engine_.get(), 0, &port, nullptr));
  EXPECT_STREQ("x", port.name);
  EXPECT_EQ(POLYPHASE_F32, port.dtype);
  ASSERT_EQ(2, port.rank);
  EXPECT_STREQ("H", port.sizes[1]);
  polyphase_error* error = nullptr;
  EXPECT_EQ(POLYPHASE_INVALID_ARGUMENT, polyphase_engine_output(engine_.get(), 2, &port, &error));
  EXPECT_STREQ("there is no output 2; the engine has 2.", polyphase_error_message(error));
  EXPECT_STREQ("", polyphase_error_node(error));
  polyphase_error_free(error);
  EXPECT_STREQ("shape_mismatch", polyphase_status_name(POLYPHASE_SHAPE_MISMATCH));
  EXPECT_EQ(std::string(version()), polyphase_version());
  EXPECT_EQ(POLYPHASE_ABI_VERSION, polyphase_abi_version());
}

TEST_F(CApi, RunsAnyStridesAndGivesTensorsThatOutliveTheSession) {
  const auto k = borrow(k_, {1});
  const auto backwards = borrow(x_ + 5, {2, 3}, {-3, -1});
  ASSERT_EQ(POLYPHASE_OK, run({backwards.get(), k.get()})) << text_;
  session_.reset();
  engine_.reset();
  EXPECT_EQ((std::vector<float>{60, 50, 40, 30, 20, 10}), numbers(*y_));
  EXPECT_EQ((std::vector<float>{60, 30, 50, 20, 40, 10}), numbers(*z_));
  EXPECT_EQ(3, z_->dl_tensor.shape[0]);
  EXPECT_EQ(2, z_->dl_tensor.strides[0]);
}

TEST_F(CApi, WritesIntoTheCallersMemory) {
  const auto x = borrow(x_, {2, 3});
  const auto k = borrow(k_, {1});
  float y[12] = {};
  float z[6] = {};
  const auto wide = borrow(y, {2, 3}, {6, 2});
  const auto turned = borrow(z, {3, 2}, {1, 3});
  const DLManagedTensorVersioned* inputs[] = {x.get(), k.get()};
  DLManagedTensorVersioned* outputs[] = {wide.get(), turned.get()};
  ASSERT_EQ(POLYPHASE_OK, polyphase_session_run_into(session_.get(), 2, inputs, 2, outputs, nullptr, nullptr));
  EXPECT_EQ((std::vector<float>{10, 0, 20, 0, 30, 0, 40, 0, 50, 0, 60, 0}), std::vector<float>(y, y + 12));
  EXPECT_EQ((std::vector<float>{10, 20, 30, 40, 50, 60}), std::vector<float>(z, z + 6));
  int32_t rank = 0;
  int64_t sizes[8] = {};
  ASSERT_EQ(POLYPHASE_OK, polyphase_session_output_sizes(session_.get(), 2, inputs, 1, &rank, sizes, nullptr));
  EXPECT_EQ(2, rank);
  EXPECT_EQ(3, sizes[0]);

  const auto refusal = [&](DLManagedTensorVersioned* first) {
    DLManagedTensorVersioned* places[] = {first, turned.get()};
    polyphase_error* error = nullptr;
    EXPECT_EQ(POLYPHASE_INVALID_ARGUMENT,
              polyphase_session_run_into(session_.get(), 2, inputs, 2, places, nullptr, &error));
    const std::string text = polyphase_error_message(error);
    polyphase_error_free(error);
    return text;
  };
  const auto itself = borrow(y, {2, 3}, {2, 1});
  EXPECT_EQ("the memory given for output 'y' overlaps itself: a stride of 2 is too small.", refusal(itself.get()));
  wide->flags |= DLPACK_FLAG_BITMASK_READ_ONLY;
  EXPECT_EQ("outputs[0] is marked as read-only.", refusal(wide.get()));
  EXPECT_EQ("the argument 'outputs' is NULL.", refusal(nullptr));
}

TEST_F(CApi, RefusesWhatItCannotRead) {
  const auto x = borrow(x_, {2, 3});
  const auto k = borrow(k_, {1});
  EXPECT_EQ(POLYPHASE_INVALID_ARGUMENT, run({x.get()}));
  EXPECT_EQ("the model takes 2 inputs, found 1. Give every input of the engine.", text_);
  EXPECT_EQ(POLYPHASE_SHAPE_MISMATCH, run({borrow(x_, {3, 2}).get(), k.get()})) << text_;
  x->dl_tensor.device.device_type = kDLCUDA;
  EXPECT_EQ(POLYPHASE_INVALID_ARGUMENT, run({x.get(), k.get()}));
  EXPECT_EQ(
      "the DLPack tensor lies on device type 2; expected the CPU's memory. Copy it to the CPU first. (while "
      "reading inputs[0])",
      text_);
  x->dl_tensor.device.device_type = kDLCPU;
  x->dl_tensor.dtype.lanes = 4;
  EXPECT_EQ(POLYPHASE_UNSUPPORTED, run({x.get(), k.get()}));
  x->dl_tensor.dtype.lanes = 1;
  x->version.major = 2;
  EXPECT_EQ(POLYPHASE_UNSUPPORTED, run({x.get(), k.get()}));
  x->version.major = 1;
  x->dl_tensor.ndim = 9;
  EXPECT_EQ(POLYPHASE_INVALID_ARGUMENT, run({x.get(), k.get()}));
  x->dl_tensor.ndim = 2;
  x->dl_tensor.strides[0] = INT64_MIN;
  EXPECT_EQ(POLYPHASE_INVALID_ARGUMENT, run({x.get(), k.get()}));
  x->dl_tensor.strides[0] = 3;
  EXPECT_EQ(POLYPHASE_OK, run({x.get(), k.get()})) << text_;
  EXPECT_EQ(POLYPHASE_INVALID_ARGUMENT, polyphase_session_run(nullptr, 0, nullptr, 0, nullptr, nullptr, nullptr));
}

TEST_F(CApi, StopsWhenAskedTo) {
  const auto x = borrow(x_, {2, 3});
  const auto k = borrow(k_, {1});
  polyphase_cancel* made = nullptr;
  ASSERT_EQ(POLYPHASE_OK, polyphase_cancel_create(&made, nullptr));
  const Handle<polyphase_cancel> cancel(made);
  polyphase_run_options options{};
  options.struct_size = sizeof(options);
  options.cancel = cancel.get();
  EXPECT_EQ(POLYPHASE_OK, run({x.get(), k.get()}, &options));
  polyphase_cancel_request(cancel.get());
  EXPECT_EQ(POLYPHASE_CANCELLED, run({x.get(), k.get()}, &options));
  EXPECT_EQ("the run was cancelled. Run it again to have its results.", text_);
  polyphase_cancel_reset(cancel.get());
  options.timeout_seconds = 1e-9;
  EXPECT_EQ(POLYPHASE_CANCELLED, run({x.get(), k.get()}, &options));
  EXPECT_EQ("the run did not end before its deadline. Give it more time, more threads or smaller inputs.", text_);
  options.timeout_seconds = 1e300;
  EXPECT_EQ(POLYPHASE_OK, run({x.get(), k.get()}, &options)) << text_;
  options.timeout_seconds = -1;
  EXPECT_EQ(POLYPHASE_INVALID_ARGUMENT, run({x.get(), k.get()}, &options));
}

TEST_F(CApi, TakesOptionsOfOtherReleases) {
  struct {
    polyphase_session_options known;
    std::int64_t newer;
  } options{{sizeof(options), 1, 0}, 0};
  polyphase_session* session = nullptr;
  ASSERT_EQ(POLYPHASE_OK, polyphase_session_create(engine_.get(), &options.known, &session, nullptr));
  EXPECT_EQ(1, polyphase_session_threads(session));
  polyphase_session_free(session);
  options.newer = 1;
  EXPECT_EQ(POLYPHASE_INVALID_ARGUMENT, polyphase_session_create(engine_.get(), &options.known, &session, nullptr));
  polyphase_session_options older{sizeof(size_t) + sizeof(int32_t), 1, 7};
  ASSERT_EQ(POLYPHASE_OK, polyphase_session_create(engine_.get(), &older, &session, nullptr));
  polyphase_session_free(session);
  older.struct_size = 0;
  EXPECT_EQ(POLYPHASE_INVALID_ARGUMENT, polyphase_session_create(engine_.get(), &older, &session, nullptr));
}

TEST_F(CApi, BytesOfAnEngineAreAnEngine) {
  void* bytes = nullptr;
  size_t size = 0;
  ASSERT_EQ(POLYPHASE_OK, polyphase_engine_to_bytes(engine_.get(), &bytes, &size, nullptr));
  polyphase_engine* again = nullptr;
  EXPECT_EQ(POLYPHASE_OK, polyphase_engine_from_bytes(bytes, size, &again, nullptr));
  EXPECT_EQ(2U, polyphase_engine_output_count(again));
  polyphase_engine_free(again);
  static_cast<char*>(bytes)[size / 2] ^= 1;
  polyphase_error* error = nullptr;
  EXPECT_EQ(POLYPHASE_CORRUPT, polyphase_engine_from_bytes(bytes, size, &again, &error));
  EXPECT_NE(std::string(polyphase_error_text(error)).find("the bytes given"), std::string::npos);
  polyphase_error_free(error);
  polyphase_bytes_free(bytes);
  EXPECT_EQ(POLYPHASE_IO, polyphase_engine_load("no/such.ppe", &again, nullptr));
}

TEST_F(CApi, CompilesWithOptions) {
  const polyphase_dim_option dim{"W", 12, 12};
  polyphase_compile_options options{};
  options.struct_size = sizeof(options);
  options.dims = &dim;
  options.dim_count = 1;
  const std::string model = POLYPHASE_SOURCE_DIR "/models/fsrcnn_x3/fsrcnn_x3.onnx";
  polyphase_engine* engine = nullptr;
  polyphase_error* error = nullptr;
  ASSERT_EQ(POLYPHASE_OK, polyphase_compile(model.c_str(), nullptr, &engine, &error)) << polyphase_error_text(error);
  polyphase_port port{};
  ASSERT_EQ(POLYPHASE_OK, polyphase_engine_input(engine, 0, &port, nullptr));
  const polyphase_shape_option named{port.name, "1x1xHxW"};
  options.shapes = &named;
  options.shape_count = 1;
  polyphase_engine* fixed = nullptr;
  ASSERT_EQ(POLYPHASE_OK, polyphase_compile(model.c_str(), &options, &fixed, &error)) << polyphase_error_text(error);
  ASSERT_EQ(POLYPHASE_OK, polyphase_engine_input(fixed, 0, &port, nullptr));
  EXPECT_STREQ("12", port.sizes[3]);
  polyphase_engine_free(fixed);
  polyphase_engine_free(engine);
  options = {};
  options.struct_size = sizeof(options);
  options.tune = 1;
  options.tune_threads = 1;
  const std::string cache =
      (std::filesystem::temp_directory_path() / ("polyphase_c_api_test_" + std::to_string(getpid()))).string();
  options.timing_cache = cache.c_str();
  ASSERT_EQ(POLYPHASE_OK, polyphase_compile(model.c_str(), &options, &fixed, &error)) << polyphase_error_text(error);
  EXPECT_GT(std::filesystem::file_size(cache), 100U);
  polyphase_engine_free(fixed);
  std::filesystem::remove(cache);
  std::filesystem::remove(cache + ".lock");
  options = {};
  options.struct_size = sizeof(options);
  options.target = "abacus";
  EXPECT_EQ(POLYPHASE_INVALID_ARGUMENT, polyphase_compile(model.c_str(), &options, &engine, &error));
  EXPECT_STREQ("there is no target 'abacus'.", polyphase_error_message(error));
  EXPECT_STREQ("Targets are native, portable, scalar, avx2, avx512, avx512_bf16 and amx.", polyphase_error_hint(error));
  polyphase_error_free(error);
  EXPECT_EQ(POLYPHASE_INVALID_ARGUMENT, polyphase_compile(nullptr, nullptr, &engine, nullptr));
  EXPECT_EQ(POLYPHASE_CORRUPT, polyphase_compile_bytes("x", 1, nullptr, nullptr, &engine, nullptr));
}

TEST_F(CApi, CompilesForTheCallersLayouts) {
  const std::string model = POLYPHASE_SOURCE_DIR "/models/fsrcnn_x3/fsrcnn_x3.onnx";
  polyphase_engine* engine = nullptr;
  polyphase_error* error = nullptr;
  ASSERT_EQ(POLYPHASE_OK, polyphase_compile(model.c_str(), nullptr, &engine, &error)) << polyphase_error_text(error);
  polyphase_port input{};
  polyphase_port output{};
  ASSERT_EQ(POLYPHASE_OK, polyphase_engine_input(engine, 0, &input, nullptr));
  ASSERT_EQ(POLYPHASE_OK, polyphase_engine_output(engine, 0, &output, nullptr));
  const polyphase_layout_option last{input.name, "NHWC"};
  const polyphase_layout_option blocks{output.name, "NCHW8c"};
  polyphase_compile_options options{};
  options.struct_size = sizeof(options);
  options.input_layouts = &last;
  options.input_layout_count = 1;
  options.output_layouts = &blocks;
  options.output_layout_count = 1;
  polyphase_engine* turned = nullptr;
  ASSERT_EQ(POLYPHASE_OK, polyphase_compile(model.c_str(), &options, &turned, &error)) << polyphase_error_text(error);
  polyphase_port port{};
  ASSERT_EQ(POLYPHASE_OK, polyphase_engine_input(turned, 0, &port, nullptr));
  EXPECT_STREQ(input.sizes[2], port.sizes[1]);
  EXPECT_STREQ("1", port.sizes[3]);
  ASSERT_EQ(POLYPHASE_OK, polyphase_engine_output(turned, 0, &port, nullptr));
  EXPECT_EQ(5U, port.rank);
  EXPECT_STREQ("8", port.sizes[4]);
  polyphase_engine_free(turned);
  const polyphase_layout_option nameless{nullptr, "NHWC"};
  options.input_layouts = &nameless;
  EXPECT_EQ(POLYPHASE_INVALID_ARGUMENT, polyphase_compile(model.c_str(), &options, &turned, &error));
  EXPECT_STREQ("the argument 'input_layouts[].name or .layout' is NULL.", polyphase_error_message(error));
  polyphase_error_free(error);
  polyphase_engine_free(engine);
}

TEST(CApiRefit, GivesAnotherEngineAndLeavesThisOne) {
  const std::string model = POLYPHASE_SOURCE_DIR "/models/fsrcnn_x3/fsrcnn_x3.onnx";
  polyphase_compile_options options{};
  options.struct_size = sizeof(options);
  options.refittable = 1;
  polyphase_engine* made = nullptr;
  ASSERT_EQ(POLYPHASE_OK, polyphase_compile(model.c_str(), &options, &made, nullptr));
  const Handle<polyphase_engine> engine(made);
  const auto weights = engine->engine.info().weights;
  const auto bias = std::find_if(weights.begin(), weights.end(), [](const auto& one) { return one.sizes.size() == 1; });
  ASSERT_NE(bias, weights.end());
  std::vector<float> elements(static_cast<std::size_t>(bias->sizes[0]), 0.5F);
  const auto tensor = borrow(elements.data(), bias->sizes);
  polyphase_weight given{bias->names.front().c_str(), tensor.get()};
  polyphase_error* error = nullptr;
  ASSERT_EQ(POLYPHASE_OK, polyphase_engine_refit(engine.get(), 1, &given, &made, &error))
      << polyphase_error_text(error);
  const Handle<polyphase_engine> other(made);
  EXPECT_NE(engine->engine.to_bytes().value(), other->engine.to_bytes().value());
  const auto same = engine->engine.refit(std::vector<NamedView>{});
  EXPECT_EQ(engine->engine.to_bytes().value(), same->to_bytes().value());

  polyphase_engine* untouched = nullptr;
  const auto refused = [&](std::size_t count, const polyphase_weight* what) {
    const polyphase_status status = polyphase_engine_refit(engine.get(), count, what, &untouched, &error);
    const std::string text = polyphase_error_text(error);
    polyphase_error_free(error);
    EXPECT_EQ(untouched, nullptr);
    return std::pair(status, text);
  };
  EXPECT_EQ(POLYPHASE_INVALID_ARGUMENT, refused(1, nullptr).first);
  polyphase_weight wrong{nullptr, tensor.get()};
  EXPECT_EQ(POLYPHASE_INVALID_ARGUMENT, refused(1, &wrong).first);
  wrong = {"no such weight", tensor.get()};
  const auto [status, text] = refused(1, &wrong);
  EXPECT_EQ(POLYPHASE_INVALID_ARGUMENT, status);
  EXPECT_NE(text.find("has no weight 'no such weight'"), std::string::npos) << text;
  const auto short_one = borrow(elements.data(), {bias->sizes[0] - 1});
  wrong = {given.name, short_one.get()};
  EXPECT_EQ(POLYPHASE_SHAPE_MISMATCH, refused(1, &wrong).first);
}

TEST(Dlpack, TensorsShareMemoryBothWays) {
  auto tensor = Tensor::allocate(DType::i4, {2, 3});
  ASSERT_TRUE(tensor.ok());
  auto shared = tensor->to_dlpack();
  ASSERT_TRUE(shared.ok());
  DLManagedTensorVersioned* const face = *shared;
  EXPECT_EQ(4, face->dl_tensor.dtype.bits);
  EXPECT_TRUE((face->flags & DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED) != 0);
  const void* const data = tensor->data();
  tensor = Tensor();
  const auto back = Tensor::from_dlpack(face);
  ASSERT_TRUE(back.ok()) << back.error().text();
  EXPECT_EQ(back->data(), data);
  EXPECT_EQ(back->dtype(), DType::i4);
  EXPECT_EQ(back->strides(), (std::vector<std::int64_t>{3, 1}));
  EXPECT_FALSE(Tensor::from_dlpack(nullptr).ok());
  float one = 1;
  EXPECT_FALSE(Tensor::borrow({DType::f32, {-1}, {}, &one}).ok());
  EXPECT_TRUE(Tensor::borrow({DType::f32, {4}, {0}, &one}).ok());
}

}  // namespace
}  // namespace polyphase::api
