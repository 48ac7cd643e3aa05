// Large constants times a scale in FP64, as the folding of batch norms writes them: computed in one go.
//
//   %a = cast(W) to=f64    %b = reshape(%a)    %c = mul(%b, S)    %d = reshape(%c)    %y = cast(%d) to=f32
//
// One by one, these are three passes over the weights through memory of twice their size. Arithmetic is in FP64
// whatever it reads and writes, so `mul` may read W and write %y itself: the same bits.
#pragma once

#include "passes/rewrite.h"

namespace polyphase {

// Whether this node is the first cast of such a chain, worth waiting for its last one. Reads no values.
bool begins_scaling(const Graph& graph, const Node& cast);
// The result of the chain that ends with this cast; nothing if it is none, or its operands are not folded.
std::optional<Tensor> scaled_constant(const Graph& graph, const Node& cast);

}  // namespace polyphase
