// Rules of Apache TVM: of its ONNX front end (Relax), and of the operators behind it.
#include <algorithm>

#include "export/computed_crop.h"
#include "export/conv_transpose.h"
#include "export/refusals.h"
#include "export/rule.h"

namespace polyphase::legal {
namespace {

Result<std::string> tvm_output_shape(const onnx::NodeProto& node, const ModelFacts& model) {
  TRY(const ConvTransposeFacts facts, read_conv_transpose(node, model));
  for (std::size_t i = 0; !facts.output_shape.empty() && i < facts.axes(); ++i) {
    // The crop that comes out instead: of auto_pad alone.
    const std::int64_t all = facts.span(i) + facts.output_padding[i] - facts.stride[i];
    const std::int64_t total = facts.is_same() ? std::max<std::int64_t>(all, 0) : 0;
    const std::int64_t before = facts.auto_pad == "SAME_UPPER" ? total / 2 : total - total / 2;
    const std::int64_t behind = total - before - facts.output_padding[i];
    if (!(facts.pre[i] == before) || !(facts.post[i] == behind)) return std::string("output_shape is not read");
  }
  return std::string();
}

// The front end has Shape, but no arithmetic behind it.
Error computes_no_sizes() {
  return Error{ErrorCode::unsupported,
               "TVM's ONNX front end computes no sizes when the model runs, and its crop or its pads depend on them.",
               "Give the model's inputs fixed sizes, and pads that are no input."};
}

Result<void> rewrite_for_tvm(const onnx::NodeProto& node, Replacement& out) {
  TRY(const ConvTransposeFacts facts, read_conv_transpose(node, out.model()));
  if (!facts.fixed_crop()) return computes_no_sizes();
  return rewrite_crop(node, {OutputPadding::below_stride, Crop::any, Growth::around_input}, out);
}

Result<void> pads_for_tvm(const onnx::NodeProto& node, Replacement& out) {
  TRY(const std::vector<std::int64_t> pads, known_pads(node, out.model()));
  const bool has_pads = node.input_size() > 2 && !node.input(2).empty();
  if (has_pads && pads.empty()) return computes_no_sizes();
  return rewrite_computed_pads(node, out);
}

// Exporters write the amounts of a Pad as a chain of nodes over constants, which the front end does not fold.
Result<std::string> tvm_pad_amounts(const onnx::NodeProto& node, const ModelFacts& model) {
  if (node.input_size() < 2 || model.constant(node.input(1)) != nullptr) return std::string();
  return std::string("its pads are computed");
}

Result<void> pad_amounts_for_tvm(const onnx::NodeProto& node, Replacement& out) {
  TRY(const std::vector<std::int64_t> pads, known_integers(node.input(1), out.model()));
  if (pads.empty()) return computes_no_sizes();
  const std::string known = out.integers(pads, "pads");
  out.again().set_input(1, known);
  return {};
}

}  // namespace

ExportTarget tvm_target() {
  return {
      "tvm",
      "Apache TVM (Relax)",
      "TVM 0.27: its ONNX front end, LegalizeOps and a build for the CPU run the model before and after",
      {{"computed-pads", "ConvTransposeWithDynamicPads", "com.microsoft", "all",
        "ONNX Runtime, docs/ContribOperators.md",
        "Refused: the front end has no such operator. Becomes ConvTranspose with these pads; pads that are computed "
        "when "
        "the model runs are refused.",
        onnxruntime_operator, pads_for_tvm},
       {"output-padding-from-stride-on", "ConvTranspose", "", "0.27",
        "src/relax/op/nn/convolution.cc: \"expects the output padding less than the strides\"",
        "Refused, although ONNX and PyTorch allow output_padding up to the dilation. Becomes zeros behind the input, "
        "which make the output longer by a stride each, and pads or a smaller output_padding.",
        output_padding_from_stride, rewrite_for_tvm},
       {"output-shape", "ConvTranspose", "", "0.27",
        "python/tvm/relax/frontend/onnx: ConvTranspose does not read output_shape",
        "A wrong size, without a word. Becomes pads; where the input's sizes are open the export refuses, since the "
        "front end computes no sizes.",
        tvm_output_shape, rewrite_for_tvm},
       {"same-padding-below-zero", "ConvTranspose", "", "0.27",
        "python/tvm/relax/frontend/onnx: total_pad = max(total_pad, 0)",
        "The output comes out too small: where the kernel spans less than the stride, auto_pad SAME needs padding "
        "below zero. Becomes zeros around the input and pads.",
        same_padding_below_zero, rewrite_for_tvm},
       {"computed-pad-amounts", "Pad", "", "0.27",
        "python/tvm/relax/frontend/onnx: \"Dynamic pads are not supported yet.\"",
        "Refused where the pads are the result of nodes, also of nodes over constants, as PyTorch's exporter writes "
        "them. Becomes the same Pad with a tensor of numbers; pads that only a run tells are refused.",
        tvm_pad_amounts, pad_amounts_for_tvm}}};
}

}  // namespace polyphase::legal
