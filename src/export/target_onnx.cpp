// Rules of ONNX itself: a model for any engine that keeps to the standard.
#include "export/computed_crop.h"
#include "export/conv_transpose.h"
#include "export/rule.h"

namespace polyphase::legal {
namespace {

Result<std::string> has_computed_pads(const onnx::NodeProto&, const ModelFacts&) {
  return std::string("com.microsoft.ConvTransposeWithDynamicPads is no operator of ONNX");
}

Result<std::string> names_batch_in_output_shape(const onnx::NodeProto& node, const ModelFacts& model) {
  TRY(const ConvTransposeFacts facts, read_conv_transpose(node, model));
  if (facts.output_shape.size() <= facts.axes()) return std::string();
  return std::string("output_shape names batch and channels, which ONNX does not allow");
}

Result<void> drop_batch_of_output_shape(const onnx::NodeProto& node, Replacement& out) {
  std::vector<std::int64_t> sizes = integers_of(node, "output_shape");
  sizes.erase(sizes.begin(), sizes.begin() + 2);
  out.add_last("ConvTranspose", {node.input().begin(), node.input().end()});
  out.latest().mutable_attribute()->CopyFrom(node.attribute());
  set_integers(out.latest(), "output_shape", sizes);
  return {};
}

// ONNX takes any output_padding below the larger of stride and dilation; below the stride everybody does.
Result<void> crop_as_pads(const onnx::NodeProto& node, Replacement& out) {
  return rewrite_as_pads(node, {OutputPadding::below_stride, Crop::any}, out);
}

}  // namespace

ExportTarget onnx_target() {
  return {
      "onnx",
      "ONNX as its specification has it",
      "onnx.checker on the whole model, then ONNX Runtime",
      {{"computed-pads", "ConvTransposeWithDynamicPads", "com.microsoft", "every opset",
        "ONNX Runtime, docs/ContribOperators.md; onnx/onnx issue 1772 (output_shape cannot be an operand)",
        "An operator of ONNX Runtime alone, for pads that are computed. Becomes ConvTranspose, with these pads where "
        "they "
        "are known, else with a Slice whose borders are computed from them and from Shape.",
        has_computed_pads, rewrite_computed_pads},
       {"output-shape-below-input", "ConvTranspose", "", "every opset",
        "onnx/onnx, onnx/defs/nn/defs.cc: shape inference leaves a result of another rank",
        "The checker and whoever runs ONNX's shape inference refuse the model: where output_shape is smaller than "
        "the input, the output gets the wrong rank. Becomes pads.",
        output_shape_below_input, crop_as_pads},
       {"output-shape-of-all-axes", "ConvTranspose", "", "every opset",
        "ONNX, docs/Operators.md, ConvTranspose: output_shape holds the spatial sizes (onnx/onnx pull request 5400)",
        "Exporters wrote batch and channels into output_shape as well. Becomes the spatial sizes alone.",
        names_batch_in_output_shape, drop_batch_of_output_shape}}};
}

}  // namespace polyphase::legal
