// A file that appears under its name whole or not at all, whenever the program is killed.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "base/result.h"

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
  Result<void> write(std::span<const std::byte> bytes);
  // Flushes to the disk and renames over what was there.
  Result<void> publish();

 private:
  bool open_once(int attempt);  // false: look at errno
  Error failed(const std::string& what) const;

  std::string path_;
  std::string temporary_;
  int file_ = -1;
  bool exists_ = false;
};

// Where the bytes shall go: behind links, and never over a device or a folder (Error io).
Result<std::string> writable_path(const std::string& path);

}  // namespace polyphase
