// Graph → Draft: numbers for values, steps for nodes, blocks for regions, ports for inputs and outputs.
#include <algorithm>
#include <unordered_map>

#include "lower/draft.h"

namespace polyphase {
namespace {

constexpr std::string_view view_operators[] = {"identity", "reshape", "transpose", "slice", "expand", "concat"};

class Drafter {
 public:
  Drafter(Draft& draft, const GraphRecipes& recipes) : draft_(draft), recipes_(recipes), index_(draft.recipes) {}

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
      } else if (node->weight() != nullptr || recipes_.nodes.count(node.get()) != 0) {
        for (const auto& output : node->outputs()) TRY_VOID(add_computed(graph, *output));
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

  // What follows from weights is computed here where a step or the caller reads it.
  Result<void> add_computed(const Graph& graph, const Value& value) {
    const bool is_read = std::any_of(value.users.begin(), value.users.end(),
                                     [&](const Node* user) { return recipes_.nodes.count(user) == 0; });
    if (!is_read && !graph.is_output(&value)) return {};
    const int recipe = recipes_.values.at(&value);
    TRY(const Tensor tensor,
        evaluate_recipe(index_, draft_.leaves, recipe, [](DType dtype, std::span<const std::int64_t> sizes) {
          return Tensor::allocate(dtype, sizes);
        }));
    TRY_VOID(add_constant(value, tensor));
    draft_.value(numbers_.at(&value)).recipe = recipe;
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
    TRY_VOID(check_births(node));
    step.kind = node.is("if") ? StepKind::branch : StepKind::loop;
    const int id = draft_.add_step(std::move(step));
    for (const int result : draft_.step(id).outputs) draft_.value(result).pinned = true;
    if (node.is("loop")) return add_body(node, id, *node.regions()[0]);
    for (const auto& region : node.regions()) TRY_VOID(add_branch(node, id, *region));
    return {};
  }

  // Sizes born in a region end with it.
  Result<void> check_births(const Node& node) {
    for (const std::string_view attribute : {"born", "entering"}) {
      if (!node.attributes().has(attribute)) continue;
      for (const Dim& symbol : node.attributes().get<std::vector<Dim>>(attribute))
        draft_.born.insert(symbol.symbol_name());
    }
    std::set<std::string, std::less<>> inside;
    for (const auto& region : node.regions()) region->collect_born(inside);
    for (const auto& output : node.outputs()) {
      for (const std::string& name : symbols_of(output->type)) {
        if (inside.count(name) == 0) continue;
        return Error{ErrorCode::unsupported,
                     "the size " + name + " of result '" + output->name + "' is known only inside the node's graphs.",
                     "Give it a name of its own in the attribute 'born'."}
            .at_node(node.name());
      }
    }
    return {};
  }

  static std::set<std::string, std::less<>> symbols_of(const Type& type) {
    std::map<std::string, DimRange, std::less<>> used;
    for (const Dim& dim : type.shape) dim.collect_symbols(used);
    std::set<std::string, std::less<>> out;
    for (const auto& [name, range] : used) out.insert(name);
    return out;
  }

  // Whether the result has its place before the node has run.
  static bool is_sized_before(const Node& node, const Type& result) {
    const auto used = symbols_of(result);
    const auto& born = node.attributes().get<std::vector<Dim>>("born");
    return std::none_of(born.begin(), born.end(), [&](const Dim& dim) { return used.count(dim.symbol_name()) != 0; });
  }

  int begin_block(int runner) {
    draft_.blocks.emplace_back();
    const int block = static_cast<int>(draft_.blocks.size()) - 1;
    draft_.step(runner).blocks.push_back(block);
    return block;
  }

  // The region's value in a place of its own, which is the block's output.
  void add_block_output(const Node& node, int block, const Value& output, const Layout& layout, int result) {
    const int inside = draft_.add_value(output.name + ".result", output.type, layout);
    draft_.value(inside).pinned = true;
    if (result >= 0) draft_.put_into(inside, result, {});
    const int copy = draft_.add_copy(number(&output), inside, block, -1, node.name());
    draft_.step(copy).is_view = true;
    draft_.blocks[static_cast<std::size_t>(block)].outputs.push_back(inside);
  }

  // Captured values are read where they are; results are written into the branch's own, or where their sizes are born
  // with them, copied there afterwards.
  Result<void> add_branch(const Node& node, int branch, const Graph& region) {
    const int block = begin_block(branch);
    for (std::size_t i = 0; i < region.inputs().size(); ++i) {
      const int captured = number(node.input(i + 1));
      CHECK(captured >= 0, "a region's input is an operand of its node");
      numbers_[region.inputs()[i].get()] = captured;
    }
    TRY_VOID(add_nodes(region, block));
    draft_.checks.insert(draft_.checks.end(), region.checks().begin(), region.checks().end());
    for (std::size_t i = 0; i < region.outputs().size(); ++i) {
      const int result = draft_.step(branch).outputs.at(i);
      const bool direct = is_sized_before(node, draft_.value(result).type);
      add_block_output(node, block, *region.outputs()[i], direct ? draft_.value(result).layout : Layout(),
                       direct ? result : -1);
    }
    return {};
  }

  // A carried value whose sizes stay is read in the node's result itself, and what the body makes of it is copied there
  // after each trip. Others enter each trip in a place of their own.
  Result<void> add_body(const Node& node, int loop, const Graph& region) {
    const int block = begin_block(loop);
    const auto carried = static_cast<std::size_t>(node.attributes().get<std::int64_t>("carried"));
    std::vector<Layout> layouts(region.outputs().size());
    for (std::size_t i = 0; i < region.inputs().size(); ++i) {
      const Value& input = *region.inputs()[i];
      if (i >= carried + 2) {
        const int captured = number(node.anchor_input(i));
        CHECK(captured >= 0, "a region's input is an operand of its node");
        draft_.value(captured).kept = true;
        numbers_[&input] = captured;
        continue;
      }
      const int inside = draft_.add_value(input.name, input.type, {});
      draft_.value(inside).pinned = true;
      if (i >= 2) {
        const int result = draft_.step(loop).outputs.at(i - 2);
        if (draft_.value(result).type == input.type && is_sized_before(node, input.type)) {
          draft_.value(inside).layout = layouts[i - 1] = draft_.value(result).layout;
          draft_.put_into(inside, result, {});
        }
      }
      draft_.blocks[static_cast<std::size_t>(block)].inputs.push_back(inside);
      numbers_[&input] = inside;
    }
    TRY_VOID(add_nodes(region, block));
    draft_.checks.insert(draft_.checks.end(), region.checks().begin(), region.checks().end());
    for (std::size_t i = 0; i < region.outputs().size(); ++i)
      add_block_output(node, block, *region.outputs()[i], layouts[i], -1);
    return {};
  }

  Draft& draft_;
  const GraphRecipes& recipes_;
  const RecipeIndex index_;
  std::unordered_map<const Value*, int> numbers_;
};

// Steps whose results nobody reads go, last first. What gives names to sizes stays.
void remove_unread(Draft& draft) {
  const std::vector<int> order = draft.order();
  for (auto id = order.rbegin(); id != order.rend(); ++id) {
    const DraftStep& step = draft.step(*id);
    if (step.kind == StepKind::bind || step.kind == StepKind::branch || step.kind == StepKind::loop) continue;
    const bool read = std::any_of(step.outputs.begin(), step.outputs.end(), [&](int output) {
      const DraftValue& value = draft.value(output);
      return !value.readers.empty() || value.pinned;
    });
    if (!read) draft.remove_step(*id);
  }
}

}  // namespace

Result<Draft> make_draft(const Graph& graph, const Target& target, const LowerOptions& options) {
  Draft draft(graph.registry(), target);
  graph.collect_symbols(draft.symbols);
  for (const DimCheck& check : graph.checks()) {
    check.left.collect_symbols(draft.symbols);
    check.right.collect_symbols(draft.symbols);
  }
  draft.likely = likely_sizes(draft.symbols, options.likely);
  GraphRecipes recipes;
  if (options.refittable) {
    recipes = recipes_of(graph, options.weights);
    draft.recipes = recipes.recipes;
    draft.leaves = std::move(recipes.leaves);
  }
  TRY_VOID(Drafter(draft, recipes).main(graph));
  remove_unread(draft);
  return draft;
}

}  // namespace polyphase
