// Files that are whole or not there: what is read must be a plain file, what is written takes its name when it is
// complete.
#pragma once

#include <cstdio>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>

#include "polyphase/polyphase.h"

namespace polyphase::io {

// Error: `path` is absent, a folder, a device or a pipe, or empty.
Result<void> expect_file(const std::string& path);

struct FileCloser {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, FileCloser>;

// The file, open for reading. Errors: as expect_file; you may not read it.
Result<File> open_file(const std::string& path);

// A file under a temporary name beside its own, with which it replaces what was there; removed unless that happened. So
// nobody finds half a file, and a write that fails leaves the old one. Devices and pipes are written directly.
class NewFile {
 public:
  // Creates the temporary file, empty. Error: `path` is a folder, or its folder is absent or cannot be written.
  static Result<NewFile> create(const std::string& path);
  NewFile(NewFile&& other) noexcept;
  NewFile& operator=(NewFile&&) = delete;
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;
  ~NewFile();

  // Where to write; whoever writes closes it before publish().
  const std::string& path() const { return temporary_; }
  bool is_plain() const { return temporary_ != target_; }
  Result<void> publish();

 private:
  NewFile() = default;
  std::string given_;      // as the user wrote it, for messages
  std::string target_;     // behind links
  std::string temporary_;  // empty: published, or moved from
};

// "cannot write 'PATH': what errno says", and what to do.
Error write_error(const std::string& path, int reason);

// Writes the pieces one behind the other.
Result<void> write_whole_file(const std::string& path, std::initializer_list<std::string_view> pieces);

}  // namespace polyphase::io
