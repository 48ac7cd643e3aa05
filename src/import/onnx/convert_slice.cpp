// Slice: ONNX clamps starts and ends into the axis; the IR's slice does not clamp, so the clamping is done here, over
// Dim.
//
//   step > 0: start in [0, d], end in [0, d],       size = max(0, ceil((end - start) / step))
//   step < 0: start in [0, d-1], end in [-1, d-1],  size = max(0, ceil((start - end) / -step))
#include <algorithm>
#include <tuple>

#include "import/onnx/node_context.h"

namespace polyphase {
namespace {

using Sizes = std::vector<Dim>;
using Integers = std::vector<std::int64_t>;

// Exporters write INT_MAX and INT64_MAX for "to the end", and their negatives for "to the beginning".
constexpr std::int64_t endless = INT32_MAX;

struct Bounds {
  Sizes start;
  Sizes size;
};

// Counting from the end where it is negative; nothing clamped.
Dim from_front(const Dim& at, const Dim& extent) {
  const DimRange range = at.range();
  if (range.low >= 0) return at;
  if (range.high < 0) return at + extent;
  const Dim is_negative = min(Dim(1), max(Dim(0), -at));
  return at + extent * is_negative;
}

bool is_endless(const Dim& at) { return at.is_constant() && at.value() >= endless; }
bool is_beginless(const Dim& at) { return at.is_constant() && at.value() <= -endless; }
Dim at_least(const Dim& value, const Dim& bound) { return surely_less_equal(bound, value) ? value : max(value, bound); }
Dim at_most(const Dim& value, const Dim& bound) { return surely_less_equal(value, bound) ? value : min(value, bound); }

// First element and count of a forward slice. Clamping start from above and end from below changes nothing: the count
// is 0 then.
std::pair<Dim, Dim> forward(const Dim& given_start, const Dim& given_end, const Dim& extent, std::int64_t step) {
  if (is_endless(given_start)) return {Dim(0), Dim(0)};
  const Dim start = is_beginless(given_start) ? Dim(0) : at_least(from_front(given_start, extent), Dim(0));
  Dim end = extent;
  if (is_beginless(given_end)) end = Dim(0);
  if (!is_endless(given_end) && !is_beginless(given_end)) end = at_most(from_front(given_end, extent), extent);
  const Dim span = end - start;
  return {start, at_least(step == 1 ? span : ceil_div(span, Dim(step)), Dim(0))};
}

std::pair<Dim, Dim> backward(const Dim& given_start, const Dim& given_end, const Dim& extent, std::int64_t step) {
  if (is_endless(given_end)) return {Dim(0), Dim(0)};
  const Dim last = extent - 1;
  Dim start = last;
  if (is_beginless(given_start)) start = Dim(0);
  if (!is_endless(given_start) && !is_beginless(given_start))
    start = at_least(at_most(from_front(given_start, extent), last), Dim(0));
  const Dim end = is_beginless(given_end) ? Dim(-1) : at_least(from_front(given_end, extent), Dim(-1));
  const Dim span = start - end;
  const Dim size = at_least(step == -1 ? span : ceil_div(span, Dim(-step)), Dim(0));
  return {start, at_most(size, extent)};
}

Result<Values> emit_slice(NodeContext& node, const Sizes& starts, const Sizes& ends, Integers axes,
                          const Integers& steps) {
  const Shape& shape = node.shape(0);
  if (starts.size() != ends.size() || starts.size() != axes.size() || starts.size() != steps.size()) {
    return broken_rule("starts, ends, axes and steps must have equal lengths, found " + std::to_string(starts.size()) +
                       ", " + std::to_string(ends.size()) + ", " + std::to_string(axes.size()) + " and " +
                       std::to_string(steps.size()) + ".");
  }
  TRY(axes, node.axes(axes, shape.rank()));
  Bounds bounds{Sizes(static_cast<std::size_t>(shape.rank()), Dim(0)), shape.dims()};
  Integers step(static_cast<std::size_t>(shape.rank()), 1);
  bool is_whole = true;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<std::size_t>(axes[i]);
    if (steps[i] == 0) return broken_rule("the step is 0 on axis " + std::to_string(axes[i]) + ".");
    // A step beyond any axis takes one element, as every step of that size does; so it never overflows.
    step[axis] = std::clamp<std::int64_t>(steps[i], -endless, endless);
    const Dim& extent = shape[static_cast<int>(axis)];
    std::tie(bounds.start[axis], bounds.size[axis]) = step[axis] > 0 ? forward(starts[i], ends[i], extent, step[axis])
                                                                     : backward(starts[i], ends[i], extent, step[axis]);
    if (bounds.size[axis] == 0) bounds.start[axis] = Dim(0);
    if (!(bounds.start[axis] == 0) || !(bounds.size[axis] == extent) || step[axis] != 1) is_whole = false;
  }
  if (is_whole) return Values{node.input(0)};
  TRY(Value * value,
      node.emit(
          "slice",
          Attributes({{"start", std::move(bounds.start)}, {"size", std::move(bounds.size)}, {"step", std::move(step)}}),
          {node.input(0)}));
  return Values{value};
}

Integers first_axes(std::size_t count) {
  Integers axes(count);
  for (std::size_t i = 0; i < count; ++i) axes[i] = static_cast<std::int64_t>(i);
  return axes;
}

Result<Values> convert_slice(NodeContext& node) {
  if (node.version() < 10) {
    const auto starts = node.integers("starts");
    const auto ends = node.integers("ends");
    if (!starts.has_value() || !ends.has_value() || node.input_count() > 1)
      return broken_rule("Slice before opset 10 has the attributes starts and ends, and one operand.");
    const Integers axes = node.integers("axes").value_or(first_axes(starts->size()));
    return emit_slice(node, Sizes(starts->begin(), starts->end()), Sizes(ends->begin(), ends->end()), axes,
                      Integers(starts->size(), 1));
  }
  if (!node.has(1) || !node.has(2)) return broken_rule("the operands starts and ends are missing.");
  const DimRange any{-endless, endless};
  TRY(const Sizes starts, node.sizes(1, any));
  TRY(const Sizes ends, node.sizes(2, any));
  Integers axes = first_axes(starts.size());
  if (node.has(3)) {
    TRY(axes, node.fixed_integers(3, "axes"));
  }
  Integers steps(starts.size(), 1);
  if (node.has(4)) {
    TRY(steps, node.fixed_integers(4, "steps"));
  }
  return emit_slice(node, starts, ends, std::move(axes), steps);
}

}  // namespace

std::vector<Converter> slice_converters() { return {{"Slice", {1, 10, 11, 13}, 1, 5, convert_slice}}; }

}  // namespace polyphase
