// What several targets refuse of a ConvTranspose, each in the words that their rules share; empty: nothing.
#pragma once

#include <cstddef>
#include <string>

#include "export/conv_transpose.h"

namespace polyphase::legal {

// auto_pad SAME of an axis on which the kernel spans less than the stride.
std::string same_below_zero(const ConvTransposeFacts& facts, std::size_t axis);

// These have the form of ExportRule::applies.
Result<std::string> same_padding_below_zero(const onnx::NodeProto& node, const ModelFacts& model);
Result<std::string> output_padding_from_stride(const onnx::NodeProto& node, const ModelFacts& model);
// Of ConvTransposeWithDynamicPads.
Result<std::string> onnxruntime_operator(const onnx::NodeProto& node, const ModelFacts& model);

}  // namespace polyphase::legal
