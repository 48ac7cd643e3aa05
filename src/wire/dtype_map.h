// ONNX's element types and ours.
#pragma once

#include <string>

#include "base/dtype.h"
#include "base/result.h"

namespace polyphase::wire {

// TensorProto.DataType → DType; an Error for types that we do not store (strings, complex, sub-byte floats), with the
// way out.
Result<DType> dtype_from_onnx(int onnx_type);
int onnx_from_dtype(DType dtype);
std::string onnx_type_name(int onnx_type);  // "FLOAT16"; "type 99" if unknown

}  // namespace polyphase::wire
