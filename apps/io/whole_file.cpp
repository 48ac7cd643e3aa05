// Temporary names, and what to say when the disk refuses.
#include "io/whole_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "io/try.h"

namespace polyphase::io {
namespace {

Error cannot_open(const std::string& path) {
  return {ErrorCode::io, "cannot open '" + path + "': " + std::strerror(errno) + ".",
          "Check that the path is right and that you may read it."};
}

}  // namespace

Result<void> expect_file(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return cannot_open(path);
  if (S_ISDIR(status.st_mode))
    return Error{ErrorCode::io, "cannot read '" + path + "': it is a folder.", "Give the path of a file in it."};
  if (!S_ISREG(status.st_mode))
    return Error{ErrorCode::io, "cannot read '" + path + "': it is a device or a pipe.", "Give the path of a file."};
  if (status.st_size == 0)
    return Error{ErrorCode::corrupt, "'" + path + "' is empty.", "Writing it did not finish: write or copy it again."};
  return {};
}

Result<File> open_file(const std::string& path) {
  IO_TRY_VOID(expect_file(path));
  File file(std::fopen(path.c_str(), "rb"));
  if (file == nullptr) return cannot_open(path);
  return file;
}

Error write_error(const std::string& path, int reason) {
  return {ErrorCode::io, "cannot write '" + path + "': " + std::strerror(reason) + ".",
          reason == ENOSPC || reason == EDQUOT ? "Free space on the disk, or write elsewhere."
                                               : "Choose a folder that exists and can be written."};
}

Result<NewFile> NewFile::create(const std::string& path) {
  NewFile out;
  out.given_ = out.target_ = path;
  std::error_code ignored;
  const std::filesystem::file_status status = std::filesystem::status(path, ignored);
  if (std::filesystem::is_directory(status))
    return Error{ErrorCode::io, "cannot write '" + path + "': it is a folder.", "Give the name of a file in it."};
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    out.temporary_ = path;
    return out;
  }
  const std::filesystem::path behind_links = std::filesystem::canonical(path, ignored);
  if (!behind_links.empty()) out.target_ = behind_links.string();
  int file = -1;
  for (int attempt = 0; file < 0; ++attempt) {
    out.temporary_ = out.target_ + ".new-" + std::to_string(::getpid()) + "-" + std::to_string(attempt);
    file = ::open(out.temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file >= 0 || (errno == EEXIST && attempt < 100)) continue;
    out.temporary_.clear();  // it is not ours to remove
    return write_error(path, errno);
  }
  ::close(file);
  return out;
}

NewFile::NewFile(NewFile&& other) noexcept
    : given_(std::move(other.given_)), target_(std::move(other.target_)), temporary_(std::move(other.temporary_)) {
  other.temporary_.clear();
  other.target_.clear();
}

NewFile::~NewFile() {
  if (!temporary_.empty() && is_plain()) ::unlink(temporary_.c_str());
}

Result<void> NewFile::publish() {
  if (is_plain() && std::rename(temporary_.c_str(), target_.c_str()) != 0) return write_error(given_, errno);
  temporary_.clear();
  target_.clear();
  return {};
}

Result<void> write_whole_file(const std::string& path, std::initializer_list<std::string_view> pieces) {
  IO_TRY(NewFile file, NewFile::create(path));
  File stream(std::fopen(file.path().c_str(), "wb"));
  if (stream == nullptr) return write_error(path, errno);
  for (const std::string_view piece : pieces) {
    if (std::fwrite(piece.data(), 1, piece.size(), stream.get()) != piece.size()) return write_error(path, errno);
  }
  if (std::fclose(stream.release()) != 0) return write_error(path, errno);
  return file.publish();
}

}  // namespace polyphase::io
