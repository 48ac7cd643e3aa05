// .npy: an array as NumPy writes it, alone or as a member of an .npz archive.
//
//   bytes 0 … 5    0x93 "NUMPY"
//   bytes 6, 7     the version of the format: 1, 2 or 3, and 0
//   2 or 4 bytes   N, little endian: the length of the header (2 in version 1)
//   N bytes        {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }, a literal of Python
//   from there on  the elements, row-major, or column-major where fortran_order is True
//
// Source: NumPy, numpy/lib/format.py.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "base/result.h"

namespace polyphase::wire {

struct NpyArray {
  std::string dtype_name;      // as the file has it: '<f4'
  std::optional<DType> dtype;  // nothing: we have none of that name, or its bytes lie the other way round
  std::vector<std::int64_t> sizes;
  bool is_column_major = false;
  std::span<const std::byte> elements;  // inside of the file's bytes; empty where there is no dtype
};

// The file may be hostile: what it says is compared with its length. Errors: corrupt; the caller adds the file.
Result<NpyArray> read_npy(std::span<const std::byte> file);

}  // namespace polyphase::wire
