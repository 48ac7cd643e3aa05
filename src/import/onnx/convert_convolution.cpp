// Conv, ConvTranspose and the ONNX Runtime variants of both.
#include <algorithm>
#include <array>

#include "import/onnx/convolution.h"
#include "import/onnx/node_context.h"
#include "import/onnx/window_attributes.h"

namespace polyphase {
namespace {

using Sizes = std::vector<Dim>;

// Checks operand and weight, reads kernel_shape and group; gives the kernel's spatial sizes.
Result<Sizes> read_kernel(NodeContext& node) {
  TRY(const std::size_t axes, spatial_axes(node));
  const Shape& weight = node.shape(1);
  if (weight.rank() != node.rank(0)) {
    return broken_rule("operand and weight must have equal ranks, found " + node.type(0).text() + " and " +
                       node.type(1).text() + ".");
  }
  const Sizes kernel(weight.begin() + 2, weight.end());
  const auto given = node.integers("kernel_shape");
  if (!given.has_value() || given->empty()) return kernel;
  if (given->size() != axes)
    return broken_rule("kernel_shape has " + std::to_string(given->size()) + " entries, but the operand has " +
                       std::to_string(axes) + " spatial axes.");
  for (std::size_t i = 0; i < axes; ++i) {
    if (surely_different(kernel[i], Dim((*given)[i]))) {
      return broken_rule("kernel_shape is " + std::to_string((*given)[i]) + " on spatial axis " + std::to_string(i) +
                         ", but the weight is " + node.type(1).text() + ".");
    }
  }
  return kernel;
}

Result<std::int64_t> read_groups(NodeContext& node) {
  const std::int64_t groups = node.integer("group", 1);
  if (groups < 1 || groups >= INT32_MAX)
    return broken_rule("group is " + std::to_string(groups) + "; it must be at least 1 and below 2^31.");
  return groups;
}

Result<Values> convert_conv(NodeContext& node) {
  TRY(Value * value, import_convolution(node));
  return Values{value};
}

}  // namespace

Result<Value*> import_convolution(NodeContext& node) {
  TRY(const Sizes kernel, read_kernel(node));
  TRY(const std::int64_t groups, read_groups(node));
  TRY(OnnxWindow window, read_window(node, kernel));
  return node.emit("conv",
                   Attributes({{"stride", window.stride},
                               {"dilation", window.dilation},
                               {"groups", groups},
                               {"pre", window.pre},
                               {"post", window.post}}),
                   {node.input(0), node.input(1), node.input(2)});
}

namespace {

// The crop of one axis. `total` is what the natural output (output_padding included) has too much.
struct Crop {
  Dim pre;
  Dim post;
};

Crop split_crop(const Dim& total, bool larger_at_end) {
  if (total.range().high < 0) return {Dim(0), total};  // grows at the end
  const Dim half = floor_div(total, Dim(2));
  return larger_at_end ? Crop{half, total - half} : Crop{total - half, half};
}

Result<Values> convert_conv_transpose(NodeContext& node) {
  const bool pads_are_operand = node.op_type() == "ConvTransposeWithDynamicPads";
  TRY(const Sizes kernel, read_kernel(node));
  const std::size_t axes = kernel.size();
  TRY(const std::int64_t groups, read_groups(node));
  TRY(const auto stride, spatial_attribute(node, "strides", axes, 1, 1));
  TRY(const auto dilation, spatial_attribute(node, "dilations", axes, 1, 1));
  TRY(const auto padding, spatial_attribute(node, "output_padding", axes, 0, 0));
  const std::string auto_pad = node.word("auto_pad", "NOTSET");
  const bool is_same = auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER";
  if (!is_same && auto_pad != "NOTSET" && auto_pad != "VALID" && !auto_pad.empty()) {
    return broken_rule("auto_pad is '" + auto_pad.substr(0, 40) +
                       "'; it must be NOTSET, SAME_UPPER, SAME_LOWER or VALID.");
  }
  Sizes pads(2 * axes, Dim(0));
  if (pads_are_operand && node.has(2)) {
    TRY(pads, node.sizes(2));
  }
  if (!pads_are_operand) {
    if (const auto given = node.integers("pads"); given.has_value() && !given->empty())
      pads.assign(given->begin(), given->end());
  }
  if (pads.size() != 2 * axes)
    return broken_rule("pads has " + std::to_string(pads.size()) + " entries; " + std::to_string(axes) +
                       " spatial axes need " + std::to_string(2 * axes) + ", all beginnings, then all ends.");
  auto output_shape = node.integers("output_shape").value_or(std::vector<std::int64_t>{});
  if (output_shape.size() == axes + 2) {
    node.warn("output_shape has the batch and the channels too; only its spatial sizes are used");
    output_shape.erase(output_shape.begin(), output_shape.begin() + 2);
  }
  if (!output_shape.empty() && output_shape.size() != axes)
    return broken_rule("output_shape has " + std::to_string(output_shape.size()) + " entries, but the operand has " +
                       std::to_string(axes) + " spatial axes.");
  Sizes pre;
  Sizes post;
  for (std::size_t i = 0; i < axes; ++i) {
    if (padding[i] >= std::max(stride[i], dilation[i])) {
      return broken_rule("output_padding is " + std::to_string(padding[i]) + " on spatial axis " + std::to_string(i) +
                         "; it must be less than the stride, " + std::to_string(stride[i]) + ", or the dilation, " +
                         std::to_string(dilation[i]) + ".");
    }
    const Dim extent = node.shape(0)[static_cast<int>(i) + 2];
    const Dim natural = (extent - 1) * Dim(stride[i]) + (kernel[i] - 1) * Dim(dilation[i]) + 1 + Dim(padding[i]);
    Crop crop{pads[i], pads[i + axes]};
    if (!output_shape.empty()) {
      if (output_shape[i] < 1)
        return broken_rule("output_shape has the entry " + std::to_string(output_shape[i]) +
                           "; it must be at least 1.");
      crop = split_crop(natural - Dim(output_shape[i]), auto_pad == "SAME_UPPER");
    } else if (is_same) {
      crop = split_crop(natural - extent * Dim(stride[i]), auto_pad == "SAME_UPPER");
    }
    pre.push_back(crop.pre);
    post.push_back(crop.post - Dim(padding[i]));
  }
  Value* bias = node.input(pads_are_operand ? 3 : 2);
  TRY(Value * value,
      node.emit(
          "conv_transpose",
          Attributes({{"stride", stride}, {"dilation", dilation}, {"groups", groups}, {"pre", pre}, {"post", post}}),
          {node.input(0), node.input(1), bias}));
  return Values{value};
}

}  // namespace

std::vector<Converter> convolution_converters() {
  return {
      {"Conv", {1, 11, 22}, 2, 3, convert_conv},
      {"ConvTranspose", {1, 11, 22}, 2, 3, convert_conv_transpose},
      {"ConvTransposeWithDynamicPads", {1}, 2, 4, convert_conv_transpose, "com.microsoft"},
  };
}

}  // namespace polyphase
