// Rules of OpenVINO, for its CPU plugin.
#include <algorithm>

#include "export/computed_crop.h"
#include "export/conv_transpose.h"
#include "export/opset_step.h"
#include "export/refusals.h"
#include "export/rule.h"

namespace polyphase::legal {
namespace {

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
    if (std::string reason = same_below_zero(facts, i); !reason.empty()) return reason;
  }
  return std::string();
}

Result<std::string> openvino_grouped_output_padding(const onnx::NodeProto& node, const ModelFacts& model) {
  TRY(const ConvTransposeFacts facts, read_conv_transpose(node, model));
  if (facts.groups == 1) return std::string();
  TRY(const std::string reason, output_padding_from_stride(node, model));
  return reason.empty() ? reason : reason + ", beside groups";
}

// OpenVINO takes a Pad in front of a transposed convolution into its padding, and counts input places for output
// places.
Result<void> rewrite_for_openvino(const onnx::NodeProto& node, Replacement& out) {
  TRY(const ConvTransposeFacts facts, read_conv_transpose(node, out.model()));
  if (!facts.fixed_crop()) return rewrite_computed_output_shape(node, OutputPadding::as_onnx, out);
  return rewrite_crop(node, {OutputPadding::below_stride, Crop::any, Growth::around_kernel}, out);
}

// Zeros that a Pad puts around the spatial axes of x; empty: it is no such Pad, or none is known.
struct ZerosAround {
  std::vector<std::int64_t> before, behind;
};

ZerosAround zeros_around(const onnx::NodeProto& node, const ConvTransposeFacts& facts, const ModelFacts& model) {
  const onnx::NodeProto* const pad = node.input_size() > 0 ? model.pad(node.input(0)) : nullptr;
  if (pad == nullptr || has_operand(*pad, 3)) return {};
  const std::string mode = word_of(*pad, "mode");
  if (!mode.empty() && mode != "constant") return {};
  std::vector<std::int64_t> pads = integers_of(*pad, "pads");
  if (has_operand(*pad, 1)) {
    auto known = constant_integers(*pad, 1, model);
    if (known.ok()) pads = *std::move(known);
  }
  const auto value = has_operand(*pad, 2) ? constant_number(*pad, 2, model)
                                          : Result<double>(static_cast<double>(real_of(*pad, "value", 0)));
  const std::size_t rank = facts.axes() + 2;
  const bool spatial =
      pads.size() == 2 * rank && pads[0] == 0 && pads[1] == 0 && pads[rank] == 0 && pads[rank + 1] == 0;
  if (!spatial || !value.ok() || *value != 0) return {};
  return {{pads.begin() + 2, pads.begin() + static_cast<std::ptrdiff_t>(rank)},
          {pads.begin() + static_cast<std::ptrdiff_t>(rank) + 2, pads.end()}};
}

// A padding of the layer that is no smaller is made smaller by the Pad's.
Result<std::string> openvino_pad_in_front(const onnx::NodeProto& node, const ModelFacts& model) {
  TRY(const ConvTransposeFacts facts, read_conv_transpose(node, model));
  const ZerosAround zeros = zeros_around(node, facts, model);
  bool counts = false;
  for (std::size_t i = 0; i < zeros.before.size(); ++i) {
    if (std::min(zeros.before[i], zeros.behind[i]) < 0 || !facts.fixed_crop()) return std::string();
    if (zeros.before[i] > facts.pre[i].value() || zeros.behind[i] > facts.post[i].value() + facts.output_padding[i])
      return std::string();
    counts = counts || (facts.stride[i] > 1 && zeros.before[i] + zeros.behind[i] > 0);
  }
  return counts ? std::string("a Pad with zeros stands in front of it, and its stride is not 1") : std::string();
}

Result<void> rewrite_pad_in_front(const onnx::NodeProto& node, Replacement& out) {
  TRY(ConvTransposeFacts facts, read_conv_transpose(node, out.model()));
  const ZerosAround zeros = zeros_around(node, facts, out.model());
  const onnx::NodeProto* const pad = out.model().pad(node.input(0));
  TRY(facts.x, operand_type(*pad, 0, out.model()));
  for (std::size_t i = 0; i < zeros.before.size(); ++i) {
    facts.pre[i] -= Dim(facts.stride[i] * zeros.before[i]);
    facts.post[i] -= Dim(facts.stride[i] * zeros.behind[i]);
  }
  std::vector<std::string> inputs(node.input().begin(), node.input().end());
  inputs[0] = pad->input(0);
  return rewrite_crop_of(node, std::move(inputs), facts,
                         {OutputPadding::below_stride, Crop::any, Growth::around_kernel}, out);
}

}  // namespace

ExportTarget openvino_target() {
  return {
      "openvino",
      "OpenVINO (CPU)",
      "OpenVINO 2026.4 runs the model before and after",
      {{"computed-pads", "ConvTransposeWithDynamicPads", "com.microsoft", "all",
        "ONNX Runtime, docs/ContribOperators.md",
        "Refused: OpenVINO has no such operator. Becomes ConvTranspose, with these pads where they are known, "
        "else with a Slice whose borders are computed.",
        onnxruntime_operator, rewrite_computed_pads},
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
        openvino_same, rewrite_for_openvino},
       {"pad-in-front", "ConvTranspose", "", "2026.4", "found while its other rules were written",
        "A wrong size: a Pad with zeros in front of a transposed convolution is taken into its padding, and places of "
        "the input count for places of the output. The convolution reads what the Pad reads, with less padding, "
        "and taps of 0 around the kernel where that would be below zero; the Pad stays for other readers.",
        openvino_pad_in_front, rewrite_pad_in_front}}};
}

}  // namespace polyphase::legal
