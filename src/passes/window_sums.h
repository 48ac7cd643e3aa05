// The sum of overlapping windows, as a chain of scatters.
#pragma once

#include "graph/graph.h"

namespace polyphase {

// Zeros in any shape. Reads values.
bool is_zero(const Value* value);

//   %s1 = scatter_nd(zeros, t·hop, w[0] everywhere) add
//   %s2 = scatter_nd(%s1, t·hop + 1, w[1] everywhere) add     →   conv_transpose(ones of T frames, w) stride=hop
//   …                                                             expanded over the columns
//
// `last` is the last one. Whether it was replaced. Reads values.
bool join_window_sums(Graph& graph, Node* last);

}  // namespace polyphase
