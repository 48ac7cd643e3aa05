// Softmax and LogSoftmax; before opset 13 they flatten everything from the axis on.
#include "import/onnx/node_context.h"

namespace polyphase {
namespace {

Result<Values> convert_softmax(NodeContext& node) {
  const char* op_name = node.op_type() == "Softmax" ? "softmax" : "log_softmax";
  const std::int64_t rank = node.rank(0);
  const bool flattens = node.version() < 13;
  TRY(const std::int64_t axis, node.axis(node.integer("axis", flattens ? 1 : -1), rank));
  if (!flattens || axis == rank - 1) {
    TRY(Value * value, node.emit(op_name, Attributes({{"axis", axis}}), {node.input(0)}));
    return Values{value};
  }
  const std::vector<Dim> shape = node.shape(0).dims();
  Dim rows(1);
  Dim columns(1);
  for (std::int64_t i = 0; i < rank; ++i) (i < axis ? rows : columns) *= shape[static_cast<std::size_t>(i)];
  TRY(Value * flat, node.emit("reshape", Attributes({{"shape", std::vector<Dim>{rows, columns}}}), {node.input(0)}));
  TRY(Value * soft, node.emit(op_name, Attributes({{"axis", std::int64_t{1}}}), {flat}));
  TRY(Value * value, node.emit("reshape", Attributes({{"shape", shape}}), {soft}));
  return Values{value};
}

}  // namespace

std::vector<Converter> softmax_converters() {
  return {
      {"LogSoftmax", {1, 11, 13}, 1, 1, convert_softmax},
      {"Softmax", {1, 11, 13}, 1, 1, convert_softmax},
  };
}

}  // namespace polyphase
