// How ONNX writes sliding windows (strides, dilations, pads, auto_pad, kernel_shape) and how conv and the pools take
// them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ops/op.h"

namespace polyphase {

// nullopt: the attribute is absent. Pads are all begins, then all ends.
struct OnnxWindowSettings {
  std::string op;           // ONNX's name, for messages
  Shape input;              // (N, C, spatial...)
  std::vector<Dim> kernel;  // spatial sizes: of the weight, or kernel_shape of a pool
  std::string auto_pad = "NOTSET";
  std::optional<std::vector<std::int64_t>> dilations = std::nullopt;
  std::optional<std::vector<std::int64_t>> kernel_shape = std::nullopt;  // beside a weight: must say the same
  std::optional<std::vector<Dim>> pads = std::nullopt;
  std::optional<std::vector<std::int64_t>> strides = std::nullopt;
  bool ceil_mode = false;  // pools
};

// Attributes of conv, max_pool, avg_pool.
struct WindowForm {
  std::vector<std::int64_t> stride;
  std::vector<std::int64_t> dilation;
  std::vector<Dim> pre;
  std::vector<Dim> post;
  bool ceil = false;
};

// Checks the attributes, fills in defaults and copies pads; auto_pad is only checked.
Result<WindowForm> read_onnx_window(const OnnxWindowSettings& given, std::vector<DimCheck>& checks);

// Conv, MaxPool, AveragePool with auto_pad resolved. SAME gives ceil(I / stride) windows, the odd element of padding at
// the end for SAME_UPPER and at the beginning for SAME_LOWER; where the size is symbolic, so is the padding. ceil_mode
// counts for NOTSET only: the specification gives VALID and SAME the same sizes with and without it.
Result<WindowForm> onnx_window(const OnnxWindowSettings& given, std::vector<DimCheck>& checks);

}  // namespace polyphase
