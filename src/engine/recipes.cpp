// Evaluation of recipes: what only moves elements moves strides, the rest runs by the operators' reference loops.
#include "engine/recipes.h"

#include <algorithm>
#include <array>

#include "base/check.h"
#include "engine/engine.h"

namespace polyphase {
namespace {

// ---------------------------------------------------------------- views

Result<Tensor> dense(const Tensor& tensor) {
  if (tensor.view().is_row_major()) return tensor;
  return in_layout(tensor, Layout::row_major(tensor.view().rank));
}

Tensor window(const Tensor& tensor, const TensorDesc& desc, std::int64_t offset) {
  std::byte* const first = tensor.view().data + offset * static_cast<std::int64_t>(size_bytes(desc.dtype));
  return {tensor.buffer(), TensorView(desc, desc.empty() ? tensor.view().data : first)};
}

// The result of a node that only moves elements, as strides over its operand; nothing where strides cannot say it.
Result<std::optional<Tensor>> as_view(const RecipeNode& node, const Tensor& from) {
  const std::string& op = node.part.op->name;
  const Attributes& attributes = node.part.attributes;
  const auto sizes = node.results.front().shape.evaluate({});
  CHECK(sizes.has_value(), "recipes have fixed sizes");
  const TensorView& view = from.view();
  TensorDesc desc = TensorDesc::row_major(view.dtype, *sizes);
  const auto axes = static_cast<std::size_t>(desc.rank);
  if (op == "identity") return std::optional(from);
  if (op == "reshape") {
    TRY(const Tensor whole, dense(from));
    return std::optional(window(whole, desc, 0));
  }
  if (op == "transpose") {
    const auto& order = attributes.get<std::vector<std::int64_t>>("order");
    for (std::size_t i = 0; i < axes; ++i) desc.strides[i] = view.strides[static_cast<std::size_t>(order[i])];
    return std::optional(window(from, desc, 0));
  }
  if (op == "expand") {
    const std::size_t missing = axes - static_cast<std::size_t>(view.rank);
    for (std::size_t i = 0; i < axes; ++i) {
      const bool repeats = i < missing || view.sizes[i - missing] == 1;
      desc.strides[i] = repeats ? 0 : view.strides[i - missing];
    }
    return std::optional(window(from, desc, 0));
  }
  if (op == "slice") {
    const auto start = integers_of(attributes.get<std::vector<Dim>>("start"));
    const auto& step = attributes.get<std::vector<std::int64_t>>("step");
    std::int64_t offset = 0;
    for (std::size_t i = 0; i < axes; ++i) {
      offset += start[i] * view.strides[i];
      desc.strides[i] = view.strides[i] * step[i];
    }
    return std::optional(window(from, desc, offset));
  }
  return std::optional<Tensor>();
}

Result<std::vector<Tensor>> compute(const RecipeNode& node, const std::vector<Tensor>& operands,
                                    const TakeTensor& take) {
  if (operands.size() == 1 && node.results.size() == 1) {
    TRY(auto view, as_view(node, operands.front()));
    if (view.has_value()) return std::vector<Tensor>{*std::move(view)};
  }
  const auto attributes = node.part.attributes.evaluate({});
  CHECK(attributes.has_value(), "recipes hold no symbols");
  std::vector<Tensor> results;
  std::vector<TensorView> inputs;
  std::vector<TensorView> outputs;
  for (const Tensor& operand : operands) inputs.push_back(operand.view());
  for (const Type& type : node.results) {
    TRY(Tensor result, take(type.dtype, *type.shape.evaluate({})));
    outputs.push_back(result.view());
    results.push_back(std::move(result));
  }
  TRY_VOID(run_reference(*node.part.op, {*attributes, inputs, outputs}));
  return results;
}

}  // namespace

Result<Tensor> in_layout(const Tensor& tensor, const Layout& layout) {
  const TensorDesc wanted(tensor.dtype(), tensor.sizes(), layout);
  if (tensor.view().is_dense(layout)) return tensor;
  TRY(Tensor out, Tensor::allocate(wanted));
  copy_elements(tensor.view(), out.view());
  return out;
}

// ---------------------------------------------------------------- index

RecipeIndex::RecipeIndex(const Recipes& recipes) : recipes_(recipes), node_of_(recipes.leaf_count(), -1) {
  for (std::size_t i = 0; i < recipes.nodes.size(); ++i) {
    first_.push_back(value_count());
    node_of_.insert(node_of_.end(), recipes.nodes[i].results.size(), static_cast<int>(i));
  }
}

Type RecipeIndex::type_of(int value) const {
  const auto at = static_cast<std::size_t>(value);
  if (at < recipes_.weights.size()) return recipes_.weights[at].type();
  if (at < recipes_.leaf_count()) return recipes_.tables[at - recipes_.weights.size()].type();
  const int node = node_of(value);
  return recipes_.nodes[static_cast<std::size_t>(node)].results[static_cast<std::size_t>(value - first_result(node))];
}

std::vector<int> RecipeIndex::nodes_below(int value) const {
  std::vector<int> pending;
  std::vector<bool> seen(recipes_.nodes.size(), false);
  const auto visit = [&](int operand) {
    const int node = node_of(operand);
    if (node < 0 || seen[static_cast<std::size_t>(node)]) return;
    seen[static_cast<std::size_t>(node)] = true;
    pending.push_back(node);
  };
  visit(value);
  for (std::size_t i = 0; i < pending.size(); ++i) {
    for (const int input : recipes_.nodes[static_cast<std::size_t>(pending[i])].inputs) visit(input);
  }
  std::sort(pending.begin(), pending.end());
  return pending;
}

std::vector<int> RecipeIndex::weights_of(int value) const {
  const auto is_weight = [&](int operand) { return static_cast<std::size_t>(operand) < recipes_.weights.size(); };
  std::vector<int> out;
  if (is_weight(value)) out.push_back(value);
  for (const int node : nodes_below(value)) {
    const std::vector<int>& inputs = recipes_.nodes[static_cast<std::size_t>(node)].inputs;
    std::copy_if(inputs.begin(), inputs.end(), std::back_inserter(out), is_weight);
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

std::vector<bool> RecipeIndex::dependents(const std::vector<bool>& weights) const {
  std::vector<bool> out(static_cast<std::size_t>(value_count()), false);
  std::copy(weights.begin(), weights.end(), out.begin());
  for (std::size_t i = 0; i < recipes_.nodes.size(); ++i) {
    const RecipeNode& node = recipes_.nodes[i];
    const bool any = std::any_of(node.inputs.begin(), node.inputs.end(),
                                 [&](int input) { return input >= 0 && out[static_cast<std::size_t>(input)]; });
    for (std::size_t k = 0; any && k < node.results.size(); ++k) out[static_cast<std::size_t>(first_[i]) + k] = true;
  }
  return out;
}

Result<Tensor> evaluate_recipe(const RecipeIndex& index, const std::vector<Tensor>& leaves, int value,
                               const TakeTensor& take) {
  const Recipes& recipes = index.recipes();
  const std::vector<int> nodes = index.nodes_below(value);
  std::vector<std::pair<int, Tensor>> found;  // results still wanted, ascending
  const auto tensor_of = [&](int operand) -> const Tensor& {
    if (static_cast<std::size_t>(operand) < leaves.size()) return leaves[static_cast<std::size_t>(operand)];
    return std::lower_bound(found.begin(), found.end(), operand, [](const auto& one, int id) { return one.first < id; })
        ->second;
  };
  // The last node that reads each result, so that large ones go early.
  const auto last_reader = [&](int result) {
    int last = -1;
    for (const int node : nodes) {
      const std::vector<int>& inputs = recipes.nodes[static_cast<std::size_t>(node)].inputs;
      if (std::find(inputs.begin(), inputs.end(), result) != inputs.end()) last = node;
    }
    return last;
  };
  for (const int at : nodes) {
    const RecipeNode& node = recipes.nodes[static_cast<std::size_t>(at)];
    std::vector<Tensor> operands;
    for (const int operand : node.part.operands)
      operands.push_back(operand < 0 ? Tensor() : tensor_of(node.inputs[static_cast<std::size_t>(operand)]));
    TRY(std::vector<Tensor> results, compute(node, operands, take));
    operands.clear();
    for (std::size_t k = 0; k < results.size(); ++k)
      found.emplace_back(index.first_result(at) + static_cast<int>(k), std::move(results[k]));
    std::erase_if(found, [&](const auto& one) { return one.first != value && last_reader(one.first) <= at; });
  }
  return tensor_of(value);
}

}  // namespace polyphase
