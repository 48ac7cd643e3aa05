// recognise_depth_to_space: pixel shuffle, which exporters write as three moves, gets its own word.
//
//   %a = reshape(%x) shape=[N, C, r, r, H, W]
//   %b = transpose(%a) order=[0, 1, 4, 2, 5, 3]         %y = depth_to_space(%x) block=r mode="crd"
//   %y = reshape(%b) shape=[N, C, H*r, W*r]         →
//
// Likewise [N, r, r, C, H, W] by [0, 3, 4, 1, 5, 2], which is mode dcr, and the way back, [N, C, H, r, W, r] by
// [0, 3, 5, 1, 2, 4], which is space_to_depth.
#include <algorithm>
#include <array>

#include "passes/passes.h"
#include "passes/rewrite.h"

namespace polyphase {
namespace {

struct Form {
  const char* op;
  const char* mode;  // null: the operator has none
  std::array<std::int64_t, 6> order;
  int block_axes[2];  // of the shape between, where r stands
  int image_axes[4];  // N, C, H, W there
};

constexpr Form forms[] = {
    {"depth_to_space", "crd", {0, 1, 4, 2, 5, 3}, {2, 3}, {0, 1, 4, 5}},
    {"depth_to_space", "dcr", {0, 3, 4, 1, 5, 2}, {1, 2}, {0, 3, 4, 5}},
    {"space_to_depth", nullptr, {0, 3, 5, 1, 2, 4}, {3, 5}, {0, 1, 2, 4}},
};

bool recognise_shuffle(Graph& graph, Node* last) {
  const Node* turn = produced_by(last->input(0), "transpose");
  const Node* first = turn == nullptr ? nullptr : produced_by(turn->input(0), "reshape");
  if (first == nullptr || first->output()->type.shape.rank() != 6) return false;
  Value* x = first->input(0);
  const Shape& from = x->type.shape;
  const Shape& between = first->output()->type.shape;
  for (const Form& form : forms) {
    if (!std::ranges::equal(turn->attributes().get<std::vector<std::int64_t>>("order"), form.order) || from.rank() != 4)
      continue;
    const Dim& block = between[form.block_axes[0]];
    if (!block.is_constant() || !(between[form.block_axes[1]] == block)) continue;
    const Dim area = block * block;
    const Dim& channels = between[form.image_axes[1]];
    const bool deepens = form.mode == nullptr;
    const Shape whole{between[form.image_axes[0]], deepens ? channels : channels * area,
                      deepens ? between[form.image_axes[2]] * block : between[form.image_axes[2]],
                      deepens ? between[form.image_axes[3]] * block : between[form.image_axes[3]]};
    if (!(whole == from)) continue;
    Attributes attributes({{"block", block.value()}});
    if (form.mode != nullptr) attributes.set("mode", std::string(form.mode));
    Rewrite rewrite(graph, last);
    return rewrite.commit(last->output(), rewrite.add(form.op, attributes, {x}));
  }
  return false;
}

}  // namespace

bool recognise_depth_to_space(Graph& graph, const Target&) {
  return at_every_node(graph,
                       [](Graph& each, Node* node) { return node->is("reshape") && recognise_shuffle(each, node); });
}

}  // namespace polyphase
