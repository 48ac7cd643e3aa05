// Runs a graph with the reference loops: the definition every pass and kernel is held to.
#include <algorithm>

#include "base/shape_binding.h"
#include "graph/graph.h"

namespace polyphase {
namespace {

class Interpreter {
 public:
  Interpreter(DimBindings bindings, const ValueObserver& observe) : bindings_(std::move(bindings)), observe_(observe) {}

  Result<std::vector<Tensor>> run(const Graph& graph, const std::vector<Tensor>& inputs) {
    if (inputs.size() != graph.inputs().size()) {
      return Error{ErrorCode::invalid_argument, "graph '" + graph.name + "' takes " +
                                                    std::to_string(graph.inputs().size()) + " inputs, found " +
                                                    std::to_string(inputs.size()) + "."};
    }
    TRY_VOID(bind_inputs(graph, inputs));
    for (const auto& node : graph.nodes()) {
      auto done = run_node(*node);
      if (!done.ok()) return std::move(done).error().at_node(node->name());
      for (std::size_t i = 0; observe_ && i < node->outputs().size(); ++i)
        observe_(*node->output(i), values_.at(node->output(i)));
    }
    TRY_VOID(check_all(graph));
    std::vector<Tensor> outputs;
    for (const Value* output : graph.outputs()) outputs.push_back(values_.at(output));
    return outputs;
  }

 private:
  Result<void> bind_inputs(const Graph& graph, const std::vector<Tensor>& inputs) {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const Value& input = *graph.inputs()[i];
      const std::string what = "input '" + input.name + "'";
      if (inputs[i].dtype() != input.type.dtype) {
        return Error{ErrorCode::invalid_argument, what + " is " + std::string(name_of(inputs[i].dtype())) +
                                                      "; expected " + std::string(name_of(input.type.dtype)) + "."};
      }
      TRY_VOID(bind_shape(input.type.shape, inputs[i].sizes(), what, bindings_));
      values_[&input] = inputs[i];
    }
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      solve_shape(graph.inputs()[i]->type.shape, inputs[i].sizes(), bindings_);
    }
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const Value& input = *graph.inputs()[i];
      TRY_VOID(check_shape(input.type.shape, inputs[i].sizes(), "input '" + input.name + "'", bindings_));
    }
    return {};
  }

  // Checks whose symbols are all known; a graph's checks may name symbols that only some of its nodes bind.
  Result<void> check_all(const Graph& graph) const {
    for (const DimCheck& check : graph.checks()) {
      const auto left = check.left.evaluate(bindings_);
      const auto right = check.right.evaluate(bindings_);
      if (!left.has_value() || !right.has_value() || holds(check.relation, *left, *right)) continue;
      return Error{ErrorCode::shape_mismatch, check.why + " Found " + check.left.text() + " = " +
                                                  std::to_string(*left) + " and " + check.right.text() + " = " +
                                                  std::to_string(*right) + "."};
    }
    return {};
  }

  Result<void> run_node(const Node& node) {
    if (!node.regions().empty()) return run_regions(node);
    std::vector<Tensor> running;
    for (const Part& part : node.parts()) {
      if (part.op->name == "bind") TRY_VOID(bind(part, values_.at(node.input(0))));
      const auto attributes = part.attributes.evaluate(bindings_);
      if (!attributes.has_value()) {
        return Error{ErrorCode::shape_mismatch, "a size of " + part.op->name + " cannot be known from the inputs: " +
                                                    print_attributes(part.attributes) + "."};
      }
      std::vector<Tensor> operands;
      for (const int operand : part.operands) {
        if (operand == Part::absent) {
          operands.emplace_back();
        } else {
          operands.push_back(operand == Part::running ? running.at(0)
                                                      : values_.at(node.inputs()[static_cast<std::size_t>(operand)]));
        }
      }
      TRY(running, evaluate_reference(*part.op, *attributes, operands));
    }
    for (std::size_t i = 0; i < node.outputs().size(); ++i) values_[node.output(i)] = running[i];
    return {};
  }

  Result<void> bind(const Part& part, const Tensor& data) {
    const auto& symbols = part.attributes.get<std::vector<Dim>>("symbols");
    const TensorView& view = data.view();
    for (std::size_t i = 0; i < symbols.size(); ++i) {
      const std::byte* element = view.data + static_cast<std::int64_t>(i) * (view.rank == 0 ? 0 : view.strides[0]) *
                                                 static_cast<std::int64_t>(size_bytes(view.dtype));
      const std::int64_t value = load_integer(element, view.dtype);
      TRY_VOID(bind_shape(Shape{symbols[i]}, std::array{value}, "the size read from data", bindings_));
    }
    return {};
  }

  Result<void> run_regions(const Node& node) {
    CHECK(node.is("if"), "loops are unrolled or run by the session");
    const std::byte* condition = values_.at(node.input(0)).view().data;
    const Graph& taken = *node.regions()[load_integer(condition, DType::boolean) != 0 ? 0 : 1];
    std::vector<Tensor> captures;
    for (std::size_t i = 1; i < node.inputs().size(); ++i) captures.push_back(values_.at(node.input(i)));
    TRY(const std::vector<Tensor> results, Interpreter(bindings_, observe_).run(taken, captures));
    for (std::size_t i = 0; i < results.size(); ++i) values_[node.output(i)] = results[i];
    return {};
  }

  DimBindings bindings_;
  const ValueObserver& observe_;
  std::unordered_map<const Value*, Tensor> values_;
};

}  // namespace

Result<std::vector<Tensor>> interpret(const Graph& graph, const std::vector<Tensor>& inputs,
                                      const ValueObserver& observe) {
  return Interpreter({}, observe).run(graph, inputs);
}

}  // namespace polyphase
