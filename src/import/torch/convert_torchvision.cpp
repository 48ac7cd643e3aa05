// Operators of torchvision that are more than calls of ATen.
#include "import/compose/composer.h"
#include "import/compose/deform_conv.h"
#include "import/torch/aten_node.h"

namespace polyphase {
namespace {

// torchvision.ops.deform_conv2d writes zeros for a bias, and for a mask with use_mask=False, where the caller gave
// none.
Result<Values> convert_deform_conv2d(AtenNode& node) {
  DeformConv conv{.x = node.tensor("input"),
                  .weight = node.tensor("weight"),
                  .offset = node.tensor("offset"),
                  .mask = node.flag("use_mask") ? node.tensor("mask") : nullptr,
                  .bias = node.tensor("bias"),
                  .stride = {node.integer("stride_h"), node.integer("stride_w")},
                  .dilation = {node.integer("dilation_h"), node.integer("dilation_w")},
                  .pad = {node.integer("pad_h"), node.integer("pad_w")},
                  .groups = node.integer("groups"),
                  .offset_groups = node.integer("offset_groups")};
  TRY_VOID(node.finish());
  for (std::size_t i = 0; i < 2; ++i) {
    if (conv.stride[i] < 1 || conv.dilation[i] < 1 || conv.pad[i] < 0)
      return broken_program("strides and dilations must be at least 1 and paddings at least 0, found stride " +
                            std::to_string(conv.stride[i]) + ", dilation " + std::to_string(conv.dilation[i]) +
                            " and padding " + std::to_string(conv.pad[i]) + ".");
  }
  TRY(Value * y, deform_conv(node, conv));
  Composer c(node);
  for (int axis = 2; axis < 4; ++axis) {
    const auto i = static_cast<std::size_t>(axis - 2);
    const Dim reach = Dim(conv.dilation[i]) * (c.size(conv.weight, axis) - 1) + 1;
    const Dim windows = floor_div(c.size(conv.x, axis) + Dim(conv.pad[i]) * Dim(2) - reach, conv.stride[i]) + 1;
    c.require_equal(c.size(conv.offset, axis), windows,
                    "axis " + std::to_string(axis) + " of the offsets " + conv.offset->type.text() +
                        " must be as large as the result, " + windows.text() + ".");
  }
  return c.results({y});
}

}  // namespace

std::vector<AtenEntry> torchvision_entries() {
  return {
      {"torchvision::deform_conv2d(Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, SymInt "
       "stride_h, SymInt stride_w, SymInt pad_h, SymInt pad_w, SymInt dilation_h, SymInt dilation_w, SymInt groups, "
       "SymInt offset_groups, bool use_mask) -> Tensor",
       convert_deform_conv2d},
  };
}

}  // namespace polyphase
