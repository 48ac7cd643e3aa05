// An affine map per output channel, folded into the weights of a convolution: shared by the passes that find such maps.
#pragma once

#include "passes/rewrite.h"

namespace polyphase {

// An unfused convolution or transposed convolution of floats that computes `value` for one user only, with constant
// weights; else null.
Node* foldable_convolution(const Graph& graph, const Value* value);

// `operand`, which broadcasts against a (N, C, spatial…) tensor of `image`'s shape, as a vector (C) of f64. Null if it
// varies along another axis than the channels or does not follow from constants.
Value* per_channel(Rewrite& rewrite, Value* operand, const Shape& image);

// The convolution's result times `scale` plus `shift` (each (C), f64, or null for none) as one convolution:
//
//   conv:            w' = w * scale[Cout, 1, …]                    b' = b * scale + shift
//   conv_transpose:  w' = w * scale[group of Cin, Cout/g, 1, …]
//
// The new arithmetic is f64 nodes over the constants, rounded once at the end.
Value* convolve_scaled(Rewrite& rewrite, const Node& convolution, Value* scale, Value* shift);

}  // namespace polyphase
