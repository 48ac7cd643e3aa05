// Rules of simplify over operators that move elements.
#include <algorithm>
#include <array>
#include <numeric>

#include "passes/axis_orders.h"
#include "passes/simplify_rules.h"

namespace polyphase {
namespace {

using Dims = std::vector<Dim>;
using Integers = std::vector<std::int64_t>;

const Dims& dims_of(const Node& node, std::string_view name) { return node.attributes().get<Dims>(name); }
const Integers& integers_of(const Node& node, std::string_view name) { return node.attributes().get<Integers>(name); }

bool all_are(const Dims& dims, std::int64_t value) {
  return std::all_of(dims.begin(), dims.end(), [&](const Dim& dim) { return dim == value; });
}
bool all_are(const Integers& integers, std::int64_t value) {
  return std::all_of(integers.begin(), integers.end(), [&](std::int64_t each) { return each == value; });
}

// Of a pool: each window is one element, and each element has one.
bool has_windows_of_one(const Node& pool) {
  return all_are(integers_of(pool, "kernel"), 1) && all_are(integers_of(pool, "stride"), 1) &&
         all_are(dims_of(pool, "pre"), 0) && all_are(dims_of(pool, "post"), 0);
}

bool moves_nothing(const Node& node) {
  const Value& x = *node.input(0);
  const Value& y = *node.output();
  if (!(x.type == y.type)) return false;
  const std::string& op = node.op().name;
  if (op == "identity") return !y.layout.is_set() || y.layout == x.layout;
  if (op == "reshape" || op == "expand") return true;
  if (op == "transpose") {
    const Integers& order = integers_of(node, "order");
    return std::is_sorted(order.begin(), order.end());
  }
  if (op == "slice") return all_are(dims_of(node, "start"), 0) && all_are(integers_of(node, "step"), 1);
  if (op == "pad") return all_are(dims_of(node, "pre"), 0) && all_are(dims_of(node, "post"), 0);
  if (op == "concat") return node.inputs().size() == 1;
  if (op == "tile") return all_are(dims_of(node, "repeats"), 1);
  if (op == "depth_to_space" || op == "space_to_depth") return node.attributes().get<std::int64_t>("block") == 1;
  if (op == "max_pool" || op == "avg_pool") return has_windows_of_one(node);
  constexpr std::array reductions = {"reduce_sum", "reduce_mean", "reduce_max", "reduce_min", "reduce_prod"};
  return std::find(reductions.begin(), reductions.end(), op) != reductions.end() && integers_of(node, "axes").empty();
}

bool join_reshapes(Graph& graph, Node* node) {
  const Node* inner = produced_by(node->input(0), "reshape");
  if (inner == nullptr) return false;
  Rewrite rewrite(graph, node);
  return rewrite.commit(node->output(), rewrite.reshape(inner->input(0), node->output()->type.shape));
}

bool join_transposes(Graph& graph, Node* node) {
  const Node* inner = produced_by(node->input(0), "transpose");
  if (inner == nullptr) return false;
  const AxisOrder order = composed(integers_of(*inner, "order"), integers_of(*node, "order"));
  Rewrite rewrite(graph, node);
  return rewrite.commit(node->output(), rewrite.add("transpose", Attributes({{"order", order}}), {inner->input(0)}));
}

// Element i of the result is element start2 + i*step2 of the first slice.
bool join_slices(Graph& graph, Node* node) {
  const Node* inner = produced_by(node->input(0), "slice");
  if (inner == nullptr) return false;
  Dims start = dims_of(*node, "start");
  Integers step = integers_of(*node, "step");
  for (std::size_t i = 0; i < start.size(); ++i) {
    const std::int64_t first = integers_of(*inner, "step")[i];
    start[i] = dims_of(*inner, "start")[i] + start[i] * Dim(first);
    step[i] *= first;
  }
  Rewrite rewrite(graph, node);
  const Attributes attributes({{"start", start}, {"size", dims_of(*node, "size")}, {"step", step}});
  return rewrite.commit(node->output(), rewrite.add("slice", attributes, {inner->input(0)}));
}

// One place of each plane of max_pool_indices whose windows hold one element, which is then that element's own number.
// (PyTorch's ONNX exporter counts the elements before a plane so.)
bool count_instead_of_search(Graph& graph, Node* node) {
  const Node* places = produced_by(node->input(0), "max_pool_indices");
  if (places == nullptr || places->attributes().get<bool>("column_major") || !has_windows_of_one(*places)) return false;
  if (!all_are(integers_of(*node, "step"), 1)) return false;
  const Shape& whole = places->output()->type.shape;
  const Shape& shape = node->output()->type.shape;
  const Dims& start = dims_of(*node, "start");
  if (!(shape[0] == whole[0]) || !(shape[1] == whole[1])) return false;  // so they begin at 0
  Dim first = 0;
  std::int64_t plane = 1;
  for (int i = 2; i < whole.rank(); ++i) {
    if (!(shape[i] == 1) || !whole[i].is_constant()) return false;
    first = first * whole[i] + start[static_cast<std::size_t>(i)];
    plane *= whole[i].value();
  }
  Rewrite rewrite(graph, node);
  Value* counted =
      rewrite.add("range", Attributes({{"start", first}, {"count", product_of(shape, 0, 2)}, {"step", plane}}), {});
  if (!rewrite.ok()) return false;
  return rewrite.commit(node->output(), rewrite.reshape(counted, shape));
}

bool never_negative(const Dims& dims) {
  return std::all_of(dims.begin(), dims.end(), [](const Dim& dim) { return surely_less_equal(0, dim); });
}

// Both constant, of the same value, and the second only adds.
bool join_pads(Graph& graph, Node* node) {
  const Node* inner = produced_by(node->input(0), "pad");
  if (inner == nullptr) return false;
  for (const Node* each : {static_cast<const Node*>(node), inner}) {
    if (each->attributes().get<std::string>("mode") != "constant") return false;
  }
  if (node->attributes().get<double>("value") != inner->attributes().get<double>("value")) return false;
  if (!never_negative(dims_of(*node, "pre")) || !never_negative(dims_of(*node, "post"))) return false;
  // A crop that the second pad would undo is not undone.
  if (!never_negative(dims_of(*inner, "pre")) || !never_negative(dims_of(*inner, "post"))) return false;
  Attributes attributes = node->attributes();
  for (const char* side : {"pre", "post"}) {
    Dims sum = dims_of(*node, side);
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += dims_of(*inner, side)[i];
    attributes.set(side, sum);
  }
  Rewrite rewrite(graph, node);
  return rewrite.commit(node->output(), rewrite.add("pad", attributes, {inner->input(0)}));
}

bool join_concats(Graph& graph, Node* node) {
  std::vector<Value*> pieces;
  for (Value* input : node->inputs()) {
    const Node* inner = produced_for_one(graph, input, "concat");
    if (inner != nullptr && inner->attributes() == node->attributes()) {
      pieces.insert(pieces.end(), inner->inputs().begin(), inner->inputs().end());
    } else {
      pieces.push_back(input);
    }
  }
  if (pieces.size() == node->inputs().size()) return false;
  Rewrite rewrite(graph, node);
  return rewrite.commit(node->output(), rewrite.add("concat", node->attributes(), std::move(pieces)));
}

// x[…, i, …] for one constant i: a window, which needs no copy.
bool slice_instead_of_gather(Graph& graph, Node* node) {
  const Tensor* index = constant_of(node->input(1));
  const Shape& from = node->input(0)->type.shape;
  if (index == nullptr || index->view().element_count() != 1) return false;
  const auto axis = static_cast<int>(node->attributes().get<std::int64_t>("axis"));
  const std::int64_t wanted = load_integer(index->view().data, index->dtype());
  const Dim at = wanted < 0 ? from[axis] + Dim(wanted) : Dim(wanted);
  if (!surely_less_equal(0, at) || !surely_less_equal(at + 1, from[axis])) return false;
  Dims start(static_cast<std::size_t>(from.rank()), 0);
  Dims size = from.dims();
  start[static_cast<std::size_t>(axis)] = at;
  size[static_cast<std::size_t>(axis)] = 1;
  Rewrite rewrite(graph, node);
  Value* window = rewrite.add(
      "slice", Attributes({{"start", start}, {"size", size}, {"step", Integers(start.size(), 1)}}), {node->input(0)});
  if (!rewrite.ok()) return false;
  return rewrite.commit(node->output(), rewrite.reshape(window, node->output()->type.shape));
}

}  // namespace

bool simplify_movement(Graph& graph, Node* node) {
  if (node->inputs().empty() || node->input(0) == nullptr) return false;
  if (moves_nothing(*node)) return put(graph, node, node->input(0));
  if (node->is("reshape")) return join_reshapes(graph, node);
  if (node->is("transpose")) return join_transposes(graph, node);
  if (node->is("slice")) return join_slices(graph, node) || count_instead_of_search(graph, node);
  if (node->is("pad")) return join_pads(graph, node);
  if (node->is("concat")) return join_concats(graph, node);
  if (node->is("gather")) return slice_instead_of_gather(graph, node);
  return false;
}

}  // namespace polyphase
