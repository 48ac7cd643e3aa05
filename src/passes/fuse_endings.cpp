// fuse_endings: elementwise work on a result joins the node that computes it, so that it happens before the store.
//
//   %c = conv(%x, %w)                   %y = conv(%x, %w) then add(_, %r) then relu(_)
//   %s = add(%c, %r)            →
//   %y = relu(%s)
//
// A chain of elementwise nodes alone becomes one node as well. Condition: nobody else uses the value between, and the
// part does not make it larger by broadcasting. Of two candidates (the sum of two convolutions) the heavier, then the
// later one takes the part; its other operand is computed before. What no kernel takes in one piece `lower` splits.
#include <algorithm>
#include <array>
#include <unordered_map>

#include "passes/passes.h"
#include "passes/rewrite.h"

namespace polyphase {
namespace {

constexpr std::size_t most_parts = 16;
constexpr std::size_t most_operands = 16;

// What kernels end with; after an elementwise anchor every elementwise operator may follow.
constexpr std::array words = {"add",        "sub",
                              "mul",        "div",
                              "min",        "max",
                              "prelu",      "relu",
                              "clip",       "leaky_relu",
                              "sigmoid",    "tanh",
                              "silu",       "gelu",
                              "elu",        "exp",
                              "celu",       "hard_sigmoid",
                              "hard_swish", "mish",
                              "softplus",   "cast",
                              "abs",        "neg",
                              "selu",       "thresholded_relu",
                              "round",      "add_mixed"};
constexpr std::array heavy = {"conv", "conv_transpose", "matmul"};
constexpr std::array light = {"avg_pool",   "batch_norm", "group_norm", "instance_norm",
                              "layer_norm", "max_pool",   "resize"};

template <std::size_t N>
bool listed(const std::array<const char*, N>& list, const std::string& name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

// How much a node has to gain by an ending; 0: takes none.
int weight_of(const Node& node) {
  if (node.outputs().size() != 1 || !node.regions().empty()) return 0;
  const OpDef& op = node.op();
  if (listed(heavy, op.name)) return 3;
  if (listed(light, op.name)) return 2;
  return op.elementwise ? 1 : 0;
}

bool all_elementwise(const Node& node) {
  return std::all_of(node.parts().begin(), node.parts().end(), [](const Part& part) { return part.op->elementwise; });
}

// The same sizes in every run: equal, or held equal by the check of the broadcast between them, as neither can be 1.
bool same_when_run(const Shape& a, const Shape& b) {
  if (a.rank() != b.rank()) return false;
  for (int axis = 0; axis < a.rank(); ++axis) {
    const bool checked = surely_different(a[axis], 1) && surely_different(b[axis], 1);
    if (!(a[axis] == b[axis]) && !checked) return false;
  }
  return true;
}

class Fuser {
 public:
  explicit Fuser(Graph& graph) : graph_(graph) {}

  bool run() {
    bool changed = false;
    std::size_t place = 0;
    for (Node* node : graph_.node_list()) {
      place_[node] = place++;
      if (!all_elementwise(*node) || node->outputs().size() != 1) continue;
      Node* producer = best_producer(*node);
      changed = (producer != nullptr && join(producer, node)) || changed;
    }
    return changed;
  }

 private:
  Node* best_producer(const Node& node) {
    Node* best = nullptr;
    for (const int operand : node.parts().front().operands) {
      if (operand < 0) continue;
      Value* value = node.input(static_cast<std::size_t>(operand));
      Node* candidate = value == nullptr ? nullptr : value->producer;
      if (candidate == nullptr || candidate == best || !may_join(*candidate, *value, node)) continue;
      const auto rank = [&](const Node* n) { return std::pair(weight_of(*n), place_.at(n)); };
      if (best == nullptr || rank(candidate) > rank(best)) best = candidate;
    }
    return best;
  }

  // A narrow image that a convolution widens as it loads it, and pads (fuse_beginnings).
  bool begins_convolution(const Node& node) const {
    if (!widens(node)) return false;
    const Value* image = node.output();
    if (!graph_.has_one_user(image)) return false;
    const Node* user = image->users.front();
    if (const Node* reader = reader_behind_pad(graph_, *user); reader != nullptr) {
      image = user->output();
      user = reader;
    }
    return is_convolution(*user) && user->anchor() == 0 && user->anchor_input(0) == image;
  }

  bool may_join(const Node& producer, const Value& value, const Node& node) const {
    const int weight = weight_of(producer);
    if (weight == 0 || graph_.is_output(&value) || is_constant(&value)) return false;
    if (producer.parts().size() + node.parts().size() > most_parts) return false;
    if (producer.inputs().size() + node.inputs().size() > most_operands) return false;
    if (begins_convolution(node)) return false;
    // What is stored in bf16 is read from there.
    const Part& first = node.parts().front();
    if (first.op->name == "add_mixed" && node.input(static_cast<std::size_t>(first.operands[0])) != &value)
      return false;
    if (!std::all_of(value.users.begin(), value.users.end(), [&](const Node* user) { return user == &node; }))
      return false;
    // Later parts see the value only as what runs through the chain.
    for (std::size_t i = 1; i < node.parts().size(); ++i) {
      for (const int operand : node.parts()[i].operands) {
        if (operand >= 0 && node.input(static_cast<std::size_t>(operand)) == &value) return false;
      }
    }
    if (!same_when_run(node.output()->type.shape, value.type.shape)) return false;
    if (weight == 1) return true;
    const bool in_floats = is_float(value.type.dtype) && is_float(node.output()->type.dtype);
    return std::all_of(node.parts().begin(), node.parts().end(), [&](const Part& part) {
      return listed(words, part.op->name) && (in_floats || part.op->name != "cast");
    });
  }

  bool join(Node* producer, Node* node) {
    const Value* between = producer->output();
    std::vector<Part> parts = producer->parts();
    parts.back().yields = between->name;
    std::vector<Value*> inputs = producer->inputs();
    std::vector<int> number(node->inputs().size(), Part::running);
    for (std::size_t i = 0; i < node->inputs().size(); ++i) {
      Value* input = node->inputs()[i];
      if (input == between || input == nullptr) continue;
      number[i] = static_cast<int>(inputs.size());
      inputs.push_back(input);
    }
    for (Part part : node->parts()) {
      for (int& operand : part.operands) {
        if (operand >= 0) operand = number[static_cast<std::size_t>(operand)];
      }
      parts.push_back(std::move(part));
    }
    const std::size_t place = place_.at(node);
    Rewrite rewrite(graph_, node, producer->name());
    Value* fused = rewrite.add_parts(std::move(parts), producer->anchor(), std::move(inputs));
    if (!rewrite.commit(node->output(), fused)) return false;
    place_[fused->producer] = place;
    return true;
  }

  Graph& graph_;
  std::unordered_map<const Node*, std::size_t> place_;
};

}  // namespace

bool fuse_endings(Graph& graph, const Target&) {
  return in_every_graph(graph, [](Graph& each) { return Fuser(each).run(); });
}

}  // namespace polyphase
