// A chain of scatters that add one number each as a transposed convolution of ones.
#include "passes/window_sums.h"

#include <algorithm>
#include <optional>

#include "passes/places.h"
#include "passes/rewrite.h"

namespace polyphase {
namespace {

using Integers = std::vector<std::int64_t>;

// The element that a window of an expanded constant repeats.
std::optional<double> sliced_element(const Node& slice) {
  const Node* expand = produced_by(slice.input(0), "expand");
  const Tensor* table = expand == nullptr ? nullptr : constant_of(expand->input(0));
  if (table == nullptr) return std::nullopt;
  const auto& starts = slice.attributes().get<std::vector<Dim>>("start");
  const Integers sizes = table->sizes();
  const std::size_t added = starts.size() - sizes.size();
  std::int64_t element = 0;
  for (std::size_t axis = 0; axis < sizes.size(); ++axis) {
    std::int64_t at = 0;
    if (sizes[axis] != 1) {
      const bool one = slice.output()->type.shape[static_cast<int>(axis + added)] == 1;
      if (!one || !starts[axis + added].is_constant()) return std::nullopt;
      at = starts[axis + added].value();
    }
    element = element * sizes[axis] + at;
  }
  return elements_of(*table)[static_cast<std::size_t>(element)];
}

// The number that the whole tensor repeats, sizes known or not.
std::optional<double> number_of(const Value* value, int depth) {
  if (const auto found = repeated_element(value)) return found;
  const Node* node = value->producer;
  if (node == nullptr || depth == 0) return std::nullopt;
  if (node->is("expand") || node->is("reshape") || node->is("transpose")) return number_of(node->input(0), depth - 1);
  return node->is("slice") ? sliced_element(*node) : std::nullopt;
}

// One link: what it adds, at t · hop + offset for each t.
struct ChainLink {
  std::int64_t offset = 0;
  std::int64_t hop = 0;
  Dim frames;
  double number = 0;
};

constexpr std::int64_t longest_window = 1 << 16;

std::optional<ChainLink> link_of(const Node& node) {
  if (!node.is("scatter_nd") || node.attributes().get<std::string>("reduction") != "add") return std::nullopt;
  if (node.output()->type.shape.rank() != 2 || !is_float(node.output()->type.dtype)) return std::nullopt;
  const auto places = places_of(node.input(1));
  if (!places.has_value() || places->axes.size() != 1 || places->axes[0].step < 1 || places->offset < 0 ||
      places->offset >= longest_window)
    return std::nullopt;
  const auto number = number_of(node.input(2), 8);
  if (!number.has_value()) return std::nullopt;
  return ChainLink{places->offset, places->axes[0].step, places->axes[0].size, *number};
}

bool goes_on(const Node& link) {
  const auto& users = link.output()->users;
  return std::any_of(users.begin(), users.end(),
                     [&](const Node* user) { return user->is("scatter_nd") && user->input(0) == link.output(); });
}

}  // namespace

bool is_zero(const Value* value) { return number_of(value, 8) == 0; }

bool join_window_sums(Graph& graph, Node* last) {
  if (goes_on(*last)) return false;
  std::vector<double> window;
  std::optional<ChainLink> first;
  int links = 0;
  for (const Node* node = last;; ++links) {
    const auto link = node == nullptr ? std::nullopt : link_of(*node);
    if (!link.has_value()) return false;
    if (!first.has_value()) first = link;
    if (link->hop != first->hop || !(link->frames == first->frames)) return false;
    const auto at = static_cast<std::size_t>(link->offset);
    window.resize(std::max(window.size(), at + 1));
    window[at] += link->number;
    const Value* base = node->input(0);
    if (is_zero(base)) break;
    if (!graph.has_one_user(base)) return false;
    node = base->producer;
  }
  if (links == 0) return false;  // a single one is cheap
  const Shape& whole = last->output()->type.shape;
  const DType dtype = last->output()->type.dtype;
  const auto points = static_cast<std::int64_t>(window.size());
  Rewrite rewrite(graph, last);
  Value* ones = rewrite.expand(rewrite.scalar(dtype, 1), Shape{1, 1, first->frames});
  Value* weights = rewrite.constant(Tensor::from_values(dtype, Integers{1, 1, points}, window));
  const Dim behind = (first->frames - 1) * Dim(first->hop) + Dim(points) - whole[0];
  Value* sums = rewrite.add("conv_transpose",
                            Attributes({{"stride", Integers{first->hop}},
                                        {"dilation", Integers{1}},
                                        {"pre", std::vector<Dim>{Dim(0)}},
                                        {"post", std::vector<Dim>{behind}}}),
                            {ones, weights});
  if (!rewrite.ok()) return false;
  Value* column = rewrite.reshape(sums, Shape({whole[0], Dim(1)}));
  return rewrite.commit(last->output(), rewrite.expand(column, whole));
}

}  // namespace polyphase
