// Convolutions that may multiply in bf16 between images in bf16: what the cast, the convolution, its endings and the
// cast back give one after the other, and as one step. The data are small integers, which bf16 holds.
#include <gtest/gtest.h>

#include "backends/cpu/catalogue.h"
#include "graph/graph.h"
#include "lower/lower.h"
#include "runtime/as_interpreted.h"

namespace polyphase {
namespace {

const Registry& registry() {
  static const Registry built_in = Registry::built_in();
  return built_in;
}

struct Geometry {
  std::string op;
  std::string image;   // sizes
  std::string result;  // sizes
  std::vector<std::int64_t> weights;
  std::string window;           // attributes
  std::string vector_row = "";  // takes it too, between channels-first images, where pairs are multiplied in vectors
};

std::string text_of(const Geometry& g, const Layout& layout, const Tensor& weights) {
  const Attributes constant({{"value", weights}});
  std::string order;
  for (const int axis : layout.order()) order += (order.empty() ? "" : ",") + std::to_string(axis);
  return "graph \"g\" (%r: f32[" + g.result + "], %x: bf16[" + g.image + "] layout " + order +
         ") {\n %w = constant() " + print_attributes(constant) + "\n %y = cast(%x) to=f32 then " + g.op + "!(_, %w) " +
         g.window +
         " products=bf16 rounds_transformed=true then add(_, %r) then relu(_) then cast(_) to=bf16\n return %y\n}\n";
}

void check(const Geometry& g, const std::string& name, bool planar, Cluster cluster) {
  SCOPED_TRACE(name + " " + g.image + " " + std::string(name_of(cluster)) + (planar ? " planar" : ""));
  Random random(7);
  const auto rank = static_cast<int>(g.weights.size());
  const Layout layout = planar ? Layout::row_major(rank) : Layout::channels_last(rank);
  auto graph = parse_graph(text_of(g, layout, random_tensor(DType::f32, g.weights, random)), registry());
  ASSERT_TRUE(graph.ok()) << graph.error().text();
  (*graph)->outputs().front()->layout = layout;
  // Of the convolutions' rows this one that multiplies in bf16, also where others take less time.
  std::vector<const Row*> rows = cpu::rows_of(cluster);
  std::erase_if(rows, [&](const Row* row) { return row->op == g.op && row->name != name; });
  const Catalogue catalogue(rows, registry());
  const Target target = cpu::target_of(cluster, false, catalogue);
  auto engine = lower(**graph, target);
  ASSERT_TRUE(engine.ok()) << engine.error().text();
  const std::vector<std::string> row = {name};
  for (const Step& step : engine->blocks.front().steps) {
    if (step.kind == StepKind::kernel) {
      EXPECT_EQ(step.rows, row);
    }
  }
  EXPECT_EQ(engine->remarks,
            std::vector<std::string>{"1 of 1 convolutions multiply in bf16, as the model stores its tensors."});
  expect_as_interpreted(**graph, std::move(engine).value(), target, random);
}

TEST(NarrowProducts, OfImagesInBf16) {
  const Geometry geometries[] = {
      {"conv",
       "2, 16, 5, 7",
       "2, 20, 4, 3",
       {20, 16, 2, 3},
       "stride=[1, 2] dilation=[1, 1] groups=1 pre=[0, 0] post=[0, 0]"},
      {"conv", "1, 13, 40", "1, 34, 40", {34, 13, 3}, "stride=[1] dilation=[1] groups=1 pre=[1] post=[1]"},
      {"conv_transpose",
       "1, 24, 5, 6",
       "1, 20, 10, 12",
       {24, 10, 4, 4},
       "stride=[2, 2] dilation=[1, 1] groups=2 pre=[1, 1] post=[1, 1]"},
      {"conv_transpose", "1, 7, 33", "1, 3, 102", {7, 3, 5}, "stride=[3] dilation=[2] groups=1 pre=[1] post=[2]"},
      {"conv_transpose",
       "1, 32, 2, 3, 4",
       "1, 16, 4, 6, 8",
       {32, 16, 2, 2, 2},
       "stride=[2, 2, 2] dilation=[1, 1, 1] groups=1 pre=[0, 0, 0] post=[0, 0, 0]",
       "conv_transpose_disjoint_pairs"},
      {"conv_transpose",
       "2, 21, 3, 16",
       "2, 7, 11, 49",
       {21, 7, 3, 2},
       "stride=[4, 3] dilation=[1, 1] groups=1 pre=[0, -2] post=[0, 0]",
       "conv_transpose_disjoint_pairs"},
      {"conv",
       "1, 34, 7, 9",
       "1, 20, 7, 9",
       {20, 17, 1, 1},
       "stride=[1, 1] dilation=[1, 1] groups=2 pre=[0, 0] post=[0, 0]",
       "conv_pointwise_pairs"},
      {"conv_transpose",
       "1, 35, 7, 18",
       "1, 20, 14, 36",
       {35, 20, 4, 4},
       "stride=[2, 2] dilation=[1, 1] groups=1 pre=[1, 1] post=[1, 1]",
       "conv_transpose_winograd_pairs"},
      {"conv",
       "2, 66, 9, 8",
       "2, 34, 9, 8",
       {34, 33, 3, 3},
       "stride=[1, 1] dilation=[1, 1] groups=2 pre=[1, 1] post=[1, 1]",
       "conv_winograd_pairs"},
      {"conv",
       "1, 32, 7, 12, 8",
       "1, 20, 7, 12, 8",
       {20, 32, 3, 3, 3},
       "stride=[1, 1, 1] dilation=[1, 1, 1] groups=1 pre=[1, 1, 1] post=[1, 1, 1]",
       "conv_winograd_pairs"},
  };
  for (const Cluster cluster : all_clusters) {
    if (!cpu::runs_here(cluster)) continue;
    for (const Geometry& geometry : geometries) {
      for (const bool planar : {false, true}) check(geometry, geometry.op + "_pairs", planar, cluster);
      const bool in_vectors = cluster == Cluster::avx512_bf16 || cluster == Cluster::amx;
      if (in_vectors && !geometry.vector_row.empty()) check(geometry, geometry.vector_row, true, cluster);
    }
  }
}

}  // namespace
}  // namespace polyphase
