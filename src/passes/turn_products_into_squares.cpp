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

bool turn_product(Graph& graph, Node* node) {
  if (node->is("square") || node->outputs().size() != 1 || node->output()->type.dtype != DType::f32) return false;
  Value* const base = base_of_square(node->output());
  if (base == nullptr) return false;
  Rewrite rewrite(graph, node);
  return rewrite.commit(node->output(), rewrite.add("square", {}, {base}));
}

}  // namespace

bool turn_products_into_squares(Graph& graph, const Target&) { return at_every_node(graph, turn_product); }

}  // namespace polyphase
