// Rules of OpenVINO, for its CPU plugin.
#include "export/computed_crop.h"
#include "export/conv_transpose.h"
#include "export/rule.h"

namespace polyphase::legal {
namespace {

Result<std::string> openvino_lacks_operator(const onnx::NodeProto&, const ModelFacts&) {
  return std::string("com.microsoft.ConvTransposeWithDynamicPads is an operator of ONNX Runtime alone");
}

bool is_odd(const Dim& total) { return !total.is_constant() || floor_mod(total.value(), 2) != 0; }

Result<std::string> openvino_output_shape(const onnx::NodeProto& node, const ModelFacts& model) {
  TRY(const ConvTransposeFacts facts, read_conv_transpose(node, model));
  if (facts.output_shape.empty()) return std::string();
  for (std::size_t i = 0; i < facts.axes(); ++i) {
    const bool cropped = !surely_less_equal(facts.pre[i], 0);
    const Dim total = facts.pre[i] + facts.post[i] + Dim(facts.output_padding[i]);
    const bool grows = surely_less_equal(total, 0);
    if (!facts.pre[i].is_constant() || !facts.post[i].is_constant())
      return std::string("output_shape, and the sizes of the input are open");
    if (facts.groups > 1 && cropped) return std::string("output_shape beside groups: nothing is cropped in front");
    if (facts.groups == 1 && facts.auto_pad == "SAME_UPPER" && !grows && is_odd(total))
      return std::string("output_shape beside SAME_UPPER: the odd place is cropped in front");
  }
  return std::string();
}

Result<std::string> openvino_same(const onnx::NodeProto& node, const ModelFacts& model) {
  TRY(const ConvTransposeFacts facts, read_conv_transpose(node, model));
  for (std::size_t i = 0; facts.is_same() && facts.output_shape.empty() && i < facts.axes(); ++i) {
    if (!facts.x.shape[static_cast<int>(i) + 2].is_constant())
      return facts.auto_pad + ", and the sizes of the input are open";
    if (facts.span(i) + facts.output_padding[i] < facts.stride[i])
      return facts.auto_pad + " needs padding below zero: the kernel spans " + std::to_string(facts.span(i)) +
             ", less than the stride " + std::to_string(facts.stride[i]);
  }
  return std::string();
}

Result<std::string> openvino_grouped_output_padding(const onnx::NodeProto& node, const ModelFacts& model) {
  TRY(const ConvTransposeFacts facts, read_conv_transpose(node, model));
  for (std::size_t i = 0; facts.groups > 1 && i < facts.axes(); ++i) {
    if (facts.output_padding[i] >= facts.stride[i])
      return "output_padding " + std::to_string(facts.output_padding[i]) + " is not below the stride " +
             std::to_string(facts.stride[i]) + ", beside groups";
  }
  return std::string();
}

// OpenVINO takes a Pad in front of a transposed convolution into its padding, and counts input places for output
// places.
Result<void> rewrite_for_openvino(const onnx::NodeProto& node, Replacement& out) {
  TRY(const ConvTransposeFacts facts, read_conv_transpose(node, out.model()));
  if (!facts.fixed_crop()) return rewrite_computed_output_shape(node, OutputPadding::as_onnx, out);
  return rewrite_crop(node, {OutputPadding::below_stride, Crop::any, Growth::around_kernel}, out);
}

}  // namespace

ExportTarget openvino_target() {
  return {"openvino",
          "OpenVINO (CPU)",
          "OpenVINO 2026.4 runs the model before and after",
          {{"computed-pads", "ConvTransposeWithDynamicPads", "com.microsoft", "all",
            "ONNX Runtime, docs/ContribOperators.md",
            "Refused: OpenVINO has no such operator. Becomes ConvTranspose, with these pads where they are known, "
            "else with a Slice whose borders are computed.",
            openvino_lacks_operator, rewrite_computed_pads},
           {"output-shape", "ConvTranspose", "", "2026.4", "found by random geometries",
            "Wrong numbers: beside groups the output is cropped behind alone, beside SAME_UPPER an odd crop is split "
            "the other way; where the input's sizes are open it is wrong or refused when it runs. Becomes pads; where "
            "sizes are open, a Slice whose borders are computed from Shape.",
            openvino_output_shape, rewrite_for_openvino},
           {"output-padding-from-stride-on", "ConvTranspose", "", "2026.4", "found by random geometries",
            "Wrong numbers for some sizes, beside groups. Becomes pads and a smaller output_padding.",
            openvino_grouped_output_padding, rewrite_for_openvino},
           {"same-padding", "ConvTranspose", "", "2026.4", "found by random geometries",
            "A wrong size: beside auto_pad SAME nothing is cropped where the input's sizes are open, and nothing is "
            "added where the kernel spans less than the stride. Becomes pads, which do not depend on the sizes, and "
            "taps of 0 around the kernel where the output grows in front.",
            openvino_same, rewrite_for_openvino}}};
}

}  // namespace polyphase::legal
