// Gathers the attributes; their rules are in ops/onnx_window.cpp.
#include "import/onnx/window_attributes.h"

namespace polyphase {

std::string read_auto_pad(NodeContext& node) {
  std::string auto_pad = node.word("auto_pad", "NOTSET");
  return auto_pad.empty() ? "NOTSET" : auto_pad;
}

std::optional<std::vector<std::int64_t>> read_list(NodeContext& node, std::string_view attribute_name) {
  auto list = node.integers(attribute_name);
  return list.has_value() && list->empty() ? std::nullopt : list;
}

std::optional<std::vector<Dim>> read_pads(NodeContext& node) {
  const auto list = read_list(node, "pads");
  if (!list.has_value()) return std::nullopt;
  return std::vector<Dim>(list->begin(), list->end());
}

OnnxWindowSettings window_settings(NodeContext& node, std::vector<Dim> kernel) {
  const auto kernel_shape = read_list(node, "kernel_shape");
  if (kernel.empty() && kernel_shape.has_value()) kernel.assign(kernel_shape->begin(), kernel_shape->end());
  OnnxWindowSettings settings;
  settings.op = std::string(node.op_type());
  settings.input = node.shape(0);
  settings.kernel = std::move(kernel);
  settings.auto_pad = read_auto_pad(node);
  settings.dilations = read_list(node, "dilations");
  settings.kernel_shape = kernel_shape;
  settings.pads = read_pads(node);
  settings.strides = read_list(node, "strides");
  return settings;
}

}  // namespace polyphase
