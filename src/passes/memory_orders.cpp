// Which order every node works in, and what that costs.
#include "passes/memory_orders.h"

#include <algorithm>

#include "graph/constant_nodes.h"
#include "kernel/concrete.h"
#include "passes/describe.h"
#include "passes/rewrite.h"

namespace polyphase {
namespace {

// Dearer than any kernel.
constexpr double copy_by_plain_loops = 1e3;
constexpr double plain_loops = 1e6;

// Both orders lie the same way in memory: one channel, or one element per channel.
bool lies_the_same(const Shape& shape) { return shape.rank() < 3 || shape[1] == 1 || is_one_pixel(shape); }

}  // namespace

MemoryOrder other(MemoryOrder order) {
  return order == MemoryOrder::row_major ? MemoryOrder::channels_last : MemoryOrder::row_major;
}

Layout layout_of(MemoryOrder order, int rank) {
  return order == MemoryOrder::row_major ? Layout::row_major(rank) : Layout::channels_last(rank);
}

MemoryOrders::MemoryOrders(const Graph& graph, const Target& target)
    : graph_(graph), target_(target), on_weights_(nodes_on_weights(graph)), likely_(likely_sizes_of(graph, target)) {
  for (const auto& node : graph.nodes()) order_[node.get()] = wanted(*node);
}

// ---------------------------------------------------------------- nodes and values

bool MemoryOrders::is_free(const Node& node) const {
  if (on_weights_.count(&node) != 0) return false;
  const LayoutRule rule = node.op().layout;
  if (!node.regions().empty() || node.anchors("constant") || node.anchors("dims") || node.inputs().empty())
    return false;
  return rule == LayoutRule::elementwise || rule == LayoutRule::per_axis || rule == LayoutRule::permute;
}

MemoryOrder MemoryOrders::wanted(const Node& node) const {
  if (!node.outputs().empty() && node.output()->layout.is_set() && node.output()->type.shape.rank() >= 3)
    return node.output()->layout.is_channels_last() ? MemoryOrder::channels_last : MemoryOrder::row_major;
  return node.op().layout == LayoutRule::spatial ? MemoryOrder::channels_last : MemoryOrder::row_major;
}

bool MemoryOrders::follows(const Node& node, std::size_t i) {
  const Value* value = node.input(i);
  if (value == nullptr) return false;
  const Node& n = node;
  if (n.op().layout == LayoutRule::row_major || n.op().layout == LayoutRule::permute) return false;
  if (value->type.shape.rank() < 3) return false;
  if (n.op().layout == LayoutRule::spatial || n.op().layout == LayoutRule::per_axis) {
    // Weights and tables of the anchor stay as they are; its data, and what the other parts read, follow.
    const bool variadic = n.op().inputs.size() == 1 && n.op().inputs.front().variadic;
    for (std::size_t k = 1; k < n.anchor_part().operands.size() && !variadic; ++k) {
      if (n.anchor_part().operands[k] == static_cast<int>(i)) return false;
    }
  }
  return value->type.shape.rank() == n.output()->type.shape.rank() || n.op().layout != LayoutRule::elementwise;
}

void MemoryOrders::turn_read(const Node& node, std::size_t i) {
  const MemoryOrder turned = other(needed(node, i));
  if (turned == order_.at(&node)) {
    reads_.erase({&node, i});
  } else {
    reads_[{&node, i}] = turned;
  }
}

void MemoryOrders::turn_write(const Node& node) {
  const MemoryOrder turned = other(made(*node.output()));
  if (turned == order_.at(&node)) {
    writes_.erase(&node);
  } else {
    writes_[&node] = turned;
  }
}

MemoryOrder MemoryOrders::needed(const Node& node, std::size_t i) const {
  if (on_weights_.count(&node) != 0) return MemoryOrder::row_major;
  if (is_mover(node)) return made(*node.input(i));
  if (reads_.count({&node, i}) != 0) return reads_.at({&node, i});
  return follows(node, i) ? order_.at(&node) : MemoryOrder::row_major;
}

MemoryOrder MemoryOrders::made(const Value& value) const {
  const Node* node = value.producer;
  if (node == nullptr || value.type.shape.rank() < 3) return MemoryOrder::row_major;
  if (is_constant_node(*node)) return constant_order(value);
  if (writes_.count(node) != 0) return writes_.at(node);
  if (node->op().layout == LayoutRule::row_major) return MemoryOrder::row_major;
  if (node->op().layout == LayoutRule::per_axis && value.type.shape.rank() != node->input(0)->type.shape.rank())
    return MemoryOrder::row_major;
  return order_.at(node);
}

// A constant is written down in the order that all its readers want.
MemoryOrder MemoryOrders::constant_order(const Value& value) const {
  for (const Node* user : value.users) {
    for (std::size_t i = 0; i < user->inputs().size(); ++i) {
      if (user->input(i) != &value) continue;
      if (is_mover(*user) || needed(*user, i) == MemoryOrder::row_major) return MemoryOrder::row_major;
    }
  }
  return value.users.empty() || graph_.is_output(&value) ? MemoryOrder::row_major : MemoryOrder::channels_last;
}

bool MemoryOrders::misfits(const Node& node, std::size_t i) const {
  return follows(node, i) && cost_of(*node.input(i), made(*node.input(i)), needed(node, i)) > 0;
}

// ---------------------------------------------------------------- costs in bytes copied

double MemoryOrders::bytes(const Value& value) const { return bytes_of(value, likely_); }

double MemoryOrders::cost_of(const Value& value, MemoryOrder a, MemoryOrder b) const {
  return a == b || lies_the_same(value.type.shape) || value.type.shape.rank() < 3 ? 0 : bytes(value);
}

double MemoryOrders::copies_of(const Value& value) const {
  const MemoryOrder from = made(value);
  for (const Node* user : value.users) {
    for (std::size_t i = 0; i < user->inputs().size(); ++i) {
      if (user->input(i) == &value && needed(*user, i) != from) return cost_of(value, from, other(from));
    }
  }
  return graph_.is_output(&value) ? cost_of(value, from, MemoryOrder::row_major) : 0;
}

// A transpose whose result lies as its operand does is only another name for it.
double MemoryOrders::moves_of(const Node& node) const {
  if (!is_mover(node) || is_constant_node(node)) return 0;
  if (node.is("identity")) return cost_of(*node.output(), made(*node.input(0)), made(*node.output()));
  const Value& from = *node.input(0);
  const Value& to = *node.output();
  const Layout source = layout_of(made(from), from.type.shape.rank());
  const Layout result = layout_of(made(to), to.type.shape.rank());
  const auto& permutation = node.attributes().get<std::vector<std::int64_t>>("order");
  for (std::size_t i = 0; i < permutation.size(); ++i) {
    if (permutation[result.order()[i]] != source.order()[i]) return bytes(to);
  }
  return 0;
}

// What it costs to bring a per-axis node into the order that its only kernels take.
double MemoryOrders::detour_of(const Node& node) {
  if (node.op().layout != LayoutRule::per_axis || node.outputs().size() != 1 || is_mover(node)) return 0;
  const auto key = std::pair(&node, order_.at(&node));
  if (const auto known = detours_.find(key); known != detours_.end()) return known->second;
  double& cost = detours_[key];
  if (has_row(node)) return cost;
  order_[&node] = other(key.second);
  if (has_row(node)) cost = bytes(*node.input(0)) + bytes(*node.output());
  order_[&node] = key.second;
  return cost;
}

double MemoryOrders::cost_around(const Node& node) {
  double cost = moves_of(node) + detour_of(node);
  for (std::size_t i = 0; i < node.inputs().size(); ++i) {
    if (node.input(i) != nullptr) cost += copies_of(*node.input(i));
  }
  for (const auto& output : node.outputs()) {
    cost += copies_of(*output);
    for (const Node* user : output->users) cost += moves_of(*user);
  }
  return cost;
}

// ---------------------------------------------------------------- costs in estimated seconds

StepDesc MemoryOrders::step_of(const Node& node) const {
  std::vector<Layout> inputs(node.inputs().size());
  std::vector<Layout> outputs;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (node.input(i) != nullptr) inputs[i] = layout_of(needed(node, i), node.input(i)->type.shape.rank());
  }
  for (const auto& output : node.outputs()) outputs.push_back(layout_of(made(*output), output->type.shape.rank()));
  return describe(node, inputs, outputs);
}

bool MemoryOrders::has_row(const Node& node) const { return has_kernel_between_casts(step_of(node), target_); }

double MemoryOrders::seconds_of(const Node& node) const {
  return cost_in_pieces(step_of(node), target_, likely_).value_or(plain_loops);
}

// Of a copy of the value into the other order.
double MemoryOrders::seconds_of_copy(const Value& value, MemoryOrder from) const {
  StepDesc copy;
  copy.name = value.name;
  copy.parts.push_back({.op = &graph_.registry().at("identity"), .attributes = {}, .operands = {0}});
  const int rank = value.type.shape.rank();
  copy.inputs.push_back({.type = value.type, .layout = layout_of(from, rank)});
  copy.outputs.push_back({.type = value.type, .layout = layout_of(other(from), rank)});
  return cost_of_kernels(copy, target_, likely_).value_or(copy_by_plain_loops);
}

double MemoryOrders::seconds_of_copies(const Value& value) const {
  return copies_of(value) == 0 ? 0 : seconds_of_copy(value, made(value));
}

double MemoryOrders::seconds_of_move(const Node& node) const {
  return moves_of(node) == 0 ? 0 : seconds_of_copy(*node.output(), made(*node.output()));
}

}  // namespace polyphase
