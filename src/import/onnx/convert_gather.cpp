// Gather, GatherElements, GatherND.
#include "import/onnx/node_context.h"

namespace polyphase {
namespace {

Result<Values> convert_gather(NodeContext& node) {
  TRY(const std::int64_t axis, node.axis(node.integer("axis", 0), node.rank(0)));
  const char* op_name = node.op_type() == "Gather" ? "gather" : "gather_elements";
  return single(node.emit(op_name, Attributes({{"axis", axis}}), {node.input(0), node.input(1)}));
}

Result<Values> convert_gather_nd(NodeContext& node) {
  const std::int64_t batch_dims = node.integer("batch_dims", 0);
  return single(node.emit("gather_nd", Attributes({{"batch_dims", batch_dims}}), {node.input(0), node.input(1)}));
}

}  // namespace

std::vector<Converter> gather_converters() {
  return {
      {"Gather", {1, 11, 13}, 2, 2, convert_gather},
      {"GatherElements", {11, 13}, 2, 2, convert_gather},
      {"GatherND", {11, 12, 13}, 2, 2, convert_gather_nd},
  };
}

}  // namespace polyphase
