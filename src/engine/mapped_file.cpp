// mmap of a whole file.
#include "engine/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace polyphase {

Result<std::shared_ptr<Buffer>> map_file(const std::string& path) {
  // Non-blocking: a pipe without a writer is refused below instead of waited for.
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) {
    return Error{ErrorCode::io, "cannot open '" + path + "': " + std::strerror(errno) + ".",
                 "Check that the path is right and that you may read it."};
  }
  struct stat status {};
  const bool known = ::fstat(file, &status) == 0;
  if (!known || !S_ISREG(status.st_mode)) {
    ::close(file);
    const bool folder = known && S_ISDIR(status.st_mode);
    return Error{ErrorCode::io, "'" + path + "' is " + (folder ? "a folder" : "a device or a pipe") + ", not a file.",
                 "Give the path of a regular file."};
  }
  auto mapped = map_open_file(file, static_cast<std::size_t>(status.st_size), path);
  ::close(file);  // the mapping keeps the file
  return mapped;
}

Result<std::shared_ptr<Buffer>> map_open_file(int file, std::size_t size_bytes, const std::string& path) {
  if (size_bytes == 0) return Buffer::borrow(nullptr, nullptr, 0);
  void* const start = ::mmap(nullptr, size_bytes, PROT_READ, MAP_PRIVATE, file, 0);
  if (start == MAP_FAILED) {
    const int reason = errno;
    return Error{ErrorCode::io,
                 "cannot map '" + path + "' (" + std::to_string(size_bytes) + " bytes): " + std::strerror(reason) + ".",
                 "Close other programs, or copy the file to a local disk."};
  }
  ::madvise(start, size_bytes, MADV_WILLNEED);
  const std::shared_ptr<const void> owner(
      start, [size_bytes](const void* mapping) { ::munmap(const_cast<void*>(mapping), size_bytes); });
  return Buffer::borrow(owner, static_cast<const std::byte*>(start), size_bytes);
}

}  // namespace polyphase
