// fuse_beginnings: what only a convolution reads joins it, and is applied to what the convolution loads.
//
//   %a = leaky_relu(%x) alpha=0.1       %y = leaky_relu(%x) alpha=0.1 then conv_transpose!(_, %w)
//   %y = conv_transpose(%a, %w) →
//
// So do pads of spatial axes of any mode, read in place, and casts from f16 and bf16, which kernels that copy the image
// widen on the way; and a cast before such a pad. Condition: one user, the data operand of a convolution that has no
// beginning yet, and a kernel that takes both in one. Runs after fuse_endings, where an activation costs less.
//
// And so does a depthwise convolution with what follows it, where a kernel computes both tile by tile for less:
//
//   %d = conv(%x, %w) groups=C then clip(_)      %y = conv(%x, %w) groups=C then clip(_) then conv!(_, %p)
//   %y = conv(%d, %p)                       →
#include <algorithm>
#include <array>

#include "passes/describe.h"
#include "passes/passes.h"
#include "passes/rewrite.h"

namespace polyphase {
namespace {

constexpr std::array beginnings = {"relu", "leaky_relu", "prelu", "elu", "silu", "clip", "tanh", "gelu", "pad", "cast"};

bool may_begin(const Node& before, const Value& data) {
  if (before.fused() || std::find(beginnings.begin(), beginnings.end(), before.op().name) == beginnings.end())
    return false;
  if (!is_float(data.type.dtype)) return false;
  if (before.is("cast")) return widens(before);
  if (!before.is("pad")) return before.input(0)->type == data.type;
  const auto& pre = before.attributes().get<std::vector<Dim>>("pre");
  const auto& post = before.attributes().get<std::vector<Dim>>("post");
  return pre[0] == 0 && pre[1] == 0 && post[0] == 0 && post[1] == 0;
}

// The parts of both, over the operands of both but the value between.
Value* joined(Rewrite& rewrite, const Node& before, const Node& node, const Value* between) {
  std::vector<Value*> inputs = before.inputs();
  std::vector<Part> parts = before.parts();
  std::vector<int> number(node.inputs().size(), Part::running);
  for (std::size_t i = 0; i < node.inputs().size(); ++i) {
    if (node.input(i) == between || node.input(i) == nullptr) continue;
    number[i] = static_cast<int>(inputs.size());
    inputs.push_back(node.input(i));
  }
  for (Part part : node.parts()) {
    for (int& operand : part.operands) {
      if (operand >= 0) operand = number[static_cast<std::size_t>(operand)];
    }
    parts.push_back(std::move(part));
  }
  return rewrite.add_parts(std::move(parts), before.parts().size() + node.anchor(), std::move(inputs));
}

// In the layouts that the node will most likely get, or channels-first, in which a narrow image is copied in any case.
bool some_kernel_takes(const Node& node, const Target& target) {
  if (has_kernel(describe(node), target)) return true;
  if (node.parts().front().op->name != "cast") return false;
  std::vector<Layout> inputs(node.inputs().size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (node.input(i) != nullptr) inputs[i] = Layout::row_major(node.input(i)->type.shape.rank());
  }
  return has_kernel(describe(node, inputs, {Layout::row_major(node.output()->type.shape.rank())}), target);
}

// The convolution with one more beginning; null where there is none.
Node* with_beginning(Graph& graph, Node* node, const Target& target) {
  const int operand = node->parts().front().operands.front();
  const Value* data = operand < 0 ? nullptr : node->input(static_cast<std::size_t>(operand));
  if (data == nullptr || is_constant(data) || data->producer == nullptr || !graph.has_one_user(data)) return nullptr;
  if (!may_begin(*data->producer, *data)) return nullptr;
  const bool pads = node->anchor() == 1 && node->parts().front().op->name == "pad";
  if (node->anchor() != 0 && !(pads && widens(*data->producer))) return nullptr;
  Rewrite rewrite(graph, node);
  Value* result = joined(rewrite, *data->producer, *node, data);
  if (!rewrite.ok() || !some_kernel_takes(*result->producer, target)) return nullptr;
  return rewrite.commit(node->output(), result) ? result->producer : nullptr;
}

// Whether a kernel computes all parts of `whole` for less than what computes the two that they came from.
bool costs_less(const Node& whole, const Node& before, const Node& node, const Target& target,
                const DimBindings& likely) {
  const auto together = cost_of_kernels(describe(whole), target, likely);
  if (!together.has_value()) return false;
  const auto first = cost_in_pieces(describe(before), target, likely);
  const auto second = cost_in_pieces(describe(node), target, likely);
  constexpr double least_gain = 0.99;  // less is none
  return !first.has_value() || !second.has_value() || *together < least_gain * (*first + *second);
}

// A convolution that begins with the convolution in front of it; false where there is none that a kernel takes so.
bool join_convolutions(Graph& graph, Node* node, const Target& target, const DimBindings& likely) {
  const int operand = node->parts().front().operands.front();
  if (node->anchor() != 0 || operand < 0) return false;
  const Value* data = node->input(static_cast<std::size_t>(operand));
  const Node* before = data == nullptr ? nullptr : data->producer;
  if (before == nullptr || !is_convolution(*before) || before->anchor() != 0 || !graph.has_one_user(data)) return false;
  Rewrite rewrite(graph, node);
  Value* result = joined(rewrite, *before, *node, data);
  if (!rewrite.ok() || !costs_less(*result->producer, *before, *node, target, likely)) return false;
  return rewrite.commit(node->output(), result);
}

bool fuse(Graph& graph, const Target& target) {
  const DimBindings likely = likely_sizes_of(graph, target);
  bool changed = false;
  for (Node* node : graph.node_list()) {
    if (is_convolution(*node) && join_convolutions(graph, node, target, likely)) changed = true;
  }
  for (Node* node : graph.node_list()) {
    if (!is_convolution(*node)) continue;
    while ((node = with_beginning(graph, node, target)) != nullptr) changed = true;
  }
  return changed;
}

}  // namespace

bool fuse_beginnings(Graph& graph, const Target& target) {
  return in_every_graph(graph, [&](Graph& each) { return fuse(each, target); });
}

}  // namespace polyphase
