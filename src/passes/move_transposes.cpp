// move_transposes: transposes go to where they meet their inverse, or to the graph's ends.
//
//   %c = conv(%x, %w)                            %c = conv(%x, %w)
//   %t = transpose(%c) order=[0, 2, 3, 1]   →    %r = relu(%c)
//   %r = relu(%t)                                %y = concat(%r, %s) axis=1
//   %u = transpose(%s) order=[0, 2, 3, 1]
//   %v = concat(%r, %u) axis=3
//   %y = transpose(%v) order=[0, 3, 1, 2]
//
// Operators that do the same along any axes (elementwise ones, concat, pad, slice, resize, reductions, softmax) form
// regions: those that hand each other values without a transpose between. A region as a whole may be computed with its
// axes in another order; then transposes at its border come and go. Each region takes the order that its border makes
// cheapest, in bytes transposed, until none changes any more. So channels-last networks, whose convolutions stand
// between transposes, become what they are: their activations end the convolutions again.
#include <algorithm>
#include <map>
#include <unordered_map>

#include "graph/constant_nodes.h"
#include "kernel/concrete.h"
#include "passes/axis_orders.h"
#include "passes/passes.h"
#include "passes/rewrite.h"

namespace polyphase {
namespace {

constexpr int no_region = -1;

// What a value is a transpose of.
struct Origin {
  Value* value = nullptr;
  AxisOrder order;
};

// A use of a value, through any transposes.
struct Use {
  AxisOrder order;              // of the transposes between
  int region = no_region;       // of who uses it
  const Node* drops = nullptr;  // a reduction that drops axes, and takes them in any order that it can
  bool at_the_end = false;      // a graph output
};

class Mover {
 public:
  explicit Mover(Graph& graph) : graph_(graph), on_weights_(nodes_on_weights(graph)) {
    std::map<std::string, DimRange, std::less<>> symbols;
    graph.collect_symbols(symbols);
    likely_ = likely_sizes(symbols);
  }

  bool run() {
    if (std::none_of(graph_.nodes().begin(), graph_.nodes().end(),
                     [](const auto& node) { return node->is("transpose"); }))
      return false;
    find_regions();
    if (orders_.empty()) return false;
    find_uses();
    choose();
    if (std::none_of(orders_.begin(), orders_.end(), moves)) return false;
    rewrite();
    return true;
  }

 private:
  static bool moves(const AxisOrder& order) { return !std::is_sorted(order.begin(), order.end()); }

  // ---- regions ----

  bool is_free(const Node& node) const {
    if (node.fused() || node.outputs().size() != 1 || !node.regions().empty() || node.inputs().empty()) return false;
    if (on_weights_.count(&node) != 0) return false;
    const Value& y = *node.output();
    const int rank = y.type.shape.rank();
    if (rank < 3 || y.contents.has_value() || node.input(0) == nullptr) return false;
    if (node.op().layout != LayoutRule::elementwise && !node.is("expand") && node.input(0)->type.shape.rank() != rank)
      return false;
    const bool others = node.is("concat") || node.op().layout == LayoutRule::elementwise;
    if (!others && node.inputs().size() != 1) return false;
    return in_order(node, unchanged_order(static_cast<std::size_t>(rank))).has_value();
  }

  static std::size_t rank_of(const Value& value) { return static_cast<std::size_t>(value.type.shape.rank()); }

  void find_regions() {
    std::vector<Node*> free;
    std::unordered_map<const Node*, Node*> parent;
    for (const auto& node : graph_.nodes()) {
      if (!is_free(*node)) continue;
      free.push_back(node.get());
      parent[node.get()] = node.get();
    }
    const auto find = [&](Node* node) {
      while (parent.at(node) != node) node = parent[node] = parent.at(parent.at(node));
      return node;
    };
    for (Node* node : free) {
      for (const Value* operand : node->inputs()) {
        if (operand == nullptr || operand->producer == nullptr || parent.count(operand->producer) == 0) continue;
        if (rank_of(*operand) == rank_of(*node->output())) parent[find(node)] = find(operand->producer);
      }
    }
    std::unordered_map<const Node*, int> numbers;
    for (Node* node : free) {
      const auto [found, is_new] = numbers.try_emplace(find(node), static_cast<int>(orders_.size()));
      if (is_new) {
        orders_.push_back(unchanged_order(rank_of(*node->output())));
        members_.emplace_back();
      }
      if (node->op().layout != LayoutRule::elementwise)
        members_[static_cast<std::size_t>(found->second)].push_back(node);
      region_[node] = found->second;
    }
  }

  int region_of(const Node* node) const {
    const auto found = region_.find(node);
    return found == region_.end() ? no_region : found->second;
  }

  // ---- what each order costs ----

  static Origin origin_of(Value* value) {
    Origin out{value, unchanged_order(rank_of(*value))};
    while (const Node* transpose = produced_by(out.value, "transpose")) {
      out.order = composed(transpose->attributes().get<AxisOrder>("order"), out.order);
      out.value = transpose->input(0);
    }
    return out;
  }

  // An operand of fewer axes repeats along the others: no region's order reaches behind it.
  static bool follows(const Node& node, const Value& operand) { return rank_of(operand) == rank_of(*node.output()); }

  void note(Value* value, Use use) {
    Origin origin = origin_of(value);
    use.order = std::move(origin.order);
    uses_[origin.value].push_back(std::move(use));
    if (uses_.at(origin.value).size() == 1) in_sequence_.push_back(origin.value);
  }

  void find_uses() {
    for (const auto& node : graph_.nodes()) {
      if (node->is("transpose")) continue;
      const int region = region_of(node.get());
      for (Value* operand : node->inputs()) {
        if (operand == nullptr || rank_of(*operand) < 3) continue;
        const bool inside = region != no_region && follows(*node, *operand);
        const bool drops = region == no_region && operand == node->input(0) && !node->fused() &&
                           reduced_in_order(*node, unchanged_order(rank_of(*operand))).has_value();
        note(operand, {.order = {}, .region = inside ? region : no_region, .drops = drops ? node.get() : nullptr});
      }
    }
    for (Value* output : graph_.outputs()) {
      if (rank_of(*output) >= 3) note(output, {.order = {}, .at_the_end = true});
    }
    for (Value* value : in_sequence_) {
      const int maker = made_in(*value);
      const auto& uses = uses_.at(value);
      if (std::all_of(uses.begin(), uses.end(),
                      [&](const Use& use) { return use.region == maker && !moves(use.order); }))
        continue;  // inside a region, or between two operators that stay: never a transpose
      std::vector<int> touched{maker};
      for (const Use& use : uses) touched.push_back(use.region);
      std::sort(touched.begin(), touched.end());
      touched.erase(std::unique(touched.begin(), touched.end()), touched.end());
      for (const int region : touched) {
        if (region != no_region) around_[region].push_back(value);
      }
    }
  }

  int made_in(const Value& value) const { return value.producer == nullptr ? no_region : region_of(value.producer); }

  AxisOrder order_of(int region, std::size_t rank) const {
    return region == no_region ? unchanged_order(rank) : orders_[static_cast<std::size_t>(region)];
  }

  // What turns the value, in the order that it is made in, into what the use wants.
  AxisOrder turn(const Value& value, const Use& use) const {
    const std::size_t rank = rank_of(value);
    return composed(inverse_of(order_of(made_in(value), rank)), composed(use.order, order_of(use.region, rank)));
  }

  double bytes(const Value& value) const { return bytes_of(value, likely_); }

  // One that moves no elements still parts operators that could be one kernel; at the graph's ends none does.
  double cost_of(const Value& value) const {
    constexpr double parting = 1.0 / 1024;
    constexpr double at_the_end = 0.5;
    if (value.producer != nullptr && (value.producer->is("constant") || on_weights_.count(value.producer) != 0))
      return 0;
    std::map<AxisOrder, double> turns;
    const Shape made = shape_in(value, order_of(made_in(value), rank_of(value)));
    for (const Use& use : uses_.at(&value)) {
      AxisOrder order = turn(value, use);
      if (!moves(order)) continue;
      if (use.drops != nullptr && reduced_in_order(*use.drops, inverse_of(order)).has_value()) continue;
      const double share = moves_elements(order, made) ? 1 : parting;
      double& weight = turns[std::move(order)];
      weight = std::max(weight, use.at_the_end || value.producer == nullptr ? at_the_end * share : share);
    }
    double out = 0;
    for (const auto& [order, weight] : turns) out += weight * bytes(value);
    return out;
  }

  static Shape shape_in(const Value& value, const AxisOrder& order) {
    Shape out;
    for (const std::int64_t axis : order) out.push_back(value.type.shape[static_cast<int>(axis)]);
    return out;
  }

  double cost_around(int region) const {
    double out = 0;
    const auto found = around_.find(region);
    if (found == around_.end()) return 0;
    for (const Value* value : found->second) out += cost_of(*value);
    return out;
  }

  // ---- choosing ----

  bool may_have(int region, const AxisOrder& order) const {
    const auto& nodes = members_[static_cast<std::size_t>(region)];
    return std::all_of(nodes.begin(), nodes.end(),
                       [&](const Node* node) { return in_order(*node, order).has_value(); });
  }

  // The orders in which something at the region's border needs no transpose.
  std::vector<AxisOrder> candidates(int region) const {
    const std::size_t rank = orders_[static_cast<std::size_t>(region)].size();
    std::vector<AxisOrder> out{unchanged_order(rank)};
    const auto add = [&](AxisOrder order) {
      constexpr std::size_t most = 24;
      if (out.size() < most && std::find(out.begin(), out.end(), order) == out.end() && may_have(region, order))
        out.push_back(std::move(order));
    };
    const auto found = around_.find(region);
    if (found == around_.end()) return out;
    for (const Value* value : found->second) {
      const int maker = made_in(*value);
      for (const Use& use : uses_.at(value)) {
        if (use.region == region && maker != region) add(composed(inverse_of(use.order), order_of(maker, rank)));
        if (maker == region && use.region != region) add(composed(use.order, order_of(use.region, rank)));
      }
    }
    return out;
  }

  void choose() {
    constexpr int most_rounds = 8;
    for (int round = 0; round < most_rounds; ++round) {
      bool changed = false;
      for (std::size_t k = 0; k < orders_.size(); ++k) {
        const std::size_t at = round % 2 == 0 ? k : orders_.size() - 1 - k;
        const int region = static_cast<int>(at);
        const AxisOrder before = orders_[at];
        AxisOrder best = before;
        double least = cost_around(region);
        for (const AxisOrder& candidate : candidates(region)) {
          orders_[at] = candidate;
          const double cost = cost_around(region);
          if (cost < least) {
            least = cost;
            best = candidate;
          }
        }
        orders_[at] = best;
        changed = changed || best != before;
      }
      if (!changed) return;
    }
  }

  // ---- writing it down ----

  // The old value with its axes in `order`, out of what stands for it now. Nodes are asked for in the graph's order, so
  // what the first one needs stands before all others that need it.
  Value* taken(Value* value, const AxisOrder& order, Node* before) {
    const Origin origin = origin_of(value);
    const auto moved = moved_.find(origin.value);
    Value* from = moved == moved_.end() ? origin.value : moved->second;
    const AxisOrder made =
        moved == moved_.end() ? unchanged_order(order.size()) : order_of(made_in(*origin.value), order.size());
    const AxisOrder turn = composed(inverse_of(made), composed(origin.order, order));
    if (from == origin.value && !moves(order)) return value;  // as it stands
    if (!moves(turn)) return from;
    auto [known, is_new] = turned_.try_emplace(std::pair(from, turn), nullptr);
    if (is_new) {
      if (!moves_elements(turn, from->type.shape) && shape_in(*from, turn) == from->type.shape)
        return known->second = from;
      known->second = graph_.must_add("transpose", Attributes({{"order", turn}}), {from}, from->name, before);
    }
    return known->second;
  }

  // An operand of fewer axes gets the missing ones, of one element, in front.
  Value* spread(Value* value, const AxisOrder& order, Node* before) {
    if (rank_of(*value) == 0) return value;
    if (value->type.shape.element_count() == 1) return value;
    if (rank_of(*value) >= 3) value = taken(value, unchanged_order(rank_of(*value)), before);
    std::vector<Dim> dims(order.size() - rank_of(*value), Dim(1));
    dims.insert(dims.end(), value->type.shape.begin(), value->type.shape.end());
    Value* whole = graph_.must_add("reshape", Attributes({{"shape", dims}}), {value}, value->name, before);
    return taken(whole, order, before);
  }

  void move(Node* node, const AxisOrder& order) {
    std::vector<Value*> operands;
    for (Value* operand : node->inputs()) {
      if (operand == nullptr) {
        operands.push_back(nullptr);
      } else {
        operands.push_back(follows(*node, *operand) ? taken(operand, order, node) : spread(operand, order, node));
      }
    }
    moved_[node->output()] =
        graph_.must_add(node->op().name, in_order(*node, order).value(), std::move(operands), node->name(), node);
  }

  void take_operands(Node* node) {
    for (std::size_t i = 0; i < node->inputs().size(); ++i) {
      Value* operand = node->input(i);
      if (operand == nullptr || rank_of(*operand) < 3) continue;
      if (i == 0 && take_in_any_order(node)) continue;
      Value* now = taken(operand, unchanged_order(rank_of(*operand)), node);
      if (now != operand) graph_.set_input(node, i, now);
    }
  }

  // A reduction names its axes anew instead of having them transposed back.
  bool take_in_any_order(Node* node) {
    if (node->fused() || node->inputs().size() != 1 || node->outputs().size() != 1) return false;
    const Origin origin = origin_of(node->input(0));
    const auto moved = moved_.find(origin.value);
    if (moved == moved_.end()) return false;
    const std::size_t rank = origin.order.size();
    // What the operand is of the moved value, and the moved value of the operand.
    const AxisOrder turn = composed(inverse_of(order_of(made_in(*origin.value), rank)), origin.order);
    const auto attributes = reduced_in_order(*node, inverse_of(turn));
    if (!attributes.has_value()) return false;
    Value* now = graph_.must_add(node->op().name, *attributes, {moved->second}, node->name(), node);
    graph_.replace_uses(node->output(), now);
    moved_[node->output()] = now;
    return true;
  }

  void rewrite() {
    const std::vector<Node*> before = graph_.node_list();
    for (Node* node : before) {
      if (node->is("transpose")) continue;
      const int region = region_of(node);
      if (region != no_region && moves(orders_[static_cast<std::size_t>(region)])) {
        move(node, orders_[static_cast<std::size_t>(region)]);
      } else {
        take_operands(node);
      }
    }
    for (std::size_t i = 0; i < graph_.outputs().size(); ++i) {
      Value* output = graph_.outputs()[i];
      if (rank_of(*output) < 3) continue;
      graph_.set_output(i, taken(output, unchanged_order(rank_of(*output)), nullptr));
    }
    erase_old(before);
  }

  // A name goes to what stands for the value now where it has the same axes: people look for it by what it was.
  void erase_old(const std::vector<Node*>& before) {
    for (auto at = before.rbegin(); at != before.rend(); ++at) {
      Node* node = *at;
      if (node->outputs().empty()) continue;
      const auto moved = moved_.find(node->output());
      if (moved == moved_.end() && !node->is("transpose")) continue;
      if (!node->output()->users.empty() || graph_.is_output(node->output())) continue;
      const std::string name = node->output()->name;
      const bool same =
          moved != moved_.end() && moved->second->type == node->output()->type &&
          !moves_elements(order_of(region_of(node), rank_of(*node->output())), node->output()->type.shape);
      graph_.erase(node);
      if (same) graph_.rename(moved->second, name);
    }
  }

  Graph& graph_;
  const std::unordered_set<const Node*> on_weights_;
  DimBindings likely_;
  std::vector<AxisOrder> orders_;                  // of each region: its values now, by their old axes
  std::vector<std::vector<const Node*>> members_;  // of each region: those that name axes
  std::unordered_map<const Node*, int> region_;    // of free nodes
  std::unordered_map<const Value*, std::vector<Use>> uses_;
  std::vector<Value*> in_sequence_;                  // the keys of uses_, as they come
  std::map<int, std::vector<const Value*>> around_;  // the values whose cost hangs on a region
  std::unordered_map<const Value*, Value*> moved_;   // old value to the one that stands for it, in its region's order
  std::map<std::pair<Value*, AxisOrder>, Value*> turned_;
};

}  // namespace

bool move_transposes(Graph& graph, const Target&) {
  constexpr int most_rounds = 8;  // regions that have met are one from the next round on
  return in_every_graph(graph, [](Graph& each) {
    bool changed = false;
    for (int round = 0; round < most_rounds && Mover(each).run(); ++round) changed = true;
    return changed;
  });
}

}  // namespace polyphase
