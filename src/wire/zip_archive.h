// ZipArchive: the members of a zip archive: PyTorch's, which holds them uncompressed, and NumPy's .npz.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/tensor.h"

namespace polyphase::wire {

class ZipArchive {
 public:
  static Result<ZipArchive> open(const std::filesystem::path& path);
  // The bytes must stay while the archive is used.
  static Result<ZipArchive> of_bytes(std::span<const std::byte> bytes);

  ~ZipArchive();
  ZipArchive(ZipArchive&& other) noexcept;
  ZipArchive& operator=(ZipArchive&& other) noexcept;

  const std::vector<std::string>& names() const { return names_; }
  bool has(const std::string& name) const;
  // A whole member, its checksum compared. Errors: corrupt (not there, damaged), unsupported (compressed, encrypted).
  Result<std::shared_ptr<Buffer>> read(const std::string& name) const { return read(name, false); }
  // The same of members that may be compressed.
  Result<std::shared_ptr<Buffer>> read_packed(const std::string& name) const { return read(name, true); }
  Result<std::string> read_text(const std::string& name) const;

 private:
  struct Handle;
  explicit ZipArchive(std::unique_ptr<Handle> handle);
  Result<std::shared_ptr<Buffer>> read(const std::string& name, bool packed) const;
  static Result<ZipArchive> list_of(std::unique_ptr<Handle> handle);

  std::unique_ptr<Handle> handle_;
  std::vector<std::string> names_;
};

}  // namespace polyphase::wire
