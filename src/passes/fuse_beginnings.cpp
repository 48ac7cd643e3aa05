// fuse_beginnings: an activation that only a convolution reads joins it, and is applied to what the convolution loads.
//
//   %a = leaky_relu(%x) alpha=0.1       %y = leaky_relu(%x) alpha=0.1 then conv_transpose!(_, %w)
//   %y = conv_transpose(%a, %w) →
//
// Condition: the activation is one node with one user, the data operand of a convolution that has no beginning yet.
// Runs after fuse_endings, where an activation costs less. What no kernel takes in one piece `lower` splits.
#include <algorithm>
#include <array>

#include "passes/passes.h"
#include "passes/rewrite.h"

namespace polyphase {
namespace {

constexpr std::array activations = {"relu", "leaky_relu", "prelu", "elu", "silu", "clip", "tanh", "gelu"};

bool fuse(Graph& graph) {
  bool changed = false;
  for (Node* node : graph.node_list()) {
    if (!(node->anchors("conv") || node->anchors("conv_transpose")) || node->anchor() != 0) continue;
    const Value* data = node->anchor_input(0);
    if (data == nullptr || data->producer == nullptr || data->producer->fused() || !graph.has_one_user(data)) continue;
    const Node& before = *data->producer;
    if (std::find(activations.begin(), activations.end(), before.op().name) == activations.end()) continue;
    if (!is_float(data->type.dtype) || !(before.input(0)->type == data->type)) continue;

    std::vector<Value*> inputs = before.inputs();
    std::vector<Part> parts = before.parts();
    const int shift = static_cast<int>(inputs.size());
    for (Part part : node->parts()) {
      for (int& operand : part.operands) {
        if (operand >= 0)
          operand = node->input(static_cast<std::size_t>(operand)) == data ? Part::running : operand + shift;
      }
      parts.push_back(std::move(part));
    }
    // The operand that ran through stays out of the list; what stood behind it moves up.
    for (std::size_t i = 0; i < node->inputs().size(); ++i) {
      if (node->input(i) == data) continue;
      const int number = static_cast<int>(i) + shift;
      const int moved = static_cast<int>(inputs.size());
      inputs.push_back(node->input(i));
      for (std::size_t p = before.parts().size(); p < parts.size(); ++p)
        std::replace(parts[p].operands.begin(), parts[p].operands.end(), number, moved);
    }
    Rewrite rewrite(graph, node);
    changed =
        rewrite.commit(node->output(), rewrite.add_parts(std::move(parts), before.parts().size(), std::move(inputs))) ||
        changed;
  }
  return changed;
}

}  // namespace

bool fuse_beginnings(Graph& graph, const Target&) { return in_every_graph(graph, fuse); }

}  // namespace polyphase
