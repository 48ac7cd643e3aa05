// Opening with every step checked on the descriptor itself, so that nothing can be swapped between check and use.
#include "wire/regular_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "wire/printable.h"

namespace polyphase::wire {
namespace {

Error io_error(const std::string& name, const std::string& what) {
  return Error{ErrorCode::io, "the file " + quoted_name(name) + " " + what + ": " + std::strerror(errno) + ".",
               "Check that the path is right and that you may read it."};
}

std::string kind_of_file(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  if (S_ISCHR(mode) || S_ISBLK(mode)) return "a device";
  return "not a plain file";
}

// Closes a descriptor on every way out.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() { reset(-1); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  void reset(int fd) {
    if (fd_ >= 0) ::close(fd_);
    fd_ = fd;
  }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

Error outside(const std::string& relative, const std::string& why) {
  return Error{ErrorCode::invalid_model, "the external data path " + quoted_name(relative) + " " + why + ".",
               "External data must be a plain file inside the model's own folder, named relative to it; save the model "
               "again with its "
               "weights beside it, or with the weights inside the .onnx file."};
}

// "a/b/c" into its steps; an Error for anything that is not a plain relative path.
Result<std::vector<std::string>> steps_of(const std::string& relative) {
  if (relative.empty()) return outside(relative, "is empty");
  if (relative.find('\0') != std::string::npos) return outside(relative, "contains a zero byte");
  if (relative.find('\\') != std::string::npos) return outside(relative, "contains a backslash");
  if (relative.front() == '/') return outside(relative, "is absolute");
  if (relative.size() > 1 && relative[1] == ':') return outside(relative, "is absolute");
  std::vector<std::string> steps;
  std::size_t at = 0;
  while (at <= relative.size()) {
    const std::size_t end = std::min(relative.find('/', at), relative.size());
    std::string step = relative.substr(at, end - at);
    at = end + 1;
    if (step == "..") return outside(relative, "leaves the model's folder");
    if (step.empty() || step == ".") continue;
    steps.push_back(std::move(step));
  }
  if (steps.empty() || relative.back() == '/') return outside(relative, "names a folder");
  return steps;
}

}  // namespace

RegularFile::RegularFile(int descriptor, std::int64_t size_bytes, std::string name)
    : descriptor_(descriptor), size_bytes_(size_bytes), name_(std::move(name)) {}

RegularFile::~RegularFile() { ::close(descriptor_); }

Result<std::shared_ptr<RegularFile>> RegularFile::adopt(int descriptor, const std::string& name, bool one_name_only) {
  Descriptor file(descriptor);
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) return io_error(name, "cannot be examined");
  if (!S_ISREG(status.st_mode)) {
    return Error{ErrorCode::io,
                 "'" + printable(name, 200) + "' is " + kind_of_file(status.st_mode) + ", not a file with data.",
                 "Give the path of a plain file."};
  }
  if (one_name_only && status.st_nlink > 1) {
    return outside(name, "is a hard link: the same file has " + std::to_string(status.st_nlink) +
                             " names, and another may lie outside the model's folder");
  }
  return std::shared_ptr<RegularFile>(new RegularFile(file.release(), static_cast<std::int64_t>(status.st_size), name));
}

Result<std::shared_ptr<RegularFile>> RegularFile::open(const std::filesystem::path& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (descriptor < 0) return io_error(path.string(), "cannot be opened");
  return adopt(descriptor, path.string(), false);
}

Result<std::shared_ptr<RegularFile>> RegularFile::open_below(const std::filesystem::path& folder,
                                                             const std::string& relative) {
  TRY(const std::vector<std::string> steps, steps_of(relative));
  const std::string start = folder.empty() ? "." : folder.string();
  Descriptor at(::open(start.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (at.get() < 0) return io_error(start, "cannot be opened as a folder");
  for (std::size_t i = 0; i + 1 < steps.size(); ++i) {
    const int next = ::openat(at.get(), steps[i].c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (next < 0 && (errno == ELOOP || errno == ENOTDIR))
      return outside(relative,
                     "passes through '" + printable(steps[i]) + "', which is a symbolic link or not a folder");
    if (next < 0) return io_error(relative, "with the weights cannot be opened");
    at.reset(next);
  }
  const int file = ::openat(at.get(), steps.back().c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (file < 0 && errno == ELOOP) return outside(relative, "is a symbolic link");
  if (file < 0) return io_error(relative, "with the weights cannot be opened");
  return adopt(file, relative, true);
}

Result<std::shared_ptr<Buffer>> RegularFile::read(std::int64_t offset, std::int64_t length) const {
  CHECK(offset >= 0 && length >= 0 && offset <= size_bytes_ && length <= size_bytes_ - offset);
  TRY(auto buffer, Buffer::allocate_brief(static_cast<std::size_t>(length)));
  TRY_VOID(read_into(offset, {buffer->data(), static_cast<std::size_t>(length)}));
  return buffer;
}

Result<void> RegularFile::read_into(std::int64_t offset, std::span<std::byte> out) const {
  while (!out.empty()) {
    const auto got = ::pread(descriptor_, out.data(), out.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return io_error(name_, "cannot be read");
    if (got == 0) {
      return Error{ErrorCode::corrupt, "the file " + quoted_name(name_) + " became shorter while it was read.",
                   "Wait until whatever writes it has finished, and try again."};
    }
    out = out.subspan(static_cast<std::size_t>(got));
    offset += got;
  }
  return {};
}

}  // namespace polyphase::wire
