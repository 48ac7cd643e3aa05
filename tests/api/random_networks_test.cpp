// Random graphs through lower and session, with and without passes, on every cluster that runs here and portable: what
// the interpreter computes. POLYPHASE_RANDOM_GRAPHS=n runs n seeds; POLYPHASE_RANDOM_SEED=s runs that one alone.
#include <gtest/gtest.h>

#include <cstdlib>

#include "api/state.h"
#include "backends/cpu/catalogue.h"
#include "engine/check.h"
#include "graph/graph.h"
#include "lower/lower.h"
#include "lower/program_text.h"
#include "passes/pipeline.h"
#include "passes/random_graph.h"
#include "suite_size.h"

namespace polyphase::api {
namespace {

struct Aim {
  Target target;
  bool passes;
  int threads;
};

// Compares up to two legal runs; counts them.
int compare_runs(const RandomGraph& random, std::uint64_t seed, const Aim& aim,
                 const std::shared_ptr<const Workshop>& workshop) {
  const auto graph = clone(*random.graph);
  if (aim.passes) {
    const auto passed = run_passes(*graph, aim.target);
    EXPECT_TRUE(passed.ok()) << passed.error().text();
  }
  auto lowered = lower(*graph, aim.target);
  EXPECT_TRUE(lowered.ok()) << (lowered.ok() ? "" : lowered.error().text());
  if (!lowered.ok()) return 0;
  const auto checked = check_engine(*lowered, workshop->registry());
  const std::string text = print(*random.graph) + "\n" + print(*graph) + "\n" + program_text(*lowered);
  EXPECT_TRUE(checked.ok()) << checked.error().text() << "\n" << text;
  auto program = make_program(std::make_shared<const polyphase::Engine>(std::move(lowered).value()),
                              aim.target.portable ? workshop->native_target() : aim.target);
  EXPECT_TRUE(program.ok()) << (program.ok() ? "" : program.error().text()) << "\n" << text;
  if (!program.ok()) return 0;
  polyphase::Session session(*program, {.threads = aim.threads});
  Random draw(seed);
  int legal = 0;
  for (int i = 0; i < 6 && legal < 2; ++i) {
    const auto inputs = random_inputs(*random.graph, random_sizes(*random.graph, {}, draw), draw);
    const auto expected = interpret(*random.graph, inputs);
    if (!expected.ok()) continue;
    RunRequest request;
    for (const polyphase::Tensor& input : inputs) request.inputs.push_back(input.view());
    const auto found = session.run(request);
    EXPECT_TRUE(found.ok()) << found.error().text() << "\n" << text;
    if (!found.ok()) return legal;
    ++legal;
    const std::string wrong = difference(*expected, *found, random.exact ? 1e-5 : 4e-3);
    EXPECT_EQ(wrong, "") << text;
    if (!wrong.empty()) return legal;
  }
  return legal;
}

TEST(RandomNetworks, ComputeWhatTheInterpreterComputes) {
  const char* only = std::getenv("POLYPHASE_RANDOM_SEED");
  const std::uint64_t first = only != nullptr ? std::strtoull(only, nullptr, 10) : 1;
  const std::uint64_t count = only != nullptr ? 1 : test::suite_size("POLYPHASE_RANDOM_GRAPHS", 30, 100);
  const auto workshop = built_in_workshop();
  std::vector<Aim> aims{{workshop->target(Cluster::scalar, true), true, 2}};
  for (const Cluster cluster : all_clusters) {
    if (!cpu::runs_here(cluster)) continue;
    aims.push_back({workshop->target(cluster, false), true, 1});
    aims.push_back({workshop->target(cluster, false), false, 3});
  }
  int legal = 0;
  for (std::uint64_t seed = first; seed < first + count && !HasFailure(); ++seed) {
    SCOPED_TRACE("POLYPHASE_RANDOM_SEED=" + std::to_string(seed));
    const RandomGraph random = random_graph(workshop->registry(), seed);
    for (const Aim& aim : aims) {
      SCOPED_TRACE(std::string(name_of(aim.target.cluster)) + (aim.passes ? "" : ", no passes"));
      legal += compare_runs(random, seed, aim, workshop);
    }
  }
  EXPECT_GT(legal, 0);
}

}  // namespace
}  // namespace polyphase::api
