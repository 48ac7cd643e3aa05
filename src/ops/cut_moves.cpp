// Cutting what moves elements: where the places of an axis go.
#include <algorithm>

#include "ops/cut.h"

namespace polyphase {
namespace {

using Integers = std::vector<std::int64_t>;
using Dims = std::vector<Dim>;

Dim product_of(const Shape& shape, int first, int last) {
  Dim product = 1;
  for (int i = first; i < last; ++i) product *= shape[i];
  return product;
}

std::string computed_words(const char* what, const CutState& x, const Dim& dim) {
  return std::string(what) + " " + axis_words(x) + " by a computed number, " + dim.text();
}

}  // namespace

CutAnswer cut_transpose(const CutContext& context) {
  CutState y = context.state(0);
  const auto& order = context.attributes().get<Integers>("order");
  y.axis = static_cast<int>(std::find(order.begin(), order.end(), y.axis) - order.begin());
  return y;
}

// Places of the axis are runs of elements: they stay so where the axes before it, or the axis and those behind it, hold
// as many elements as those of some axis of the result.
CutAnswer cut_reshape(const CutContext& context) {
  const CutState& x = context.state(0);
  const Shape& from = context.operand(0).shape;
  const Shape& to = context.result().shape;
  const Dim before = product_of(from, 0, x.axis);
  const Dim behind = product_of(from, x.axis, from.rank());
  for (int axis = 0; axis < to.rank(); ++axis) {
    if (!context.varies(to[axis])) continue;
    if (!(product_of(to, 0, axis) == before) && !(product_of(to, axis, to.rank()) == behind)) continue;
    const auto many = context.in_piece(from[x.axis]);
    const auto made = context.in_piece(to[axis]);
    if (!many.has_value() || !made.has_value() || *many <= 0 || *made <= 0) break;
    const std::int64_t common = std::gcd(*many, *made);
    const std::int64_t times = *made / common;
    const std::int64_t parts = *many / common;
    if (times > 4096 || parts > 4096) break;
    CutState y = scaled(x, times, parts);
    y.axis = axis;
    y.low = ceil_div(x.low * times, parts);
    y.high = ceil_div(x.high * times, parts);
    return y;
  }
  return "mixes " + axis_words(x) + " with others: from " + from.text() + " to " + to.text();
}

CutAnswer cut_expand(const CutContext& context) {
  CutState y = context.state(0);
  const Shape& shape = context.result().shape;
  if (y.is_cut()) {
    y.axis += shape.rank() - context.operand(0).shape.rank();
    return y;
  }
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (!context.varies(shape[axis])) continue;
    const auto slope = context.slope(shape[axis]);
    const int own = axis - (shape.rank() - context.operand(0).shape.rank());
    if (y.is_cut() || !slope.has_value() || (own >= 0 && !(context.operand(0).shape[own] == 1)))
      return "spreads a value over a size that is cut, " + shape.text();
    y = scaled({axis, 1, 1, 0, 0}, slope->first, slope->second);
  }
  return y;
}

CutAnswer cut_tile(const CutContext& context) {
  const CutState& x = context.state(0);
  const Dims& repeats = context.attributes().get<Dims>("repeats");
  for (const Dim& count : repeats) {
    if (context.varies(count)) return "repeats its operand by a computed number, " + count.text();
  }
  if (!(repeats[static_cast<std::size_t>(x.axis)] == 1)) return "repeats the whole of " + axis_words(x);
  return x;
}

CutAnswer cut_slice(const CutContext& context) {
  const CutState& x = context.state(0);
  const auto i = static_cast<std::size_t>(x.axis);
  const Dim& start = context.attributes().get<Dims>("start")[i];
  const std::int64_t step = context.attributes().get<Integers>("step")[i];
  const auto in = context.operand_size(0);
  const auto out = context.in_piece(context.result().shape[x.axis]);
  if (step < 0) return "turns " + axis_words(x) + " round";
  if (!start.is_constant()) return computed_words("begins on", x, start);
  if (!context.varies(context.result().shape[x.axis]))
    return "takes so many elements of " + axis_words(x) + " however long it is";
  if (!in.has_value() || !out.has_value()) return "has sizes along " + axis_words(x) + " that depend on other sizes";
  CutState y = scaled(x, 1, step);
  y.low = std::max<std::int64_t>(0, ceil_div(x.low - start.value(), step));
  y.high = std::max<std::int64_t>(0, *out - (floor_div(*in - 1 - x.high - start.value(), step) + 1));
  return y;
}

CutAnswer cut_pad(const CutContext& context) {
  const CutState& x = context.state(0);
  const auto i = static_cast<std::size_t>(x.axis);
  const Dim& pre = context.attributes().get<Dims>("pre")[i];
  const auto post = context.in_piece(context.attributes().get<Dims>("post")[i]);
  const std::string& mode = context.attributes().get<std::string>("mode");
  if (!pre.is_constant()) return computed_words("pads or crops at the beginning of", x, pre);
  if (!post.has_value()) return "has sizes along " + axis_words(x) + " that depend on other sizes";
  const std::int64_t before = pre.value();
  if (mode == "wrap" && (before > 0 || *post > 0)) return "brings the other end of " + axis_words(x) + " to each end";
  CutState y = x;
  y.low = std::max<std::int64_t>(0, x.low + before);
  y.high = std::max<std::int64_t>(0, x.high + *post);
  if (mode != "constant" && (before > 0 || *post > 0)) {
    // What an end of the whole repeats or mirrors must not be spoiled by the piece's other end.
    const std::int64_t mirrored = mode == "reflect" ? std::max({std::int64_t{0}, before, *post}) : 0;
    context.need(context.operand(0).shape[x.axis], 1 + mirrored + std::max(x.low, x.high));
  }
  return y;
}

CutAnswer cut_depth_to_space(const CutContext& context) {
  const CutState& x = context.state(0);
  if (x.axis == 1) return "turns axis 1, which lies in pieces, into space";
  if (x.axis == 0) return x;
  const std::int64_t block = context.attributes().get<std::int64_t>("block");
  CutState y = scaled(x, block, 1);
  y.low *= block;
  y.high *= block;
  return y;
}

CutAnswer cut_space_to_depth(const CutContext& context) {
  const CutState& x = context.state(0);
  if (x.axis == 1) return "spreads axis 1, which lies in pieces, over more channels";
  if (x.axis == 0) return x;
  const std::int64_t block = context.attributes().get<std::int64_t>("block");
  CutState y = scaled(x, 1, block);
  y.low = ceil_div(x.low, block);
  y.high = ceil_div(x.high, block);
  return y;
}

CutAnswer cut_gather(const CutContext& context) {
  const CutState& x = context.state(0);
  const CutState& indices = context.state(1);
  const auto axis = static_cast<int>(context.attributes().get<std::int64_t>("axis"));
  if (x.is_cut() && indices.is_cut()) return "looks up what lies in pieces by what lies in pieces";
  CutState y = x.is_cut() ? x : indices;
  if (!x.is_cut()) {
    y.axis += axis;
    return y;
  }
  if (x.axis == axis) return "takes elements of " + axis_words(x) + " by their place in the whole";
  if (x.axis > axis) y.axis += context.operand(1).shape.rank() - 1;
  return y;
}

}  // namespace polyphase
