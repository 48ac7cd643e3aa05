// ScatterElements (and Scatter, its old name), ScatterND, TensorScatter.
#include "import/onnx/node_context.h"

namespace polyphase {
namespace {

// How updates meet elements: from opset 16 on none, add, mul; from 18 on max, min.
Result<std::string> reduction_of(NodeContext& node) {
  if (node.version() < 16) return std::string("none");
  const std::string word = node.word("reduction", "none");
  if (word == "none" || word == "add" || word == "mul") return word;
  if (node.version() >= 18 && (word == "max" || word == "min")) return word;
  return broken_rule("reduction is '" + word.substr(0, 40) + "'; it must be " +
                     (node.version() >= 18 ? "none, add, mul, max or min." : "none, add or mul."));
}

Result<Values> convert_scatter_elements(NodeContext& node) {
  TRY(const std::int64_t axis, node.axis(node.integer("axis", 0), node.rank(0)));
  std::string reduction = "none";
  if (node.op_type() == "ScatterElements") {
    TRY(reduction, reduction_of(node));
  }
  return single(node.emit("scatter_elements", Attributes({{"axis", axis}, {"reduction", reduction}}), node.inputs()));
}

Result<Values> convert_scatter_nd(NodeContext& node) {
  TRY(const std::string reduction, reduction_of(node));
  return single(node.emit("scatter_nd", Attributes({{"reduction", reduction}}), node.inputs()));
}

// past[b, …, first[b] + i, …] = update[b, …, i, …]: one index per element of update, along the axis.
Result<Values> convert_tensor_scatter(NodeContext& node) {
  const std::int64_t rank = node.rank(0);
  TRY(const std::int64_t axis, node.axis(node.integer("axis", -2), rank));
  const std::string mode = node.word("mode", "linear");
  if (mode != "linear" && mode != "circular")
    return broken_rule("mode is '" + mode.substr(0, 40) + "'; it must be linear or circular.");
  if (axis == 0) return broken_rule("axis must not be 0, the axis of the batch.");
  if (node.rank(1) != rank)
    return broken_rule("update must have the rank of the cache, " + std::to_string(rank) + ", found " +
                       node.type(1).text() + ".");
  const std::vector<Dim> update = node.shape(1).dims();
  const auto at = static_cast<std::size_t>(axis);
  std::vector<Dim> along(static_cast<std::size_t>(rank), Dim(1));
  along[at] = update[at];
  TRY(Value * index,
      node.emit("range", Attributes({{"start", Dim(0)}, {"count", update[at]}, {"step", INT64_C(1)}}), {}));
  TRY(index, node.emit("reshape", Attributes({{"shape", along}}), {index}));
  if (node.has(2)) {
    std::vector<Dim> batch(static_cast<std::size_t>(rank), Dim(1));
    batch[0] = update[0];
    Value* first = node.input(2);
    TRY(first, node.emit("cast", Attributes({{"to", DType::i64}}), {first}));
    TRY(first, node.emit("reshape", Attributes({{"shape", batch}}), {first}));
    TRY(index, node.emit("add", {}, {index, first}));
  }
  if (mode == "circular") {
    Value* length = node.sizes_as_data({node.shape(0)[static_cast<int>(axis)]}, true);
    TRY(index, node.emit("mod", Attributes({{"fmod", false}}), {index, length}));
  }
  TRY(index, node.emit("expand", Attributes({{"shape", update}}), {index}));
  return single(node.emit("scatter_elements", Attributes({{"axis", axis}}), {node.input(0), index, node.input(1)}));
}

}  // namespace

std::vector<Converter> scatter_converters() {
  return {
      {"Scatter", {9, 11}, 3, 3, convert_scatter_elements},
      {"ScatterElements", {11, 13, 16, 18}, 3, 3, convert_scatter_elements},
      {"ScatterND", {11, 13, 16, 18}, 3, 3, convert_scatter_nd},
      {"TensorScatter", {24}, 2, 3, convert_tensor_scatter},
  };
}

}  // namespace polyphase
