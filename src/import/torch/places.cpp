// Slices, and lists of indices, integers and masks, as tuples.
#include "import/torch/places.h"

namespace polyphase {

Dim from_begin(const Dim& place, const Dim& size) { return place.range().high < 0 ? size + place : place; }

Result<PythonSlice> python_slice(AtenNode& node, const Composer& c, const Value* x) {
  PythonSlice out;
  TRY(const std::int64_t axis, node.axis("dim", c.rank(x)));
  out.axis = static_cast<int>(axis);
  const Dim size = c.size(x, out.axis);
  out.step = node.integer("step");
  if (out.step <= 0) return broken_program("slice step must be positive");
  const auto place = [&](const char* parameter, const Dim& otherwise) {
    if (!node.has(parameter)) return otherwise;
    const Dim given = node.size(parameter);
    if (given.is_constant() && given.value() == INT64_MAX) return size;
    return min(max(from_begin(given, size), Dim(0)), size);
  };
  out.start = place("start", Dim(0));
  out.count = ceil_div(max(place("end", size) - out.start, Dim(0)), out.step);
  return out;
}

Result<IndexedAxes> indexed_axes(AtenNode& node, Composer& c, Value* x) {
  IndexedAxes out;
  Composer::Integers rest;
  std::int64_t axis = 0;
  const auto too_many = [&] {
    return broken_program("too many indices for tensor of dimension " + std::to_string(c.rank(x)));
  };
  for (Value* const index : node.tensors("indices")) {
    if (index == nullptr) {
      rest.push_back(axis++);
      continue;
    }
    if (c.dtype(index) != DType::boolean && c.dtype(index) != DType::u8) {
      out.order.push_back(axis++);
      out.indices.push_back(c.cast(index, DType::i64));
      continue;
    }
    if (axis + c.rank(index) > c.rank(x)) return too_many();
    for (int i = 0; i < c.rank(index); ++i)
      c.require_equal(
          c.size(index, i), c.size(x, static_cast<int>(axis) + i),
          "The shape of the mask at index " + std::to_string(i) + " does not match the shape of the indexed tensor.");
    TRY(Value * columns, nonzero_columns(node, index));
    for (int i = 0; i < c.rank(index); ++i) {
      out.order.push_back(axis++);
      out.indices.push_back(c.squeeze(c.slice(columns, 0, i, 1), 0));
    }
  }
  if (out.indices.empty() || axis > c.rank(x)) return too_many();
  while (axis < c.rank(x)) rest.push_back(axis++);
  out.together = out.order.back() - out.order.front() + 1 == static_cast<std::int64_t>(out.order.size());
  out.order.insert(out.order.end(), rest.begin(), rest.end());
  return out;
}

Value* index_tuples(Composer& c, const IndexedAxes& axes) {
  Value* common = axes.indices.front();
  for (Value* index : axes.indices) common = c.add(common, c.op("mul", {index, c.number(0, DType::i64)}));
  Values columns;
  for (Value* index : axes.indices) columns.push_back(c.unsqueeze(c.expand(index, c.sizes(common)), c.rank(common)));
  return c.concat(std::move(columns), c.rank(common));
}

Composer::Integers result_order(const IndexedAxes& axes, int leading, int rank) {
  Composer::Integers order;
  const std::int64_t first = axes.together ? axes.order.front() : 0;
  for (std::int64_t i = 0; i < first; ++i) order.push_back(leading + i);
  for (std::int64_t i = 0; i < leading; ++i) order.push_back(i);
  for (std::int64_t i = leading + first; i < rank; ++i) order.push_back(i);
  return order;
}

}  // namespace polyphase
