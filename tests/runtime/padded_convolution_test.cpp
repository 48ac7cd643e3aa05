// Convolutions that read a reflected, repeated or wrapped image in place give what pad and conv give one after the
// other.
#include <gtest/gtest.h>

#include <map>

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
  std::string image;   // sizes of the channels-last image
  std::string layout;  // its order
  std::string zeros;   // of the axes before the spatial ones
  std::string pre;
  std::string post;
  std::vector<std::int64_t> weights;
  std::string groups = "1";
  std::string stride;
  std::string dilation;
};

std::string text_of(const Geometry& g, const std::string& mode, const Tensor& weights, const std::string& none) {
  const Attributes constant({{"value", weights}});
  const std::string convolution = "pad(%x) mode=\"" + mode + "\" pre=[" + g.zeros + g.pre + "] post=[" + g.zeros +
                                  g.post + "] then conv!(_, %w) stride=[" + g.stride + "] dilation=[" + g.dilation +
                                  "] groups=" + g.groups + " pre=[" + none + "] post=[" + none + "] then relu(_)";
  return "graph \"g\" (%x: f32[" + g.image + "] layout " + g.layout + ") {\n %w = constant() " +
         print_attributes(constant) + "\n %y = " + convolution + "\n return %y\n}\n";
}

// By the row of that name, if it takes the geometry; returns whether it does.
bool check(const Geometry& g, const std::string& mode, const std::string& name, Cluster cluster) {
  SCOPED_TRACE(name + " " + g.image + " " + mode + " " + std::string(name_of(cluster)));
  Random random(7);
  const std::string none = g.weights.size() == 3 ? "0" : g.weights.size() == 4 ? "0, 0" : "0, 0, 0";
  auto graph = parse_graph(text_of(g, mode, random_tensor(DType::f32, g.weights, random), none), registry());
  EXPECT_TRUE(graph.ok()) << graph.error().text();
  if (!graph.ok()) return false;
  // The result lies channels-last, so that the step is taken whole.
  Value* result = (*graph)->outputs().front();
  result->layout = Layout::channels_last(result->type.shape.rank());
  std::vector<const Row*> rows = cpu::rows_of(cluster);
  std::erase_if(rows, [&](const Row* row) { return row->op == "conv" && !row->reference && row->name != name; });
  const Catalogue catalogue(rows, registry());
  const Target target = cpu::target_of(cluster, false, catalogue);
  auto engine = lower(**graph, target);
  EXPECT_TRUE(engine.ok()) << engine.error().text();
  if (!engine.ok()) return false;
  for (const std::string& remark : engine->remarks) {
    if (remark.find("cut into") != std::string::npos) return false;
  }
  expect_as_interpreted(**graph, std::move(engine).value(), target, random);
  return true;
}

TEST(PaddedConvolution, ReadsTheImageInPlace) {
  const Geometry geometries[] = {
      {"2, 16, 5, 7", "0,2,3,1", "0, 0, ", "1, 3", "2, 0", {20, 16, 3, 4}, "1", "1, 1", "1, 1"},
      {"1, 24, 9, 6", "0,2,3,1", "0, 0, ", "2, 1", "2, 5", {34, 12, 2, 3}, "2", "2, 1", "2, 3"},
      {"1, 3, 12, 17", "0,2,3,1", "0, 0, ", "3, 3", "3, 3", {16, 3, 7, 7}, "1", "2, 2", "1, 1"},
      {"2, 2, 6", "0,2,1", "0, 0, ", "5", "5", {7, 2, 4}, "1", "1", "1"},
      {"2, 13, 11", "0,2,1", "0, 0, ", "3", "4", {18, 13, 5}, "1", "3", "1"},
      {"1, 34, 9, 40", "0,2,3,1", "0, 0, ", "3, 3", "3, 3", {3, 34, 7, 7}, "1", "1, 1", "1, 1"},
      {"2, 1, 9, 21", "0,2,3,1", "0, 0, ", "1, 4", "3, 2", {4, 1, 3, 5}, "1", "1, 1", "1, 1"},
      {"1, 12, 3, 4, 5", "0,2,3,4,1", "0, 0, ", "1, 0, 2", "1, 2, 0", {16, 12, 2, 3, 3}, "1", "1, 2, 1", "1, 1, 2"},
  };
  for (const Cluster cluster : all_clusters) {
    if (!cpu::runs_here(cluster)) continue;
    std::map<std::string, int> taken;
    for (const Geometry& geometry : geometries) {
      for (const char* mode : {"reflect", "edge", "wrap"}) {
        for (const char* row : {"conv_gemm", "conv_pixels", "conv_winograd"})
          taken[row] += check(geometry, mode, row, cluster) ? 1 : 0;
      }
    }
    EXPECT_EQ(taken["conv_gemm"], 24);
    EXPECT_GE(taken["conv_pixels"], 15);
    EXPECT_GE(taken["conv_winograd"], 3);
  }
}

}  // namespace
}  // namespace polyphase
