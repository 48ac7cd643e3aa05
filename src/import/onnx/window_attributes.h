// What Conv and the pools share: kernel, strides, dilations, and padding by pads or auto_pad.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/dim.h"
#include "base/result.h"
#include "import/onnx/node_context.h"

namespace polyphase {

struct OnnxWindow {
  std::vector<std::int64_t> stride;
  std::vector<std::int64_t> dilation;
  std::vector<Dim> pre;
  std::vector<Dim> post;
};

// The attribute's entries, one per spatial axis and in [least, 2^31); `otherwise` where it is absent.
Result<std::vector<std::int64_t>> spatial_attribute(NodeContext& node, std::string_view attribute_name,
                                                    std::size_t axes, std::int64_t least, std::int64_t otherwise);

// Spatial axes of operand 0, (N, C, spatial…): one to three.
Result<std::size_t> spatial_axes(NodeContext& node);

// strides, dilations and padding for this kernel over operand 0.
Result<OnnxWindow> read_window(NodeContext& node, const std::vector<Dim>& kernel, bool has_dilations = true);

}  // namespace polyphase
