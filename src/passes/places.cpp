// Which places an integer tensor counts.
#include "passes/places.h"

#include <algorithm>
#include <cmath>

#include "passes/rewrite.h"

namespace polyphase {
namespace {

using MaybePlaces = std::optional<Places>;

constexpr double farthest = 1e12;  // beyond any tensor, and sums of such places still fit

// frames × points in one run: the first jump tells where a frame ends.
MaybePlaces places_of_elements(const Tensor& tensor) {
  const std::vector<double> values = elements_of(tensor);
  Places out;
  const std::size_t count = values.size();
  if (count == 0) return std::nullopt;
  std::size_t points = 1;
  while (points < count && values[points] == values[points - 1] + 1) ++points;
  const double hop = points < count ? values[points] - values[0] : 0;
  if (count % points != 0 || values[0] != std::trunc(values[0]) || hop != std::trunc(hop)) return std::nullopt;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t frame = i / points;
    const double expected = values[0] + static_cast<double>(frame) * hop + static_cast<double>(i - frame * points);
    if (values[i] != expected || std::abs(expected) > farthest) return std::nullopt;
  }
  out.offset = static_cast<std::int64_t>(values[0]);
  if (count != points)
    out.axes.push_back({Dim(static_cast<std::int64_t>(count / points)), static_cast<std::int64_t>(hop)});
  if (points != 1) out.axes.push_back({Dim(static_cast<std::int64_t>(points)), 1});
  return out;
}

MaybePlaces find_places(const Value* value, int depth);

// numpy's broadcasting of two sums; axes of one element do not count.
MaybePlaces sum_of(const Node& add, int depth) {
  const auto a = find_places(add.input(0), depth);
  const auto b = find_places(add.input(1), depth);
  if (!a.has_value() || !b.has_value()) return std::nullopt;
  const Shape& shape = add.output()->type.shape;
  Places out{a->offset + b->offset, {}};
  for (int axis = 0; axis < shape.rank(); ++axis) out.axes.push_back({shape[axis], 0});
  for (std::size_t side = 0; side < 2; ++side) {
    const std::vector<Places::Axis>& axes = side == 0 ? a->axes : b->axes;
    const Shape& own = add.input(side)->type.shape;
    std::size_t next = 0;
    for (int axis = 0; axis < own.rank(); ++axis) {
      if (own[axis] == 1) continue;
      if (next == axes.size() || !(axes[next].size == own[axis])) return std::nullopt;  // flattened
      out.axes[static_cast<std::size_t>(axis + shape.rank() - own.rank())].step += axes[next++].step;
    }
  }
  std::erase_if(out.axes, [](const Places::Axis& axis) { return axis.size == 1; });
  return out;
}

MaybePlaces multiple_of(const Node& mul, int depth) {
  for (std::size_t side = 0; side < 2; ++side) {
    const auto factor = repeated_element(mul.input(1 - side));
    if (!factor.has_value() || !(mul.input(side)->type == mul.output()->type)) continue;
    auto out = find_places(mul.input(side), depth);
    if (!out.has_value()) return std::nullopt;
    const auto scale = [&](std::int64_t& number) {
      const double scaled = static_cast<double>(number) * *factor;
      if (std::abs(scaled) > farthest || scaled != std::trunc(scaled)) return false;
      number = static_cast<std::int64_t>(scaled);
      return true;
    };
    bool fits = scale(out->offset);
    for (Places::Axis& axis : out->axes) fits = fits && scale(axis.step);
    return fits ? out : std::nullopt;
  }
  return std::nullopt;
}

MaybePlaces find_places(const Value* value, int depth) {
  if (value == nullptr || value->producer == nullptr || depth == 0) return std::nullopt;
  const Node& node = *value->producer;
  if (const Tensor* tensor = node.constant()) return places_of_elements(*tensor);
  if (node.is("cast") || node.is("reshape")) return find_places(node.input(0), depth - 1);
  if (node.is("add")) return sum_of(node, depth - 1);
  if (node.is("mul")) return multiple_of(node, depth - 1);
  if (node.is("range")) {
    const Dim& start = node.attributes().get<Dim>("start");
    const auto step = node.attributes().get<std::int64_t>("step");
    if (!start.is_constant() || std::abs(static_cast<double>(start.value())) > farthest ||
        std::abs(static_cast<double>(step)) > farthest)
      return std::nullopt;
    return Places{start.value(), {{value->type.shape[0], step}}};
  }
  if (node.is("gather")) {  // from 0, 1, 2, …: the indices themselves
    const auto table = find_places(node.input(0), depth - 1);
    const bool counts = table.has_value() && table->offset == 0 && table->axes.size() == 1 && table->axes[0].step == 1;
    return counts && node.input(0)->type.shape.rank() == 1 ? find_places(node.input(1), depth - 1) : std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

std::optional<Places> places_of(const Value* value) { return find_places(value, 10); }

}  // namespace polyphase
