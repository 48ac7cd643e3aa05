// Refusals that targets share.
#include "export/refusals.h"

namespace polyphase::legal {

std::string same_below_zero(const ConvTransposeFacts& facts, std::size_t axis) {
  if (facts.span(axis) + facts.output_padding[axis] >= facts.stride[axis]) return {};
  return facts.auto_pad + " needs padding below zero: the kernel spans " + std::to_string(facts.span(axis)) +
         ", less than the stride " + std::to_string(facts.stride[axis]);
}

Result<std::string> same_padding_below_zero(const onnx::NodeProto& node, const ModelFacts& model) {
  TRY(const ConvTransposeFacts facts, read_conv_transpose(node, model));
  if (!facts.is_same() || !facts.output_shape.empty()) return std::string();
  for (std::size_t i = 0; i < facts.axes(); ++i) {
    if (std::string reason = same_below_zero(facts, i); !reason.empty()) return reason;
  }
  return std::string();
}

Result<std::string> output_padding_from_stride(const onnx::NodeProto& node, const ModelFacts& model) {
  TRY(const ConvTransposeFacts facts, read_conv_transpose(node, model));
  for (std::size_t i = 0; i < facts.axes(); ++i) {
    if (facts.output_padding[i] >= facts.stride[i])
      return "output_padding " + std::to_string(facts.output_padding[i]) + " is not below the stride " +
             std::to_string(facts.stride[i]);
  }
  return std::string();
}

Result<std::string> onnxruntime_operator(const onnx::NodeProto&, const ModelFacts&) {
  return std::string("com.microsoft.ConvTransposeWithDynamicPads is an operator of ONNX Runtime alone");
}

}  // namespace polyphase::legal
