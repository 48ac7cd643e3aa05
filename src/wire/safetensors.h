// safetensors: what a file of named tensors says of itself.
//
//   bytes 0 … 7     N, little endian: the length of the header
//   8 … 8 + N       JSON: {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]}, …, "__metadata__":
//   {…}} from 8 + N on   the elements, row-major, little endian, without gaps; offsets count from here
//
// Source: https://github.com/huggingface/safetensors, README, "Format".
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "base/result.h"

namespace polyphase::wire {

struct SafeTensor {
  std::string name;
  std::string dtype_name;      // as the file has it
  std::optional<DType> dtype;  // nothing: we have none of that name
  std::vector<std::int64_t> sizes;
  std::span<const std::byte> elements;  // inside of the file's bytes
};

// In the order of their elements. The file may be hostile: nothing that it says is believed before it was compared with
// its length. Errors: corrupt; the trail names nothing, so the caller adds the file.
Result<std::vector<SafeTensor>> read_safetensors(std::span<const std::byte> file);

}  // namespace polyphase::wire
