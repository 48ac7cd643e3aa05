// Gemm as Gemm and ONNX Runtime's FusedGemm have it.
#pragma once

#include "import/onnx/node_context.h"

namespace polyphase {

// alpha * A' * B' + beta * C by the node's attributes.
Result<Value*> import_gemm(NodeContext& node);

}  // namespace polyphase
