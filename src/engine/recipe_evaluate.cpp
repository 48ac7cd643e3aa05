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

// ---------------------------------------------------------------- doubles that need not be stored

// A scale is applied in FP64: weights are cast to it, multiplied, and cast back. The arithmetic computes in FP64
// whatever its operands and results are stored as, so these may stay as narrow as they come and go: the same bits, and
// a quarter of the memory.
class Narrowing {
 public:
  Narrowing(const RecipeIndex& index, const std::vector<int>& nodes, int wanted)
      : index_(index), nodes_(nodes), wanted_(wanted) {}

  // Whether the double that this cast gives is only computed with: what it reads does as well.
  bool is_idle_cast(int node) const {
    const RecipeNode& cast = index_.recipes().nodes[static_cast<std::size_t>(node)];
    return is_widening(cast) && is_only_computed_with(index_.first_result(node));
  }

  // What the result of this node is stored as.
  DType storage_of(int node) const {
    const RecipeNode& from = index_.recipes().nodes[static_cast<std::size_t>(node)];
    const DType own = from.results.front().dtype;
    if (own != DType::f64 || !is_arithmetic(from)) return own;
    return narrowed(index_.first_result(node)).value_or(own);
  }

 private:
  static bool is_arithmetic(const RecipeNode& node) {
    const std::string& op = node.part.op->name;
    return op == "mul" || op == "div" || op == "add" || op == "sub";
  }
  static bool is_moving(const RecipeNode& node) {
    const std::string& op = node.part.op->name;
    return op == "reshape" || op == "transpose" || op == "expand" || op == "slice" || op == "identity";
  }
  static bool is_narrow_float(DType dtype) {
    return dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16;
  }
  bool is_widening(const RecipeNode& node) const {
    return node.part.op->name == "cast" && node.results.front().dtype == DType::f64 &&
           is_narrow_float(index_.type_of(node.inputs.front()).dtype);
  }

  // Calls f(node, its first result) for each that reads the value, until one says false.
  template <typename F>
  bool each_reader(int value, F&& f) const {
    if (value == wanted_) return false;
    return std::all_of(nodes_.begin(), nodes_.end(), [&](int at) {
      const RecipeNode& node = index_.recipes().nodes[static_cast<std::size_t>(at)];
      if (std::find(node.inputs.begin(), node.inputs.end(), value) == node.inputs.end()) return true;
      return f(node, index_.first_result(at));
    });
  }

  bool is_only_computed_with(int value) const {
    return each_reader(value, [&](const RecipeNode& node, int result) {
      return is_arithmetic(node) || (is_moving(node) && is_only_computed_with(result));
    });
  }

  // The one dtype that everybody casts the value to.
  std::optional<DType> narrowed(int value) const {
    std::optional<DType> to;
    const bool agree = each_reader(value, [&](const RecipeNode& node, int result) {
      std::optional<DType> own;
      if (is_moving(node)) own = narrowed(result);
      if (node.part.op->name == "cast" && is_narrow_float(node.results.front().dtype)) own = node.results.front().dtype;
      if (!own.has_value() || (to.has_value() && *to != *own)) return false;
      to = own;
      return true;
    });
    return agree ? to : std::nullopt;
  }

  const RecipeIndex& index_;
  const std::vector<int>& nodes_;
  const int wanted_;
};

// ---------------------------------------------------------------- nodes

Result<std::vector<Tensor>> compute(const RecipeNode& node, DType storage, const std::vector<Tensor>& operands,
                                    const TakeTensor& take) {
  if (operands.size() == 1 && node.results.size() == 1) {
    if (node.part.op->name == "cast" && operands.front().dtype() == storage)
      return std::vector<Tensor>{operands.front()};
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
    TRY(Tensor result, take(results.empty() ? storage : type.dtype, *type.shape.evaluate({})));
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

Result<Tensor> evaluate_recipe(const RecipeIndex& index, const std::vector<Tensor>& leaves, int value,
                               const TakeTensor& take) {
  const Recipes& recipes = index.recipes();
  const std::vector<int> nodes = index.nodes_below(value);
  const Narrowing narrowing(index, nodes, value);
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
    const bool is_idle = narrowing.is_idle_cast(at);
    const DType storage = is_idle ? operands.front().dtype() : narrowing.storage_of(at);
    TRY(std::vector<Tensor> results, compute(node, storage, operands, take));
    operands.clear();
    for (std::size_t k = 0; k < results.size(); ++k)
      found.emplace_back(index.first_result(at) + static_cast<int>(k), std::move(results[k]));
    std::erase_if(found, [&](const auto& one) { return one.first != value && last_reader(one.first) <= at; });
  }
  return tensor_of(value);
}

}  // namespace polyphase
