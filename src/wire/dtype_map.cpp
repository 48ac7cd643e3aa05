// One table for both directions.
#include "wire/dtype_map.h"

#include <array>
#include <string_view>

#include "onnx/onnx.pb.h"

namespace polyphase::wire {
namespace {

using onnx::TensorProto;

struct Pair {
  int onnx_type;
  DType dtype;
};

constexpr std::array pairs = {
    Pair{TensorProto::FLOAT, DType::f32},
    Pair{TensorProto::DOUBLE, DType::f64},
    Pair{TensorProto::FLOAT16, DType::f16},
    Pair{TensorProto::BFLOAT16, DType::bf16},
    Pair{TensorProto::FLOAT8E4M3FN, DType::f8e4m3},
    Pair{TensorProto::FLOAT8E5M2, DType::f8e5m2},
    Pair{TensorProto::INT8, DType::i8},
    Pair{TensorProto::UINT8, DType::u8},
    Pair{TensorProto::INT16, DType::i16},
    Pair{TensorProto::UINT16, DType::u16},
    Pair{TensorProto::INT32, DType::i32},
    Pair{TensorProto::UINT32, DType::u32},
    Pair{TensorProto::INT64, DType::i64},
    Pair{TensorProto::UINT64, DType::u64},
    Pair{TensorProto::BOOL, DType::boolean},
    Pair{TensorProto::INT4, DType::i4},
    Pair{TensorProto::UINT4, DType::u4},
};

constexpr std::array<std::string_view, 29> names = {
    "UNDEFINED",  "FLOAT",        "UINT8",          "INT8",       "UINT16",         "INT16",  "INT32",     "INT64",
    "STRING",     "BOOL",         "FLOAT16",        "DOUBLE",     "UINT32",         "UINT64", "COMPLEX64", "COMPLEX128",
    "BFLOAT16",   "FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT8E5M2FNUZ", "UINT4",  "INT4",      "FLOAT4E2M1",
    "FLOAT8E8M0", "UINT2",        "INT2",           "FLOAT6E2M3", "FLOAT6E3M2",
};

}  // namespace

std::string onnx_type_name(int onnx_type) {
  if (onnx_type >= 0 && onnx_type < static_cast<int>(names.size()))
    return std::string(names[static_cast<std::size_t>(onnx_type)]);
  return "type " + std::to_string(onnx_type);
}

Result<DType> dtype_from_onnx(int onnx_type) {
  for (const Pair& pair : pairs) {
    if (pair.onnx_type == onnx_type) return pair.dtype;
  }
  const std::string name = onnx_type_name(onnx_type);
  switch (onnx_type) {
    case TensorProto::UNDEFINED:
      return Error{ErrorCode::invalid_model, "the element type is undefined (0).",
                   "Export the model again; every tensor needs an element type."};
    case TensorProto::STRING:
      return Error{ErrorCode::unsupported, "elements of type STRING are not supported.",
                   "Take text processing out of the model; feed numbers."};
    case TensorProto::COMPLEX64:
    case TensorProto::COMPLEX128:
      return Error{ErrorCode::unsupported, "elements of type " + name + " are not supported.",
                   "Write complex numbers as a last axis of two floats (torch.view_as_real)."};
    default:
      break;
  }
  if (onnx_type > 0 && onnx_type < static_cast<int>(names.size())) {
    return Error{ErrorCode::unsupported, "elements of type " + name + " are not supported.",
                 "Use FLOAT8E4M3FN, FLOAT8E5M2, FLOAT16, BFLOAT16, INT4, UINT4 or a wider type."};
  }
  return Error{ErrorCode::invalid_model, "ONNX has no element " + name + ".", "Export the model again."};
}

int onnx_from_dtype(DType dtype) {
  for (const Pair& pair : pairs) {
    if (pair.dtype == dtype) return pair.onnx_type;
  }
  return TensorProto::UNDEFINED;
}

}  // namespace polyphase::wire
