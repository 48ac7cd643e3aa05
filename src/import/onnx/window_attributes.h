// What Conv, ConvTranspose and the pools share: the attributes of a sliding window, as ops/onnx_window.h takes them.
#pragma once

#include <vector>

#include "base/dim.h"
#include "import/onnx/node_context.h"
#include "ops/onnx_window.h"

namespace polyphase {

// The attributes of the node as they stand. `kernel` is empty for pools, whose kernel is kernel_shape.
OnnxWindowSettings window_settings(NodeContext& node, std::vector<Dim> kernel);

// "" is what some exporters write for NOTSET.
std::string read_auto_pad(NodeContext& node);
// The pads attribute as sizes; nothing where it is absent or empty.
std::optional<std::vector<Dim>> read_pads(NodeContext& node);
// An integers attribute; nothing where it is absent or empty.
std::optional<std::vector<std::int64_t>> read_list(NodeContext& node, std::string_view attribute_name);

}  // namespace polyphase
