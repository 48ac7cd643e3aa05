// Convolutions that read a reflected, repeated or wrapped image in place give what pad and conv give one after the
// other.
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

void check(const Geometry& g, const std::string& mode, Cluster cluster) {
  SCOPED_TRACE(g.image + " " + mode + " " + std::string(name_of(cluster)));
  Random random(7);
  const std::string none = g.weights.size() == 3 ? "0" : g.weights.size() == 4 ? "0, 0" : "0, 0, 0";
  auto graph = parse_graph(text_of(g, mode, random_tensor(DType::f32, g.weights, random), none), registry());
  ASSERT_TRUE(graph.ok()) << graph.error().text();
  // The result lies channels-last, so that the step is taken whole.
  Value* result = (*graph)->outputs().front();
  result->layout = Layout::channels_last(result->type.shape.rank());
  const Catalogue catalogue(cpu::rows_of(cluster), registry());
  const Target target = cpu::target_of(cluster, false, catalogue);
  auto engine = lower(**graph, target);
  ASSERT_TRUE(engine.ok()) << engine.error().text();
  for (const std::string& remark : engine->remarks) EXPECT_EQ(remark.find("cut into"), std::string::npos) << remark;
  expect_as_interpreted(**graph, std::move(engine).value(), target, random);
}

TEST(PaddedConvolution, ReadsTheImageInPlace) {
  const Geometry geometries[] = {
      {"2, 16, 5, 7", "0,2,3,1", "0, 0, ", "1, 3", "2, 0", {20, 16, 3, 4}, "1", "1, 1", "1, 1"},
      {"1, 24, 9, 6", "0,2,3,1", "0, 0, ", "2, 1", "2, 5", {34, 12, 2, 3}, "2", "2, 1", "2, 3"},
      {"1, 3, 12, 17", "0,2,3,1", "0, 0, ", "3, 3", "3, 3", {16, 3, 7, 7}, "1", "2, 2", "1, 1"},
      {"2, 2, 6", "0,2,1", "0, 0, ", "5", "5", {7, 2, 4}, "1", "1", "1"},
      {"2, 13, 11", "0,2,1", "0, 0, ", "3", "4", {18, 13, 5}, "1", "3", "1"},
      {"1, 12, 3, 4, 5", "0,2,3,4,1", "0, 0, ", "1, 0, 2", "1, 2, 0", {16, 12, 2, 3, 3}, "1", "1, 2, 1", "1, 1, 2"},
  };
  for (const Cluster cluster : all_clusters) {
    if (!cpu::runs_here(cluster)) continue;
    for (const Geometry& geometry : geometries) {
      for (const char* mode : {"reflect", "edge", "wrap"}) check(geometry, mode, cluster);
    }
  }
}

}  // namespace
}  // namespace polyphase
