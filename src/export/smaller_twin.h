// smaller_twin: a transposed convolution like another, on a smaller input: to run it where the other would take
// minutes.
#pragma once

#include <optional>

#include "export/model_facts.h"
#include "onnx/onnx.pb.h"

namespace polyphase::legal {

struct SmallerTwin {
  Type x;                // of operand 0
  onnx::NodeProto node;  // with an output_shape that asks for the same crop
};
// Nothing: the input is small already, its size is open, or the node is no ConvTranspose.
std::optional<SmallerTwin> smaller_twin(const onnx::NodeProto& node, const ModelFacts& model);

}  // namespace polyphase::legal
