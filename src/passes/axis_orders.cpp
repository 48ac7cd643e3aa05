// Which attributes count axes, and how they read when the axes change places.
#include "passes/axis_orders.h"

#include <algorithm>
#include <array>
#include <numeric>

namespace polyphase {
namespace {

using Integers = std::vector<std::int64_t>;

// How an operator's attributes speak of its operand's axes.
struct AxisAttributes {
  const char* op;
  std::array<const char*, 3> one_each = {};  // lists with an entry for each axis; empty ones stay
  const char* numbers = nullptr;             // a list of axes
  const char* number = nullptr;              // one axis
};

constexpr AxisAttributes operators[] = {
    {.op = "concat", .number = "axis"},
    {.op = "softmax", .number = "axis"},
    {.op = "log_softmax", .number = "axis"},
    {.op = "pad", .one_each = {"pre", "post"}},
    {.op = "slice", .one_each = {"start", "size", "step"}},
    {.op = "tile", .one_each = {"repeats"}},
    {.op = "expand", .one_each = {"shape"}},
    {.op = "resize", .one_each = {"sizes", "scales"}},
    {.op = "identity"},
};
constexpr AxisAttributes reduction{.op = "reduce", .numbers = "axes"};
constexpr AxisAttributes search{.op = "arg", .number = "axis"};

bool begins_with(const std::string& text, std::string_view begin) { return text.compare(0, begin.size(), begin) == 0; }

const AxisAttributes* find(const Node& node) {
  const std::string& name = node.op().name;
  if (begins_with(name, "reduce_")) return &reduction;
  if (name == "arg_max" || name == "arg_min") return &search;
  const auto* found = std::find_if(std::begin(operators), std::end(operators),
                                   [&](const AxisAttributes& each) { return name == each.op; });
  return found == std::end(operators) ? nullptr : found;
}

template <typename T>
std::vector<T> picked(const std::vector<T>& list, const AxisOrder& order) {
  std::vector<T> out;
  out.reserve(order.size());
  for (const std::int64_t axis : order) out.push_back(list[static_cast<std::size_t>(axis)]);
  return out;
}

void reorder(Attributes& attributes, const char* name, const AxisOrder& order) {
  const Attribute& given = attributes.values().find(name)->second;
  if (const auto* dims = std::get_if<std::vector<Dim>>(&given)) {
    if (!dims->empty()) attributes.set(name, picked(*dims, order));
  } else if (const auto* integers = std::get_if<Integers>(&given)) {
    if (!integers->empty()) attributes.set(name, picked(*integers, order));
  } else if (const auto* reals = std::get_if<std::vector<double>>(&given)) {
    if (!reals->empty()) attributes.set(name, picked(*reals, order));
  }
}

Integers renumbered(const Integers& axes, const AxisOrder& order) {
  const AxisOrder places = inverse_of(order);
  Integers out;
  for (const std::int64_t axis : axes) out.push_back(places[static_cast<std::size_t>(axis)]);
  std::sort(out.begin(), out.end());
  return out;
}

bool drops_axes(const Node& node) { return node.attributes().has("keep") && !node.attributes().get<bool>("keep"); }

// Kernels that interpolate or mirror work along spatial axes: those that change must not come to lie where batch and
// channels do.
bool has_kernels_in(const Node& node, const AxisOrder& order) {
  const bool mirrors = node.is("pad") && node.attributes().get<std::string>("mode") != "constant";
  if (!node.is("resize") && !mirrors) return true;
  const Shape& from = node.input(0)->type.shape;
  const Shape& to = node.output()->type.shape;
  for (std::size_t i = 0; i < 2 && i < order.size(); ++i) {
    const auto axis = static_cast<int>(order[i]);
    if (!(from[axis] == to[axis])) return false;
  }
  return true;
}

Attributes renumbered(const Node& node, const AxisAttributes& which, const AxisOrder& order) {
  Attributes out = node.attributes();
  for (const char* name : which.one_each) {
    if (name != nullptr) reorder(out, name, order);
  }
  if (which.numbers != nullptr) out.set(which.numbers, renumbered(out.get<Integers>(which.numbers), order));
  if (which.number != nullptr) {
    out.set(which.number, renumbered({out.get<std::int64_t>(which.number)}, order).front());
  }
  return out;
}

}  // namespace

AxisOrder unchanged_order(std::size_t rank) {
  AxisOrder out(rank);
  std::iota(out.begin(), out.end(), std::int64_t{0});
  return out;
}

AxisOrder inverse_of(const AxisOrder& order) {
  AxisOrder out(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) out[static_cast<std::size_t>(order[i])] = static_cast<std::int64_t>(i);
  return out;
}

AxisOrder composed(const AxisOrder& inner, const AxisOrder& outer) { return picked(inner, outer); }

bool moves_elements(const AxisOrder& order, const Shape& operand) {
  std::int64_t last = -1;
  for (const std::int64_t axis : order) {
    if (operand[static_cast<int>(axis)] == 1) continue;
    if (axis < last) return true;
    last = axis;
  }
  return false;
}

std::optional<Attributes> in_order(const Node& node, const AxisOrder& order) {
  if (node.op().layout == LayoutRule::elementwise) return node.attributes();
  const AxisAttributes* which = find(node);
  if (which == nullptr || drops_axes(node)) return std::nullopt;
  if (node.is("resize") && !node.attributes().get<std::vector<double>>("roi").empty()) return std::nullopt;
  if (!std::is_sorted(order.begin(), order.end()) && !has_kernels_in(node, order)) return std::nullopt;
  return renumbered(node, *which, order);
}

std::optional<Attributes> reduced_in_order(const Node& node, const AxisOrder& order) {
  const AxisAttributes* which = find(node);
  if (which == nullptr || !drops_axes(node)) return std::nullopt;
  const Integers gone = which->numbers != nullptr ? node.attributes().get<Integers>(which->numbers)
                                                  : Integers{node.attributes().get<std::int64_t>(which->number)};
  AxisOrder stay;
  for (const std::int64_t axis : order) {
    if (std::find(gone.begin(), gone.end(), axis) == gone.end()) stay.push_back(axis);
  }
  if (!std::is_sorted(stay.begin(), stay.end())) return std::nullopt;
  return renumbered(node, *which, order);
}

}  // namespace polyphase
