// Rules of ONNX Runtime, for its CPU provider.
#include <algorithm>

#include "export/computed_crop.h"
#include "export/conv_transpose.h"
#include "export/refusals.h"
#include "export/rule.h"

namespace polyphase::legal {
namespace {

Result<std::string> output_shape_beyond_stride(const onnx::NodeProto& node, const ModelFacts& model) {
  TRY(const ConvTransposeFacts facts, read_conv_transpose(node, model));
  const std::size_t lead = facts.output_shape.size() - std::min(facts.output_shape.size(), facts.axes());
  for (std::size_t i = 0; !facts.output_shape.empty() && i < facts.axes(); ++i) {
    const Dim reached = (facts.x.shape[static_cast<int>(i) + 2] - 1) * Dim(facts.stride[i]) + Dim(facts.span(i));
    const Dim wanted(facts.output_shape[lead + i]);
    if (!surely_less_equal(wanted + 1, reached + Dim(facts.stride[i])))
      return "output_shape asks for " + wanted.text() + " places where taps reach " + reached.text() +
             ", a stride more or may do so";
  }
  return std::string();
}

Result<void> rewrite_for_onnxruntime(const onnx::NodeProto& node, Replacement& out) {
  return rewrite_as_pads(node, {OutputPadding::below_stride, Crop::any}, out);
}

}  // namespace

ExportTarget onnxruntime_target() {
  return {
      "onnxruntime",
      "ONNX Runtime (CPU)",
      "ONNX Runtime 1.31 runs the model before and after",
      {{"output-padding-from-stride-on", "ConvTranspose", "", "1.31",
        "found by random geometries; conv_transpose_attributes.h allows what the kernel then refuses",
        "Refused when it runs, although ONNX and PyTorch allow output_padding up to the dilation. Becomes zeros "
        "behind the input, which make the output longer by a stride each, and pads or a smaller output_padding.",
        output_padding_from_stride, rewrite_for_onnxruntime},
       {"output-shape-beyond-stride", "ConvTranspose", "", "1.31",
        "found by random geometries: \"Explicit output_shape is inconsistent with input spatial dimensions\"",
        "Refused when it runs, although ONNX lets output_shape ask for any size. Becomes zeros behind the input and "
        "pads; where the input's sizes are open, a Slice whose borders are computed from Shape.",
        output_shape_beyond_stride, rewrite_for_onnxruntime},
       {"same-padding-below-zero", "ConvTranspose", "", "1.12 and later",
        "ONNX, docs/Operators.md, ConvTranspose: SAME gives input * stride; microsoft/onnxruntime clamps the "
        "padding at 0 (conv_transpose_attributes.h)",
        "The output comes out too small: where the kernel spans less than the stride, auto_pad SAME needs padding "
        "below zero, which ONNX Runtime takes for 0. Becomes zeros around the input and pads.",
        same_padding_below_zero, rewrite_for_onnxruntime}}};
}

}  // namespace polyphase::legal
