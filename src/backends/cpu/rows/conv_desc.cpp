// Reads conv and conv_transpose steps.
#include "backends/cpu/rows/conv_desc.h"

#include <algorithm>
#include <optional>

#include "backends/cpu/rows/ending_program.h"

namespace polyphase::cpu {
namespace {

int64_t constant_or(const Dim& dim, int64_t otherwise) { return dim.constant().value_or(otherwise); }

std::string refuse_layout(const OperandDesc& operand, const char* what) {
  const int rank = operand.type.shape.rank();
  if (rank < 3 || rank > 5) return std::string(what) + " has no one to three spatial axes";
  if (operand.layout == Layout::row_major(rank) || operand.layout == Layout::channels_last(rank)) return {};
  return std::string(what) + " lies neither channels-first nor channels-last";
}

// A pad that begins a convolution, in the kernels' words; nothing for zeros, which fold into the convolution itself.
std::optional<PadMode> pad_mode_of(const Part& pad) {
  const auto& mode = pad.attributes.get<std::string>("mode");
  if (mode == "reflect") return PadMode::reflect;
  if (mode == "edge") return PadMode::edge;
  if (mode == "wrap") return PadMode::wrap;
  return std::nullopt;
}

std::string refuse_narrow(const OperandDesc& image, NarrowImages takes) {
  if (takes == NarrowImages::bf16) return image.type.dtype == DType::bf16 ? "" : "takes images of f32 and bf16 only";
  return lies_planar(image) ? "" : "takes narrow images channels-first only: others it reads and writes in place";
}

// A beginning can be a pad of spatial axes by elements of the image, before a convolution without padding of its own;
// or a cast, and such a pad behind it.
std::string refuse_beginnings(const StepDesc& desc, NarrowImages narrow) {
  const bool widened = desc.begins_with_cast();
  if (widened) {
    if (std::string reason = refuse_narrow(desc.data(), narrow); !reason.empty()) return reason;
  }
  const std::size_t first = widened ? 1 : 0;
  if (desc.anchor == first) return {};
  const Part& pad = desc.parts[first];
  if (desc.anchor > first + 1 || pad.op->name != "pad" || desc.anchor_part().op->name != "conv")
    return "begins with a pad before conv at most";
  if (widened && narrow != NarrowImages::bf16) return "pads images of f32 only";
  if (!pad_mode_of(pad).has_value()) return "a pad by a constant is no beginning";
  const auto& before = pad.attributes.get<std::vector<Dim>>("pre");
  const auto& after = pad.attributes.get<std::vector<Dim>>("post");
  for (std::size_t axis = 0; axis < before.size(); ++axis) {
    const bool kept = before[axis] == 0 && after[axis] == 0;
    if (axis < 2 ? !kept : !surely_less_equal(0, before[axis]) || !surely_less_equal(0, after[axis]))
      return "the pad crops, or pads other axes than the spatial ones";
  }
  if (pads_by_zeros(desc)) return "pads by zeros and by elements of the image";
  if (is_planar(desc.data())) return "reads a padded image channels-last only";
  return {};
}

}  // namespace

bool pads_by_zeros(const StepDesc& desc) {
  for (const char* side : {"pre", "post"}) {
    const auto& sizes = desc.attributes().get<std::vector<Dim>>(side);
    if (std::any_of(sizes.begin(), sizes.end(), [](const Dim& size) { return !(size == 0); })) return true;
  }
  return false;
}

ConvOperands conv_operands_of(const StepDesc& desc) {
  return {desc.beginnings().empty() ? desc.anchor_operand(0) : desc.parts.front().operands.front(),
          desc.anchor_operand(1), desc.anchor_operand(2)};
}

std::string refuse_conv(const StepDesc& desc, NarrowImages narrow) {
  if (std::string reason = refuse_beginnings(desc, narrow); !reason.empty()) return reason;
  const ConvOperands at = conv_operands_of(desc);
  if (at.data < 0 || at.weight < 0) return "an operand is computed by the step itself";
  for (const int i : {at.data, at.weight, at.bias}) {
    const bool is_widened = desc.begins_with_cast() && i == at.data;
    if (i >= 0 && !is_widened && desc.inputs[static_cast<std::size_t>(i)].type.dtype != DType::f32)
      return "takes f32 operands only";
  }
  const bool narrowed = desc.ends_with_cast();
  if (!narrowed && desc.outputs[0].type.dtype != DType::f32) return "gives f32 only";
  if (narrowed) {
    if (std::string reason = refuse_narrow(desc.outputs[0], narrow); !reason.empty()) return reason;
  }
  if (!desc.inputs[static_cast<std::size_t>(at.weight)].type.shape.is_static())
    return "the weight's sizes are not known";
  if (std::string reason = refuse_layout(desc.inputs[static_cast<std::size_t>(at.data)], "the operand");
      !reason.empty())
    return reason;
  if (std::string reason = refuse_layout(desc.outputs[0], "the result"); !reason.empty()) return reason;
  return refuse_endings(desc, narrowed);
}

ConvShape conv_shape_of(const StepDesc& desc) {
  const ConvOperands at = conv_operands_of(desc);
  const Shape& x = desc.inputs[static_cast<std::size_t>(at.data)].type.shape;
  const Shape& w = desc.inputs[static_cast<std::size_t>(at.weight)].type.shape;
  const Shape& y = desc.outputs[0].type.shape;
  const Attributes& attributes = desc.attributes();
  ConvShape s = {};
  s.transposed = desc.anchor_part().op->name == "conv_transpose";
  s.types = {desc.inputs[static_cast<std::size_t>(at.data)].type.dtype, desc.outputs[0].type.dtype};
  s.batch = constant_or(x[0], 1);
  s.groups = attributes.get<int64_t>("groups");
  s.in_channels = s.transposed ? w[0].value() / s.groups : w[1].value();
  s.out_channels = s.transposed ? w[1].value() : w[0].value() / s.groups;
  const auto& stride = attributes.get<std::vector<int64_t>>("stride");
  const auto& dilation = attributes.get<std::vector<int64_t>>("dilation");
  const auto& pre = attributes.get<std::vector<Dim>>("pre");
  const int lead = 5 - x.rank();
  for (int a = 0; a < 3; ++a) {
    s.in[a] = s.kernel[a] = s.stride[a] = s.dilation[a] = s.out[a] = 1;
    if (a < lead) continue;
    const auto i = static_cast<std::size_t>(a - lead);
    const int axis = a - lead + 2;
    s.in[a] = constant_or(x[axis], 1);
    s.kernel[a] = w[axis].value();
    s.stride[a] = stride[i];
    s.dilation[a] = dilation[i];
    s.pre[a] = constant_or(pre[i], 0);
    s.out[a] = constant_or(y[axis], 1);
  }
  if (desc.anchor > 0 && desc.parts[desc.anchor - 1].op->name == "pad") {
    const Part& pad = desc.parts[desc.anchor - 1];
    s.pad_mode = pad_mode_of(pad).value_or(PadMode::zero);
    const auto& before = pad.attributes.get<std::vector<Dim>>("pre");
    for (int a = lead; a < 3; ++a) s.pre[a] = constant_or(before[static_cast<std::size_t>(a - lead) + 2], 0);
  }
  return s;
}

ConvShape estimated_shape(const StepDesc& desc) {
  ConvShape s = conv_shape_of(desc);
  int64_t in_left = int64_t{1} << 40;
  int64_t out_left = in_left;
  for (int a = 0; a < 3; ++a) {
    s.in[a] = std::min(s.in[a], in_left);
    s.out[a] = std::min(s.out[a], out_left);
    in_left = std::max<int64_t>(1, in_left / std::max<int64_t>(1, s.in[a]));
    out_left = std::max<int64_t>(1, out_left / std::max<int64_t>(1, s.out[a]));
  }
  return s;
}

WeightStrides weight_strides_of(const TensorDesc& desc) {
  const ImageStrides s = image_strides_of(desc);
  return {s.batch, s.channel, {s.axis[0], s.axis[1], s.axis[2]}};
}

bool is_one_pixel(const OperandDesc& operand) {
  const Shape& shape = operand.type.shape;
  return std::all_of(shape.begin() + 2, shape.end(), [](const Dim& size) { return size == 1; });
}

bool is_planar(const OperandDesc& operand) {
  return !operand.layout.is_channels_last() && !(operand.type.shape[1] == 1);
}

bool lies_planar(const OperandDesc& image) { return !image.layout.is_channels_last() || image.type.shape[1] == 1; }

}  // namespace polyphase::cpu
