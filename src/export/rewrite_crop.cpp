// A crop that is known, in words that every engine reads: pads, beside zeros in front and a Slice behind where pads do
// not suffice.
#include <algorithm>

#include "export/conv_transpose.h"

namespace polyphase::legal {
namespace {

// One axis.
struct AxisCrop {
  std::int64_t zeros_before = 0;  // of x, or of the kernel
  std::int64_t zeros_behind = 0;
  std::int64_t pad_before = 0;  // of the convolution
  std::int64_t pad_behind = 0;
  std::int64_t output_padding = 0;
  std::int64_t slice_before = 0;  // of its output
  std::int64_t slice_behind = 0;
};

AxisCrop axis_crop(const ConvTransposeFacts& facts, std::size_t i, const CropForm& form) {
  AxisCrop out;
  const bool of_input = form.growth == Growth::around_input;
  const std::int64_t step = of_input ? facts.stride[i] : facts.dilation[i];
  std::int64_t before = facts.pre[i].value();
  std::int64_t behind = facts.post[i].value();
  out.zeros_before = ceil_div(std::max<std::int64_t>(0, -before), step);
  before += step * out.zeros_before;
  const std::int64_t most = most_output_padding(form.output_padding, facts, i);
  out.zeros_behind = ceil_div(std::max<std::int64_t>(0, -behind - most), step);
  behind += step * out.zeros_behind;
  const std::int64_t limit = form.crop == Crop::any ? INT64_MAX : facts.span(i) - 1;
  out.pad_before = std::min(before, limit);
  out.slice_before = before - out.pad_before;
  out.output_padding = std::max<std::int64_t>(0, -behind);
  out.pad_behind = std::min(std::max<std::int64_t>(0, behind), limit);
  out.slice_behind = std::max<std::int64_t>(0, behind) - out.pad_behind;
  return out;
}

struct Lists {
  std::vector<std::int64_t> zeros, pads, output_padding, slice_before, slice_behind;
  bool any_zeros = false;
  bool any_slice = false;
  bool any_output_padding = false;
};

Lists lists_of(const ConvTransposeFacts& facts, const CropForm& form) {
  std::vector<AxisCrop> axes;
  for (std::size_t i = 0; i < facts.axes(); ++i) axes.push_back(axis_crop(facts, i, form));
  Lists out;
  out.zeros = {0, 0};
  for (const AxisCrop& axis : axes) out.zeros.push_back(axis.zeros_before);
  out.zeros.insert(out.zeros.end(), {0, 0});
  for (const AxisCrop& axis : axes) out.zeros.push_back(axis.zeros_behind);
  for (const AxisCrop& axis : axes) out.pads.push_back(axis.pad_before);
  for (const AxisCrop& axis : axes) {
    out.pads.push_back(axis.pad_behind);
    out.output_padding.push_back(axis.output_padding);
    out.slice_before.push_back(axis.slice_before);
    out.slice_behind.push_back(axis.slice_behind);
    out.any_zeros = out.any_zeros || axis.zeros_before + axis.zeros_behind > 0;
    out.any_slice = out.any_slice || axis.slice_before + axis.slice_behind > 0;
    out.any_output_padding = out.any_output_padding || axis.output_padding > 0;
  }
  return out;
}

// The weight with taps of 0; one that is computed gets a node.
Result<std::string> kernel_with_zeros(const ConvTransposeFacts& facts, const std::vector<std::int64_t>& zeros,
                                      const std::string& weight, Replacement& out) {
  const std::size_t rank = facts.axes() + 2;
  Type grown = facts.weight;
  for (std::size_t i = 2; i < rank; ++i) grown.shape[static_cast<int>(i)] += Dim(zeros[i] + zeros[rank + i]);
  const auto* constant = out.model().initializer(weight);
  const auto sizes = grown.shape.evaluate({});
  if (constant == nullptr || !sizes.has_value()) return out.pad(weight, zeros, "weight_with_zeros", grown);
  TRY(const Tensor taps, out.model().elements(*constant));
  TRY(const Tensor all, Tensor::allocate(taps.dtype(), *sizes));
  TensorView inside = all.view();
  for (std::size_t i = 2; i < rank; ++i) {
    inside.sizes[i] = facts.kernel[i - 2];
    inside.data += zeros[i] * inside.strides[i] * static_cast<std::int64_t>(size_bytes(taps.dtype()));
  }
  copy_elements(taps.view(), inside);
  return out.constant(all, "weight_with_zeros");
}

}  // namespace

std::int64_t most_output_padding(OutputPadding taken, const ConvTransposeFacts& facts, std::size_t axis) {
  if (taken == OutputPadding::none) return 0;
  const std::int64_t stride = facts.stride[axis];
  return (taken == OutputPadding::as_onnx ? std::max(stride, facts.dilation[axis]) : stride) - 1;
}

Result<void> rewrite_crop(const onnx::NodeProto& node, const CropForm& form, Replacement& out) {
  TRY(const ConvTransposeFacts facts, read_conv_transpose(node, out.model()));
  return rewrite_crop_of(node, {node.input().begin(), node.input().end()}, facts, form, out);
}

Result<void> rewrite_crop_of(const onnx::NodeProto& node, std::vector<std::string> inputs,
                             const ConvTransposeFacts& facts, const CropForm& form, Replacement& out) {
  const Lists lists = lists_of(facts, form);
  if (lists.any_zeros && form.growth == Growth::around_kernel) {
    TRY(inputs[1], kernel_with_zeros(facts, lists.zeros, inputs[1], out));
  } else if (lists.any_zeros) {
    Type grown = facts.x;
    const std::size_t rank = facts.axes() + 2;
    for (std::size_t i = 2; i < rank; ++i)
      grown.shape[static_cast<int>(i)] += Dim(lists.zeros[i] + lists.zeros[rank + i]);
    inputs[0] = out.pad(inputs[0], lists.zeros, "with_zeros", grown);
  }
  const auto fill = [&](onnx::NodeProto& convolution) {
    convolution.mutable_attribute()->CopyFrom(node.attribute());
    for (const char* name : {"auto_pad", "output_shape", "output_padding", "pads"}) drop_attribute(convolution, name);
    if (form.growth == Growth::around_kernel && lists.any_zeros) drop_attribute(convolution, "kernel_shape");
    set_integers(convolution, "pads", lists.pads);
    if (lists.any_output_padding) set_integers(convolution, "output_padding", lists.output_padding);
  };
  if (!lists.any_slice) {
    out.add_last("ConvTranspose", inputs);
    fill(out.latest());
    return {};
  }
  const std::string uncropped = out.add("ConvTranspose", inputs, "uncropped");
  fill(out.latest());
  const auto operands = out.crop_operands(uncropped, lists.slice_before, lists.slice_behind);
  out.add_last("Slice", operands);
  out.set_crop(lists.slice_before, lists.slice_behind);
  return {};
}

}  // namespace polyphase::legal
