// Seeded integer-valued operands for graphs, and the comparison of two runs: floats are exact on small integers.
#pragma once

#include <map>
#include <random>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace polyphase {

using Random = std::mt19937_64;

// A value for every symbol in the types of the graph's inputs, within its range and small; `fixed` wins.
DimBindings random_sizes(const Graph& graph, const DimBindings& fixed, Random& random);
// One tensor per graph input: integers from -4 to 4 (bool: 0 or 1; unsigned: 0 to 8).
std::vector<Tensor> random_inputs(const Graph& graph, const DimBindings& sizes, Random& random);
Tensor random_tensor(DType dtype, const std::vector<std::int64_t>& sizes, Random& random);

// Empty if every element agrees: equal as numbers (so -0 is 0), both NaN, or |a - b| <= tolerance * max(1, |a|).
std::string difference(const std::vector<Tensor>& expected, const std::vector<Tensor>& found, double tolerance);

// RMS of the difference over RMS of what is expected, or `least` where that is more: single elements may be what is
// left of large sums. 1 for other sizes.
double rms_error(const TensorView& expected, const TensorView& found, double least = 0);

}  // namespace polyphase
