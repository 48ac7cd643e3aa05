// Every pass, and the pipeline, keep what random graphs compute. POLYPHASE_RANDOM_GRAPHS=n runs n seeds instead of some
// hundred; a failure prints its seed, and POLYPHASE_RANDOM_SEED=s runs that one alone.
#include "passes/random_graph.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "passes/passes.h"
#include "passes/pipeline.h"
#include "passes/plain_rows.h"
#include "suite_size.h"

namespace polyphase {
namespace {

struct Run {
  std::vector<Tensor> inputs;
  std::vector<Tensor> expected;
};

// A few draws of sizes and data that the graph accepts.
std::vector<Run> legal_runs(const Graph& graph, std::uint64_t seed) {
  Random random(seed);
  std::vector<Run> runs;
  for (int draw = 0; draw < 6 && runs.size() < 2; ++draw) {
    Run run;
    run.inputs = random_inputs(graph, random_sizes(graph, {}, random), random);
    auto expected = interpret(graph, run.inputs);
    if (!expected.ok()) continue;
    run.expected = std::move(expected).value();
    runs.push_back(std::move(run));
  }
  return runs;
}

void compare(const Graph& before, const Graph& after, const std::vector<Run>& runs, double tolerance,
             const std::string& what) {
  const auto verified = verify(after);
  ASSERT_TRUE(verified.ok()) << what << ": " << verified.error().text() << "\n" << print(before);
  for (const Run& run : runs) {
    const auto found = interpret(after, run.inputs);
    ASSERT_TRUE(found.ok()) << what << ": " << found.error().text() << "\nbefore:\n"
                            << print(before) << "\nafter:\n"
                            << print(after);
    const std::string wrong = difference(run.expected, *found, tolerance);
    ASSERT_EQ(wrong, "") << what << "\nbefore:\n" << print(before) << "\nafter:\n" << print(after);
  }
}

// The graph with all its bare convolutions in bf16.
std::unique_ptr<Graph> multiplying_in_bf16(const Graph& graph) {
  std::string text = print(graph);
  for (const std::string_view op : {" = conv(", " = conv_transpose("}) {
    for (std::size_t at = text.find(op); at != std::string::npos; at = text.find(op, at + 1)) {
      const std::size_t end = text.find('\n', at);
      const std::size_t stride = text.find(" stride=", at);
      const std::size_t products = text.find(" products=", at);
      if (stride < end && products > end) text.insert(stride, " products=bf16");
    }
  }
  return parse_graph(text, registry()).value();
}

// The passes that precision automatic on a CPU with a matrix unit has more than others.
void try_in_bf16(const RandomGraph& random, std::uint64_t seed, Target target,
                 std::map<std::string_view, int>& changes) {
  target.precision = Precision::automatic;
  target.cluster = Cluster::amx;
  const std::unique_ptr<Graph> before = multiplying_in_bf16(*random.graph);
  const auto after = clone(*before);
  if (!store_in_bf16(*after, target)) return;
  ++changes["store_in_bf16"];
  // What is rounded is small beside a tensor, not beside each of its elements, which may be what is left of large sums.
  const auto verified = verify(*after);
  ASSERT_TRUE(verified.ok()) << verified.error().text();
  for (const Run& run : legal_runs(*before, seed)) {
    const auto found = interpret(*after, run.inputs);
    ASSERT_TRUE(found.ok()) << found.error().text();
    ASSERT_EQ(found->size(), run.expected.size());
    for (std::size_t i = 0; i < found->size(); ++i) {
      ASSERT_EQ((*found)[i].type().text(), run.expected[i].type().text());
      ASSERT_LE(rms_error(run.expected[i].view(), (*found)[i].view(), 1), 3e-2) << "result " << i << "\nbefore:\n"
                                                                                << print(*before) << "\nafter:\n"
                                                                                << print(*after);
    }
  }
}

// Whether the graph had a legal run.
bool try_seed(std::uint64_t seed, const Target& target, std::map<std::string_view, int>& changes) {
  const RandomGraph random = random_graph(registry(), seed);
  const std::vector<Run> runs = legal_runs(*random.graph, seed);
  if (runs.empty()) return false;
  const double tolerance = random.exact ? 0 : 2e-3;
  for (const Pass& pass : pass_table()) {
    const auto copy = clone(*random.graph);
    if (!pass.run(*copy, target)) continue;
    ++changes[pass.name];
    compare(*random.graph, *copy, runs, tolerance, std::string(pass.name));
    if (::testing::Test::HasFatalFailure()) return true;
  }
  try_in_bf16(random, seed, target, changes);
  const auto copy = clone(*random.graph);
  const auto done = run_passes(*copy, target);
  EXPECT_TRUE(done.ok()) << done.error().text();
  compare(*random.graph, *copy, runs, tolerance, "the pipeline");
  return true;
}

TEST(Passes, KeepWhatRandomGraphsCompute) {
  const char* only = std::getenv("POLYPHASE_RANDOM_SEED");
  const std::uint64_t first = only != nullptr ? std::strtoull(only, nullptr, 10) : 1;
  const std::uint64_t count = only != nullptr ? 1 : test::suite_size("POLYPHASE_RANDOM_GRAPHS", 60, 800);
  const Catalogue& catalogue = plain_catalogue(registry());
  Target target;
  target.catalogue = &catalogue;
  std::uint64_t legal = 0;
  std::map<std::string_view, int> changes;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    SCOPED_TRACE("POLYPHASE_RANDOM_SEED=" + std::to_string(seed));
    legal += try_seed(seed, target, changes) ? 1U : 0U;
    if (HasFatalFailure()) return;
  }
  if (only != nullptr) return;
  EXPECT_GT(legal * 10, count * 6) << "most graphs should have a legal run";
  if (test::sliced()) return;  // too few for every pass to find its pattern
  for (const Pass& pass : pass_table()) EXPECT_GT(changes[pass.name], 0) << pass.name << " never applied";
}

}  // namespace
}  // namespace polyphase
