// How PyTorch's and ONNX's settings of a transposed convolution become the operator conv_transpose: their legality
// rules in their own words, and the arithmetic from padding, output_padding, auto_pad, output_shape, output_size to one
// crop. No graph; sizes are Dims.
//
// What these functions cannot prove about symbolic sizes they append to `checks`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ops/op.h"

namespace polyphase {

// Attributes of conv_transpose, and what an importer must know beside them.
struct ConvTransposeForm {
  std::vector<std::int64_t> stride;
  std::vector<std::int64_t> dilation;
  std::int64_t groups = 1;
  std::vector<Dim> pre;
  std::vector<Dim> post;
  bool unbatched = false;             // PyTorch only: the operand lacks the batch axis; so does the result
  std::vector<std::string> warnings;  // accepted although the specification forbids it
};

// Arguments of torch.nn.functional.conv_transpose{spatial}d. A list of one entry counts for every axis, as in PyTorch.
struct TorchConvTranspose {
  int spatial = 2;
  Type input;   // (N, C, spatial...) or (C, spatial...)
  Type weight;  // (C, Cout/groups, k...)
  std::optional<Type> bias = std::nullopt;
  std::vector<std::int64_t> stride = {1};
  std::vector<Dim> padding = {Dim(0)};
  std::vector<Dim> output_padding = {Dim(0)};
  std::int64_t groups = 1;
  std::vector<std::int64_t> dilation = {1};
  // What PyTorch does not have: another padding at the end than at the beginning. Both may be negative then.
  std::optional<std::vector<Dim>> post_padding = std::nullopt;
};
// pre = padding, post = padding (or post_padding) - output_padding.
Result<ConvTransposeForm> torch_conv_transpose(const TorchConvTranspose& given, std::vector<DimCheck>& checks);
// The output_padding that makes the modules ConvTranspose1d, 2d, 3d give `output_size` (spatial sizes, or the whole
// shape).
Result<std::vector<Dim>> torch_output_size(const TorchConvTranspose& given, const std::vector<Dim>& output_size,
                                           std::vector<DimCheck>& checks);

// Attributes of ONNX's ConvTranspose; nullopt: absent. Pads are all begins, then all ends; they may be computed, for
// com.microsoft's ConvTransposeWithDynamicPads.
struct OnnxConvTranspose {
  Shape input;
  Shape weight;
  std::string auto_pad = "NOTSET";
  std::optional<std::vector<std::int64_t>> dilations = std::nullopt;
  std::int64_t group = 1;
  std::optional<std::vector<std::int64_t>> kernel_shape = std::nullopt;
  std::optional<std::vector<std::int64_t>> output_padding = std::nullopt;
  std::optional<std::vector<Dim>> output_shape = std::nullopt;
  std::optional<std::vector<Dim>> pads = std::nullopt;
  std::optional<std::vector<std::int64_t>> strides = std::nullopt;
};
Result<ConvTransposeForm> onnx_conv_transpose(const OnnxConvTranspose& given, std::vector<DimCheck>& checks);

}  // namespace polyphase
