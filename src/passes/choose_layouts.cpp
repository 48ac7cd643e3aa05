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
// where a kernel row reads or writes the other order itself, and a spatial node, alone or with the free nodes that hang
// on it, is done sooner so by the rows' estimates. The caller's tensors are always row-major.
#include <algorithm>
#include <numeric>
#include <optional>
#include <unordered_map>

#include "passes/memory_orders.h"
#include "passes/passes.h"
#include "passes/rewrite.h"

namespace polyphase {
namespace {

class Chooser {
 public:
  Chooser(Graph& graph, const Target& target) : graph_(graph), target_(target), orders_(graph, target) {}

  bool run() {
    for (const auto& node : graph_.nodes()) {
      if (orders_.is_free(*node)) free_.push_back(node.get());
    }
    ask_rows();
    weigh_neighbours();
    change_sides();
    turn_spatial_nodes();
    return assign();
  }

 private:
  // ---- free nodes ----

  // Spatial operators that only have a row-major kernel.
  void ask_rows() {
    if (target_.catalogue == nullptr) return;
    for (const auto& node : graph_.nodes()) {
      if (node->op().layout != LayoutRule::spatial || node->output()->layout.is_set() ||
          orders_.is_constant_node(*node) || orders_.has_row(*node))
        continue;
      orders_.set_order(*node, MemoryOrder::row_major);
      if (!orders_.has_row(*node)) orders_.set_order(*node, MemoryOrder::channels_last);
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
      if (MemoryOrders::is_mover(*node)) continue;
      for (std::size_t i = 0; i < node->inputs().size(); ++i) {
        if (!MemoryOrders::follows(*node, i)) continue;  // a mover has no side of its own
        const Node* producer = node->input(i)->producer;
        if (producer == nullptr || parent.count(producer) == 0 || MemoryOrders::is_mover(*producer)) continue;
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
        for (const Node* node : found->second) orders_.set_order(*node, order);
        for (const Node* node : found->second) cost += orders_.cost_around(*node);
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
        const double before = orders_.cost_around(*node);
        orders_.turn(*node);
        const double after = orders_.cost_around(*node);
        if (after < before) {
          changed = true;
        } else {
          orders_.turn(*node);
        }
      }
      if (!changed) return;
    }
  }

  // ---- spatial nodes, and the free ones that hang on them ----

  // A spatial node in the other order: operands that it reads and a result that it writes so, together with free nodes
  // around, which would otherwise make or need that order's opposite.
  static constexpr std::size_t most_hanging = 8;
  struct Turn {
    std::vector<const Node*> free;
    std::vector<std::size_t> reads;
    bool writes = false;
  };

  // Where a spatial node meets the other order, itself or behind free nodes, and kernels take it as it is for less than
  // the copies cost.
  void turn_spatial_nodes() {
    constexpr int most_turns = 4;
    if (target_.catalogue == nullptr) return;
    for (const auto& node : graph_.nodes()) {
      if (node->op().layout != LayoutRule::spatial || node->outputs().size() != 1 || orders_.is_constant_node(*node))
        continue;
      for (int turns = 0; turns < most_turns && turn_best(*node); ++turns) {
      }
    }
  }

  bool turn_best(const Node& node) {
    std::optional<Turn> best;
    double most = 1e-9;  // less is none
    for (Turn& turn : turns_of(node)) {
      const double gain = gain_of(node, turn);
      if (gain <= most) continue;
      most = gain;
      best = std::move(turn);
    }
    if (best.has_value()) apply(node, *best);
    return best.has_value();
  }

  // Turning twice is turning back.
  void apply(const Node& node, const Turn& turn) {
    for (const Node* each : turn.free) orders_.turn(*each);
    for (const std::size_t i : turn.reads) orders_.turn_read(node, i);
    if (turn.writes) orders_.turn_write(node);
  }

  // The node alone first, then with what hangs on its operands, on its result, and on both.
  std::vector<Turn> turns_of(const Node& node) {
    std::vector<Turn> turns;
    const std::vector<std::size_t> reads = misfits_of(node);
    const bool writes = orders_.copies_of(*node.output()) > 0;
    for (const std::size_t i : reads) turns.push_back({{}, {i}, false});
    if (writes) turns.push_back({{}, {}, true});
    if (!reads.empty() && writes) turns.push_back({{}, reads, true});
    std::vector<const Node*> before;
    std::vector<const Node*> behind;
    for (std::size_t i = 0; i < node.inputs().size(); ++i) {
      if (MemoryOrders::follows(node, i)) add_hanging(node.input(i)->producer, before);
    }
    for (const Node* user : node.output()->users) add_reader(*user, *node.output(), behind);
    const auto add = [&](const std::vector<const Node*>& free, bool turns_result) {
      if (free.empty() || free.size() > most_hanging) return;
      Turn turn{free, {}, turns_result};
      apply(node, turn);
      turn.reads = misfits_of(node);
      Turn without_reads{free, {}, turns_result};
      apply(node, without_reads);
      turns.push_back(std::move(turn));
    };
    add(before, false);
    add(behind, true);
    for (const Node* each : behind) {
      if (std::find(before.begin(), before.end(), each) == before.end()) before.push_back(each);
    }
    add(before, true);
    return turns;
  }

  std::vector<std::size_t> misfits_of(const Node& node) const {
    std::vector<std::size_t> out;
    for (std::size_t i = 0; i < node.inputs().size(); ++i) {
      if (orders_.misfits(node, i)) out.push_back(i);
    }
    return out;
  }

  // Free nodes that touch each other, from `node` on; no more than tell that they are too many.
  void add_hanging(const Node* node, std::vector<const Node*>& out) {
    if (node == nullptr || out.size() > most_hanging || !orders_.is_free(*node) || MemoryOrders::is_mover(*node))
      return;
    if (std::find(out.begin(), out.end(), node) != out.end()) return;
    out.push_back(node);
    for (std::size_t i = 0; i < node->inputs().size(); ++i) {
      if (MemoryOrders::follows(*node, i)) add_hanging(node->input(i)->producer, out);
    }
    for (const auto& output : node->outputs()) {
      for (const Node* user : output->users) add_reader(*user, *output, out);
    }
  }

  void add_reader(const Node& user, const Value& value, std::vector<const Node*>& out) {
    for (std::size_t i = 0; i < user.inputs().size(); ++i) {
      if (user.input(i) == &value && MemoryOrders::follows(user, i)) return add_hanging(&user, out);
    }
  }

  // Estimated seconds that the turn saves. Nothing where nothing is copied, or where a copy would only go elsewhere.
  double gain_of(const Node& node, const Turn& turn) {
    std::vector<const Node*> nodes = turn.free;
    nodes.push_back(&node);
    std::vector<const Value*> values;
    std::vector<const Node*> movers;
    const auto add_once = [](auto& list, auto* each) {
      if (each != nullptr && std::find(list.begin(), list.end(), each) == list.end()) list.push_back(each);
    };
    for (const Node* each : nodes) {
      for (const Value* input : each->inputs()) add_once(values, input);
      for (const auto& output : each->outputs()) {
        add_once(values, output.get());
        for (const Node* user : output->users) {
          if (MemoryOrders::is_mover(*user)) add_once(movers, user);
        }
      }
    }
    const auto copies = [&] {
      std::vector<double> seconds;
      for (const Value* value : values) seconds.push_back(orders_.seconds_of_copies(*value));
      for (const Node* mover : movers) seconds.push_back(orders_.seconds_of_move(*mover));
      return seconds;
    };
    const auto kernels = [&] {
      double seconds = 0;
      for (const Node* each : nodes) seconds += orders_.seconds_of(*each);
      return seconds;
    };
    const auto sum = [](const std::vector<double>& seconds) {
      return std::accumulate(seconds.begin(), seconds.end(), 0.0);
    };
    const std::vector<double> copied = copies();
    if (sum(copied) == 0) return 0;
    const double before = sum(copied) + kernels();
    apply(node, turn);
    const std::vector<double> copied_then = copies();
    const double after = sum(copied_then) + kernels();
    apply(node, turn);
    for (std::size_t i = 0; i < copied.size(); ++i) {
      if (copied[i] == 0 && copied_then[i] > 0) return 0;
    }
    return before - after;
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
      for (const auto& output : node->outputs()) made_so.emplace_back(output.get(), orders_.made(*output));
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
          if (user->input(i) == value && orders_.needed(*user, i) != order) misfits[v].emplace_back(user, i);
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
  MemoryOrders orders_;
  std::vector<const Node*> free_;
};

}  // namespace

bool choose_layouts(Graph& graph, const Target& target) {
  return in_every_graph(graph, [&](Graph& each) { return Chooser(each, target).run(); });
}

}  // namespace polyphase
