// Which version of each operator domain a model or a function is written in.
#pragma once

#include "base/result.h"
#include "import/onnx/scope.h"

namespace onnx {
class FunctionProto;
class ModelProto;
}  // namespace onnx

namespace polyphase {

// Errors: a domain twice with different versions, a version that we do not take.
Result<Opsets> opsets_of(const onnx::ModelProto& model);
// What the function leaves out it has from the model.
Result<Opsets> opsets_of(const onnx::FunctionProto& function, const Opsets& of_model);

}  // namespace polyphase
