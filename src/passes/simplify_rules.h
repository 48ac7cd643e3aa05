// The rules of simplify: each tries one rewrite with `node` at its end, and says whether it happened (then `node` is
// gone or changed).
#pragma once

#include "passes/rewrite.h"

namespace polyphase {

using SimplifyRule = bool (*)(Graph& graph, Node* node);

bool simplify_arithmetic(Graph& graph, Node* node);  // neutral elements, inverses, idempotence
bool simplify_movement(Graph& graph, Node* node);    // nodes that move elements: nothing to move, or two moves in one

// Replaces the node by a value that is there already.
inline bool put(Graph& graph, Node* node, Value* instead) {
  return Rewrite(graph, node).commit(node->output(), instead);
}

}  // namespace polyphase
