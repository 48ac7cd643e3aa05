// choose_layouts: says in which order the axes of every value lie in memory.
//
//   graph (%x: f32[N, 3, H, W])         graph (%x: f32[N, 3, H, W])
//   %c = conv(%x, %w)                   %c = conv(%x, %w) -> … layout 0,2,3,1        (reads the caller's order itself)
//   %r = relu(%c)               →       %r = relu(%c)     -> … layout 0,2,3,1
//   return %r                           %r.copy = identity(%r)
//                                       return %r.copy
//
// Spatial operators work channels-last, row_major ones row-major; elementwise and per-axis ones follow their
// neighbours; a transpose between two orders that lie the same way in memory moves nothing. Every node gets one of the
// two orders such that the bytes copied between them are few: components of free nodes start as their neighbours
// weigh, then single nodes change sides as long as that saves. Where two orders meet, an `identity` copies; except
// where a kernel row reads or writes the other order itself. The caller's tensors are always row-major.
#include <algorithm>
#include <unordered_map>

#include "graph/constant_nodes.h"
#include "kernel/concrete.h"
#include "passes/describe.h"
#include "passes/passes.h"
#include "passes/rewrite.h"

namespace polyphase {
namespace {

enum class MemoryOrder : std::uint8_t { row_major, channels_last };

MemoryOrder other(MemoryOrder order) {
  return order == MemoryOrder::row_major ? MemoryOrder::channels_last : MemoryOrder::row_major;
}

Layout layout_of(MemoryOrder order, int rank) {
  return order == MemoryOrder::row_major ? Layout::row_major(rank) : Layout::channels_last(rank);
}

// Both orders lie the same way in memory: one channel, or one element per channel.
bool lies_the_same(const Shape& shape) {
  if (shape.rank() < 3 || shape[1] == 1) return true;
  return std::all_of(shape.begin() + 2, shape.end(), [](const Dim& dim) { return dim == 1; });
}

class Chooser {
 public:
  Chooser(Graph& graph, const Target& target) : graph_(graph), target_(target), on_weights_(nodes_on_weights(graph)) {
    std::map<std::string, DimRange, std::less<>> symbols;
    graph.collect_symbols(symbols);
    likely_ = target.likely == nullptr ? likely_sizes(symbols) : likely_sizes(symbols, *target.likely);
  }

  bool run() {
    for (const auto& node : graph_.nodes()) {
      order_[node.get()] = wanted(*node);
      if (is_free(*node)) free_.push_back(node.get());
    }
    ask_rows();
    weigh_neighbours();
    change_sides();
    read_and_write_the_callers();
    return assign();
  }

 private:
  // ---- what each node wants ----

  // Its result is there before any run, as a constant's is: lower computes it.
  bool is_constant_node(const Node& node) const { return node.is("constant") || on_weights_.count(&node) != 0; }

  bool is_free(const Node& node) const {
    if (on_weights_.count(&node) != 0) return false;
    const LayoutRule rule = node.op().layout;
    if (!node.regions().empty() || node.anchors("constant") || node.anchors("dims") || node.inputs().empty())
      return false;
    return rule == LayoutRule::elementwise || rule == LayoutRule::per_axis || rule == LayoutRule::permute;
  }

  // Takes its operand as it lies and gives its result in its own order.
  static bool is_mover(const Node& node) { return node.op().layout == LayoutRule::permute || node.is("identity"); }

  MemoryOrder wanted(const Node& node) const {
    if (!node.outputs().empty() && node.output()->layout.is_set() && node.output()->type.shape.rank() >= 3)
      return node.output()->layout.is_channels_last() ? MemoryOrder::channels_last : MemoryOrder::row_major;
    return node.op().layout == LayoutRule::spatial ? MemoryOrder::channels_last : MemoryOrder::row_major;
  }

  // Whether operand i is a tensor in the node's own order (not a weight, a vector, a table).
  static bool follows(const Node& node, std::size_t i) {
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

  // The order in which a node needs operand i.
  MemoryOrder needed(const Node& node, std::size_t i) const {
    if (on_weights_.count(&node) != 0) return MemoryOrder::row_major;
    if (is_mover(node)) return made(*node.input(i));
    if (reads_.count({&node, i}) != 0) return reads_.at({&node, i});
    return follows(node, i) ? order_.at(&node) : MemoryOrder::row_major;
  }

  // The order in which a value is made.
  MemoryOrder made(const Value& value) const {
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
  MemoryOrder constant_order(const Value& value) const {
    for (const Node* user : value.users) {
      for (std::size_t i = 0; i < user->inputs().size(); ++i) {
        if (user->input(i) != &value) continue;
        if (is_mover(*user) || needed(*user, i) == MemoryOrder::row_major) return MemoryOrder::row_major;
      }
    }
    return value.users.empty() || graph_.is_output(&value) ? MemoryOrder::row_major : MemoryOrder::channels_last;
  }

  // ---- costs, in bytes copied ----

  double bytes(const Value& value) const { return bytes_of(value, likely_); }

  double cost_of(const Value& value, MemoryOrder a, MemoryOrder b) const {
    return a == b || lies_the_same(value.type.shape) || value.type.shape.rank() < 3 ? 0 : bytes(value);
  }

  // Copies of this value: one for each order that is not the one it is made in.
  double copies_of(const Value& value) const {
    const MemoryOrder from = made(value);
    for (const Node* user : value.users) {
      for (std::size_t i = 0; i < user->inputs().size(); ++i) {
        if (user->input(i) == &value && needed(*user, i) != from) return cost_of(value, from, other(from));
      }
    }
    return graph_.is_output(&value) ? cost_of(value, from, MemoryOrder::row_major) : 0;
  }

  // A transpose whose result lies as its operand does is only another name for it.
  double moves_of(const Node& node) const {
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
  double detour_of(const Node& node) {
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

  // Everything that depends on this node's order.
  double cost_around(const Node& node) {
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

  // ---- choosing ----

  // Spatial operators that only have a row-major kernel.
  void ask_rows() {
    if (target_.catalogue == nullptr) return;
    for (const auto& node : graph_.nodes()) {
      if (node->op().layout != LayoutRule::spatial || node->output()->layout.is_set() || is_constant_node(*node) ||
          has_row(*node))
        continue;
      order_[node.get()] = MemoryOrder::row_major;
      if (!has_row(*node)) order_[node.get()] = MemoryOrder::channels_last;
    }
  }

  // Free nodes that touch each other begin on the side that their fixed neighbours weigh for.
  void weigh_neighbours() {
    std::unordered_map<const Node*, const Node*> parent;
    for (const Node* node : free_) parent[node] = node;
    const auto find = [&](const Node* node) {
      while (parent.at(node) != node) node = parent[node] = parent.at(parent.at(node));
      return node;
    };
    for (const Node* node : free_) {
      if (is_mover(*node)) continue;
      for (std::size_t i = 0; i < node->inputs().size(); ++i) {
        if (!follows(*node, i)) continue;  // a mover has no side of its own
        const Node* producer = node->input(i)->producer;
        if (producer == nullptr || parent.count(producer) == 0 || is_mover(*producer)) continue;
        parent[find(node)] = find(producer);
      }
    }
    std::unordered_map<const Node*, std::vector<const Node*>> components;
    for (const Node* node : free_) components[find(node)].push_back(node);
    for (const Node* root : free_) {
      const auto found = components.find(root);
      if (found == components.end() || root->output()->layout.is_set()) continue;
      const auto total = [&](MemoryOrder order) {
        double cost = 0;
        for (const Node* node : found->second) order_[node] = order;
        for (const Node* node : found->second) cost += cost_around(*node);
        return cost;
      };
      const double row_major = total(MemoryOrder::row_major);
      const double channels_last = total(MemoryOrder::channels_last);
      if (row_major <= channels_last) total(MemoryOrder::row_major);
    }
  }

  void change_sides() {
    constexpr int most_rounds = 8;
    for (int round = 0; round < most_rounds; ++round) {
      bool changed = false;
      for (std::size_t k = 0; k < free_.size(); ++k) {
        const Node* node = round % 2 == 0 ? free_[k] : free_[free_.size() - 1 - k];
        const double before = cost_around(*node);
        order_[node] = other(order_.at(node));
        const double after = cost_around(*node);
        if (after < before) {
          changed = true;
        } else {
          order_[node] = other(order_.at(node));
        }
      }
      if (!changed) return;
    }
  }

  // ---- first and last kernels ----

  StepDesc step_of(const Node& node) const {
    std::vector<Layout> inputs(node.inputs().size());
    std::vector<Layout> outputs;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (node.input(i) != nullptr) inputs[i] = layout_of(needed(node, i), node.input(i)->type.shape.rank());
    }
    for (const auto& output : node.outputs()) outputs.push_back(layout_of(made(*output), output->type.shape.rank()));
    return describe(node, inputs, outputs);
  }

  bool has_row(const Node& node) const { return has_kernel(step_of(node), target_); }

  // The cheapest kernel that takes the node so.
  std::optional<double> cost_of_rows(const Node& node) const {
    return cost_of_kernels(step_of(node), target_, likely_);
  }

  // Of a copy of the value into the other order.
  double seconds_of_copy(const Value& value, MemoryOrder from) const {
    constexpr double by_plain_loops = 1;  // dearer than any kernel
    StepDesc copy;
    copy.name = value.name;
    copy.parts.push_back({.op = &graph_.registry().at("identity"), .attributes = {}, .operands = {0}});
    const int rank = value.type.shape.rank();
    copy.inputs.push_back({.type = value.type, .layout = layout_of(from, rank)});
    copy.outputs.push_back({.type = value.type, .layout = layout_of(other(from), rank)});
    return cost_of_kernels(copy, target_, likely_).value_or(by_plain_loops);
  }

  // Where a spatial node meets the other order, and a row takes it as it is for less than the copy costs.
  void read_and_write_the_callers() {
    if (target_.catalogue == nullptr) return;
    for (const auto& owned : graph_.nodes()) {
      const Node& node = *owned;
      if (node.op().layout != LayoutRule::spatial || node.outputs().size() != 1 || is_constant_node(node)) continue;
      read_the_callers(node);
      write_the_callers(node);
      read_the_callers(node);  // there may be a kernel that gains only where both are the caller's
      if (writes_.count(&node) == 0) read_and_write(node);
    }
  }

  void read_the_callers(const Node& node) {
    for (std::size_t i = 0; i < node.inputs().size(); ++i) {
      if (!follows(node, i)) continue;
      const Value& value = *node.input(i);
      if (cost_of(value, made(value), needed(node, i)) == 0) continue;
      const double copy = seconds_of_copy(value, made(value));
      const auto before = cost_of_rows(node);
      reads_[{&node, i}] = other(needed(node, i));
      const auto after = cost_of_rows(node);
      if (!after.has_value() || (before.has_value() && *after > *before + copy)) reads_.erase({&node, i});
    }
  }

  void write_the_callers(const Node& node) {
    const Value& result = *node.output();
    const double bytes = copies_of(result);
    if (bytes == 0) return;
    const double copy = seconds_of_copy(result, made(result));
    const auto before = cost_of_rows(node);
    writes_[&node] = other(made(result));
    const auto after = copies_of(result) < bytes ? cost_of_rows(node) : std::nullopt;
    if (!after.has_value() || (before.has_value() && *after > *before + copy)) writes_.erase(&node);
  }

  // Neither alone was worth it: a kernel along the pixels turns nothing where both lie so, and much where one does.
  void read_and_write(const Node& node) {
    const Value& result = *node.output();
    const double bytes = copies_of(result);
    if (bytes == 0) return;
    double copies = seconds_of_copy(result, made(result));
    const auto before = cost_of_rows(node);
    std::vector<std::pair<const Node*, std::size_t>> reads;
    for (std::size_t i = 0; i < node.inputs().size(); ++i) {
      if (!follows(node, i) || cost_of(*node.input(i), made(*node.input(i)), needed(node, i)) == 0) continue;
      copies += seconds_of_copy(*node.input(i), made(*node.input(i)));
      reads_[{&node, i}] = other(needed(node, i));
      reads.emplace_back(&node, i);
    }
    if (reads.empty()) return;
    writes_[&node] = other(made(result));
    const auto after = copies_of(result) < bytes ? cost_of_rows(node) : std::nullopt;
    if (after.has_value() && (!before.has_value() || *after < *before + copies)) return;
    for (const auto& read : reads) reads_.erase(read);
    writes_.erase(&node);
  }

  // ---- writing it down ----

  bool set(Value& value, MemoryOrder order) {
    const Layout layout = layout_of(order, value.type.shape.rank());
    if (value.layout == layout) return false;
    value.layout = layout;
    return true;
  }

  bool assign() {
    bool changed = false;
    std::vector<std::pair<Value*, MemoryOrder>> made_so;
    for (const auto& input : graph_.inputs()) made_so.emplace_back(input.get(), MemoryOrder::row_major);
    for (const auto& node : graph_.nodes()) {
      for (const auto& output : node->outputs()) made_so.emplace_back(output.get(), made(*output));
    }
    // Needs are read before the first copy changes who uses what.
    std::vector<std::vector<std::pair<Node*, std::size_t>>> misfits(made_so.size());
    for (std::size_t v = 0; v < made_so.size(); ++v) {
      const auto& [value, order] = made_so[v];
      if (value->type.shape.rank() < 3) continue;
      std::vector<Node*> users = value->users;
      std::sort(users.begin(), users.end());
      users.erase(std::unique(users.begin(), users.end()), users.end());
      for (Node* user : users) {
        for (std::size_t i = 0; i < user->inputs().size(); ++i) {
          if (user->input(i) == value && needed(*user, i) != order) misfits[v].emplace_back(user, i);
        }
      }
    }
    for (std::size_t v = 0; v < made_so.size(); ++v) {
      const auto& [value, order] = made_so[v];
      changed = set(*value, order) || changed;
      const bool is_callers = graph_.is_output(value) && !value->layout.is_row_major();
      if (misfits[v].empty() && !is_callers) continue;
      copy(value, other(order), misfits[v], is_callers);
      changed = true;
    }
    return changed;
  }

  void copy(Value* value, MemoryOrder order, const std::vector<std::pair<Node*, std::size_t>>& misfits,
            bool for_caller) {
    Node* place = value->producer == nullptr ? graph_.nodes().front().get() : after(value->producer);
    Value* copied = graph_.must_add("identity", {}, {value}, value->name + ".copy", place);
    set(*copied, order);
    for (const auto& [user, i] : misfits) graph_.set_input(user, i, copied);
    for (std::size_t i = 0; for_caller && i < graph_.outputs().size(); ++i) {
      if (graph_.outputs()[i] == value) graph_.set_output(i, copied);
    }
  }

  Node* after(const Node* node) const {
    const auto& nodes = graph_.nodes();
    const auto place = std::find_if(nodes.begin(), nodes.end(), [&](const auto& each) { return each.get() == node; });
    return std::next(place) == nodes.end() ? nullptr : std::next(place)->get();
  }

  Graph& graph_;
  const Target& target_;
  const std::unordered_set<const Node*> on_weights_;
  DimBindings likely_;
  std::vector<const Node*> free_;
  std::unordered_map<const Node*, MemoryOrder> order_;
  std::map<std::pair<const Node*, std::size_t>, MemoryOrder> reads_;  // operands that a row reads in the other order
  std::map<std::pair<const Node*, MemoryOrder>, double> detours_;
  std::unordered_map<const Node*, MemoryOrder> writes_;  // results that a row writes in the other order
};

}  // namespace

bool choose_layouts(Graph& graph, const Target& target) {
  return in_every_graph(graph, [&](Graph& each) { return Chooser(each, target).run(); });
}

}  // namespace polyphase
