// NumPy's .npy: a header with dtype, order and shape, then the elements.
// https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
//
// NumPy has no bfloat16 and no 8-bit floats: |V2 and |V1 (what ml_dtypes arrays are saved as) are read as bf16 and
// f8e4m3. bf16 is written as the f32 of equal value; 8-bit floats as |V1; i4 and u4 as i1 and u1.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "polyphase/polyphase.h"

namespace polyphase::io {

// Reads exactly `bytes.size()` bytes into `bytes`, or says why not.
using ByteSource = std::function<Result<void>(std::span<std::byte> bytes)>;

// What stands before the elements of an array.
struct NpyHeader {
  DType dtype = DType::f32;
  bool big_endian = false;
  bool fortran = false;  // the last axis moves slowest
  std::vector<std::int64_t> sizes;
  std::uint64_t size_bytes = 0;  // of itself: where the elements begin
};
// Reads it from the beginning of a file of `size_bytes`, which must be as long as it says.
Result<NpyHeader> read_npy_header(const ByteSource& source, std::uint64_t size_bytes, const std::string& name);
// The bytes before the row-major elements of an array that NumPy has a name for: not bf16.
std::string npy_header(DType dtype, const std::vector<std::int64_t>& sizes);

// `size_bytes` is the length of the whole array file: headers that promise more, or less, are refused before memory is
// taken. `name` is for messages. The tensor is row-major and little endian whatever the file's order.
Result<api::Tensor> read_npy(const ByteSource& source, std::uint64_t size_bytes, const std::string& name);
Result<api::Tensor> read_npy_file(const std::string& path);

// The bytes before the elements, and the elements as they are written.
struct NpyImage {
  std::string header;
  api::Tensor elements;
};
Result<NpyImage> make_npy(const api::Tensor& tensor);
Result<void> write_npy_file(const std::string& path, const api::Tensor& tensor);

}  // namespace polyphase::io
