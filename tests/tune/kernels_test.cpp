// The tuner on the CPU's own kernels: every row that takes a step runs on the memory that measuring makes for it.
#include <gtest/gtest.h>

#include "backends/cpu/catalogue.h"
#include "graph/graph.h"
#include "passes/describe.h"
#include "tune/tuner.h"

namespace polyphase {
namespace {

struct KernelCase {
  const char* name;
  const char* inputs;
  const char* node;
};

constexpr KernelCase cases[] = {
    {"padded", "%x: f32[2, 9, 7, 11], %w: f32[13, 9, 3, 3], %b: f32[13]",
     "conv(%x, %w, %b) dilation=[1, 1] post=[1, 1] pre=[1, 1] stride=[1, 1]"},
    {"winograd", "%x: f32[1, 40, 13, 10], %w: f32[24, 40, 3, 3]",
     "conv(%x, %w) dilation=[1, 1] post=[1, 1] pre=[1, 1] stride=[1, 1] then relu(_)"},
    {"volume", "%x: f32[1, 5, 4, 6, 9], %w: f32[6, 5, 2, 3, 3]",
     "conv(%x, %w) dilation=[1, 2, 1] post=[0, 1, 1] pre=[1, 2, 0] stride=[1, 2, 1]"},
    {"depthwise", "%x: f32[1, 19, 12, 9], %w: f32[19, 1, 3, 3]",
     "conv(%x, %w) dilation=[1, 1] groups=19 post=[1, 1] pre=[1, 1] stride=[2, 1]"},
    {"transposed", "%x: f32[2, 40, 7, 6], %w: f32[40, 11, 4, 4], %s: f32[2, 11, 14, 12]",
     "conv_transpose(%x, %w) dilation=[1, 1] post=[1, 1] pre=[1, 1] stride=[2, 2] then add(_, %s) then relu(_)"},
    {"transposed_depthwise", "%x: f32[1, 21, 33], %w: f32[21, 1, 4]",
     "conv_transpose(%x, %w) dilation=[1] groups=21 post=[1] pre=[1] stride=[2]"},
    {"point", "%x: f32[3, 50, 1, 1], %w: f32[50, 16, 4, 4]",
     "conv_transpose(%x, %w) dilation=[1, 1] post=[0, 0] pre=[0, 0] stride=[1, 1]"},
    {"softmax", "%x: f32[3, 17, 5]", "softmax(%x) axis=1"},
};

class KernelsTest : public ::testing::TestWithParam<std::tuple<Cluster, bool, bool>> {};

TEST_P(KernelsTest, AllThatTakeAStepAreMeasured) {
  const auto [cluster, in_last, out_last] = GetParam();
  if (!cpu::runs_here(cluster)) GTEST_SKIP() << "this CPU lacks " << name_of(cluster);
  const Registry registry = Registry::built_in();
  const Catalogue catalogue(cpu::rows_of(cluster), registry);
  Tuner tuner(std::move(TimingCache::open("")).value(),
              {.processor = "cpu",
               .threads = 2,
               .limits = {.seconds_per_row = 1e-4, .memory_bytes = 64 << 20, .cancelled = nullptr}});
  Target target = cpu::target_of(cluster, false, catalogue);
  target.times = &tuner;
  std::size_t measured = 0;
  for (const KernelCase& each : cases) {
    const auto graph = parse_graph(
        "graph \"g\" (" + std::string(each.inputs) + ") {\n %y = " + each.node + "\n return %y\n}\n", registry);
    ASSERT_TRUE(graph.ok()) << each.name << ": " << graph.error().text();
    const Node& node = *(*graph)->nodes().back();
    const auto order = [&](const Value& value, bool last) {
      const int rank = value.type.shape.rank();
      return last ? Layout::channels_last(rank) : Layout::row_major(rank);
    };
    std::vector<Layout> inputs;
    for (std::size_t i = 0; i < node.inputs().size(); ++i)
      inputs.push_back(order(*node.input(i), i == 0 ? in_last : i > 1 && out_last));
    StepDesc step = describe(node, inputs, {order(*node.output(), out_last)});
    if (step.inputs.size() > 1) step.inputs[1].constant = true;
    for (const RowAnswer& answer : catalogue.ask(step, step, target)) {
      if (!answer.refusal.empty() || answer.row->reference) continue;
      EXPECT_TRUE(answer.measured) << each.name << " " << answer.row->name;
      EXPECT_GT(answer.cost_seconds, 0) << each.name << " " << answer.row->name;
      EXPECT_LT(answer.cost_seconds, 60) << each.name << " " << answer.row->name;
      ++measured;
    }
  }
  EXPECT_EQ(tuner.skipped(), std::vector<std::string>());
  EXPECT_GT(measured, std::size(cases));
}

INSTANTIATE_TEST_SUITE_P(Layouts, KernelsTest,
                         ::testing::Combine(::testing::ValuesIn(all_clusters), ::testing::Bool(), ::testing::Bool()));

}  // namespace
}  // namespace polyphase
