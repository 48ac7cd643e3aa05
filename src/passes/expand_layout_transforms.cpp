// expand_layout_transforms: changes of layout vanish where one undoes the other, and are transposes where they stay.
//
//   %a = layout_transform(%x) from_layout="NCHW" to_layout="NCHW16c"                      (C = 20)
//   %r = relu(%a)                                                  →    %y = relu(%x)
//   %y = layout_transform(%r) from_layout="NCHW16c" to_layout="NCHW" channels=20
//
//   %y = layout_transform(%x) from_layout="NCHW" to_layout="NHWC"                →    %y = transpose(%x) order=[0, 2,
//   3, 1] %y = layout_transform(%x) from_layout="NCHW" to_layout="NCHW16c"             →    transpose, pad, reshape,
//   transpose
//
// A value in blocks that elementwise operators have computed is computed without blocks, where all that they read can
// be had so. Into and out of blocks the way goes over channels-last next to operators that work so: one move of
// elements.
#include <algorithm>
#include <map>
#include <set>

#include "base/layout_name.h"
#include "passes/axis_orders.h"
#include "passes/passes.h"
#include "passes/rewrite.h"

namespace polyphase {
namespace {

using Dims = std::vector<Dim>;

struct Change {
  LayoutName from;
  LayoutName to;
  Dim channels;  // 0: all that fill the blocks
};

Change change_of(const Node& node) {
  const Attributes& attributes = node.attributes();
  return {LayoutName::parse(attributes.get<std::string>("from_layout")).value(),
          LayoutName::parse(attributes.get<std::string>("to_layout")).value(), attributes.get<Dim>("channels")};
}

// The size of a named axis of a value that lies so. `channels`: of the blocked one; 0: as many as fill its blocks.
Dim size_of(const Shape& shape, const LayoutName& layout, char axis, const Dim& channels) {
  const std::size_t place = layout.place_of(axis);
  const Dim& size = shape[static_cast<int>(place)];
  if (!layout.is_blocked() || place != layout.blocked_axis()) return size;
  return channels == 0 ? size * Dim(layout.block()) : channels;
}

class Expansion {
 public:
  Expansion(Graph& graph, Node* node) : node_(node), change_(change_of(*node)), rewrite_(graph, node) {}

  bool run() {
    Value* x = node_->input(0);
    Value* instead = change_.from.is_blocked() && !change_.to.is_blocked() ? without_blocks(x) : nullptr;
    if (instead == nullptr) instead = undone(x, change_.channels);
    if (instead == nullptr) instead = written_out(x);
    return rewrite_.commit(node_->output(), instead);
  }

 private:
  // ---- what another change undoes ----

  // The value before the change of layout that made it, brought to this one's result. Null: there was none, or elements
  // that fill a block would have to be there.
  Value* undone(Value* value, const Dim& channels) {
    const Node* before = produced_by(value, "layout_transform");
    if (before == nullptr) return nullptr;
    const Change first = change_of(*before);
    if (first.to.text() != change_.from.text()) return nullptr;
    const Value& origin = *before->input(0);
    for (const char axis : first.from.axes()) {
      if (!(size_of(origin.type.shape, first.from, axis, first.channels) ==
            size_of(value->type.shape, change_.from, axis, channels)))
        return nullptr;
    }
    if (first.from.text() == change_.to.text() && origin.type.shape == node_->output()->type.shape)
      return before->input(0);
    const Dim kept = first.from.is_blocked() ? size_of(origin.type.shape, first.from,
                                                       first.from.axes()[first.from.blocked_axis()], first.channels)
                                             : Dim(0);
    return rewrite_.add(
        "layout_transform",
        Attributes({{"from_layout", first.from.text()}, {"to_layout", change_.to.text()}, {"channels", kept}}),
        {before->input(0)});
  }

  // ---- elementwise operators over blocks ----

  static constexpr int deepest = 64;

  // What this change makes of the value, computed without blocks; null: something in it is there with blocks only.
  Value* without_blocks(Value* value, int depth = 0) {
    if (const auto known = plain_.find(value); known != plain_.end()) return known->second;
    Value*& out = plain_[value];
    out = nullptr;
    if (value->producer == nullptr || depth > deepest) return nullptr;
    const Node& node = *value->producer;
    if (node.is("layout_transform")) return depth == 0 ? nullptr : out = undone(value, change_.channels);
    if (node.fused() || node.op().layout != LayoutRule::elementwise || node.inputs().empty() ||
        node.outputs().size() != 1)
      return nullptr;
    std::vector<Value*> operands;
    for (Value* operand : node.inputs()) {
      operands.push_back(operand == nullptr ? nullptr : operand_without_blocks(operand, depth));
      if (operand != nullptr && operands.back() == nullptr) return nullptr;
    }
    return plain_[value] = rewrite_.add(node.op().name, node.attributes(), std::move(operands));
  }

  // One element stays; a constant is changed, and folds.
  Value* operand_without_blocks(Value* operand, int depth) {
    if (operand->type.shape.element_count() == 1 && operand->type.shape.rank() == 0) return operand;
    if (operand->type.shape.rank() != change_.from.rank()) return nullptr;
    if (!is_constant(operand)) return without_blocks(operand, depth + 1);
    const Dim& last = operand->type.shape[change_.from.rank() - 1];
    const Dim& blocks = operand->type.shape[static_cast<int>(change_.from.blocked_axis())];
    if (last == 1 && blocks == 1) {  // repeats along the whole axis
      Shape shape = operand->type.shape;
      Dims dims(shape.begin(), shape.end() - 1);
      return rewrite_.add("transpose", Attributes({{"order", order(change_.from.axes(), change_.to)}}),
                          {rewrite_.reshape(operand, Shape(std::move(dims)))});
    }
    if (!(last == change_.from.block())) return nullptr;
    return rewrite_.add("layout_transform", node_->attributes(), {operand});
  }

  // ---- transposes ----

  static AxisOrder order(const std::string& from, const LayoutName& to) { return order(from, to.axes()); }
  static AxisOrder order(const std::string& from, const std::string& to) {
    AxisOrder out;
    for (const char axis : to) out.push_back(static_cast<std::int64_t>(from.find(axis)));
    return out;
  }

  Value* transposed(Value* value, const AxisOrder& order) {
    if (std::is_sorted(order.begin(), order.end())) return value;
    return rewrite_.add("transpose", Attributes({{"order", order}}), {value});
  }

  // With one axis innermost: so whoever works channels-last has it as it lies.
  static std::string with_last(std::string axes, char axis) {
    axes.erase(axes.find(axis), 1);
    return axes + axis;
  }

  static bool works_channels_last(const Node* node) {
    return node != nullptr && node->op().layout == LayoutRule::spatial;
  }

  bool next_to_channels_last() const {
    const Value& result = *node_->output();
    return works_channels_last(node_->input(0)->producer) ||
           std::any_of(result.users.begin(), result.users.end(), works_channels_last);
  }

  Value* written_out(Value* x) {
    std::string axes = change_.from.axes();
    if (change_.from.is_blocked()) x = out_of_blocks(x, axes);
    if (change_.to.is_blocked()) return into_blocks(x, axes);
    return transposed(x, order(axes, change_.to));
  }

  // `axes` becomes those of the result.
  Value* out_of_blocks(Value* x, std::string& axes) {
    const LayoutName& from = change_.from;
    const char divided = axes[from.blocked_axis()];
    if (next_to_channels_last()) axes = with_last(change_.to.axes(), divided);
    AxisOrder side_by_side = order(from.axes(), axes);
    const std::size_t place = axes.find(divided);
    side_by_side.insert(side_by_side.begin() + static_cast<std::ptrdiff_t>(place) + 1, from.rank() - 1);
    Dims merged;
    Dims wanted;
    for (const char axis : axes) {
      merged.push_back(size_of(x->type.shape, from, axis, 0));
      wanted.push_back(size_of(x->type.shape, from, axis, change_.channels));
    }
    x = transposed(x, side_by_side);
    if (!rewrite_.ok()) return nullptr;
    x = rewrite_.reshape(x, Shape(merged));
    if (merged[place] == wanted[place]) return x;
    return rewrite_.slice(x, Dims(wanted.size(), Dim(0)), wanted);
  }

  Value* into_blocks(Value* x, const std::string& axes) {
    const LayoutName& to = change_.to;
    const char divided = to.axes()[to.blocked_axis()];
    const std::string ordered = next_to_channels_last() ? with_last(axes, divided) : to.axes();
    x = transposed(x, order(axes, ordered));
    if (!rewrite_.ok()) return nullptr;
    const std::size_t place = ordered.find(divided);
    Dims split(x->type.shape.begin(), x->type.shape.end());
    const Dim blocks = ceil_div(split[place], Dim(to.block()));
    const Dim missing = blocks * Dim(to.block()) - split[place];
    if (!(missing == 0)) {
      Dims post(split.size(), Dim(0));
      post[place] = missing;
      x = rewrite_.add("pad", Attributes({{"pre", Dims(split.size(), Dim(0))}, {"post", post}}), {x});
    }
    split[place] = blocks;
    split.insert(split.begin() + static_cast<std::ptrdiff_t>(place) + 1, Dim(to.block()));
    if (!rewrite_.ok()) return nullptr;
    x = rewrite_.reshape(x, Shape(split));
    AxisOrder last;
    for (const char axis : to.axes()) {
      const auto at = static_cast<std::int64_t>(ordered.find(axis));
      last.push_back(at > static_cast<std::int64_t>(place) ? at + 1 : at);
    }
    last.push_back(static_cast<std::int64_t>(place) + 1);
    return transposed(x, last);
  }

  Node* node_;
  const Change change_;
  Rewrite rewrite_;
  std::map<const Value*, Value*> plain_;
};

Node* last_change(const Graph& graph, const std::set<const Node*>& left) {
  const auto& nodes = graph.nodes();
  const auto found = std::find_if(nodes.rbegin(), nodes.rend(), [&](const auto& node) {
    return node->is("layout_transform") && left.count(node.get()) == 0;
  });
  return found == nodes.rend() ? nullptr : found->get();
}

}  // namespace

bool expand_layout_transforms(Graph& graph, const Target&) {
  return in_every_graph(graph, [](Graph& each) {
    bool changed = false;
    std::set<const Node*> left;  // whose sizes cannot be shown to be equal
    // The last first: a change that it undoes must still be there.
    while (Node* node = last_change(each, left)) {
      if (Expansion(each, node).run()) {
        changed = true;
      } else {
        left.insert(node);
      }
    }
    return changed;
  });
}

}  // namespace polyphase
