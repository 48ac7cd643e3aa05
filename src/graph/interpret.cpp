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
      return Error{ErrorCode::invalid_argument,
                   "graph '" + graph.name + "' takes " + std::to_string(graph.inputs().size()) + " inputs, found " +
                       std::to_string(inputs.size()) + ".",
                   "Give every input once."};
    }
    TRY_VOID(bind_inputs(graph, inputs));
    for (std::size_t i = 0; observe_ && i < inputs.size(); ++i) observe_(*graph.inputs()[i], inputs[i]);
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
        return Error{ErrorCode::invalid_argument,
                     what + " is " + std::string(name_of(inputs[i].dtype())) + "; expected " +
                         std::string(name_of(input.type.dtype)) + ".",
                     "Give a tensor of that dtype."};
      }
      TRY_VOID(bind_shape(input.type.shape, inputs[i].sizes(), what, bindings_));
      values_[&input] = inputs[i];
    }
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      solve_shape(graph.inputs()[i]->type.shape, inputs[i].sizes(), bindings_);
    }
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const Value& input = *graph.inputs()[i];
      TRY_VOID(check_shape(input.type.shape, inputs[i].sizes(), Subject("input", input.name), bindings_));
    }
    return {};
  }

  // Checks whose symbols are all known; a graph's checks may name symbols that only some of its nodes bind.
  Result<void> check_all(const Graph& graph) const {
    for (const DimCheck& check : graph.checks()) {
      const auto left = check.left.evaluate(bindings_);
      const auto right = check.right.evaluate(bindings_);
      if (!left.has_value() || !right.has_value() || holds(check.relation, *left, *right)) continue;
      return Error{ErrorCode::shape_mismatch,
                   check.why + " Found " + check.left.text() + " = " + std::to_string(*left) + " and " +
                       check.right.text() + " = " + std::to_string(*right) + ".",
                   "Give inputs whose sizes fit together."};
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
        return Error{ErrorCode::shape_mismatch,
                     "a size of " + part.op->name +
                         " cannot be known from the inputs: " + print_attributes(part.attributes) + ".",
                     "Bind the size to an input or to data."};
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
    TRY(std::vector<Tensor> results, node.is("if") ? run_branch(node) : run_loop(node));
    const auto& names = node.attributes().get<std::vector<Dim>>("born");
    const auto& places = node.attributes().get<std::vector<std::int64_t>>("born_at");
    std::vector<std::int64_t> sizes;
    for (const Tensor& result : results) {
      const auto own = result.view().size_span();
      sizes.insert(sizes.end(), own.begin(), own.end());
    }
    for (std::size_t i = 0; i < names.size(); ++i)
      bindings_[names[i].symbol_name()] = sizes.at(static_cast<std::size_t>(places[i]));
    for (std::size_t i = 0; i < results.size(); ++i) values_[node.output(i)] = results[i];
    return {};
  }

  bool is_true(const Value* condition) const {
    return load_integer(values_.at(condition).view().data, DType::boolean) != 0;
  }

  Result<std::vector<Tensor>> run_branch(const Node& node) {
    const Graph& taken = *node.regions()[is_true(node.input(0)) ? 0 : 1];
    std::vector<Tensor> captures;
    for (std::size_t i = 1; i < node.inputs().size(); ++i) captures.push_back(values_.at(node.input(i)));
    return Interpreter(bindings_, observe_).run(taken, captures);
  }

  Result<std::vector<Tensor>> run_loop(const Node& node) {
    constexpr std::int64_t most_trips = 10'000'000;  // nobody can cancel the interpreter
    const Graph& body = *node.regions()[0];
    const auto carried = static_cast<std::size_t>(node.attributes().get<std::int64_t>("carried"));
    const std::int64_t limit = node.anchor_input(0) == nullptr
                                   ? INT64_MAX
                                   : load_integer(values_.at(node.anchor_input(0)).view().data, DType::i64);
    bool again = node.anchor_input(1) == nullptr || is_true(node.anchor_input(1));
    const std::vector<std::int64_t> scalar;
    std::vector<Tensor> values{Tensor(), Tensor::from_integers(DType::boolean, scalar, std::array{std::int64_t{1}})};
    for (std::size_t i = 2; i < node.anchor_part().operands.size(); ++i)
      values.push_back(values_.at(node.anchor_input(i)));
    std::vector<std::vector<Tensor>> rows(body.outputs().size() - 1 - carried);
    for (std::int64_t trip = 0; trip < limit && again; ++trip) {
      if (trip == most_trips)
        return Error{ErrorCode::unsupported, "the loop ran 10,000,000 trips without ending.",
                     "Give the loop a trip count or a condition that ends it."};
      values[0] = Tensor::from_integers(DType::i64, scalar, std::array{trip});
      TRY(const std::vector<Tensor> results, Interpreter(bindings_, observe_).run(body, values));
      if (node.anchor_input(1) != nullptr) again = load_integer(results[0].view().data, DType::boolean) != 0;
      for (std::size_t i = 0; i < carried; ++i) values[i + 2] = results[i + 1];
      for (std::size_t i = 0; i < rows.size(); ++i) rows[i].push_back(results[carried + 1 + i]);
    }
    std::vector<Tensor> out(values.begin() + 2, values.begin() + 2 + static_cast<std::ptrdiff_t>(carried));
    for (std::size_t i = 0; i < rows.size(); ++i) {
      TRY(Tensor stacked, stack(rows[i], body.outputs()[carried + 1 + i]->type));
      out.push_back(std::move(stacked));
    }
    return out;
  }

  // [rows, …]; without rows, sizes that only a row would tell are 0.
  Result<Tensor> stack(const std::vector<Tensor>& rows, const Type& type) const {
    std::vector<std::int64_t> sizes{static_cast<std::int64_t>(rows.size())};
    for (const Dim& dim : type.shape) sizes.push_back(dim.evaluate(bindings_).value_or(0));
    if (!rows.empty()) {
      const auto row_sizes = rows[0].view().size_span();
      std::copy(row_sizes.begin(), row_sizes.end(), sizes.begin() + 1);
    }
    TRY(Tensor out, Tensor::allocate(type.dtype, sizes));
    const TensorDesc row = TensorDesc::row_major(type.dtype, std::span(sizes).subspan(1));
    const std::size_t row_bytes = static_cast<std::size_t>(row.element_count()) * size_bytes(type.dtype);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (rows[i].sizes() != rows[0].sizes()) {
        return Error{ErrorCode::shape_mismatch,
                     "the rows that a loop stacks differ in size: trip 0 gave " + rows[0].type().text() + ", trip " +
                         std::to_string(i) + " " + rows[i].type().text() + ".",
                     "Make every trip give a result of one size (Pad)."};
      }
      copy_elements(rows[i].view(), TensorView(row, out.view().data + i * row_bytes));
    }
    return out;
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
