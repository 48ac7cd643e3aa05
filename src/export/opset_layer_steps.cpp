// Layers whose meaning or form a version changed: transposed convolutions, pools, normalisations, samplers.
#include <array>

#include "base/lasting.h"
#include "export/conv_transpose.h"
#include "export/opset_step.h"
#include "export/replacement.h"

namespace polyphase::legal {
namespace {

// Before opset 11 an odd crop is split the other way, by the words of the specification; readers differ. Pads leave
// nothing to split.
Result<void> odd_crop(const onnx::NodeProto& node, Replacement& out) {
  TRY(const ConvTransposeFacts facts, read_conv_transpose(node, out.model()));
  if (!facts.is_same() && facts.output_shape.empty()) return {};
  if (!facts.fixed_crop())
    return cannot_be_said(
        "it asks for an output_shape, the sizes of its input are open, and the versions differ in "
        "the side that an odd crop takes away");
  return rewrite_crop(node, {OutputPadding::as_onnx, Crop::any, Growth::around_input}, out);
}

// From opset 22 on a window that begins behind the input and the padding in front of it does not count.
Result<void> late_windows(const onnx::NodeProto& node, Replacement&) {
  if (integer_of(node, "ceil_mode", 0) == 0) return {};
  const std::string auto_pad = word_of(node, "auto_pad");
  if (!auto_pad.empty() && auto_pad != "NOTSET") return {};
  const auto kernel = integers_of(node, "kernel_shape");
  const auto strides = integers_of(node, "strides");
  const auto dilations = integers_of(node, "dilations");
  const auto pads = integers_of(node, "pads");
  for (std::size_t i = 0; i < kernel.size(); ++i) {
    const std::int64_t stride = i < strides.size() ? strides[i] : 1;
    const std::int64_t span = (kernel[i] - 1) * (i < dilations.size() ? dilations[i] : 1) + 1;
    const std::int64_t behind = kernel.size() + i < pads.size() ? pads[kernel.size() + i] : 0;
    if (behind + stride > span)
      return cannot_be_said("with ceil_mode its last window may begin behind the input (stride " +
                            std::to_string(stride) + " and padding " + std::to_string(behind) + " beyond a window of " +
                            std::to_string(span) + "), which the versions count differently");
  }
  return {};
}

Result<void> batch_norm_spatial_up(const onnx::NodeProto& node, Replacement& out) {
  if (has_result(node, 1)) return cannot_be_said("it gives statistics, so it is in training");
  if (find_attribute(node, "spatial") == nullptr) return {};
  if (integer_of(node, "spatial", 1) != 1) return cannot_be_said("it has statistics for each element (spatial=0)");
  drop_attribute(out.again(), "spatial");
  return {};
}

Result<void> batch_norm_no_training(const onnx::NodeProto& node, Replacement& out) {
  for (int i = 1; i < node.output_size(); ++i) {
    if (has_result(node, i)) return cannot_be_said("it gives statistics, so it is in training");
  }
  if (integer_of(node, "training_mode", 0) != 0) return cannot_be_said("it is in training (training_mode)");
  if (find_attribute(node, "training_mode") != nullptr) drop_attribute(out.again(), "training_mode");
  return {};
}

// Operands of several types: from opset 14 on mean and variance, from 15 on scale and bias.
Result<void> batch_norm_types(const onnx::NodeProto& node, int last, const Replacement& out) {
  TRY(const Type first, operand_type(node, 0, out.model()));
  for (int i = 1; i <= last; ++i) {
    TRY(const Type type, operand_type(node, i, out.model()));
    if (type.dtype != first.dtype) return cannot_be_said("its operands are of several types");
  }
  return {};
}

Result<void> batch_norm_scale_down(const onnx::NodeProto& node, Replacement& out) {
  return batch_norm_types(node, 2, out);
}

Result<void> batch_norm_training_down(const onnx::NodeProto& node, Replacement& out) {
  TRY_VOID(batch_norm_types(node, 4, out));
  return batch_norm_no_training(node, out);
}

Result<void> renamed_mode(const onnx::NodeProto& node,
                          std::span<const std::pair<std::string_view, std::string_view>> names, Replacement& out) {
  const std::string mode = word_of(node, "mode");
  for (const auto& [from, to] : names) {
    if (mode == from) set_word(out.again(), "mode", to);
  }
  return {};
}

constexpr std::array<std::pair<std::string_view, std::string_view>, 2> grid_sample_names = {
    {{"bilinear", "linear"}, {"bicubic", "cubic"}}};
constexpr std::array<std::pair<std::string_view, std::string_view>, 2> grid_sample_old_names = {
    {{"linear", "bilinear"}, {"cubic", "bicubic"}}};

Result<void> grid_sample_up(const onnx::NodeProto& node, Replacement& out) {
  return renamed_mode(node, grid_sample_names, out);
}

Result<void> grid_sample_down(const onnx::NodeProto& node, Replacement& out) {
  TRY(const Type type, operand_type(node, 0, out.model()));
  if (type.shape.rank() != 4) return cannot_be_said("it samples volumes");
  return renamed_mode(node, grid_sample_old_names, out);
}

Result<void> roi_align_up(const onnx::NodeProto& /*node*/, Replacement& out) {
  set_word(out.again(), "coordinate_transformation_mode", "output_half_pixel");
  return {};
}

Result<void> roi_align_down(const onnx::NodeProto& node, Replacement& out) {
  if (word_of(node, "coordinate_transformation_mode") != "output_half_pixel")
    return cannot_be_said("its places are moved by half a pixel (coordinate_transformation_mode)");
  drop_attribute(out.again(), "coordinate_transformation_mode");
  return {};
}

// One scale for all: the axis says nothing.
Result<void> quantised_axis_down(const onnx::NodeProto& node, Replacement& out) {
  TRY(const Type scale, operand_type(node, 1, out.model()));
  const Dim count = scale.shape.element_count();
  if (!count.is_constant() || count.value() != 1) return cannot_be_said("it has a scale for each channel");
  if (find_attribute(node, "axis") != nullptr) drop_attribute(out.again(), "axis");
  return {};
}

Result<void> gemm_down(const onnx::NodeProto& node, Replacement& out) {
  if (has_operand(node, 2)) return {};
  TRY(const Type type, operand_type(node, 0, out.model()));
  const std::string zero = out.constant(number_tensor(type.dtype, 0, {1}), "c");
  set_operand(out.again(), 2, zero);
  return {};
}

// The channels of a block are its first axis in CRD: x[N, C, b, b, H, W] → [N, C, H, b, W, b].
Result<void> depth_to_space_down(const onnx::NodeProto& node, Replacement& out) {
  if (word_of(node, "mode") != "CRD") {
    if (find_attribute(node, "mode") != nullptr) drop_attribute(out.again(), "mode");
    return {};
  }
  TRY(const Type type, operand_type(node, 0, out.model()));
  std::vector<std::int64_t> size;
  for (int i = 1; i < type.shape.rank(); ++i) {
    if (!type.shape[i].is_constant()) return cannot_be_said("mode=CRD does not exist before, and its sizes are open");
    size.push_back(type.shape[i].value());
  }
  if (size.size() != 3) return cannot_be_said("its operand has not four axes");
  const std::int64_t block = std::max<std::int64_t>(1, integer_of(node, "blocksize", 1));
  const std::int64_t channels = size[0] / (block * block);
  const Type apart_type{type.dtype,
                        Shape{type.shape[0], Dim(channels), Dim(block), Dim(block), Dim(size[1]), Dim(size[2])}};
  const std::string apart =
      out.add("Reshape", {node.input(0), out.integers({0, channels, block, block, size[1], size[2]}, "apart_shape")},
              "apart", &apart_type);
  const std::string ordered = out.add("Transpose", {apart}, "ordered");
  set_integers(out.latest(), "perm", {0, 1, 4, 2, 5, 3});
  out.add_last("Reshape", {ordered, out.integers({0, channels, size[1] * block, size[2] * block}, "shape")});
  return {};
}

Result<void> scatter_reduction_down(const onnx::NodeProto& node, Replacement&) {
  const std::string reduction = word_of(node, "reduction");
  if (reduction == "max" || reduction == "min")
    return cannot_be_said("reduction=" + reduction + " does not exist before");
  return {};
}

}  // namespace

std::span<const OpsetStep> layer_steps() {
  constexpr std::string_view windows = "with ceil_mode, windows that begin behind the input do not count";
  static const std::vector<OpsetStep>& steps = lasting<std::vector<OpsetStep>>(
      {{"ConvTranspose", 11, "the side from which auto_pad and output_shape take an odd place is defined", odd_crop,
        odd_crop},
       {"AveragePool", 22, windows, late_windows, late_windows},
       {"MaxPool", 22, windows, late_windows, late_windows},
       {"BatchNormalization", 9, "spatial does not exist", batch_norm_spatial_up},
       {"BatchNormalization", 14, "training_mode says whether it is in training; before, the number of results",
        batch_norm_no_training, batch_norm_training_down},
       {"BatchNormalization", 15, "scale and bias may be of another type", nullptr, batch_norm_scale_down},
       {"GridSample", 20, "the modes are called linear and cubic, and volumes are sampled", grid_sample_up,
        grid_sample_down},
       {"RoiAlign", 16, "coordinate_transformation_mode exists, and half_pixel is its default", roi_align_up,
        roi_align_down},
       {"QuantizeLinear", 13, "axis lets each channel have its scale", nullptr, quantised_axis_down},
       {"DequantizeLinear", 13, "axis lets each channel have its scale", nullptr, quantised_axis_down},
       {"Gemm", 11, "C may be absent", nullptr, gemm_down},
       {"DepthToSpace", 11, "mode CRD exists", nullptr, depth_to_space_down},
       {"ScatterElements", 18, "reductions max and min exist", nullptr, scatter_reduction_down},
       {"ScatterND", 18, "reductions max and min exist", nullptr, scatter_reduction_down}});
  return steps;
}

}  // namespace polyphase::legal
