// RegularFile: a plain file opened for reading, with its size; FIFOs, devices and directories are refused without
// waiting on them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"
#include "base/tensor.h"

namespace polyphase::wire {

class RegularFile {
 public:
  // Opens what the caller named himself: symbolic links are followed.
  static Result<std::shared_ptr<RegularFile>> open(const std::filesystem::path& path);
  // Opens `relative` below `folder` for a file that may be hostile: no step may leave the folder, be a symbolic link,
  // or end in a file that also has another name (hard link).
  static Result<std::shared_ptr<RegularFile>> open_below(const std::filesystem::path& folder,
                                                         const std::string& relative);

  ~RegularFile();
  RegularFile(const RegularFile&) = delete;
  RegularFile& operator=(const RegularFile&) = delete;

  std::int64_t size_bytes() const { return size_bytes_; }
  // Reads exactly `length` bytes at `offset` into a new buffer. Reading, not mapping: a file that shrinks meanwhile is
  // an Error, not a signal.
  Result<std::shared_ptr<Buffer>> read(std::int64_t offset, std::int64_t length) const;
  // The same into memory of the caller's.
  Result<void> read_into(std::int64_t offset, std::span<std::byte> out) const;

 private:
  RegularFile(int descriptor, std::int64_t size_bytes, std::string name);
  static Result<std::shared_ptr<RegularFile>> adopt(int descriptor, const std::string& name, bool one_name_only);

  int descriptor_;
  std::int64_t size_bytes_;
  std::string name_;
};

}  // namespace polyphase::wire
