// In which of two orders every node of a graph works and every value lies in memory, and what that costs.
#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "graph/graph.h"
#include "kernel/step_desc.h"
#include "kernel/target.h"

namespace polyphase {

enum class MemoryOrder : std::uint8_t { row_major, channels_last };
MemoryOrder other(MemoryOrder order);
Layout layout_of(MemoryOrder order, int rank);

class MemoryOrders {
 public:
  // Every node as it is best on its own: spatial ones channels-last, others row-major.
  MemoryOrders(const Graph& graph, const Target& target);

  // ---- nodes ----

  // Its result is there before any run, as a constant's is: lower computes it.
  bool is_constant_node(const Node& node) const { return node.is("constant") || on_weights_.count(&node) != 0; }
  // Works in either order.
  bool is_free(const Node& node) const;
  // Takes its operand as it lies and gives its result in its own order.
  static bool is_mover(const Node& node) { return node.op().layout == LayoutRule::permute || node.is("identity"); }
  // Whether operand i is a tensor in the node's own order (not a weight, a vector, a table).
  static bool follows(const Node& node, std::size_t i);

  MemoryOrder order(const Node& node) const { return order_.at(&node); }
  void set_order(const Node& node, MemoryOrder order) { order_[&node] = order; }
  void turn(const Node& node) { order_[&node] = other(order_.at(&node)); }
  // Operands that a spatial node reads, and results that it writes, in the order that is not its own: and back.
  void turn_read(const Node& node, std::size_t i);
  void turn_write(const Node& node);

  // ---- values ----

  // The order in which a node needs operand i.
  MemoryOrder needed(const Node& node, std::size_t i) const;
  // The order in which a value is made.
  MemoryOrder made(const Value& value) const;
  // Whether operand i must be copied for the node.
  bool misfits(const Node& node, std::size_t i) const;

  // ---- costs in bytes copied ----

  // Copies of this value: one for each order that is not the one it is made in.
  double copies_of(const Value& value) const;
  // Everything that depends on this node's order.
  double cost_around(const Node& node);

  // ---- costs in estimated seconds ----

  bool has_row(const Node& node) const;
  // The cheapest kernels that take the node as it reads and writes now.
  double seconds_of(const Node& node) const;
  double seconds_of_copies(const Value& value) const;
  // Of a transpose or identity that moves elements.
  double seconds_of_move(const Node& node) const;

 private:
  MemoryOrder wanted(const Node& node) const;
  MemoryOrder constant_order(const Value& value) const;
  double cost_of(const Value& value, MemoryOrder a, MemoryOrder b) const;
  double moves_of(const Node& node) const;
  double detour_of(const Node& node);
  double bytes(const Value& value) const;
  double seconds_of_copy(const Value& value, MemoryOrder from) const;
  StepDesc step_of(const Node& node) const;

  const Graph& graph_;
  const Target& target_;
  const std::unordered_set<const Node*> on_weights_;
  DimBindings likely_;
  std::unordered_map<const Node*, MemoryOrder> order_;
  std::map<std::pair<const Node*, std::size_t>, MemoryOrder> reads_;
  std::unordered_map<const Node*, MemoryOrder> writes_;
  std::map<std::pair<const Node*, MemoryOrder>, double> detours_;
};

}  // namespace polyphase
