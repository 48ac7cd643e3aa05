// store_in_bf16: what is only multiplied in bf16 is stored in bf16: the same bits, half the memory.
//
//   %y = conv(%x, %w)                   %y = conv(%x, %w)
//   %z = conv(%y, %v)           →       %n = cast(%y) to=bf16
//                                       %f = cast(%n) to=f32
//                                       %z = conv(%f, %v)
//
// The casts join their neighbours: the first ends what computes %y, the second begins what reads it. Condition:
// precision automatic; all that reads the value are convolutions, as the image that they multiply in bf16; what
// computes it can end with a cast. Only for CPUs with a matrix unit, whose kernel reads and writes images in bf16 in
// any layout and multiplies so fast that memory decides. Runs when convolutions and their readers are final.
#include <algorithm>
#include <unordered_map>

#include "passes/passes.h"
#include "passes/rewrite.h"

namespace polyphase {
namespace {

bool multiplies_in_bf16(const Node& node) {
  return !node.fused() && (node.is("conv") || node.is("conv_transpose")) &&
         node.attributes().get<DType>("products") == DType::bf16;
}

// As the image of convolutions, each of which reads it once.
bool is_only_multiplied(const Graph& graph, const Value& value) {
  if (value.users.empty() || graph.is_output(&value)) return false;
  return std::all_of(value.users.begin(), value.users.end(), [&](const Node* user) {
    const auto reads = std::count(user->inputs().begin(), user->inputs().end(), &value);
    return multiplies_in_bf16(*user) && user->input(0) == &value && reads == 1;
  });
}

// Convolutions, and what follows one and will be its ending: as many nodes as a fused one may have parts, `left`.
bool ends_convolution(const Node& node, int left = 16) {
  if (multiplies_in_bf16(node)) return true;
  if (left == 0 || node.fused() || !node.op().elementwise || node.outputs().size() != 1) return false;
  return std::any_of(node.inputs().begin(), node.inputs().end(), [&](const Value* input) {
    return input != nullptr && input->producer != nullptr && input->users.size() == 1 &&
           input->type.shape == node.output()->type.shape && ends_convolution(*input->producer, left - 1);
  });
}

}  // namespace

bool store_in_bf16(Graph& graph, const Target& target) {
  if (target.precision != Precision::automatic || target.cluster != Cluster::amx) return false;
  return in_every_graph(graph, [](Graph& each) {
    bool changed = false;
    std::unordered_map<const Value*, Value*> narrow;
    for (Node* node : each.node_list()) {
      if (!multiplies_in_bf16(*node)) continue;
      Value* const image = node->input(0);
      if (image->type.dtype != DType::f32 || image->producer == nullptr || image->producer->is("cast")) continue;
      const bool known = narrow.count(image) != 0;
      if (!known && (!is_only_multiplied(each, *image) || !ends_convolution(*image->producer))) continue;
      Rewrite rewrite(each, node);
      Value* const stored = known ? narrow.at(image) : rewrite.cast(image, DType::bf16);
      std::vector<Value*> inputs = node->inputs();
      inputs.front() = rewrite.cast(stored, DType::f32);
      if (!rewrite.commit(node->output(), rewrite.add_parts(node->parts(), node->anchor(), std::move(inputs))))
        continue;
      narrow.emplace(image, stored);
      changed = true;
    }
    return changed;
  });
}

}  // namespace polyphase
