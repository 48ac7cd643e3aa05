// Scales and shifts per channel become weights and biases.
#include "passes/affine.h"

namespace polyphase {

Node* foldable_convolution(const Graph& graph, const Value* value) {
  Node* node = value == nullptr ? nullptr : value->producer;
  if (node == nullptr || !(node->is("conv") || node->is("conv_transpose")) || !graph.has_one_user(value))
    return nullptr;
  const Value* bias = node->input(2);
  if (!is_float(value->type.dtype) || !is_constant(node->input(1)) || (bias != nullptr && !is_constant(bias)))
    return nullptr;
  return node->input(1)->type.shape.is_static() ? node : nullptr;
}

Value* per_channel(Rewrite& rewrite, Value* operand, const Shape& image) {
  const Shape& shape = operand->type.shape;
  if (!is_float(operand->type.dtype) || shape.rank() > image.rank() || !is_constant(operand)) return nullptr;
  bool repeats = true;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (shape[axis] == 1) continue;
    if (axis + image.rank() - shape.rank() != 1 || !(shape[axis] == image[1])) return nullptr;
    repeats = false;
  }
  Value* vector = rewrite.reshape(rewrite.cast(operand, DType::f64), Shape{repeats ? Dim(1) : image[1]});
  return rewrite.expand(vector, Shape{image[1]});
}

namespace {

Value* scaled_weights(Rewrite& rewrite, const Node& convolution, Value* scale) {
  Value* weights = convolution.input(1);
  const Shape shape = weights->type.shape;
  const DType dtype = weights->type.dtype;
  const auto ones = static_cast<std::size_t>(shape.rank() - 2);
  std::vector<Dim> factors{shape[0], 1};
  std::vector<Dim> split = shape.dims();
  if (convolution.is("conv_transpose")) {
    // Groups are blocks of input channels, each with its own output channels.
    const std::int64_t groups = convolution.attributes().get<std::int64_t>("groups");
    factors = {groups, 1, shape[1]};
    split.front() = floor_div(shape[0], groups);
    split.insert(split.begin(), groups);
  }
  factors.insert(factors.end(), ones, Dim(1));
  Value* wide = rewrite.reshape(rewrite.cast(weights, DType::f64), Shape(split));
  Value* product = rewrite.add("mul", {}, {wide, rewrite.reshape(scale, Shape(factors))});
  if (!rewrite.ok()) return nullptr;
  return rewrite.cast(rewrite.reshape(product, shape), dtype);
}

}  // namespace

Value* convolve_scaled(Rewrite& rewrite, const Node& convolution, Value* scale, Value* shift) {
  Value* weights = scale == nullptr ? convolution.input(1) : scaled_weights(rewrite, convolution, scale);
  Value* bias = convolution.input(2);
  if (bias != nullptr) {
    const DType dtype = bias->type.dtype;
    Value* wide = rewrite.cast(bias, DType::f64);
    if (scale != nullptr) wide = rewrite.add("mul", {}, {wide, scale});
    if (shift != nullptr) wide = rewrite.add("add", {}, {wide, shift});
    if (!rewrite.ok()) return nullptr;
    bias = rewrite.cast(wide, dtype);
  } else if (shift != nullptr && rewrite.ok()) {
    bias = rewrite.cast(shift, convolution.output()->type.dtype);
  }
  if (!rewrite.ok()) return nullptr;
  std::vector<Value*> inputs{convolution.input(0), weights};
  if (bias != nullptr) inputs.push_back(bias);
  return rewrite.add(convolution.op().name, convolution.attributes(), std::move(inputs));
}

}  // namespace polyphase
