// Operators over operands whose axes have been put in another order.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "graph/graph.h"

namespace polyphase {

// Axis i of the result is axis order[i] of the operand, as in the operator transpose.
using AxisOrder = std::vector<std::int64_t>;

AxisOrder unchanged_order(std::size_t rank);
AxisOrder inverse_of(const AxisOrder& order);
// First `inner`, then `outer`: axis i is axis inner[outer[i]] of what inner takes.
AxisOrder composed(const AxisOrder& inner, const AxisOrder& outer);
// No element moves: the axes of more than one element keep their order.
bool moves_elements(const AxisOrder& order, const Shape& operand);

// The anchor's attributes for operands whose axes have been put in `order`, such that the result is the old one in the
// same order. Nothing: the operator names its axes by their places (a convolution, a reshape), or they go, or it has
// kernels for its own order only.
std::optional<Attributes> in_order(const Node& node, const AxisOrder& order);

// A reduction that drops its axes, over an operand in `order`: the attributes that give the old result. Nothing where
// the axes that stay would come out in another order, or the operator is none.
std::optional<Attributes> reduced_in_order(const Node& node, const AxisOrder& order);

}  // namespace polyphase
