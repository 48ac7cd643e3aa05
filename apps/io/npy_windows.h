// .npy arrays that are larger than memory: read and written window by window.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "io/npy.h"
#include "io/whole_file.h"
#include "polyphase/polyphase.h"

namespace polyphase::io {

// An array file that is read in windows.
class NpyWindows {
 public:
  // Errors: as read_npy_file.
  static Result<NpyWindows> open(const std::string& path);
  DType dtype() const { return header_.dtype; }
  const std::vector<std::int64_t>& sizes() const { return header_.sizes; }
  // Whether the elements lie in the file as tensors have them: row-major, little endian, no bool.
  bool is_plain() const;
  // The elements from index `first` on; `window` is row-major. Errors: io.
  Result<void> read(std::span<const std::int64_t> first, const api::TensorView& window) const;

 private:
  NpyWindows(std::string path, File file, NpyHeader header)
      : path_(std::move(path)), file_(std::move(file)), header_(std::move(header)) {}
  std::string path_;
  File file_;
  NpyHeader header_;
};

// An array file that is written in windows, in any order; it takes its name when all is written.
class NewNpyWindows {
 public:
  // `dtype` is one that NumPy has a name for. Errors: io.
  static Result<NewNpyWindows> create(const std::string& path, DType dtype, std::vector<std::int64_t> sizes);
  // Strides of any kind. Errors: io.
  Result<void> write(std::span<const std::int64_t> first, const api::TensorView& window);
  Result<void> finish();

 private:
  NewNpyWindows(NewFile target, std::string path, File file, std::uint64_t header_bytes,
                std::vector<std::int64_t> sizes)
      : target_(std::move(target)),
        path_(std::move(path)),
        file_(std::move(file)),
        header_bytes_(header_bytes),
        sizes_(std::move(sizes)) {}
  NewFile target_;
  std::string path_;
  File file_;
  std::uint64_t header_bytes_;
  std::vector<std::int64_t> sizes_;
};

// A row-major copy of a view of any strides.
Result<api::Tensor> dense_copy(const api::TensorView& view);

}  // namespace polyphase::io
