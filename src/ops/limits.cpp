// What TensorRT refuses. Source of all rules: NVIDIA/TensorRT's headers of release 11.1 (INetworkDefinition,
// IConvolutionLayer, IDeconvolutionLayer, DataType), which say the same from 8.0 on where no version is named.
#include "ops/limits.h"

#include <algorithm>
#include <array>

namespace polyphase {
namespace {

const Type* operand(const LimitedUse& use, std::size_t i) {
  return i < use.operands.size() ? use.operands[i] : nullptr;
}

std::string one_dimensional(const LimitedUse& use) {
  return operand(use, 0)->shape.rank() == 3 ? "x is " + operand(use, 0)->text() : "";
}

std::string open_channels(const LimitedUse& use) {
  const Shape& shape = operand(use, 0)->shape;
  return shape.rank() > 1 && !shape[1].is_constant() ? "the channels of x are " + shape[1].text() : "";
}

std::string other_than_floats(const LimitedUse& use) {
  constexpr std::array taken = {DType::f32, DType::f16, DType::bf16, DType::i8, DType::f8e4m3};
  const DType dtype = operand(use, 0)->dtype;
  const bool is_taken = std::find(taken.begin(), taken.end(), dtype) != taken.end();
  return is_taken ? "" : "x is " + operand(use, 0)->text();
}

// pre or post of the operator: below 0, or (`computed`) known only when the network runs.
std::string padding_that(const LimitedUse& use, bool computed) {
  for (const char* name : {"pre", "post"}) {
    const auto& padding = use.attributes.get<std::vector<Dim>>(name);
    const bool is_there = std::any_of(padding.begin(), padding.end(), [&](const Dim& dim) {
      return computed ? !dim.is_constant() : dim.is_constant() && dim.value() < 0;
    });
    if (is_there) return std::string(name) + "-padding is " + print_attribute(padding);
  }
  return "";
}

std::string groups_not_of_four(const LimitedUse& use) {
  const auto groups = use.attributes.get<std::int64_t>("groups");
  const Type& x = *operand(use, 0);
  const Shape& w = operand(use, 1)->shape;
  if (x.shape.rank() < 2 || w.rank() < 2) return "";
  if (x.dtype != DType::i8 || groups == 1 || !x.shape[1].is_constant() || !w[0].is_constant() || !w[1].is_constant())
    return "";
  const bool transposed = use.op == "conv_transpose";
  const std::int64_t in = x.shape[1].value() / groups;
  const std::int64_t out = transposed ? w[1].value() : w[0].value() / groups;
  if (in % 4 == 0 && out % 4 == 0) return "";
  return "a group has " + std::to_string(in) + " channels of x and " + std::to_string(out) + " of the result";
}

std::string too_many_elements(const LimitedUse& use) {
  for (const Type* type : use.operands) {
    const auto count = type == nullptr ? std::nullopt : type->shape.element_count().constant();
    if (count.has_value() && *count > INT64_C(1) << 31) return "a tensor is " + type->text();
  }
  return "";
}

std::string dtype_without_name(const LimitedUse& use) {
  constexpr std::array lacking = {DType::f64, DType::f8e5m2, DType::i16, DType::u16, DType::u32, DType::u64, DType::u4};
  for (const Type* type : use.operands) {
    if (type != nullptr && std::find(lacking.begin(), lacking.end(), type->dtype) != lacking.end())
      return "a tensor is " + type->text();
  }
  return "";
}

constexpr std::string_view two_dimensions =
    "Reshape x to (N, C, 1, W) and the weight to (.., .., 1, k), with stride 1, dilation 1 and no padding on the new "
    "axis; reshape the result back.";
constexpr std::string_view fixed_channels =
    "Give the input a number of channels, or reshape x to one before the layer.";
constexpr std::string_view four_per_group =
    "Fill each group with channels of zeros up to a multiple of 4, or leave this layer in float16.";

constexpr TargetLimit tensorrt[] = {
    {"convolution-1d", "conv", "a convolution has 2 or 3 spatial axes", two_dimensions,
     "NvInfer.h, INetworkDefinition::addConvolutionNd", one_dimensional},
    {"deconvolution-1d", "conv_transpose", "a deconvolution has 2 or 3 spatial axes", two_dimensions,
     "NvInfer.h, INetworkDefinition::addDeconvolutionNd", one_dimensional},
    {"convolution-channels", "conv", "the channels of a convolution's input are a number", fixed_channels,
     "NvInfer.h, INetworkDefinition::addConvolutionNd", open_channels},
    {"deconvolution-channels", "conv_transpose", "the channels of a deconvolution's input are a number", fixed_channels,
     "NvInfer.h, INetworkDefinition::addDeconvolutionNd", open_channels},
    {"convolution-dtype", "conv", "a convolution takes floats and int8",
     "Cast x and the weight to float32 before, and the result back.", "NvInfer.h, INetworkDefinition::addConvolutionNd",
     other_than_floats},
    {"deconvolution-dtype", "conv_transpose", "a deconvolution takes floats and int8, never int32",
     "Cast x and the weight to float32 before, and the result back.",
     "NvInfer.h, INetworkDefinition::addDeconvolutionNd", other_than_floats},
    {"deconvolution-negative-padding", "conv_transpose",
     "the pre- and post-padding of a deconvolution are 0 or more, and there is no output_padding",
     "Deconvolve without bias and with 0 where the padding is negative, add the missing places with `pad`, and add the "
     "bias after it.",
     "NvInfer.h, IDeconvolutionLayer::setPrePadding, setPostPadding",
     [](const LimitedUse& use) { return padding_that(use, false); }},
    {"deconvolution-computed-padding", "conv_transpose",
     "the paddings of a deconvolution are numbers when the engine is built",
     "Give output_padding as large as the stride allows, and cut the result with `slice` to the size that is wanted.",
     "NvInfer.h, IDeconvolutionLayer::setPrePadding, setPostPadding",
     [](const LimitedUse& use) { return padding_that(use, true); }},
    {"convolution-int8-groups", "conv",
     "in int8 the channels of each group are a multiple of 4, of the input and of the output", four_per_group,
     "NvInfer.h, IConvolutionLayer::setNbGroups", groups_not_of_four},
    {"deconvolution-int8-groups", "conv_transpose",
     "in int8 the channels of each group are a multiple of 4, of the input and of the output", four_per_group,
     "NvInfer.h, IDeconvolutionLayer::setNbGroups", groups_not_of_four},
    {"dtypes", "", "a tensor is of float32, float16, bfloat16, float8e4m3, int4, int8, uint8, int32, int64 or bool",
     "Cast it to one of these outside of the network.", "NvInferRuntimeBase.h, DataType", dtype_without_name},
    {"elements", "", "a tensor has at most 2^31 elements", "Cut the tensor, or the batch, into parts.",
     "docs.nvidia.com, TensorRT operators, Deconvolution, volume limits", too_many_elements},
};

constexpr TargetLimits all_limits[] = {{"tensorrt", "TensorRT", "8.0 to 11.1", tensorrt}};

}  // namespace

const TargetLimit* TargetLimits::broken_by(const LimitedUse& use, std::string& found) const {
  for (const TargetLimit& limit : limits) {
    if (!limit.op.empty() && limit.op != use.op) continue;
    found = limit.found(use);
    if (!found.empty()) return &limit;
  }
  return nullptr;
}

std::span<const TargetLimits> target_limits() { return all_limits; }

const TargetLimits* find_limits(std::string_view target) {
  for (const TargetLimits& one : all_limits) {
    if (one.target == target) return &one;
  }
  return nullptr;
}

}  // namespace polyphase
