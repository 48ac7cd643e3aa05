// fold_slice_into_crop: places that are cut off right after they were computed are not computed.
//
//   %c = conv_transpose(%x, %w) pre=[0] post=[0]
//   %r = relu(%c)                                        %c = conv_transpose(%x, %w) pre=[1] post=[2]
//   %y = slice(%r) start=[0, 0, 1] size=[N, C, L - 3] →  %y = relu(%c)
//
// Start and size may be expressions. Condition: step 1, only spatial axes are cut, and nobody else reads what is cut;
// between the two stand only elementwise nodes and batch norms whose other operands are the same along the cut axes.
#include <algorithm>

#include "passes/passes.h"
#include "passes/weights.h"

namespace polyphase {
namespace {

// Axes that the slice cuts; nothing if it does more than cut spatial axes.
std::optional<std::vector<bool>> cut_axes(const Node& slice) {
  const auto& start = slice.attributes().get<std::vector<Dim>>("start");
  const auto& size = slice.attributes().get<std::vector<Dim>>("size");
  const auto& step = slice.attributes().get<std::vector<std::int64_t>>("step");
  const Shape& from = slice.input(0)->type.shape;
  std::vector<bool> cut(start.size(), false);
  for (std::size_t axis = 0; axis < start.size(); ++axis) {
    cut[axis] = !(start[axis] == 0) || !(size[axis] == from[static_cast<int>(axis)]);
    if (step[axis] != 1 || (axis < 2 && cut[axis])) return std::nullopt;
  }
  return cut;
}

bool same_along(const Value& operand, const std::vector<bool>& cut) {
  const Shape& shape = operand.type.shape;
  const int lead = static_cast<int>(cut.size()) - shape.rank();
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (axis + lead >= 0 && cut[static_cast<std::size_t>(axis + lead)] && !(shape[axis] == 1)) return false;
  }
  return true;
}

struct CropLink {
  Node* node;
  std::size_t running;  // the operand through which the image comes
};

// From the node before the slice up to the transposed convolution (last); empty if there is no such chain.
std::vector<CropLink> chain_above(const Graph& graph, Value* value, const std::vector<bool>& cut) {
  constexpr std::size_t longest = 16;
  std::vector<CropLink> chain;
  while (chain.size() < longest) {
    Node* node = value->producer;
    if (node == nullptr || node->fused() || !graph.has_one_user(value)) return {};
    if (node->is("conv_transpose")) {
      chain.push_back({node, 0});
      return chain;
    }
    if (!node->op().elementwise && !node->is("batch_norm")) return {};
    std::optional<std::size_t> running;
    const std::size_t candidates = node->is("batch_norm") ? 1 : node->inputs().size();
    for (std::size_t i = 0; i < candidates; ++i) {
      const Value* input = node->input(i);
      const bool follows = input->type.shape == value->type.shape && input->producer != nullptr;
      if (follows && !running.has_value()) {
        running = i;
      } else if (!same_along(*input, cut)) {
        return {};
      }
    }
    if (!running.has_value()) return {};
    chain.push_back({node, *running});
    value = node->input(*running);
  }
  return {};
}

bool fold_slice(Graph& graph, Node* slice) {
  const auto cut = cut_axes(*slice);
  if (!cut.has_value() || cut->size() < 3) return false;
  const std::vector<CropLink> chain = chain_above(graph, slice->input(0), *cut);
  if (chain.empty()) return false;
  const Node& convolution = *chain.back().node;
  ConvolutionWindow window(convolution);
  const auto& start = slice->attributes().get<std::vector<Dim>>("start");
  const auto& size = slice->attributes().get<std::vector<Dim>>("size");
  for (std::size_t i = 0; i < window.pre.size(); ++i) {
    window.pre[i] += start[i + 2];
    window.post[i] += convolution.output()->type.shape[static_cast<int>(i) + 2] - start[i + 2] - size[i + 2];
  }
  Rewrite rewrite(graph, slice, convolution.name());
  Value* running = rewrite.add("conv_transpose", window.attributes(), convolution.inputs());
  for (auto link = chain.rbegin() + 1; link != chain.rend(); ++link) {
    std::vector<Value*> inputs = link->node->inputs();
    inputs[link->running] = running;
    running = rewrite.add(link->node->op().name, link->node->attributes(), std::move(inputs));
  }
  return rewrite.ok() && rewrite.commit(slice->output(), running);
}

}  // namespace

bool fold_slice_into_crop(Graph& graph, const Target&) {
  return at_every_node(graph, [](Graph& each, Node* node) { return node->is("slice") && fold_slice(each, node); });
}

}  // namespace polyphase
