// ONNX's own node tests through the public API: compiled by all passes, run on the kernels.
#include <gtest/gtest.h>

#include <cstring>

#include "import/node_cases.h"
#include "polyphase/polyphase.h"
#include "suite_size.h"

namespace polyphase::test {
namespace {

Result<std::vector<Tensor>> compile_and_run(const NodeCase& node_case, const api::CompileOptions& options) {
  TRY(const api::Engine engine, api::compile(node_case.model.string(), options));
  TRY(const api::Session session, api::Session::create(engine, {.threads = 1, .memory_limit_bytes = 0}));
  std::vector<api::TensorView> inputs;
  for (const Tensor& input : node_case.inputs) inputs.push_back({input.dtype(), input.sizes(), {}, input.view().data});
  TRY(const std::vector<api::Tensor> outputs, session.run(inputs));
  std::vector<Tensor> out;
  for (const api::Tensor& output : outputs) {
    TRY(Tensor copy, Tensor::allocate(output.dtype(), output.sizes()));
    if (output.size_bytes() > 0) std::memcpy(copy.view().data, output.data(), output.size_bytes());
    out.push_back(std::move(copy));
  }
  return out;
}

// Under a sanitizer either target sees a quarter of the cases.
void check_target(const std::string& target, Quarter quarter) {
  api::CompileOptions options;
  options.target = target;
  auto counts = check_node_cases(
      "run", [&](const NodeCase& node_case) { return compile_and_run(node_case, options); },
      sliced() ? quarter : Quarter::all);
  if (sliced()) return;
  EXPECT_GE(counts["passed"], 2100);
  EXPECT_EQ(counts["convtranspose"], 22);
}

TEST(NodeCases, AllPassOnTheKernels) { check_target("native", Quarter::first); }

// Kernels of the least cluster, weights packed when loaded.
TEST(NodeCases, AllPassOnPortableKernels) { check_target("portable", Quarter::second); }

}  // namespace
}  // namespace polyphase::test
