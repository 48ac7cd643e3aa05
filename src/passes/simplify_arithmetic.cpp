// Rules of simplify over elementwise operators.
#include <array>
#include <cmath>
#include <limits>

#include "passes/simplify_rules.h"

namespace polyphase {
namespace {

// x + 0, x - 0, x * 1, x / 1, x ^ 1.
bool drop_neutral_operand(Graph& graph, Node* node) {
  struct Neutral {
    const char* op;
    double element;
    bool either_side;
  };
  constexpr std::array table = {Neutral{"add", 0, true}, Neutral{"sub", 0, false}, Neutral{"mul", 1, true},
                                Neutral{"div", 1, false}, Neutral{"pow", 1, false}};
  for (const Neutral& neutral : table) {
    if (!node->is(neutral.op)) continue;
    if (is_filled_with(node->input(1), neutral.element) && put(graph, node, node->input(0))) return true;
    if (neutral.either_side && is_filled_with(node->input(0), neutral.element) && put(graph, node, node->input(1)))
      return true;
  }
  return false;
}

// f(f(x)) = x, and g(g(x)) = g(x).
bool drop_repetition(Graph& graph, Node* node) {
  constexpr std::array inverses = {"neg", "not", "bitwise_not"};
  constexpr std::array idempotent = {"abs", "relu", "ceil", "floor", "round", "sign"};
  for (const char* op : inverses) {
    if (!node->is(op)) continue;
    const Node* inner = produced_by(node->input(0), op);
    return inner != nullptr && put(graph, node, inner->input(0));
  }
  for (const char* op : idempotent) {
    if (node->is(op)) return produced_by(node->input(0), op) != nullptr && put(graph, node, node->input(0));
  }
  return false;
}

// x ^ 2 = x * x, x ^ 3 = x * x * x, 0 - x = -x, a clip that is a relu or nothing.
bool use_plainer_word(Graph& graph, Node* node) {
  Value* x = node->input(0);
  Rewrite rewrite(graph, node);
  if (node->is("pow") && is_filled_with(node->input(1), 2)) {
    return rewrite.commit(node->output(), rewrite.add("mul", {}, {x, x}));
  }
  if (node->is("pow") && is_filled_with(node->input(1), 3)) {
    return rewrite.commit(node->output(), rewrite.add("mul", {}, {rewrite.add("mul", {}, {x, x}), x}));
  }
  if (node->is("sub") && is_filled_with(x, 0) && is_signed(x->type.dtype)) {
    return rewrite.commit(node->output(), rewrite.add("neg", {}, {node->input(1)}));
  }
  if (!node->is("clip")) return false;
  const double low = node->attributes().get<double>("low");
  const double high = node->attributes().get<double>("high");
  if (high != std::numeric_limits<double>::infinity()) return false;
  if (low == -std::numeric_limits<double>::infinity()) return rewrite.commit(node->output(), x);
  return low == 0 && is_signed(x->type.dtype) && rewrite.commit(node->output(), rewrite.add("relu", {}, {x}));
}

// Every value of `from` is a value of `to`.
bool holds_all(DType to, DType from) {
  if (to == from) return true;
  if (is_float(from)) {
    if (to == DType::f64) return true;
    return to == DType::f32 && from != DType::f64;
  }
  if (from == DType::boolean) return is_integer(to) || is_float(to);
  if (!is_integer(to) || !is_integer(from) || size_bytes(to) <= size_bytes(from)) return false;
  return is_signed(to) || !is_signed(from);
}

// A cast to the same type; two casts of which the first loses nothing.
bool drop_cast(Graph& graph, Node* node) {
  if (!node->is("cast")) return false;
  Value* x = node->input(0);
  if (x->type == node->output()->type) return put(graph, node, x);
  const Node* inner = produced_by(x, "cast");
  if (inner == nullptr || !holds_all(x->type.dtype, inner->input(0)->type.dtype)) return false;
  Rewrite rewrite(graph, node);
  return rewrite.commit(node->output(), rewrite.cast(inner->input(0), node->output()->type.dtype));
}

// A condition that is the same everywhere.
bool drop_where(Graph& graph, Node* node) {
  if (!node->is("where")) return false;
  const auto condition = repeated_element(node->input(0));
  return condition.has_value() && put(graph, node, node->input(*condition != 0 ? 1 : 2));
}

}  // namespace

bool simplify_arithmetic(Graph& graph, Node* node) {
  return drop_neutral_operand(graph, node) || drop_repetition(graph, node) || use_plainer_word(graph, node) ||
         drop_cast(graph, node) || drop_where(graph, node);
}

}  // namespace polyphase
