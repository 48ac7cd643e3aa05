// The runner: options, progress, and what it says about names that do not exist.
#include "passes/pipeline.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "kernel/catalogue.h"
#include "passes/plain_rows.h"

namespace polyphase {
namespace {

constexpr std::string_view twins = R"(graph "g" () {
  %a = constant() value=i64[2]{1, -2} -> i64[2]
  %b = constant() value=i64[2]{1, -2} -> i64[2]
  %c = constant() value=i64[1]{7} -> i64[1]
  return %a, %b
}
)";

struct Runner {
  std::unique_ptr<Graph> graph = parse_graph(twins, registry()).value();
  Catalogue catalogue{{}, registry()};
  Target target;
  PassOptions options;
  std::vector<std::string> ran;
  std::string printed;

  Result<void> run() {
    target.catalogue = &catalogue;
    options.progress = [this](const PassReport& report) { ran.emplace_back(report.name); };
    options.print = [this](std::string_view pass, std::string_view text) {
      printed += "# after " + std::string(pass) + "\n" + std::string(text);
    };
    return run_passes(*graph, target, options);
  }
};

TEST(Pipeline, RunsTheWholeTableInOrder) {
  Runner runner;
  ASSERT_TRUE(runner.run().ok());
  ASSERT_EQ(runner.ran.size(), pass_table().size());
  for (std::size_t i = 0; i < runner.ran.size(); ++i) EXPECT_EQ(runner.ran[i], pass_table()[i].name);
  EXPECT_EQ(runner.graph->nodes().size(), 1U);
}

TEST(Pipeline, StopsAfterAndLeavesOut) {
  Runner runner;
  runner.options.stop_after = "remove_dead_nodes";
  ASSERT_TRUE(runner.run().ok());
  EXPECT_EQ(runner.ran.back(), "remove_dead_nodes");
  EXPECT_EQ(std::count(runner.ran.begin(), runner.ran.end(), "remove_dead_nodes"), 1);
  EXPECT_EQ(runner.graph->nodes().size(), 2U);

  Runner without;
  without.options.without = {"remove_dead_nodes", "merge_equal_nodes"};
  ASSERT_TRUE(without.run().ok());
  EXPECT_EQ(without.graph->nodes().size(), 3U);
}

TEST(Pipeline, PrintsOnlyWhereThePassChangedSomething) {
  Runner runner;
  runner.options.print_after = {"fold_constants", "remove_dead_nodes"};
  ASSERT_TRUE(runner.run().ok());
  EXPECT_EQ(runner.printed.find("# after remove_dead_nodes\ngraph \"g\" () {\n  %a = constant() value=i64[2]{1, -2}"),
            0U)
      << runner.printed;
  EXPECT_EQ(runner.printed.find("# after fold_constants"), std::string::npos);
}

// Ones and zeros, which a pass that could see them would take for something else.
std::string after_passes(const std::string& weight) {
  const std::string text = "graph \"g\" (%x: f32[1,2,3,3]) {\n  %w = constant() value=f32[2,2,1,1]{1, 0, 0, 1}" +
                           weight + " -> f32[2,2,1,1]\n  %s = constant() value=f32[2,1,1]{1, 1}" + weight +
                           " -> f32[2,1,1]\n  %c = conv(%x, %w) dilation=[1, 1] post=[0, 0] pre=[0, 0] stride=[1, 1] "
                           "-> f32[1,2,3,3]\n  %y = mul(%c, %s) -> f32[1,2,3,3]\n"
                           "  return %y\n}\n";
  auto graph = parse_graph(text, registry());
  EXPECT_TRUE(graph.ok()) << graph.error().text();
  const Catalogue catalogue({}, registry());
  Target target;
  target.catalogue = &catalogue;
  EXPECT_TRUE(run_passes(**graph, target, {}).ok());
  return print(**graph);
}

TEST(Pipeline, LooksAtConstantsButNotAtWeightsThatMayBeExchanged) {
  const std::string seen = after_passes("");
  EXPECT_EQ(seen.find("mul("), std::string::npos) << seen;
  const std::string opaque = after_passes(R"( weight="w")");
  EXPECT_NE(opaque.find("weight=\"w\""), std::string::npos) << opaque;
  // The scale has joined the weights, as arithmetic that lower does.
  EXPECT_LT(opaque.find("mul("), opaque.find(" = conv(")) << opaque;
  EXPECT_EQ(opaque.find("mul(", opaque.find(" = conv(")), std::string::npos) << opaque;
}

TEST(Pipeline, NamesThePassesWhereAnOptionNamesNone) {
  Runner runner;
  runner.options.without = {"fold_nothing"};
  const auto done = runner.run();
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().message, "--without names the pass 'fold_nothing', which does not exist.");
  EXPECT_EQ(done.error().hint.find("The passes are: "), 0U);
  for (const Pass& pass : pass_table()) EXPECT_NE(done.error().hint.find(pass.name), std::string::npos);
}

}  // namespace
}  // namespace polyphase
