// Networks whose tensors are stored in f16 or bf16, or that begin and end with elementwise work: convolutions lie in
// the order in which their kernels are fastest all the same, and what lies across is turned to the bit.
#include <gtest/gtest.h>

#include "backends/cpu/catalogue.h"
#include "graph/graph.h"
#include "lower/lower.h"
#include "passes/pipeline.h"
#include "runtime/as_interpreted.h"

namespace polyphase {
namespace {

const Registry& registry() {
  static const Registry built_in = Registry::built_in();
  return built_in;
}

// The rows of the steps that `body`, in which %w and %b are weights, becomes.
std::vector<std::string> rows_of(const std::string& dtype, const std::string& body, Cluster cluster) {
  Random random(7);
  const DType type = dtype == "f32" ? DType::f32 : DType::f16;
  const auto constant = [&](std::initializer_list<std::int64_t> sizes) {
    const std::vector<std::int64_t> list = sizes;
    return "constant() " + print_attributes(Attributes({{"value", random_tensor(type, list, random)}})) + "\n";
  };
  auto graph = parse_graph("graph \"g\" (%x: " + dtype + "[1, 256, 64, 64]) {\n %w = " + constant({256, 64, 2, 2}) +
                               " %b = " + constant({64}) + body + " return %y\n}\n",
                           registry());
  EXPECT_TRUE(graph.ok()) << graph.error().text();
  if (!graph.ok()) return {};
  const Catalogue catalogue(cpu::rows_of(cluster), registry());
  const Target target = cpu::target_of(cluster, false, catalogue);
  EXPECT_TRUE(run_passes(**graph, target, {}).ok());
  const auto steps = choose_kernels(**graph, target);
  EXPECT_TRUE(steps.ok());
  std::vector<std::string> rows;
  for (const ChosenStep& step : *steps) rows.push_back(step.rows.empty() ? "" : step.rows.front());
  return rows;
}

constexpr const char* window = " stride=[2, 2] dilation=[1, 1] groups=1 pre=[0, 0] post=[0, 0]\n";

// Either kernel that reads and writes channels-first images.
void expect_no_turns(const std::vector<std::string>& rows, std::size_t conv, std::size_t count) {
  ASSERT_EQ(rows.size(), count);
  for (std::size_t i = 0; i < count; ++i) {
    if (i == conv) {
      EXPECT_TRUE(rows[i] == "conv_transpose_disjoint" || rows[i] == "conv_transpose_pixels") << rows[i];
    } else {
      EXPECT_EQ(rows[i], "elementwise_chain");
    }
  }
}

TEST(MemoryOrders, AConvolutionTurnsTogetherWithWhatHangsOnIt) {
  const std::string conv = std::string("conv_transpose(%x, %w, %b)") + window;
  const std::string between = std::string(" %a = sin(%x)\n %c = conv_transpose(%a, %w, %b)") + window;
  for (const Cluster cluster : {Cluster::avx2, Cluster::avx512}) {
    SCOPED_TRACE(name_of(cluster));
    expect_no_turns(rows_of("f32", " %y = " + conv, cluster), 0, 1);
    expect_no_turns(rows_of("f16", " %y = " + conv, cluster), 0, 1);
    expect_no_turns(rows_of("f32", between + " %y = sin(%c)\n", cluster), 1, 3);
    expect_no_turns(rows_of("f16", between + " %d = sin(%c)\n %y = mul(%d, %d)\n", cluster), 1, 3);
  }
}

// An elementwise step from one order into the other, with an operand of each kind of stride beside it.
void check_turned(const std::string& from, const std::string& to, const std::string& sizes, bool to_last,
                  Cluster cluster) {
  SCOPED_TRACE(from + " to " + to + " " + sizes + (to_last ? " to last " : " to first ") +
               std::string(name_of(cluster)));
  Random random(7);
  const std::string channels = sizes.substr(3, sizes.find(',', 3) - 3);
  const std::string layout = to_last ? "0,1,2,3" : "0,2,3,1";
  const std::string chain = from == to ? "mul(%x, %k) then add(_, %x)" : "cast(%x) to=" + to;
  auto graph = parse_graph("graph \"g\" (%k: " + from + "[" + channels + ", 1, 1], %x: " + from + "[" + sizes +
                               "] layout " + layout + ") {\n %y = " + chain + "\n return %y\n}\n",
                           registry());
  ASSERT_TRUE(graph.ok()) << graph.error().text();
  (*graph)->outputs().front()->layout = to_last ? Layout::channels_last(4) : Layout::row_major(4);
  const Catalogue catalogue(cpu::rows_of(cluster), registry());
  const Target target = cpu::target_of(cluster, false, catalogue);
  auto engine = lower(**graph, target);
  ASSERT_TRUE(engine.ok()) << engine.error().text();
  expect_as_interpreted(**graph, std::move(engine).value(), target, random);
}

TEST(MemoryOrders, ElementwiseStepsTurn) {
  for (const Cluster cluster : all_clusters) {
    if (!cpu::runs_here(cluster)) continue;
    for (const std::string sizes : {"1, 5, 9, 40", "2, 64, 10, 13", "1, 130, 5, 30", "1, 33, 16, 16", "1, 3, 50, 50"}) {
      for (const bool to_last : {false, true}) {
        check_turned("f32", "f16", sizes, to_last, cluster);
        check_turned("f16", "f32", sizes, to_last, cluster);
        check_turned("bf16", "f32", sizes, to_last, cluster);
        check_turned("f32", "f32", sizes, to_last, cluster);
        check_turned("i32", "i64", sizes, to_last, cluster);
      }
    }
  }
}

// Results that no cache holds are written past the caches, whole vectors of them.
TEST(MemoryOrders, LargeCastsAreWholeFromAnyPlaceOn) {
  for (const Cluster cluster : all_clusters) {
    if (!cpu::runs_here(cluster)) continue;
    for (const bool narrows : {false, true}) {
      Random random(7);
      const std::string from = narrows ? "f32" : "f16";
      const std::string sizes = narrows ? "3, 2900001" : "3, 1450001";
      auto graph = parse_graph("graph \"g\" (%x: " + from + "[" + sizes + "], %s: " + from +
                                   "[3, 1]) {\n %y = mul(%x, %s) then cast(_) to=" + (narrows ? "f16" : "f32") +
                                   "\n return %y\n}\n",
                               registry());
      ASSERT_TRUE(graph.ok()) << graph.error().text();
      const Catalogue catalogue(cpu::rows_of(cluster), registry());
      const Target target = cpu::target_of(cluster, false, catalogue);
      auto engine = lower(**graph, target);
      ASSERT_TRUE(engine.ok()) << engine.error().text();
      expect_as_interpreted(**graph, std::move(engine).value(), target, random);
    }
  }
}

}  // namespace
}  // namespace polyphase
