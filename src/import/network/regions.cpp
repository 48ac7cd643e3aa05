// Conditions and loops: functions of the caller's write the graphs that such a layer owns.
#include "import/compose/regions.h"

#include <array>

#include "base/check.h"
#include "import/compose/symbol_name.h"
#include "import/network/attempt.h"
#include "import/network/builder.h"
#include "import/network/refuse.h"

namespace polyphase {
namespace {

bool absent(const GivenOperand& given) { return std::holds_alternative<std::monostate>(given); }

// The rules of regions are the importers' too, whose hints speak of models.
template <typename T>
Result<T> in_bodies(Result<T> result, const std::string& layer) {
  if (result.ok()) return result;
  Error error = std::move(result).error();
  error.hint = "Let the bodies give tensors of the same dtypes and ranks.";
  return std::move(error).at_node(layer);
}

}  // namespace

Result<Value*> NetworkBuilder::scalar_of(const GivenOperand& given, DType dtype, const std::string& layer,
                                         const std::string& what) {
  Value* value = nullptr;
  if (const auto* tensor = std::get_if<TensorNumber>(&given); tensor != nullptr) {
    TRY(value, value_of(tensor->number, layer));
  } else if (absent(given)) {
    return refused_call("the " + what + " is not there.", "Give a tensor or a number.").at_node(layer);
  } else {
    TRY(value, number_as(given, dtype, layer, what));
  }
  const auto count = value->type.shape.element_count().constant();
  if (value->type.dtype != dtype || count != 1) {
    return refused_call(
               what + " is " + value->type.text() + "; it must be one " + std::string(polyphase::name_of(dtype)) + ".",
               "Add layers `cast`, `reshape` or `gather` before.")
        .at_node(layer);
  }
  if (value->type.shape.rank() == 0) return value;
  TRY(Node * scalar, emit("reshape", Attributes({{"shape", std::vector<Dim>{}}}), {value}, layer + "/" + what));
  return scalar->output();
}

Result<void> NetworkBuilder::give(const GivenOperand& operand, const std::string& layer, const std::string& result) {
  Value* value = nullptr;
  if (const auto* tensor = std::get_if<TensorNumber>(&operand); tensor != nullptr) {
    TRY(value, value_of(tensor->number, layer));
  } else if (absent(operand)) {
    return refused_call(result + " of the body is not there.", "Give a tensor or a number.").at_node(layer);
  } else {
    const bool real = std::holds_alternative<double>(operand);
    const bool boolean = std::holds_alternative<bool>(operand);
    TRY(value, number_as(operand, real ? DType::f32 : boolean ? DType::boolean : DType::i64, layer, result));
  }
  here().add_output(value, result);
  return {};
}

// What the body names is forgotten with it: only its results go on.
Result<void> NetworkBuilder::run_body(const std::string& layer, const std::string& graph_name,
                                      const std::vector<Value*>& captured, const std::function<Result<void>()>& write,
                                      Body& finished) {
  bodies_.push_back({std::make_unique<Graph>(here().registry()), layer, {}, {}, {}});
  const struct End {  // also where memory runs out inside
    NetworkBuilder& builder;
    std::size_t depth;
    std::size_t precisions;
    Body& finished;
    ~End() {
      CHECK(builder.bodies_.size() == depth, "a body that was begun inside has not ended");
      builder.precisions_.resize(precisions);
      for (const std::string& symbol : builder.bodies_.back().symbols) builder.symbols_.erase(symbol);
      finished = std::move(builder.bodies_.back());
      builder.bodies_.pop_back();
    }
  } end{*this, bodies_.size(), precisions_.size(), finished};
  here().name = graph_name;
  for (Value* value : captured) capture(bodies_.size() - 1, value);
  return write();
}

Result<TensorNumbers> NetworkBuilder::add_if(const GivenOperand& condition, const Branch& then_branch,
                                             const Branch& else_branch, std::string_view name) {
  TRY(const std::string layer, layer_name(name, "if"));
  Attempt attempt(*this, layer, true);
  TRY(Value * chooses, scalar_of(condition, DType::boolean, layer, "condition"));
  std::array<Body, 2> bodies;
  const auto write = [&](const Branch& branch) -> Result<void> {
    TRY(const GivenOperands results, branch());
    for (std::size_t i = 0; i < results.size(); ++i) TRY_VOID(give(results[i], layer, "result " + std::to_string(i)));
    return {};
  };
  TRY_VOID(run_body(
      layer, layer + "/then", {}, [&] { return write(then_branch); }, bodies[0]));
  TRY_VOID(run_body(
      layer, layer + "/else", bodies[0].captured, [&] { return write(else_branch); }, bodies[1]));
  for (std::size_t i = bodies[0].captured.size(); i < bodies[1].captured.size(); ++i)
    bodies[0].graph->add_input(bodies[1].captured[i]->name, bodies[1].captured[i]->type);
  const std::size_t count = bodies[0].graph->outputs().size();
  if (bodies[1].graph->outputs().size() != count) {
    return refused_call("the branches give " + std::to_string(count) + " and " +
                            std::to_string(bodies[1].graph->outputs().size()) + " results.",
                        "Let both give the same number.")
        .at_node(layer);
  }
  const auto fresh = [&] { return Dim::symbol(unique_symbol(layer, symbol_names_)); };
  TRY(Attributes attributes, in_bodies(attributes_of_branches(*bodies[0].graph, *bodies[1].graph, fresh), layer));
  std::vector<Value*> operands{chooses};
  operands.insert(operands.end(), bodies[1].captured.begin(), bodies[1].captured.end());
  std::vector<std::unique_ptr<Graph>> regions;
  for (Body& body : bodies) regions.push_back(std::move(body.graph));
  const Attributes born = attributes;
  TRY(Node * node, emit("if", std::move(attributes), std::move(operands), layer, std::move(regions)));
  for (const Dim& dim : born.get<std::vector<Dim>>("born")) symbols_[dim.symbol_name()] = dim.range();
  attempt.succeed();
  return enter_results(*node, layer);
}

Result<TensorNumbers> NetworkBuilder::add_loop(const GivenOperand& trip_count, const GivenOperand& condition,
                                               const GivenOperands& carried, const LoopBody& body,
                                               std::string_view name) {
  TRY(const std::string layer, layer_name(name, "loop"));
  Attempt attempt(*this, layer, true);
  std::vector<Value*> operands(2, nullptr);
  if (!absent(trip_count)) {
    TRY(operands[0], scalar_of(trip_count, DType::i64, layer, "trip_count"));
  }
  if (!absent(condition)) {
    TRY(operands[1], scalar_of(condition, DType::boolean, layer, "condition"));
  }
  std::vector<Type> types;
  for (const GivenOperand& one : carried) {
    const auto* tensor = std::get_if<TensorNumber>(&one);
    if (tensor == nullptr)
      return refused_call("carried value " + std::to_string(types.size()) + " is no tensor.",
                          "Carry tensors: add_constant makes one of a number.")
          .at_node(layer);
    TRY(operands.emplace_back(), value_of(tensor->number, layer));
    types.push_back(operands.back()->type);
  }
  std::vector<Dim> entering;
  const auto fresh = [&] { return Dim::symbol(unique_symbol(layer, symbol_names_)); };
  Body made;
  bool ends_itself = false;
  for (bool again = true; again;) {
    const auto layers = layers_;
    const auto tensors = tensors_;
    const auto symbols = symbols_;
    const std::size_t first = entries_.size();
    for (const Dim& dim : entering) symbols_[dim.symbol_name()] = dim.range();
    const auto write = [&]() -> Result<void> {
      const int iteration =
          enter(here().add_input("iteration", {DType::i64, {}}), layer + "/iteration", "layer '" + layer + "'");
      here().add_input("condition", {DType::boolean, {}});
      TensorNumbers inside;
      for (std::size_t i = 0; i < types.size(); ++i) {
        Value* value = here().add_input("carried", types[i]);
        inside.push_back(enter(value, layer + "/carried" + std::to_string(i), "layer '" + layer + "'"));
      }
      TRY(const LoopTurn turn, body(iteration, inside));
      if (turn.carried.size() != types.size()) {
        return refused_call("the body gives " + std::to_string(turn.carried.size()) + " carried values; it takes " +
                                std::to_string(types.size()) + ".",
                            "Give as many as it takes, in their order.")
            .at_node(layer);
      }
      ends_itself = !absent(turn.again);
      TRY_VOID(give(ends_itself ? turn.again : GivenOperand(true), layer, "again"));
      for (std::size_t i = 0; i < turn.carried.size(); ++i)
        TRY_VOID(give(turn.carried[i], layer, "carried value " + std::to_string(i)));
      for (std::size_t i = 0; i < turn.rows.size(); ++i)
        TRY_VOID(give(turn.rows[i], layer, "row " + std::to_string(i)));
      return {};
    };
    auto written = run_body(layer, layer + "/body", {}, write, made);
    auto freed = written.ok() ? in_bodies(free_changing_sizes(*made.graph, types, entering, fresh), layer)
                              : Result<bool>(std::move(written).error());
    again = freed.ok() && *freed;
    if (!again && freed.ok()) break;
    layers_ = layers;
    tensors_ = tensors;
    symbols_ = symbols;
    forget_bodies(first);
    made.graph.reset();
    if (!freed.ok()) return std::move(freed).error();
  }
  if (ends_itself && operands[1] == nullptr) {
    TRY(operands[1], number_as(true, DType::boolean, layer, "condition"));
  }
  const bool counted = operands[0] != nullptr && operands[1] == nullptr && operands[0]->contents.has_value();
  Attributes attributes = attributes_of_loop(*made.graph, types, entering, counted, fresh);
  operands.insert(operands.end(), made.captured.begin(), made.captured.end());
  std::vector<std::unique_ptr<Graph>> regions;
  regions.push_back(std::move(made.graph));
  const Attributes born = attributes;
  TRY(Node * node, emit("loop", std::move(attributes), std::move(operands), layer, std::move(regions)));
  for (const Dim& dim : entering) symbols_.erase(dim.symbol_name());
  for (const Dim& dim : born.get<std::vector<Dim>>("born")) symbols_[dim.symbol_name()] = dim.range();
  attempt.succeed();
  return enter_results(*node, layer);
}

}  // namespace polyphase
