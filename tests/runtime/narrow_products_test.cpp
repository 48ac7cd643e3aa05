// Convolutions that may multiply in bf16 between images in bf16: what the cast, the convolution, its endings and the
// cast back give one after the other, and as one step; matrix products by the convolutions' kernels; pools of images in
// bf16. The data are small integers, which bf16 holds.
#include <gtest/gtest.h>

#include <algorithm>

#include "backends/cpu/catalogue.h"
#include "backends/cpu/peak/measured_peak.h"
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

// The text's graph is one step by this row of the operator, also where others take less time; its result lies so.
void check_step(const std::string& text, const std::string& op, const std::string& name, Cluster cluster,
                const Layout& layout, Random& random, const std::vector<std::string>* remarks = nullptr) {
  SCOPED_TRACE(name + " " + std::string(name_of(cluster)) + "\n" + text);
  auto graph = parse_graph(text, registry());
  ASSERT_TRUE(graph.ok()) << graph.error().text();
  (*graph)->outputs().front()->layout = layout;
  std::vector<const Row*> rows = cpu::rows_of(cluster);
  std::erase_if(rows, [&](const Row* row) { return row->op == op && row->name != name; });
  const Catalogue catalogue(rows, registry());
  const Target target = cpu::target_of(cluster, false, catalogue);
  auto engine = lower(**graph, target);
  ASSERT_TRUE(engine.ok()) << engine.error().text();
  int kernels = 0;
  for (const Step& step : engine->blocks.front().steps) {
    if (step.kind != StepKind::kernel) continue;
    ++kernels;
    EXPECT_EQ(step.rows, std::vector<std::string>{name});
  }
  EXPECT_EQ(kernels, 1);
  if (remarks != nullptr) {
    EXPECT_EQ(engine->remarks, *remarks);
  }
  expect_as_interpreted(**graph, std::move(engine).value(), target, random);
}

void check(const Geometry& g, const std::string& name, bool planar, Cluster cluster) {
  Random random(7);
  const auto rank = static_cast<int>(g.weights.size());
  const Layout layout = planar ? Layout::row_major(rank) : Layout::channels_last(rank);
  const std::vector<std::string> remarks = {"1 of 1 convolutions multiply in bf16, as the model stores its tensors."};
  check_step(text_of(g, layout, random_tensor(DType::f32, g.weights, random)), g.op, name, cluster, layout, random,
             &remarks);
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

TEST(ProductRows, MultiplyAsConvolutionsDo) {
  struct Product {
    std::string rows;  // sizes of a but the last, and of the result
    std::int64_t inner;
    std::int64_t columns;
    std::string operand;  // sizes of what is added
  };
  const Product products[] = {
      {"1", 5, 3, "3"},
      {"7", 33, 40, "7, 40"},
      {"2, 3, 50", 64, 16, "2, 3, 50, 1"},
      {"1, 130", 20, 257, "130, 257"},
      {"3, 17", 48, 96, "1, 1, 1"},
      {"2, 2, 2, 9", 31, 70, "1, 70"},
      {"600", 96, 24, "600, 24"},
  };
  for (const Cluster cluster : all_clusters) {
    if (!cpu::runs_here(cluster)) continue;
    for (const Product& product : products) {
      Random random(5);
      const Tensor b = random_tensor(DType::f32, {product.inner, product.columns}, random);
      const std::string rows = product.rows;
      const auto text = [&](const std::string& products_in) {
        return "graph \"g\" (%a: f32[" + rows + ", " + std::to_string(product.inner) + "], %r: f32[" + product.operand +
               "]) {\n %b = constant() " + print_attributes(Attributes({{"value", b}})) +
               "\n %y = matmul(%a, %b) products=" + products_in + " then sub(%r, _) then relu(_)\n return %y\n}\n";
      };
      const auto commas = static_cast<int>(std::count(rows.begin(), rows.end(), ','));
      const Layout layout = Layout::row_major(commas + 2);
      check_step(text("f32"), "matmul", "matmul_gemm", cluster, layout, random);
      check_step(text("bf16"), "matmul", "matmul_pairs", cluster, layout, random);
    }
  }
}

TEST(ProductRows, LeaveComputedOperandsAndRowsThatShareValues) {
  Random random(3);
  const std::string weights = print_attributes(Attributes({{"value", random_tensor(DType::f32, {5, 3}, random)}}));
  // A computed operand; one of a batch for each of its matrices' rows; one that an ending repeats.
  const std::string heads[] = {"(%a: f32[4, 5], %b: f32[5, 3]) {\n", "(%a: f32[2, 4, 5], %r: f32[2, 1, 3]) {\n",
                               "(%a: f32[5], %r: f32[2, 3]) {\n"};
  const std::string bodies[] = {" %y = matmul(%a, %b)\n",
                                " %b = constant() " + weights + "\n %y = matmul(%a, %b) then add(_, %r)\n",
                                " %b = constant() " + weights + "\n %z = matmul(%a, %b)\n %y = add(%z, %r)\n"};
  for (std::size_t i = 0; i < std::size(heads); ++i) {
    const std::string text = "graph \"g\" " + heads[i] + bodies[i] + " return %y\n}\n";
    SCOPED_TRACE(text);
    auto graph = parse_graph(text, registry());
    ASSERT_TRUE(graph.ok()) << graph.error().text();
    const Catalogue catalogue(cpu::rows_of(Cluster::scalar), registry());
    const Target target = cpu::target_of(Cluster::scalar, false, catalogue);
    auto engine = lower(**graph, target);
    ASSERT_TRUE(engine.ok()) << engine.error().text();
    for (const Step& step : engine->blocks.front().steps) {
      if (step.kind != StepKind::kernel || step.parts[step.anchor].op->name != "matmul") continue;
      EXPECT_EQ(step.rows.front(), i == 1 ? "matmul_gemm" : "matmul_columns");
      EXPECT_EQ(step.parts.size(), 1U);
    }
    expect_as_interpreted(**graph, std::move(engine).value(), target, random);
  }
}

TEST(NarrowProducts, OfPaddedImages) {
  Random random(9);
  const Tensor weights = random_tensor(DType::f32, {20, 12, 3, 3}, random);
  for (const Cluster cluster : all_clusters) {
    if (!cpu::runs_here(cluster)) continue;
    for (const std::string mode : {"reflect", "edge", "wrap"}) {
      const std::string text = "graph \"g\" (%x: bf16[2, 12, 7, 9] layout 0,2,3,1) {\n %w = constant() " +
                               print_attributes(Attributes({{"value", weights}})) +
                               "\n %y = cast(%x) to=f32 then pad(_) mode=\"" + mode +
                               "\" pre=[0, 0, 1, 2] post=[0, 0, 2, 1] then conv!(_, %w) stride=[1, 2] dilation=[1, 1] "
                               "groups=1 pre=[0, 0] post=[0, 0] products=bf16 then cast(_) to=bf16\n return %y\n}\n";
      check_step(text, "conv", "conv_pairs", cluster, Layout::channels_last(4), random);
    }
  }
}

// The rates are four to one apart between CPUs, so measuring them again says the same.
TEST(NativeCluster, MultipliesPairsOnlyWhereTheyAreFaster) {
  const Cluster native = cpu::native_cluster();
  EXPECT_TRUE(cpu::runs_here(native));
  EXPECT_EQ(native == Cluster::amx, cpu::runs_here(Cluster::amx));
  if (!cpu::runs_here(Cluster::avx512_bf16)) return;
  const bool faster = cpu::multiplies_pairs_faster(Cluster::avx512_bf16);
  EXPECT_EQ(faster, cpu::multiplies_pairs_faster(Cluster::avx512_bf16));
  if (native == Cluster::amx) return;
  EXPECT_EQ(native, faster ? Cluster::avx512_bf16 : Cluster::avx512);
}

TEST(NarrowPools, AreThoseOfFloats) {
  for (const Cluster cluster : all_clusters) {
    if (!cpu::runs_here(cluster)) continue;
    for (const std::string op : {"max_pool", "avg_pool"}) {
      for (const std::string dtype : {"bf16", "f32"}) {
        for (const bool turned : {false, true}) {
          const std::string layout = turned ? " layout 0,2,3,1" : "";
          const std::string text = "graph \"g\" (%x: " + dtype + "[2, 37, 9, 8]" + layout + ") {\n %y = " + op +
                                   "(%x) kernel=[2, 4] stride=[2, 1] dilation=[1, 2] pre=[0, 1] post=[1, 1]\n return "
                                   "%y\n}\n";
          Random random(11);
          const Layout lies = turned ? Layout::channels_last(4) : Layout::row_major(4);
          check_step(text, op, "window_pool", cluster, lies, random);
        }
      }
    }
  }
}

}  // namespace
}  // namespace polyphase
