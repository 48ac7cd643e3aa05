// auto_pad over Dim: SAME gives ceil(I / s) results; the odd element of the padding goes to the end (SAME_UPPER) or the
// beginning.
#include "import/onnx/window_attributes.h"

#include <algorithm>

namespace polyphase {

Result<std::vector<std::int64_t>> spatial_attribute(NodeContext& node, std::string_view attribute_name,
                                                    std::size_t axes, std::int64_t least, std::int64_t otherwise) {
  const auto given = node.integers(attribute_name);
  if (!given.has_value() || given->empty()) return std::vector<std::int64_t>(axes, otherwise);
  if (given->size() != axes) {
    return broken_rule(std::string(attribute_name) + " has " + std::to_string(given->size()) +
                       " entries, but the operand has " + std::to_string(axes) + " spatial axes.");
  }
  for (const std::int64_t entry : *given) {
    if (entry < least || entry >= INT32_MAX) {
      return broken_rule(std::string(attribute_name) + " has the entry " + std::to_string(entry) +
                         "; it must be at least " + std::to_string(least) + " and below 2^31.");
    }
  }
  return *given;
}

Result<std::size_t> spatial_axes(NodeContext& node) {
  const int rank = node.rank(0);
  if (rank >= 3 && rank <= 5) return static_cast<std::size_t>(rank - 2);
  if (rank > 5) {
    return lacking("the operand " + node.type(0).text() + " has " + std::to_string(rank - 2) +
                       " spatial axes; at most 3 are supported.",
                   "Fold axes together with Reshape where the kernel allows it.");
  }
  return broken_rule("the operand must be (N, C, spatial…) with at least one spatial axis, found " +
                     node.type(0).text() + ".");
}

namespace {

Result<void> explicit_pads(NodeContext& node, const std::vector<std::int64_t>& pads, OnnxWindow& window) {
  const std::size_t axes = window.stride.size();
  if (pads.size() != 2 * axes) {
    return broken_rule("pads has " + std::to_string(pads.size()) + " entries; " + std::to_string(axes) +
                       " spatial axes need " + std::to_string(2 * axes) + ", all beginnings, then all ends.");
  }
  for (const std::int64_t entry : pads) {
    if (entry <= -INT32_MAX || entry >= INT32_MAX)
      return broken_rule("pads has the entry " + std::to_string(entry) + ", beyond 32 bits.");
    if (entry < 0) node.warn("pads has the negative entry " + std::to_string(entry) + "; the operand is cropped there");
  }
  for (std::size_t i = 0; i < axes; ++i) {
    window.pre[i] = Dim(pads[i]);
    window.post[i] = Dim(pads[i + axes]);
  }
  return {};
}

}  // namespace

Result<OnnxWindow> read_window(NodeContext& node, const std::vector<Dim>& kernel, bool has_dilations) {
  const std::size_t axes = kernel.size();
  OnnxWindow window;
  TRY(window.stride, spatial_attribute(node, "strides", axes, 1, 1));
  window.dilation.assign(axes, 1);
  if (has_dilations) {
    TRY(window.dilation, spatial_attribute(node, "dilations", axes, 1, 1));
  }
  window.pre.assign(axes, Dim(0));
  window.post.assign(axes, Dim(0));
  const std::string auto_pad = node.word("auto_pad", "NOTSET");
  const auto pads = node.integers("pads");
  if (auto_pad == "NOTSET" || auto_pad.empty()) {
    if (pads.has_value() && !pads->empty()) TRY_VOID(explicit_pads(node, *pads, window));
    return window;
  }
  if (auto_pad != "VALID" && auto_pad != "SAME_UPPER" && auto_pad != "SAME_LOWER") {
    return broken_rule("auto_pad is '" + auto_pad.substr(0, 40) +
                       "'; it must be NOTSET, SAME_UPPER, SAME_LOWER or VALID.");
  }
  if (pads.has_value() && std::any_of(pads->begin(), pads->end(), [](std::int64_t entry) { return entry != 0; })) {
    return broken_rule("both pads and auto_pad=" + auto_pad + " are given; ONNX allows only one of them.");
  }
  if (auto_pad == "VALID") return window;
  for (std::size_t i = 0; i < axes; ++i) {
    const Dim extent = node.shape(0)[static_cast<int>(i) + 2];
    const Dim covered = (kernel[i] - 1) * Dim(window.dilation[i]) + 1;
    const Dim stride(window.stride[i]);
    const Dim total =
        window.stride[i] == 1 ? covered - 1 : max(Dim(0), (ceil_div(extent, stride) - 1) * stride + covered - extent);
    const Dim half = floor_div(total, Dim(2));
    window.pre[i] = auto_pad == "SAME_UPPER" ? half : total - half;
    window.post[i] = total - window.pre[i];
  }
  return window;
}

}  // namespace polyphase
