// A file that appears under its name whole or not at all, whenever the program is killed.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"
#include "base/tensor.h"

namespace polyphase {

// Written under a temporary name in the same folder; unlinked unless it was published. The temporary is locked while a
// process writes it, and its name is found again: what a killed process left is taken over by the next.
class NewFile {
 public:
  explicit NewFile(std::string path) : path_(std::move(path)) {}
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;
  ~NewFile();

  Result<void> open();
  // Behind what was written last.
  Result<void> write(std::span<const std::byte> bytes);
  // Bytes between what was written and a later offset are 0.
  Result<void> write_at(std::size_t offset, std::span<const std::byte> bytes);
  Result<void> read_at(std::size_t offset, std::span<std::byte> bytes) const;
  // The first bytes of what was written, from now on and under any name.
  Result<std::shared_ptr<Buffer>> map(std::size_t size_bytes) const;
  // Flushes to the disk and renames over what was there.
  Result<void> publish();

 private:
  bool open_once(int attempt);  // false: look at errno
  Error failed(const std::string& what) const;

  std::string path_;
  std::string temporary_;
  std::size_t end_ = 0;  // of what was written
  int file_ = -1;
  bool exists_ = false;
};

// Where the bytes shall go: behind links, and never over a device or a folder (Error io).
Result<std::string> writable_path(const std::string& path);

}  // namespace polyphase
