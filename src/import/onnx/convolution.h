// Conv's import, also for the operators that add to it.
#pragma once

#include "import/onnx/node_context.h"

namespace polyphase {

// x (the node's operand 0, or of its sizes), the weight, and the bias or null.
struct ConvolutionOperands {
  Value* x;
  Value* weight;
  Value* bias;
};

// The attributes of ONNX's Conv on these operands, or on the node's first three.
Result<Value*> import_convolution(NodeContext& node, const ConvolutionOperands& operands);
Result<Value*> import_convolution(NodeContext& node);

}  // namespace polyphase
