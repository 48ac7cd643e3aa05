// TensorProto and SparseTensorProto → Tensor, every length checked against what type and shape need.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/tensor.h"
#include "wire/external_data.h"

namespace onnx {
class SparseTensorProto;
class TensorProto;
}  // namespace onnx

namespace polyphase::wire {

// Dense copies of sparse tensors may be far larger than the file, so what they may take in all is bounded.
struct DenseBudget {
  std::int64_t left_bytes = INT64_C(1) << 30;
};

// The tensor; its bytes are taken out of the proto (not copied) where they already lie as ours do.
Result<Tensor> take_tensor(onnx::TensorProto& proto, ExternalData& external);
Result<Tensor> take_sparse_tensor(onnx::SparseTensorProto& proto, ExternalData& external, DenseBudget& budget);

// Checked sizes: rank, no negative, product of sizes and bytes within 64 bits.
Result<std::vector<std::int64_t>> checked_sizes(const std::int64_t* dims, int rank, DType dtype);

}  // namespace polyphase::wire
