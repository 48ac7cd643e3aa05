// Random graphs through lower and session, with and without passes, on every cluster that runs here and portable: what
// the interpreter computes. POLYPHASE_RANDOM_GRAPHS=n runs n seeds; POLYPHASE_RANDOM_SEED=s runs that one alone.
#include <gtest/gtest.h>

#include <cstdlib>

#include "api/network_runs.h"
#include "backends/cpu/catalogue.h"
#include "passes/random_graph.h"
#include "suite_size.h"

namespace polyphase::api {
namespace {

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
      legal += compare_runs(random, seed, aim, *workshop).legal;
    }
  }
  EXPECT_GT(legal, 0);
}

}  // namespace
}  // namespace polyphase::api
