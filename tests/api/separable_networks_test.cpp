// Depthwise separable convolutions, drawn and made one step, through lower and session on every cluster that runs here:
// what the interpreter computes. Sizes reach over several tiles of lines and of positions.
#include <gtest/gtest.h>

#include "api/state.h"
#include "backends/cpu/catalogue.h"
#include "engine/check.h"
#include "kernel/row_times.h"
#include "lower/lower.h"
#include "lower/program_text.h"
#include "passes/pipeline.h"
#include "passes/random_data.h"
#include "suite_size.h"

namespace polyphase::api {
namespace {

// By which the two convolutions join whatever their sizes are.
struct SeparableIsFastest : RowTimes {
  std::vector<double> seconds(const StepDesc&, const std::vector<const Row*>& rows, const Target&) override {
    std::vector<double> out;
    for (const Row* row : rows) out.push_back(row->name == "conv_separable" ? 1e-9 : 1e-3);
    return out;
  }
};

class SeparableNetwork {
 public:
  SeparableNetwork(const Registry& registry, std::uint64_t seed)
      : draw_(seed), graph_(std::make_unique<Graph>(registry)) {}

  std::unique_ptr<Graph> make() {
    const auto spatial = static_cast<std::size_t>(between(1, 3));
    const bool is_long = one_of(4);
    const std::int64_t channels = one_of(8) ? 512 : between(2, is_long ? 40 : 70);
    std::vector<Dim> sizes{between(1, 2), channels};
    for (std::size_t a = 0; a < spatial; ++a) {
      const bool last = a + 1 == spatial;
      sizes.push_back(is_long && last ? between(300, 700) : between(3, spatial == 3 || channels == 512 ? 6 : 14));
    }
    if (one_of(3)) sizes.back() = Dim::symbol("W", {7, 40});
    Value* const x = graph_->add_input("x", {DType::f32, Shape(sizes)});
    Value* y = depthwise(x, channels, spatial);
    if (y == nullptr) return nullptr;
    y = ended(y, channels, nullptr);
    y = pointwise(y, channels, spatial);
    const std::int64_t out = y->type.shape[1].value();
    y = ended(y, out, one_of(2) ? graph_->add_input("added", y->type) : nullptr);
    graph_->add_output(y, "y");
    return std::move(graph_);
  }

 private:
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(draw_() % static_cast<std::uint64_t>(high - low + 1));
  }
  bool one_of(std::int64_t count) { return between(1, count) == 1; }

  Value* constant(const std::vector<std::int64_t>& sizes, std::int64_t low, std::int64_t high) {
    std::int64_t count = 1;
    for (const std::int64_t size : sizes) count *= size;
    std::vector<double> elements;
    for (std::int64_t i = 0; i < count; ++i) elements.push_back(static_cast<double>(between(low, high)));
    return graph_->must_add(
        "constant", Attributes({{"value", polyphase::Tensor::from_values(DType::f32, sizes, elements)}}), {}, "c");
  }

  // Of either direction; null where the kernel does not fit or nothing is left.
  Value* depthwise(Value* x, std::int64_t channels, std::size_t spatial) {
    const bool transposed = one_of(3);
    std::vector<std::int64_t> weights{channels, 1};
    std::vector<std::int64_t> stride;
    std::vector<std::int64_t> dilation;
    std::vector<Dim> pre;
    std::vector<Dim> post;
    for (std::size_t a = 0; a < spatial; ++a) {
      weights.push_back(between(1, spatial == 3 ? 3 : 5));
      stride.push_back(between(1, 3));
      dilation.push_back(one_of(4) ? 2 : 1);
      pre.emplace_back(between(-1, 2));
      post.emplace_back(between(-1, 2));
    }
    std::vector<Value*> inputs{x, constant(weights, -3, 3)};
    if (one_of(2)) inputs.push_back(constant({channels}, -9, 9));
    const auto node = graph_->add(
        transposed ? "conv_transpose" : "conv",
        Attributes({{"stride", stride}, {"dilation", dilation}, {"groups", channels}, {"pre", pre}, {"post", post}}),
        inputs, "d");
    if (!node.ok() || (*node)->output()->type.shape.element_count().range().low < 1) return nullptr;
    return (*node)->output();
  }

  Value* pointwise(Value* x, std::int64_t channels, std::size_t spatial) {
    const std::int64_t out = between(1, 50);
    std::vector<std::int64_t> weights{out, channels};
    weights.insert(weights.end(), spatial, 1);
    std::vector<Value*> inputs{x, constant(weights, -3, 3)};
    if (one_of(2)) inputs.push_back(constant({out}, -9, 9));
    const std::vector<std::int64_t> ones(spatial, 1);
    const std::vector<Dim> none(spatial, 0);
    return graph_->must_add(
        "conv",
        Attributes({{"stride", ones}, {"dilation", ones}, {"groups", std::int64_t{1}}, {"pre", none}, {"post", none}}),
        inputs, "p");
  }

  Value* ended(Value* y, std::int64_t channels, Value* added) {
    if (added != nullptr) y = graph_->must_add("add", {}, {y, added}, "s");
    if (one_of(4)) {
      std::vector<std::int64_t> sizes{channels};
      sizes.resize(static_cast<std::size_t>(y->type.shape.rank()) - 1, 1);
      y = graph_->must_add("max", {}, {y, constant(sizes, -5, 5)}, "m");
    }
    switch (between(0, 3)) {
      case 0:
        return y;
      case 1:
        return graph_->must_add("relu", {}, {y}, "r");
      case 2:
        return graph_->must_add("clip", Attributes({{"low", -2.0}, {"high", 6.0}}), {y}, "r");
      default:
        return graph_->must_add("leaky_relu", Attributes({{"alpha", 0.5}}), {y}, "r");
    }
  }

  Random draw_;
  std::unique_ptr<Graph> graph_;
};

TEST(SeparableNetworks, ComputeWhatTheInterpreterComputes) {
  const std::uint64_t count = test::suite_size("POLYPHASE_RANDOM_GRAPHS", 30, 400);
  const auto workshop = built_in_workshop();
  SeparableIsFastest times;
  int in_one = 0;
  for (std::uint64_t seed = 1; seed <= count && !HasFailure(); ++seed) {
    const auto made = SeparableNetwork(workshop->registry(), seed).make();
    if (made == nullptr) continue;
    for (const Cluster cluster : all_clusters) {
      if (!cpu::runs_here(cluster)) continue;
      SCOPED_TRACE("seed " + std::to_string(seed) + " on " + std::string(name_of(cluster)));
      Target target = workshop->target(cluster, false);
      target.times = &times;
      const auto graph = clone(*made);
      ASSERT_TRUE(run_passes(*graph, target).ok());
      auto lowered = lower(*graph, target);
      ASSERT_TRUE(lowered.ok()) << lowered.error().text();
      const std::string text = program_text(*lowered);
      in_one += text.find("conv_separable") != std::string::npos ? 1 : 0;
      const auto program = make_program(std::make_shared<const polyphase::Engine>(std::move(lowered).value()), target);
      ASSERT_TRUE(program.ok()) << program.error().text();
      polyphase::Session session(*program, {.threads = static_cast<int>(1 + seed % 3)});
      Random draw(seed);
      const auto inputs = random_inputs(*made, random_sizes(*made, {}, draw), draw);
      const auto expected = interpret(*made, inputs);
      if (!expected.ok()) continue;
      RunRequest request;
      for (const polyphase::Tensor& input : inputs) request.inputs.push_back(input.view());
      const auto found = session.run(request);
      ASSERT_TRUE(found.ok()) << found.error().text();
      EXPECT_EQ(difference(*expected, *found, 0), "") << print(*made) << text;
    }
  }
  EXPECT_GT(in_one, static_cast<int>(count) / 2);
}

}  // namespace
}  // namespace polyphase::api
