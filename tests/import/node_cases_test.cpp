// ONNX's own node tests through the importer, the verifier and the interpreter.
#include <gtest/gtest.h>

#include "graph/graph.h"
#include "import/node_cases.h"
#include "import/onnx/import_onnx.h"
#include "suite_size.h"

namespace polyphase::test {
namespace {

TEST(NodeCases, AllPassInterpreted) {
  const Registry registry = Registry::built_in();
  const auto interpret_case = [&](const NodeCase& node_case) -> Result<std::vector<Tensor>> {
    TRY(const ImportedModel model, import_onnx(node_case.model, registry));
    TRY_VOID(verify(*model.graph));
    EXPECT_EQ(model.graph->inputs().size(), node_case.inputs.size()) << node_case.model;
    return interpret(*model.graph, node_case.inputs);
  };
  auto counts = check_node_cases("interpreted", interpret_case, sliced() ? Quarter::third : Quarter::all);
  if (sliced()) return;
  EXPECT_GE(counts["passed"], 2100);
  EXPECT_EQ(counts["convtranspose"], 22);
}

}  // namespace
}  // namespace polyphase::test
