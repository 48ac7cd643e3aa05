// A tensor as PyTorch stores it: a storage of bytes, and sizes, strides and an offset on it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "base/result.h"
#include "base/tensor.h"

namespace polyphase {

struct StoredLayout {
  DType dtype = DType::f32;
  std::vector<std::int64_t> sizes;
  std::vector<std::int64_t> strides;  // in elements
  std::int64_t offset = 0;
};

// Shares the storage's bytes if it is row-major, else a copy. `shown` names it in messages: "weight 'up.bias'".
// Errors: corrupt (it reaches beyond its storage), unsupported (one element stands for many).
Result<Tensor> tensor_in_storage(const std::shared_ptr<Buffer>& bytes, const StoredLayout& layout,
                                 const std::string& shown);

// A part of the archive that is not what PyTorch writes.
Error damaged_archive(std::string message);

}  // namespace polyphase
