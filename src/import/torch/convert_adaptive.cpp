// Pooling to a size of the result: windows that follow from both sizes.

#include "import/compose/composer.h"
#include "import/torch/aten_node.h"

namespace polyphase {
namespace {

using Integers = Composer::Integers;
using Sizes = Composer::Sizes;

// Along one axis, result i is the mean of the elements floor(i·I/O) to ceil((i + 1)·I/O) - 1: a product with a matrix.
Value* adaptive_mean(Composer& c, AtenNode& node, Value* x, int axis, std::int64_t from, std::int64_t to) {
  std::vector<double> weights(static_cast<std::size_t>(from * to), 0);
  for (std::int64_t i = 0; i < to; ++i) {
    const std::int64_t begin = i * from / to;
    const std::int64_t end = ceil_div((i + 1) * from, to);
    for (std::int64_t k = begin; k < end; ++k)
      weights[static_cast<std::size_t>(k * to + i)] = 1 / static_cast<double>(end - begin);
  }
  Value* const matrix = node.constant(Tensor::from_values(c.dtype(x), std::vector<std::int64_t>{from, to}, weights));
  const int last = c.rank(x) - 1;
  Integers order;
  for (int i = 0; i <= last; ++i) order.push_back(i);
  std::swap(order[static_cast<std::size_t>(axis)], order[static_cast<std::size_t>(last)]);
  if (axis == last) return c.matmul(x, matrix);
  return c.transpose(c.matmul(c.transpose(x, order), matrix), order);
}

// The same of an axis whose size only a run knows: one slice per result.
Value* adaptive_slices(Composer& c, Value* x, int axis, const Dim& from, std::int64_t to, const char* fold) {
  Values parts;
  for (std::int64_t i = 0; i < to; ++i) {
    const Dim begin = floor_div(from * Dim(i), to);
    const Dim end = ceil_div(from * Dim(i + 1), to);
    parts.push_back(c.reduce(fold, c.slice(x, axis, begin, end - begin), {axis}, true));
  }
  return c.concat(std::move(parts), axis);
}

template <int spatial>
Result<Values> convert_adaptive_avg_pool(AtenNode& node) {
  constexpr std::int64_t most_weights = 1 << 22;
  Composer c(node);
  Value* y = node.tensor("self");
  const Sizes sizes = node.sizes("output_size", spatial);
  if (c.rank(y) < spatial + 1 || sizes.size() != static_cast<std::size_t>(spatial))
    return broken_program("adaptive_avg_pool over " + std::to_string(spatial) + " axes does not fit " +
                          node.tensor("self")->type.text() + ".");
  const int first = c.rank(y) - spatial;
  Integers whole;
  for (int i = 0; i < spatial; ++i) {
    const Dim& to = sizes[static_cast<std::size_t>(i)];
    if (to == 1) whole.push_back(first + i);
  }
  y = c.reduce("reduce_mean", y, whole, true);
  for (int i = 0; i < spatial && c.ok(); ++i) {
    const Dim& to = sizes[static_cast<std::size_t>(i)];
    const Dim from = c.size(y, first + i);
    if (to == from) continue;
    constexpr std::int64_t most_slices = 64;
    if (to.is_constant() && !from.is_constant() && to.value() > 0 && to.value() <= most_slices) {
      y = adaptive_slices(c, y, first + i, from, to.value(), "reduce_mean");
      continue;
    }
    if (!to.is_constant() || !from.is_constant() || to.value() <= 0 || from.value() <= 0 ||
        from.value() > most_weights / to.value())
      return lacking(
          "adaptive_avg_pool from " + from.text() + " to " + to.text() + " elements; at most 64 from an open size.",
          "Export the program with fixed sizes, or use a smaller output size.");
    y = adaptive_mean(c, node, y, first + i, from.value(), to.value());
  }
  return c.results({y});
}

// Which element each maximum was is not computed.
template <int spatial>
Result<Values> convert_adaptive_max_pool(AtenNode& node) {
  Composer c(node);
  Value* y = node.tensor("self");
  const Sizes sizes = node.sizes("output_size", spatial);
  if (c.rank(y) < spatial + 1 || sizes.size() != static_cast<std::size_t>(spatial))
    return broken_program("adaptive_max_pool over " + std::to_string(spatial) + " axes does not fit " + y->type.text() +
                          ".");
  const int first = c.rank(y) - spatial;
  Integers whole;
  for (int i = 0; i < spatial; ++i) {
    if (sizes[static_cast<std::size_t>(i)] == 1) whole.push_back(first + i);
  }
  y = c.reduce("reduce_max", y, whole, true);
  for (int i = 0; i < spatial && c.ok(); ++i) {
    const Dim& to = sizes[static_cast<std::size_t>(i)];
    const Dim from = c.size(y, first + i);
    if (to == from) continue;
    constexpr std::int64_t most_slices = 64;
    if (!to.is_constant() || to.value() <= 0 || to.value() > most_slices)
      return lacking("adaptive_max_pool to " + to.text() + " elements; at most 64.",
                     "Use a smaller, fixed output size.");
    y = adaptive_slices(c, y, first + i, from, to.value(), "reduce_max");
  }
  return c.results({y, nullptr});
}

}  // namespace

std::vector<AtenEntry> aten_adaptive_entries() {
  return {
      {"_adaptive_avg_pool2d(Tensor self, SymInt[2] output_size) -> Tensor", convert_adaptive_avg_pool<2>},
      {"_adaptive_avg_pool3d(Tensor self, SymInt[3] output_size) -> Tensor", convert_adaptive_avg_pool<3>},
      {"adaptive_avg_pool1d(Tensor self, int[1] output_size) -> Tensor", convert_adaptive_avg_pool<1>},
      {"adaptive_avg_pool2d(Tensor self, SymInt[2] output_size) -> Tensor", convert_adaptive_avg_pool<2>},
      {"adaptive_avg_pool3d(Tensor self, SymInt[3] output_size) -> Tensor", convert_adaptive_avg_pool<3>},
      {"adaptive_max_pool1d(Tensor self, int[1] output_size) -> (Tensor, Tensor)", convert_adaptive_max_pool<1>},
      {"adaptive_max_pool2d(Tensor self, int[2] output_size) -> (Tensor, Tensor)", convert_adaptive_max_pool<2>},
      {"adaptive_max_pool3d(Tensor self, int[3] output_size) -> (Tensor, Tensor)", convert_adaptive_max_pool<3>},
  };
}

}  // namespace polyphase
