// Chains of cast, mul and cast, as strides and one call of the product's loops.
#include "passes/scaled_constants.h"

namespace polyphase {
namespace {

constexpr std::int64_t least_elements = 1 << 14;  // below, everything stays in the caches anyway

bool is_narrow_float(DType dtype) { return dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16; }

// The value behind a reshape that only it is for.
const Value* before_reshape(const Graph& graph, const Value* value) {
  const Node* reshape = produced_for_one(graph, value, "reshape");
  return reshape == nullptr ? value : reshape->input(0);
}

// The only reader of the value, a reshape between them aside.
const Node* reader_of(const Graph& graph, const Value* value) {
  if (!graph.has_one_user(value)) return nullptr;
  const Node* reader = value->users.front();
  if (!reader->is("reshape")) return reader;
  return graph.has_one_user(reader->output()) ? reader->output()->users.front() : nullptr;
}

// The weights that a side of the product casts.
const Tensor* widened_constant(const Graph& graph, const Value* side) {
  const Node* cast = produced_for_one(graph, before_reshape(graph, side), "cast");
  if (cast == nullptr || cast->output()->type.dtype != DType::f64) return nullptr;
  const Tensor* weights = constant_of(cast->input(0));
  return weights != nullptr && is_narrow_float(weights->dtype()) && weights->view().is_row_major() ? weights : nullptr;
}

}  // namespace

bool begins_scaling(const Graph& graph, const Node& cast) {
  if (!cast.is("cast") || cast.output()->type.dtype != DType::f64) return false;
  const Tensor* weights = constant_of(cast.input(0));
  if (weights == nullptr || !is_narrow_float(weights->dtype()) || !weights->view().is_row_major() ||
      weights->view().element_count() < least_elements)
    return false;
  const Node* product = reader_of(graph, cast.output());
  if (product == nullptr || !product->is("mul") || !is_constant(product->input(0)) || !is_constant(product->input(1)))
    return false;
  const Node* last = reader_of(graph, product->output());
  return last != nullptr && last->is("cast") && is_narrow_float(last->output()->type.dtype) &&
         product->output()->type.shape.element_count() == Dim(weights->view().element_count());
}

std::optional<Tensor> scaled_constant(const Graph& graph, const Node& cast) {
  if (!cast.is("cast") || !is_narrow_float(cast.output()->type.dtype)) return std::nullopt;
  const Node* product = produced_for_one(graph, before_reshape(graph, cast.input(0)), "mul");
  if (product == nullptr) return std::nullopt;
  const auto sizes = product->output()->type.shape.evaluate({});
  const auto shape = cast.output()->type.shape.evaluate({});
  if (!sizes.has_value() || !shape.has_value()) return std::nullopt;
  std::vector<TensorView> operands;
  for (const Value* side : product->inputs()) {
    const Tensor* weights = widened_constant(graph, side);
    const Tensor* constant = weights != nullptr ? weights : constant_of(side);
    const auto own = side->type.shape.evaluate({});
    if (constant == nullptr || !own.has_value()) return std::nullopt;
    operands.push_back(weights == nullptr
                           ? constant->view()
                           : TensorView(TensorDesc::row_major(weights->dtype(), *own), weights->view().data));
  }
  auto result = Tensor::allocate(cast.output()->type.dtype, *shape);
  if (!result.ok()) return std::nullopt;
  const TensorView written(TensorDesc::row_major(result->dtype(), *sizes), result->view().data);
  const auto attributes = product->attributes().evaluate({});
  if (!attributes.has_value() || !run_reference(product->op(), {*attributes, operands, {&written, 1}}).ok())
    return std::nullopt;
  return std::move(result).value();
}

}  // namespace polyphase
