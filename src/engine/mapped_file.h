// A file's bytes in memory, mapped read-only.
#pragma once

#include <memory>
#include <string>

#include "base/tensor.h"

namespace polyphase {

// Maps a regular file; the Buffer's bytes must only be read. Error(io): cannot be opened, is a folder or a device. An
// empty file gives an empty Buffer.
Result<std::shared_ptr<Buffer>> map_file(const std::string& path);

// The first bytes of a file that is open for reading; it may be closed afterwards. `path` is for messages. Error(io).
Result<std::shared_ptr<Buffer>> map_open_file(int file, std::size_t size_bytes, const std::string& path);

}  // namespace polyphase
