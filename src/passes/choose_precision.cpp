// choose_precision: what no kernel computes in f16 or bf16 is computed in f32 between casts, and stored as before.
// Which convolutions and matrix products may multiply in bf16 is noted in their attributes `products` and
// `rounds_transformed`; under automatic precision other convolutions may be filtered with larger errors than direct
// sums have, `filters_fours`.
//
//   %y = conv(%x, %w) -> f16            %a = cast(%x) to=f32      %b = cast(%w) to=f32
//   %z = conv(%y, %w) -> f16     →      %c = conv(%a, %b) -> f32
//                                       %d = conv(%c, %b) -> f32
//                                       %z = cast(%d) to=f16
//
// Condition: some kernel takes the step in f32 and none in its own type. A value that is at hand in f32 is read there,
// so that it is rounded only where it is stored narrow, as fusion rounds a chain only at its end; the casts that a
// model writes itself stay. Whatever else has all its operands at hand in f32 follows. Casts of weights fold. Runs
// before what folds into weights, so that those are not rounded again. Such a node may multiply in bf16 if its
// operands are bf16 in the model (precision model), or in any case (automatic), and a kernel that does so is estimated
// to be the fastest.
#include <algorithm>
#include <unordered_set>

#include "passes/describe.h"
#include "passes/passes.h"
#include "passes/rewrite.h"

namespace polyphase {
namespace {

bool has_narrow(const Node& node) {
  const auto narrow = [](const Value* value) { return value != nullptr && is_narrow(value->type.dtype); };
  return std::any_of(node.inputs().begin(), node.inputs().end(), narrow) ||
         std::any_of(node.outputs().begin(), node.outputs().end(),
                     [&](const auto& output) { return narrow(output.get()); });
}

StepDesc widened_step(StepDesc desc) {
  const auto widen = [](OperandDesc& operand) {
    if (!operand.present || !is_narrow(operand.type.dtype)) return;
    operand.type.dtype = DType::f32;
    operand.value = nullptr;
  };
  std::for_each(desc.inputs.begin(), desc.inputs.end(), widen);
  std::for_each(desc.outputs.begin(), desc.outputs.end(), widen);
  return desc;
}

// A cast says itself what is rounded where.
bool may_widen(const Node& node) {
  if (!node.regions().empty() || node.inputs().empty() || node.outputs().size() != 1 || node.anchors("bind"))
    return false;
  return !node.anchors("cast");
}

// Automatic precision also rounds what kernels compute from the operands, which are the model's numbers no more.
void multiply_in_bf16(Part& part, const Target& target) {
  part.attributes.set("products", DType::bf16);
  if (part.attributes.has("rounds_transformed"))
    part.attributes.set("rounds_transformed", target.precision == Precision::automatic);
}

// Whether it pays is for the kernels' estimates to say, once layouts are known.
bool allow_fours(Part& part) {
  if (!part.attributes.has("filters_fours") || part.attributes.get<bool>("filters_fours")) return false;
  part.attributes.set("filters_fours", true);
  return true;
}

// Of the cheapest kernel that takes the convolution's images in the usual layout or channels-first: which one it will
// be is not known yet.
std::optional<double> cost_in_any_layout(StepDesc conv, const Target& target, const DimBindings& likely) {
  std::optional<double> best = cost_of_kernels(conv, target, likely);
  const auto data = static_cast<std::size_t>(conv.anchor_part().operands.front());
  for (OperandDesc* image : {&conv.inputs[data], &conv.outputs.front()})
    image->layout = Layout::row_major(image->type.shape.rank());
  const auto planar = cost_of_kernels(conv, target, likely);
  if (planar.has_value() && (!best.has_value() || *planar < *best)) best = planar;
  return best;
}

bool multiplies(const Node& node) { return is_convolution(node) || node.anchors("matmul"); }

// Whether it pays that the node, which computes in f32, multiplies in bf16.
bool gains_by_narrow_products(const StepDesc& desc, const Target& target) {
  if (desc.attributes().get<DType>("products") != DType::f32) return false;
  StepDesc bare = desc;
  bare.parts = {desc.anchor_part()};
  bare.anchor = 0;
  const DimBindings likely = target.likely != nullptr ? *target.likely : DimBindings{};
  const auto wide = cost_in_any_layout(bare, target, likely);
  multiply_in_bf16(bare.parts[0], target);
  const auto narrow = cost_in_any_layout(bare, target, likely);
  return narrow.has_value() && (!wide.has_value() || *narrow < *wide);
}

class Widener {
 public:
  Widener(Graph& graph, const Target& target) : graph_(graph), target_(target) {}

  bool run() {
    bool changed = false;
    for (Node* node : graph_.node_list()) {
      if (has_narrow(*node) && may_widen(*node) && pays(*node)) {
        changed = widen(node) || changed;
      } else if (target_.precision == Precision::automatic && multiplies(*node) &&
                 node->anchor_input(0)->type.dtype == DType::f32) {
        changed = loosen(node) || changed;
      }
    }
    return changed;
  }

 private:
  // The f32 value that a cast of this pass rounded to `narrow`; null: there is none.
  Value* at_hand(const Value* narrow) const {
    const Node* rounds = produced_by(narrow, "cast");
    return rounds != nullptr && wide_.count(rounds->input(0)) != 0 ? rounds->input(0) : nullptr;
  }

  bool all_at_hand(const Node& node) const {
    bool any = false;
    for (const Value* input : node.inputs()) {
      if (input == nullptr || !is_narrow(input->type.dtype) || is_constant(input)) continue;
      if (at_hand(input) == nullptr) return false;
      any = true;
    }
    return any;
  }

  bool pays(const Node& node) const {
    if (all_at_hand(node)) return true;
    const StepDesc own = describe(node);
    // Pieces of a fused step count by themselves: `lower` may have to cut it.
    StepDesc bare = own;
    bare.parts = {own.anchor_part()};
    bare.anchor = 0;
    const bool whole = has_kernel(widened_step(own), target_);
    if (!whole && (node.anchor() != 0 || !has_kernel(widened_step(bare), target_))) return false;
    return !node.op().moves_elements && !has_kernel(own, target_);
  }

  // What automatic precision allows a node that computes in f32.
  bool loosen(Node* node) {
    std::vector<Part> parts = node->parts();
    Part& part = parts[node->anchor()];
    if (gains_by_narrow_products(describe(*node), target_)) {
      multiply_in_bf16(part, target_);
    } else if (part.attributes.get<DType>("products") != DType::f32 || !allow_fours(part)) {
      return false;
    }
    Rewrite rewrite(graph_, node);
    return rewrite.commit(node->output(), rewrite.add_parts(std::move(parts), node->anchor(), node->inputs()));
  }

  bool widen(Node* node) {
    Rewrite rewrite(graph_, node);
    std::vector<Part> parts = node->parts();
    const bool in_bf16 = target_.precision == Precision::model && node->output()->type.dtype == DType::bf16;
    const bool may_narrow = multiplies(*node) && (in_bf16 || target_.precision == Precision::automatic);
    Part& anchor = parts[node->anchor()];
    if (may_narrow && gains_by_narrow_products(widened_step(describe(*node)), target_)) {
      multiply_in_bf16(anchor, target_);
    } else if (may_narrow && target_.precision == Precision::automatic) {
      allow_fours(anchor);
    }
    std::vector<Value*> inputs = node->inputs();
    for (Value*& input : inputs) {
      if (input == nullptr || !is_narrow(input->type.dtype)) continue;
      Value* wide = at_hand(input);
      input = wide != nullptr ? wide : rewrite.cast(input, DType::f32);
    }
    Value* wide = rewrite.add_parts(std::move(parts), node->anchor(), std::move(inputs));
    if (!rewrite.ok()) return false;
    if (!rewrite.commit(node->output(), rewrite.cast(wide, node->output()->type.dtype))) return false;
    if (wide->type.dtype == DType::f32) wide_.insert(wide);
    return true;
  }

  Graph& graph_;
  const Target& target_;
  std::unordered_set<const Value*> wide_;
};

}  // namespace

bool choose_precision(Graph& graph, const Target& target) {
  return in_every_graph(graph, [&](Graph& each) { return Widener(each, target).run(); });
}

}  // namespace polyphase
