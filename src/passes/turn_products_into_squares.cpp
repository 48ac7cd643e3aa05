// turn_products_into_squares: what is multiplied by itself is read once, so that it can stand in a chain.
//
//   %s = sin(%a)                        %s = sin(%a)
//   %q = mul(%s, %s)            →       %q = square(%s)
//
//   pow(%s, 2)                  →       square(%s)
//
// Snake, x + sin(a x)^2 / a, becomes one elementwise node that way: mul, sin, square, mul, add. FP32 only, which has a
// kernel for it. Reads values.
#include "passes/passes.h"
#include "passes/rewrite.h"

namespace polyphase {
namespace {

bool is_square(const Node& node) {
  if (node.is("mul")) return node.input(0) == node.input(1);
  return node.is("pow") && is_filled_with(node.input(1), 2) && node.input(1)->type.shape.element_count() == 1;
}

bool turn_product(Graph& graph, Node* node) {
  if (node->fused() || node->inputs().size() != 2 || !is_square(*node)) return false;
  if (node->output()->type.dtype != DType::f32 || !(node->output()->type == node->input(0)->type)) return false;
  Rewrite rewrite(graph, node);
  return rewrite.commit(node->output(), rewrite.add("square", {}, {node->input(0)}));
}

}  // namespace

bool turn_products_into_squares(Graph& graph, const Target&) { return at_every_node(graph, turn_product); }

}  // namespace polyphase
