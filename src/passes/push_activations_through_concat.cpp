// push_activations_through_concat: an activation over joined pieces is done on each piece, where it can end the node
// that computes the piece.
//
//   %u = conv_transpose(%x, %w)         %u = conv_transpose(%x, %w)    %a = relu(%u)    (joins it: fuse_endings)
//   %c = concat(%s, %u) axis=1      →   %b = relu(%s)
//   %y = relu(%c)                       %y = concat(%b, %a) axis=1
//
// Condition: the activation is the concat's only reader, and some piece comes from a convolution, a matmul or a norm
// that nobody else reads; so at least that piece need not be read again.
#include <algorithm>
#include <array>

#include "passes/passes.h"
#include "passes/rewrite.h"

namespace polyphase {
namespace {

constexpr std::array computing = {"conv",          "conv_transpose", "matmul",    "batch_norm",
                                  "instance_norm", "group_norm",     "layer_norm"};

bool push(Graph& graph, Node* activation) {
  if (activation->fused() || !activation->op().elementwise || activation->inputs().size() != 1) return false;
  const Node* concat = produced_for_one(graph, activation->input(0), "concat");
  if (concat == nullptr) return false;
  const auto gains = [&](const Value* piece) {
    return std::any_of(computing.begin(), computing.end(),
                       [&](const char* op) { return produced_for_one(graph, piece, op) != nullptr; });
  };
  if (std::none_of(concat->inputs().begin(), concat->inputs().end(), gains)) return false;
  Rewrite rewrite(graph, activation);
  std::vector<Value*> pieces;
  for (Value* piece : concat->inputs())
    pieces.push_back(rewrite.add(activation->op().name, activation->attributes(), {piece}));
  if (!rewrite.ok()) return false;
  return rewrite.commit(activation->output(), rewrite.add("concat", concat->attributes(), std::move(pieces)));
}

}  // namespace

bool push_activations_through_concat(Graph& graph, const Target&) { return at_every_node(graph, push); }

}  // namespace polyphase
