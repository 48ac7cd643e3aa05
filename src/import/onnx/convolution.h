// Conv's import, also for the operators that add to it.
#pragma once

#include "import/onnx/node_context.h"

namespace polyphase {

// Operands 0 to 2 and the attributes of ONNX's Conv.
Result<Value*> import_convolution(NodeContext& node);

}  // namespace polyphase
