// Reads matmul steps as convolutions.
#include "backends/cpu/rows/product_desc.h"

#include <algorithm>
#include <optional>

namespace polyphase::cpu {
namespace {

// Of all axes but the last.
Dim pixels_of(const Shape& shape) {
  Dim product = 1;
  for (int axis = 0; axis + 1 < shape.rank(); ++axis) product *= shape[axis];
  return product;
}

// A row-major operand with the pixels of `result` or one, and its channels or one; nothing if it has some of its
// pixels.
std::optional<Shape> image_of(const Shape& shape, const Shape& result) {
  const int channel = shape.rank() - 1;
  if (channel < 0) return Shape{1, 1, 1};
  const bool once = std::all_of(shape.begin(), shape.begin() + channel, [](const Dim& size) { return size == 1; });
  if (once) return Shape{1, shape[channel], 1};
  if (shape.rank() > result.rank()) return std::nullopt;
  const int missing = result.rank() - shape.rank();
  for (int axis = 0; axis + 1 < result.rank(); ++axis) {
    const bool same = axis < missing ? result[axis] == 1 : result[axis] == shape[axis - missing];
    if (!same) return std::nullopt;
  }
  return Shape{1, shape[channel], pixels_of(shape)};
}

void turn(OperandDesc& operand, Shape image) {
  operand.type.shape = std::move(image);
  operand.layout = Layout::channels_last(3);
  operand.value = nullptr;
}

bool is_right_operand(const StepDesc& desc, std::size_t input) {
  return static_cast<int>(input) == desc.anchor_operand(1);
}

// Dense, as its row takes it.
TensorDesc dense_image(const TensorDesc& from, const OperandDesc& image) {
  std::vector<int64_t> sizes;
  for (const Dim& size : image.type.shape) sizes.push_back(size.value());
  return {from.dtype, sizes, image.layout};
}

}  // namespace

std::string refuse_product(const StepDesc& desc) {
  if (desc.anchor != 0) return "takes no beginnings";
  const int a = desc.anchor_operand(0);
  const int b = desc.anchor_operand(1);
  if (a < 0 || b < 0) return "an operand is computed by the step itself";
  const OperandDesc& right = desc.inputs[static_cast<std::size_t>(b)];
  if (!right.constant || a == b) return "the second operand is computed";
  const Shape& weights = right.type.shape;
  const Shape& rows = desc.inputs[static_cast<std::size_t>(a)].type.shape;
  const Shape& result = desc.outputs[0].type.shape;
  if (weights.rank() != 2 || rows.rank() < 2) return "needs rows of the first operand and one matrix as the second";
  if (!weights.is_static()) return "the second operand's sizes are not known";
  if (weights[0] == 0 || weights[1] == 0) return "there is nothing to multiply";
  if (result.rank() != rows.rank() || !(result[result.rank() - 1] == weights[1]))
    return "an ending broadcasts the result";
  if (!desc.outputs[0].layout.is_row_major()) return "takes row-major operands only";
  for (std::size_t i = 0; i < desc.inputs.size(); ++i) {
    const OperandDesc& operand = desc.inputs[i];
    if (!operand.present || is_right_operand(desc, i)) continue;
    if (!operand.layout.is_row_major()) return "takes row-major operands only";
    if (!image_of(operand.type.shape, result).has_value()) return "an ending's operand repeats along some axes of rows";
  }
  return {};
}

StepDesc product_as_conv(const StepDesc& desc) {
  StepDesc out = desc;
  const Shape result = desc.outputs[0].type.shape;
  const Shape& rows = desc.anchor_input(0).type.shape;
  for (std::size_t i = 0; i < out.inputs.size(); ++i) {
    OperandDesc& operand = out.inputs[i];
    if (!operand.present) continue;
    if (is_right_operand(desc, i)) {
      const Shape matrix = operand.type.shape;
      operand.type.shape = Shape{matrix[1], matrix[0], 1};
      operand.layout = Layout::row_major(3);
      operand.value = nullptr;
    } else {
      turn(operand, *image_of(operand.type.shape, result));
    }
  }
  const auto data = static_cast<std::size_t>(desc.anchor_operand(0));
  const Dim pixels = pixels_of(rows);
  turn(out.inputs[data], Shape{1, rows[rows.rank() - 1], pixels});
  turn(out.outputs[0], Shape{1, result[result.rank() - 1], pixels});
  Attributes conv({{"stride", std::vector<int64_t>{1}},
                   {"dilation", std::vector<int64_t>{1}},
                   {"pre", std::vector<Dim>{0}},
                   {"post", std::vector<Dim>{0}},
                   {"groups", int64_t{1}},
                   {"products", desc.attributes().get<DType>("products")},
                   {"rounds_transformed", false},
                   {"filters_fours", false}});
  out.parts[out.anchor].attributes = std::move(conv);
  return out;
}

TensorView product_weights(const TensorView& b) {
  TensorView out = b;
  out.rank = 3;
  out.sizes = {b.sizes[1], b.sizes[0], 1};
  out.strides = {b.strides[1], b.strides[0], 0};
  return out;
}

ProductRequest::ProductRequest(const PlanRequest& request) : desc(product_as_conv(request.desc)) {
  for (std::size_t i = 0; i < request.inputs.size(); ++i) {
    const bool is_image = request.desc.inputs[i].present && !is_right_operand(request.desc, i);
    inputs.push_back(is_image ? dense_image(request.inputs[i], desc.inputs[i]) : request.inputs[i]);
  }
  outputs.push_back(dense_image(request.outputs[0], desc.outputs[0]));
  for (const KeptPart& part : request.kept) kept.push_back({part.part, dense_image(part.desc, desc.outputs[0])});
}

}  // namespace polyphase::cpu
