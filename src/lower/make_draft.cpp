// Graph → Draft: numbers for values, steps for nodes, blocks for regions, ports for inputs and outputs.
#include <algorithm>
#include <unordered_map>

#include "lower/draft.h"

namespace polyphase {
namespace {

constexpr std::string_view view_operators[] = {"identity", "reshape", "transpose", "slice", "expand", "concat"};

class Drafter {
 public:
  explicit Drafter(Draft& draft) : draft_(draft) {}

  Result<void> main(const Graph& graph) {
    draft_.blocks.emplace_back();
    for (const auto& input : graph.inputs()) add_input(*input);
    TRY_VOID(add_nodes(graph, 0));
    for (std::size_t i = 0; i < graph.outputs().size(); ++i) add_output(*graph.outputs()[i], graph.output_names()[i]);
    draft_.checks.insert(draft_.checks.end(), graph.checks().begin(), graph.checks().end());
    return {};
  }

 private:
  int number(const Value* value) const { return value == nullptr ? -1 : numbers_.at(value); }

  // The caller's memory is row-major; a graph input in another layout is a copy of it.
  void add_input(const Value& input) {
    const int port = draft_.add_value(input.name, input.type, {});
    draft_.value(port).storage = Storage::input;
    draft_.inputs.push_back({input.name, port});
    numbers_[&input] = port;
    if (!input.layout.is_set() || input.layout.is_row_major()) return;
    const int inside = draft_.add_value(input.name + ".inside", input.type, input.layout);
    draft_.add_copy(port, inside, 0, -1, input.name);
    numbers_[&input] = inside;
  }

  void add_output(const Value& output, const std::string& name) {
    const int from = number(&output);
    DraftValue& value = draft_.value(from);
    const bool own = value.writer >= 0 && draft_.step(value.writer).block == 0;
    if (own && value.storage == Storage::arena && value.layout.is_row_major() && value.parent < 0) {
      value.storage = Storage::output;
      value.pinned = true;
      draft_.outputs.push_back({name, from});
      return;
    }
    const int port = draft_.add_value(name, output.type, {});
    draft_.value(port).storage = Storage::output;
    draft_.value(port).pinned = true;
    const int copy = draft_.add_copy(from, port, 0, -1, name);
    draft_.step(copy).is_view = true;
    draft_.outputs.push_back({name, port});
  }

  Result<void> add_nodes(const Graph& graph, int block) {
    for (const auto& node : graph.nodes()) {
      if (const Tensor* constant = node->constant()) {
        TRY_VOID(add_constant(*node->output(), *constant));
      } else {
        TRY_VOID(add_node(*node, block));
      }
    }
    return {};
  }

  Result<void> add_constant(const Value& value, const Tensor& tensor) {
    const int id = draft_.add_value(value.name, value.type, value.layout);
    DraftValue& own = draft_.value(id);
    own.storage = Storage::constant;
    own.constant = tensor;
    const TensorDesc dense(tensor.dtype(), tensor.sizes(), own.layout);
    if (!std::equal(dense.strides.begin(), dense.strides.end(), tensor.view().strides.begin())) {
      TRY(own.constant, Tensor::allocate(dense));
      copy_elements(tensor.view(), own.constant.view());
    }
    numbers_[&value] = id;
    return {};
  }

  Result<void> add_node(const Node& node, int block) {
    DraftStep step;
    step.name = node.name();
    step.parts = node.parts();
    step.anchor = node.anchor();
    step.block = block;
    for (const Value* input : node.inputs()) step.inputs.push_back(number(input));
    for (const auto& output : node.outputs()) {
      const int id = draft_.add_value(output->name, output->type, output->layout);
      numbers_[output.get()] = id;
      step.outputs.push_back(id);
    }
    if (node.is("bind")) {
      step.kind = StepKind::bind;
      for (const Dim& symbol : node.attributes().get<std::vector<Dim>>("symbols")) {
        step.symbols.push_back(symbol.symbol_name());
        draft_.born.insert(step.symbols.back());
      }
    }
    if (!node.fused() && node.regions().empty()) {
      step.is_view =
          std::find(std::begin(view_operators), std::end(view_operators), node.op().name) != std::end(view_operators);
    }
    if (node.regions().empty()) {
      draft_.add_step(std::move(step));
      return {};
    }
    if (!node.is("if")) {
      return Error{ErrorCode::unsupported, "operator " + node.op().name + " is not run.",
                   "Export the model with the loop unrolled."}
          .at_node(node.name());
    }
    step.kind = StepKind::branch;
    const int id = draft_.add_step(std::move(step));
    for (const int result : draft_.step(id).outputs) draft_.value(result).pinned = true;
    for (const auto& region : node.regions()) TRY_VOID(add_region(node, id, *region));
    return {};
  }

  // Captured values are read where they are; results are written into the branch's own.
  Result<void> add_region(const Node& node, int branch, const Graph& region) {
    const int block = static_cast<int>(draft_.blocks.size());
    draft_.blocks.emplace_back();
    draft_.step(branch).blocks.push_back(block);
    for (std::size_t i = 0; i < region.inputs().size(); ++i) {
      const int captured = number(node.input(i + 1));
      CHECK(captured >= 0, "a region's input is an operand of its node");
      numbers_[region.inputs()[i].get()] = captured;
    }
    TRY_VOID(add_nodes(region, block));
    draft_.checks.insert(draft_.checks.end(), region.checks().begin(), region.checks().end());
    for (std::size_t i = 0; i < region.outputs().size(); ++i) {
      const int result = draft_.step(branch).outputs.at(i);
      const Value& output = *region.outputs()[i];
      const int inside = draft_.add_value(output.name + ".result", output.type, draft_.value(result).layout);
      draft_.value(inside).pinned = true;
      draft_.put_into(inside, result, {});
      const int copy = draft_.add_copy(number(&output), inside, block, -1, node.name());
      draft_.step(copy).is_view = true;
      draft_.blocks[static_cast<std::size_t>(block)].outputs.push_back(inside);
    }
    return {};
  }

  Draft& draft_;
  std::unordered_map<const Value*, int> numbers_;
};

// Steps whose results nobody reads go, last first. What gives names to sizes stays.
void remove_unread(Draft& draft) {
  const std::vector<int> order = draft.order();
  for (auto id = order.rbegin(); id != order.rend(); ++id) {
    const DraftStep& step = draft.step(*id);
    if (step.kind == StepKind::bind || step.kind == StepKind::branch) continue;
    const bool read = std::any_of(step.outputs.begin(), step.outputs.end(), [&](int output) {
      const DraftValue& value = draft.value(output);
      return !value.readers.empty() || value.pinned;
    });
    if (!read) draft.remove_step(*id);
  }
}

}  // namespace

Result<Draft> make_draft(const Graph& graph, const Target& target, const DimBindings& likely) {
  Draft draft(graph.registry(), target);
  graph.collect_symbols(draft.symbols);
  for (const DimCheck& check : graph.checks()) {
    check.left.collect_symbols(draft.symbols);
    check.right.collect_symbols(draft.symbols);
  }
  draft.likely = likely_sizes(draft.symbols, likely);
  TRY_VOID(Drafter(draft).main(graph));
  remove_unread(draft);
  return draft;
}

}  // namespace polyphase
