// Depthwise separable convolutions, drawn and made one step, through lower and session on every cluster that runs here:
// what the interpreter computes. Sizes reach over several tiles of lines and of positions.
#include <gtest/gtest.h>

#include "api/network_runs.h"
#include "backends/cpu/catalogue.h"
#include "kernel/row_times.h"
#include "passes/graph_growth.h"
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

class SeparableNetwork : private GraphGrowth {
 public:
  SeparableNetwork(const Registry& registry, std::uint64_t seed) : GraphGrowth(registry, seed) { dtype_ = DType::f32; }

  std::unique_ptr<Graph> make() {
    const auto spatial = static_cast<std::size_t>(between(1, 3));
    const bool is_long = spatial < 3 && one_of(4);
    const std::int64_t channels = one_of(8) ? 512 : between(2, is_long ? 40 : 70);
    const bool is_deep = spatial == 3 || channels == 512;
    std::vector<Dim> sizes{between(1, 2), channels};
    for (std::size_t a = 0; a < spatial; ++a) {
      const bool last = a + 1 == spatial;
      sizes.push_back(is_long && last ? between(300, 700) : between(3, is_long ? 4 : is_deep ? 6 : 14));
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
  bool one_of(std::int64_t count) { return pick(count) == 0; }

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
};

TEST(SeparableNetworks, ComputeWhatTheInterpreterComputes) {
  const std::uint64_t count = test::suite_size("POLYPHASE_RANDOM_GRAPHS", 30, 400);
  const auto workshop = built_in_workshop();
  SeparableIsFastest times;
  int in_one = 0;
  for (std::uint64_t seed = 1; seed <= count && !HasFailure(); ++seed) {
    RandomGraph network = {SeparableNetwork(workshop->registry(), seed).make()};
    if (network.graph == nullptr) continue;
    for (const Cluster cluster : all_clusters) {
      if (!cpu::runs_here(cluster)) continue;
      SCOPED_TRACE("seed " + std::to_string(seed) + " on " + std::string(name_of(cluster)));
      Aim aim = {workshop->target(cluster, false), true, static_cast<int>(1 + seed % 3), 1, 0.0};
      aim.target.times = &times;
      const std::string program = compare_runs(network, seed, aim, *workshop).program;
      in_one += program.find("conv_separable") != std::string::npos ? 1 : 0;
    }
  }
  EXPECT_GT(in_one, static_cast<int>(count) / 2);
}

}  // namespace
}  // namespace polyphase::api
