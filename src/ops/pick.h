// Copies elements along per-axis tables: the result's element (i, j, …) is the operand's element (source[0][i],
// source[1][j], …). pad and nearest-neighbour resize are such copies.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/tensor.h"

namespace polyphase {

// Per axis, per result place: the operand's place, or picks_constant.
using PickTables = std::vector<std::vector<std::int64_t>>;
inline constexpr std::int64_t picks_constant = -1;

// Where place `i` >= 0 of the padded axis takes its value from: `pre` elements stand before the operand's `size`
// (negative: cropped away); picks_constant for none. `mode` is pad's: constant, reflect, edge or wrap.
std::int64_t padded_source(std::int64_t i, std::int64_t pre, std::int64_t size, const std::string& mode);

// Elements with a picks_constant on any axis become `constant`, rounded to the dtype.
void pick_elements(const TensorView& from, const PickTables& source, double constant, const TensorView& to);

}  // namespace polyphase
