// Pad in all versions.
#include "import/onnx/node_context.h"

namespace polyphase {
namespace {

using Sizes = std::vector<Dim>;
using Integers = std::vector<std::int64_t>;

// Nothing: it is computed.
Result<std::optional<double>> fill_value(NodeContext& node) {
  if (node.version() < 11) return std::optional<double>(node.real("value", 0.0));
  if (!node.has(2)) return std::optional<double>(0.0);
  if (!(node.shape(2).element_count() == 1))
    return broken_rule("constant_value must be one number, found " + node.type(2).text() + ".");
  if (!node.fixed(2).has_value()) return std::optional<double>();
  TRY(const auto values, node.fixed_reals(2, "constant_value"));
  return std::optional<double>(values[0]);
}

// A computed value goes where a mask of the operand's places, padded alike, is false.
Result<Value*> fill_margins(NodeContext& node, Value* padded, const Attributes& padding) {
  if (node.type(2).dtype != node.type(0).dtype)
    return broken_rule("constant_value must have the operand's type, found " + node.type(2).text() + " and " +
                       node.type(0).text() + ".");
  TRY(Value * mask,
      node.emit("expand", Attributes({{"shape", node.shape(0).dims()}}),
                {node.constant(Tensor::from_integers(DType::boolean, {}, std::vector<std::int64_t>{1}))}));
  TRY(mask, node.emit("pad", padding, {mask}));
  TRY(Value * fill, node.emit("reshape", Attributes({{"shape", std::vector<Dim>{}}}), {node.input(2)}));
  return node.emit("where", {}, {mask, padded, fill});
}

Result<Values> convert_pad(NodeContext& node) {
  const std::string mode = node.word("mode", "constant");
  // ONNX has wrap from opset 19 on; PyTorch writes it into opset 18 too.
  if (mode != "constant" && mode != "reflect" && mode != "edge" && mode != "wrap")
    return broken_rule("mode is '" + mode.substr(0, 40) + "'; it must be constant, reflect, edge or wrap.");
  Sizes pads;
  if (node.version() < 11) {
    const auto given = node.integers("pads");
    if (!given.has_value() || node.input_count() > 1)
      return broken_rule("Pad before opset 11 has the attribute pads, and one operand.");
    pads.assign(given->begin(), given->end());
  } else {
    if (!node.has(1)) return broken_rule("the operand pads is missing.");
    TRY(pads, node.sizes(1, DimRange{-(INT64_C(1) << 31), INT64_C(1) << 31}));
  }
  TRY(const std::optional<double> value, fill_value(node));
  const auto rank = static_cast<std::size_t>(node.rank(0));
  Integers axes(rank);
  for (std::size_t i = 0; i < rank; ++i) axes[i] = static_cast<std::int64_t>(i);
  if (node.has(3)) {
    if (node.version() < 18) return broken_rule("the operand axes exists from opset 18 on.");
    TRY(const Integers given, node.fixed_integers(3, "axes"));
    TRY(axes, node.axes(given, node.rank(0)));
  }
  if (pads.size() != 2 * axes.size()) {
    return broken_rule("pads has " + std::to_string(pads.size()) + " entries; " + std::to_string(axes.size()) +
                       " axes need " + std::to_string(2 * axes.size()) + ", all beginnings, then all ends.");
  }
  Sizes pre(rank, Dim(0));
  Sizes post(rank, Dim(0));
  for (std::size_t i = 0; i < axes.size(); ++i) {
    pre[static_cast<std::size_t>(axes[i])] = pads[i];
    post[static_cast<std::size_t>(axes[i])] = pads[i + axes.size()];
  }
  Attributes attributes({{"pre", std::move(pre)},
                         {"post", std::move(post)},
                         {"mode", mode},
                         {"value", mode == "constant" ? value.value_or(0.0) : 0.0}});
  TRY(Value * result, node.emit("pad", attributes, {node.input(0)}));
  if (mode == "constant" && !value.has_value()) {
    TRY(result, fill_margins(node, result, attributes));
  }
  return Values{result};
}

}  // namespace

std::vector<Converter> pad_converters() { return {{"Pad", {2, 11, 13, 18, 19, 21, 23, 24, 25}, 1, 4, convert_pad}}; }

}  // namespace polyphase
