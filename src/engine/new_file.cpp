// A temporary name, a lock on it, a rename.
#include "engine/new_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "engine/mapped_file.h"

namespace polyphase {

NewFile::~NewFile() {
  if (exists_) ::unlink(temporary_.c_str());  // before the lock goes with the descriptor
  if (file_ >= 0) ::close(file_);
}

// A leftover may be renamed or removed by its writer between open and lock: then the name is no longer this file.
bool NewFile::open_once(int attempt) {
  temporary_ = path_ + ".polyphase-new" + (attempt == 0 ? "" : "-" + std::to_string(attempt));
  file_ = ::open(temporary_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
  if (file_ < 0) return false;
  struct stat held {};
  struct stat named {};
  const bool ours = ::flock(file_, LOCK_EX | LOCK_NB) == 0 && ::fstat(file_, &held) == 0 &&
                    ::lstat(temporary_.c_str(), &named) == 0 && held.st_ino == named.st_ino &&
                    held.st_dev == named.st_dev && S_ISREG(held.st_mode) && held.st_nlink == 1 &&
                    ::ftruncate(file_, 0) == 0;
  if (ours) return true;
  ::close(std::exchange(file_, -1));
  errno = EEXIST;
  return false;
}

Result<void> NewFile::open() {
  for (int attempt = 0; !open_once(attempt); ++attempt) {
    const bool occupied = errno == EEXIST || errno == ELOOP || errno == EISDIR || errno == ENXIO ||
                          (errno == EACCES && ::access(temporary_.c_str(), F_OK) == 0);
    if (!occupied || attempt == 200) return failed("create a file beside");
  }
  exists_ = true;
  return {};
}

Result<void> NewFile::write(std::span<const std::byte> bytes) { return write_at(end_, bytes); }

Result<void> NewFile::write_at(std::size_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const std::size_t most = std::min<std::size_t>(bytes.size(), std::size_t{1} << 30);
    const ssize_t written = ::pwrite(file_, bytes.data(), most, static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return failed("write");
    bytes = bytes.subspan(static_cast<std::size_t>(written));
    offset += static_cast<std::size_t>(written);
    end_ = std::max(end_, offset);
  }
  return {};
}

Result<void> NewFile::read_at(std::size_t offset, std::span<std::byte> bytes) const {
  while (!bytes.empty()) {
    const ssize_t read = ::pread(file_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (read < 0 && errno == EINTR) continue;
    if (read == 0) errno = EIO;
    if (read <= 0) return failed("read again what was written to");
    bytes = bytes.subspan(static_cast<std::size_t>(read));
    offset += static_cast<std::size_t>(read);
  }
  return {};
}

Result<std::shared_ptr<Buffer>> NewFile::map(std::size_t size_bytes) const {
  return map_open_file(file_, size_bytes, path_);
}

Result<void> NewFile::publish() {
  if (::fsync(file_) != 0) return failed("flush");
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) return failed("replace");
  exists_ = false;
  if (::close(std::exchange(file_, -1)) != 0) return failed("close");
  const std::string folder = std::filesystem::path(path_).parent_path().string();
  const int directory = ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory >= 0) {  // some file systems cannot flush a folder; the file itself is safe
    ::fsync(directory);
    ::close(directory);
  }
  return {};
}

Error NewFile::failed(const std::string& what) const {
  return {ErrorCode::io, "cannot " + what + " '" + path_ + "': " + std::strerror(errno) + ".",
          errno == ENOSPC ? "Free space on the disk, or write elsewhere."
                          : "Choose a folder that exists and can be written."};
}

Result<std::string> writable_path(const std::string& path) {
  std::error_code ignored;
  const auto status = std::filesystem::status(path, ignored);
  if (!std::filesystem::exists(status)) return path;
  if (!std::filesystem::is_regular_file(status)) {
    return Error{ErrorCode::io,
                 "cannot write '" + path + "': it is a " +
                     (std::filesystem::is_directory(status) ? "folder" : "device or pipe") + ".",
                 "Give the name of a file, such as model.ppe."};
  }
  const auto target = std::filesystem::canonical(path, ignored);
  return target.empty() ? path : target.string();
}

}  // namespace polyphase
