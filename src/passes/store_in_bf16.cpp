// store_in_bf16: what is multiplied in bf16 is stored in bf16: half the memory.
//
//   %y = conv(%x, %w)                   %y = conv(%x, %w)
//   %p = max_pool(%y)                   %n = cast(%y) to=bf16
//   %z = conv(%p, %v)           →       %p = max_pool(%n)
//                                       %f = cast(%p) to=f32
//                                       %z = conv(%f, %v)
//
// The casts join their neighbours: the first ends what computes %y, a convolution or a normalisation, the second begins
// what reads it, also through a pad by elements. Between them may stand what gives the same whether its operands are
// rounded before or its result afterwards: joins, and the largest of some elements, since rounding keeps their order.
// Sums read it there as well, of an image like it that something else computed (add_mixed), so that residual networks
// keep what goes past their blocks in bf16. That is the one thing that changes numbers: what is only multiplied would
// be rounded there too.
//
// Condition: precision automatic; all that reads a value are convolutions, as the image that they multiply in bf16, or
// such steps whose results are stored in bf16 too, or such sums, of which one operand stays wide; what computes it can
// end with a cast, or is such a step. Only for CPUs with a matrix unit, whose kernel reads and writes images in bf16 in
// any layout and multiplies so fast that memory decides. Runs when convolutions and their readers are final.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "passes/passes.h"
#include "passes/rewrite.h"

namespace polyphase {
namespace {

bool multiplies_in_bf16(const Node& node) {
  return !node.fused() && (node.is("conv") || node.is("conv_transpose")) &&
         node.attributes().get<DType>("products") == DType::bf16;
}

// Rounding its operands is rounding its result.
bool passes_rounding_on(const Node& node) { return node.is("concat") || node.is("max_pool"); }

// Whose kernels store in bf16 what they compute.
bool may_narrow(const Node& node) {
  return multiplies_in_bf16(node) || (!node.fused() && (node.is("instance_norm") || node.is("group_norm")));
}

// Such a node, or what follows one and will be its ending: as many nodes as a fused one may have parts, `left`.
bool ends_in_bf16(const Node& node, int left = 16) {
  if (may_narrow(node)) return true;
  if (left == 0 || node.fused() || !node.op().elementwise || node.outputs().size() != 1) return false;
  return std::any_of(node.inputs().begin(), node.inputs().end(), [&](const Value* input) {
    return input != nullptr && input->producer != nullptr && input->users.size() == 1 &&
           input->type.shape == node.output()->type.shape && ends_in_bf16(*input->producer, left - 1);
  });
}

class Storer {
 public:
  explicit Storer(Graph& graph) : graph_(graph) {}

  bool run() {
    find();
    bool changed = false;
    for (Node* node : graph_.node_list()) changed = rewrite(node) || changed;
    return changed;
  }

 private:
  // The most values that can be stored in bf16 together: all that might, less those that one of the others rules out.
  void find() {
    for (const auto& node : graph_.nodes()) place_.emplace(node.get(), place_.size());
    for (const auto& node : graph_.nodes()) {
      if (node->outputs().size() != 1 || node->output()->type.dtype != DType::f32 || node->is("cast")) continue;
      if (passes_rounding_on(*node) || ends_in_bf16(*node)) stored_.insert(node->output());
    }
    for (bool changed = true; changed;) {
      changed = false;
      for (const auto& node : graph_.nodes()) {
        if (node->outputs().size() != 1 || stored_.count(node->output()) == 0 || may_store(*node->output())) continue;
        stored_.erase(node->output());
        changed = true;
      }
    }
  }

  // Of a sum of two images of equal sizes the other one, if it may stay in f32 where `value` is stored in bf16: the one
  // that is computed later, which the sum can end.
  const Value* summed_with(const Node& node, const Value& value) const {
    if (node.fused() || !node.is("add") || node.input(0) == node.input(1)) return nullptr;
    const Value* other = node.input(node.input(0) == &value ? 1 : 0);
    const bool alike = other->type.shape == value.type.shape && node.output()->type.shape == value.type.shape;
    if (!alike || other->producer == nullptr || !graph_.has_one_user(other)) return nullptr;
    return stored_.count(other) == 0 || place_.at(value.producer) < place_.at(other->producer) ? other : nullptr;
  }

  bool may_store(const Value& value) const {
    if (value.users.empty() || graph_.is_output(&value)) return false;
    const auto reads_bf16 = [&](const Node* user) {
      if (passes_rounding_on(*user)) return stored_.count(user->output()) != 0;
      if (summed_with(*user, value) != nullptr) return true;
      const Value* image = &value;
      if (const Node* reader = reader_behind_pad(graph_, *user); reader != nullptr) {
        if (user->input(0) != &value) return false;
        image = user->output();
        user = reader;
      }
      // The image is read once, and nothing else of the convolution.
      const auto reads = std::count(user->inputs().begin(), user->inputs().end(), image);
      return multiplies_in_bf16(*user) && user->input(0) == image && reads == 1;
    };
    if (!std::all_of(value.users.begin(), value.users.end(), reads_bf16)) return false;
    const Node& producer = *value.producer;
    return !passes_rounding_on(producer) || std::all_of(producer.inputs().begin(), producer.inputs().end(),
                                                        [&](const Value* input) { return stored_.count(input) != 0; });
  }

  bool rewrite(Node* node) {
    if (node->is("add") && !node->fused()) return rewrite_sum(node);
    const bool passes_on = passes_rounding_on(*node) && stored_.count(node->output()) != 0;
    const bool multiplies = multiplies_in_bf16(*node) || reader_behind_pad(graph_, *node) != nullptr;
    if (!passes_on && (!multiplies || stored_.count(node->input(0)) == 0)) return false;
    Rewrite rewrite(graph_, node);
    std::vector<Value*> inputs = node->inputs();
    for (Value*& input : inputs) {
      if (stored_.count(input) != 0) input = narrowed(rewrite, input);
    }
    if (!passes_on) inputs.front() = rewrite.cast(inputs.front(), DType::f32);
    Value* const made = rewrite.add_parts(node->parts(), node->anchor(), std::move(inputs));
    Value* const result = rewrite.ok() ? rewrite.cast(made, DType::f32) : nullptr;
    if (!rewrite.ok()) return false;
    const bool was_stored = stored_.count(node->output()) != 0;
    forget_what_goes_with(*node);
    if (!rewrite.commit(node->output(), result)) return false;
    if (was_stored) stored_.insert(result);
    return true;
  }

  bool rewrite_sum(Node* node) {
    const bool first = stored_.count(node->input(0)) != 0;
    if (!first && stored_.count(node->input(1)) == 0) return false;
    Rewrite rewrite(graph_, node);
    Value* const stored = narrowed(rewrite, node->input(first ? 0 : 1));
    Value* const sum = rewrite.add("add_mixed", {}, {node->input(first ? 1 : 0), stored});
    const bool was_stored = stored_.count(node->output()) != 0;
    forget_what_goes_with(*node);
    if (!rewrite.ok() || !rewrite.commit(node->output(), sum)) return false;
    if (was_stored) stored_.insert(sum);
    return true;
  }

  // Its result, and what nothing else reads: values that come later may lie where those did.
  void forget_what_goes_with(const Node& node) {
    stored_.erase(node.output());
    for (const Value* input : node.inputs()) {
      const auto is_it = [&](const Node* user) { return user == &node; };
      if (input != nullptr && std::all_of(input->users.begin(), input->users.end(), is_it)) stored_.erase(input);
    }
  }

  // What is stored in place of `value`: what a rewritten step was widened from, or the cast that all readers share.
  static Value* narrowed(Rewrite& rewrite, Value* value) {
    if (widens(*value->producer)) return value->producer->input(0);
    const auto casts = [](const Node* user) { return user->is("cast") && user->output()->type.dtype == DType::bf16; };
    const auto known = std::find_if(value->users.begin(), value->users.end(), casts);
    return known != value->users.end() ? (*known)->output() : rewrite.cast(value, DType::bf16);
  }

  Graph& graph_;
  std::unordered_set<const Value*> stored_;
  std::unordered_map<const Node*, std::size_t> place_;
};

}  // namespace

bool store_in_bf16(Graph& graph, const Target& target) {
  if (target.precision != Precision::automatic || target.cluster != Cluster::amx) return false;
  return in_every_graph(graph, [](Graph& each) { return Storer(each).run(); });
}

}  // namespace polyphase
