// fold_scale_and_bias: constants per channel, or for all, that scale or shift a convolution's result join its weights.
//
//   %c = conv(%x, %w, %b)
//   %m = mul(%c, %s)                    %y = conv(%x, w * s, b * s + t)
//   %y = add(%m, %t)            →
//
// Also div, sub on either side, and neg. Condition: floats, constant weights, nobody else reads the convolution, and
// the other operand is constant and varies along the channels only.
#include "passes/affine.h"
#include "passes/passes.h"

namespace polyphase {
namespace {

// The map of one elementwise node over its operand `side`; both null if it is none.
struct ChannelMap {
  Value* scale = nullptr;
  Value* shift = nullptr;
};

Value* minus_one(Rewrite& rewrite, const Shape& image) {
  return rewrite.expand(rewrite.scalar(DType::f64, -1), Shape{image[1]});
}

ChannelMap map_of_node(Rewrite& rewrite, const Node& node, std::size_t side) {
  const Shape& image = node.input(side)->type.shape;
  const std::string& op = node.op().name;
  if (op == "neg") return {minus_one(rewrite, image), nullptr};
  Value* other = per_channel(rewrite, node.input(1 - side), image);
  if (other == nullptr) return {};
  if (op == "mul") return {other, nullptr};
  if (op == "add") return {nullptr, other};
  if (op == "sub") {
    if (side == 1) return {minus_one(rewrite, image), other};
    return {nullptr, rewrite.add("neg", {}, {other})};
  }
  if (op == "div" && side == 0) return {rewrite.add("reciprocal", {}, {other}), nullptr};
  return {};
}

bool fold_map(Graph& graph, Node* node) {
  for (std::size_t side = 0; side < node->inputs().size(); ++side) {
    const Node* convolution = foldable_convolution(graph, node->input(side));
    if (convolution == nullptr || !(node->input(side)->type == node->output()->type)) continue;
    Rewrite rewrite(graph, node, convolution->name());
    const ChannelMap map = map_of_node(rewrite, *node, side);
    if (map.scale == nullptr && map.shift == nullptr) continue;
    if (rewrite.commit(node->output(), convolve_scaled(rewrite, *convolution, map.scale, map.shift))) return true;
  }
  return false;
}

bool is_affine(const Node& node) {
  return node.is("mul") || node.is("add") || node.is("sub") || node.is("div") || node.is("neg");
}

}  // namespace

bool fold_scale_and_bias(Graph& graph, const Target&) {
  return at_every_node(graph, [](Graph& each, Node* node) { return is_affine(*node) && fold_map(each, node); });
}

}  // namespace polyphase
