// Compares what a graph computes on the kernels with what the interpreter computes.
#include "api/network_runs.h"

#include <gtest/gtest.h>

#include "engine/check.h"
#include "graph/graph.h"
#include "lower/lower.h"
#include "lower/program_text.h"
#include "passes/pipeline.h"

namespace polyphase::api {

Compared compare_runs(const RandomGraph& random, std::uint64_t seed, const Aim& aim, const Workshop& workshop) {
  Compared out;
  const auto graph = clone(*random.graph);
  if (aim.passes) {
    const auto passed = run_passes(*graph, aim.target);
    EXPECT_TRUE(passed.ok()) << passed.error().text();
  }
  auto lowered = lower(*graph, aim.target);
  EXPECT_TRUE(lowered.ok()) << (lowered.ok() ? "" : lowered.error().text());
  if (!lowered.ok()) return out;
  const auto checked = check_engine(*lowered, workshop.registry());
  out.program = program_text(*lowered);
  const auto text = [&] { return print(*random.graph) + "\n" + print(*graph) + "\n" + out.program; };
  EXPECT_TRUE(checked.ok()) << checked.error().text() << "\n" << text();
  auto program = make_program(std::make_shared<const polyphase::Engine>(std::move(lowered).value()),
                              aim.target.portable ? workshop.native_target() : aim.target);
  EXPECT_TRUE(program.ok()) << (program.ok() ? "" : program.error().text()) << "\n" << text();
  if (!program.ok()) return out;
  polyphase::Session session(*program, {.threads = aim.threads});
  Random draw(seed);
  for (int i = 0; i < 6 && out.legal < aim.runs; ++i) {
    const auto inputs = random_inputs(*random.graph, random_sizes(*random.graph, {}, draw), draw);
    const auto expected = interpret(*random.graph, inputs);
    if (!expected.ok()) continue;
    RunRequest request;
    for (const polyphase::Tensor& input : inputs) request.inputs.push_back(input.view());
    const auto found = session.run(request);
    EXPECT_TRUE(found.ok()) << found.error().text() << "\n" << text();
    if (!found.ok()) return out;
    ++out.legal;
    const std::string wrong = difference(*expected, *found, aim.tolerance.value_or(random.exact ? 1e-5 : 4e-3));
    EXPECT_EQ(wrong, "") << text();
    if (!wrong.empty()) return out;
  }
  return out;
}

}  // namespace polyphase::api
