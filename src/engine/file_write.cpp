// Engine → file: to a temporary name in the same folder, flushed, renamed over the old file, the folder flushed.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>

#include "engine/file.h"
#include "engine/file_header.h"
#include "engine/program.h"

namespace polyphase {
namespace {

// A file under a temporary name; unlinked unless it was published.
class NewFile {
 public:
  explicit NewFile(std::string path) : path_(std::move(path)) {}
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;
  ~NewFile() {
    if (file_ >= 0) ::close(file_);
    if (exists_) ::unlink(temporary_.c_str());
  }

  Result<void> open() {
    for (int attempt = 0;; ++attempt) {
      temporary_ = path_ + ".new-" + std::to_string(::getpid()) + "-" + std::to_string(attempt);
      file_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
      if (file_ >= 0) break;
      if (errno != EEXIST || attempt == 100) return failed("create a file beside");
    }
    exists_ = true;
    return {};
  }

  Result<void> write(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const ssize_t written = ::write(file_, bytes.data(), std::min<std::size_t>(bytes.size(), std::size_t{1} << 30));
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) return failed("write");
      bytes = bytes.subspan(static_cast<std::size_t>(written));
    }
    return {};
  }

  Result<void> pad(std::size_t count) { return write(std::vector<std::byte>(count)); }

  Result<void> rewind() {
    if (::lseek(file_, 0, SEEK_SET) != 0) return failed("write");
    return {};
  }

  Result<void> publish() {
    if (::fsync(file_) != 0) return failed("flush");
    if (::close(std::exchange(file_, -1)) != 0) return failed("close");
    if (::rename(temporary_.c_str(), path_.c_str()) != 0) return failed("replace");
    exists_ = false;
    const std::string folder = std::filesystem::path(path_).parent_path().string();
    const int directory = ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory >= 0) {  // some file systems cannot flush a folder; the file itself is safe
      ::fsync(directory);
      ::close(directory);
    }
    return {};
  }

 private:
  Error failed(const std::string& what) const {
    return {ErrorCode::io, "cannot " + what + " '" + path_ + "': " + std::strerror(errno) + ".",
            errno == ENOSPC ? "Free space on the disk, or write elsewhere."
                            : "Choose a folder that exists and can be written."};
  }

  std::string path_;
  std::string temporary_;
  int file_ = -1;
  bool exists_ = false;
};

// Where the bytes shall go: behind links, and never over a device or a folder.
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

struct HashState {
  HashState() : state(XXH3_createState(), XXH3_freeState) { XXH3_64bits_reset(state.get()); }
  void add(std::span<const std::byte> bytes) { XXH3_64bits_update(state.get(), bytes.data(), bytes.size()); }
  std::uint64_t digest() const { return XXH3_64bits_digest(state.get()); }
  std::unique_ptr<XXH3_state_t, XXH_errorcode (*)(XXH3_state_t*)> state;
};

}  // namespace

Result<void> write_engine(const Engine& engine, const std::string& path) {
  TRY(const std::string target, writable_path(path));
  std::vector<ConstantPlace> places;
  std::size_t constants_bytes = 0;
  for (const EngineConstant& constant : engine.constants) {
    places.push_back({constants_bytes, constant.bytes->size_bytes()});
    constants_bytes = align_up(constants_bytes + constant.bytes->size_bytes(), constant_alignment_bytes);
  }
  const std::vector<std::byte> program = write_program(engine, places);
  const std::size_t header_bytes = engine_header_bytes + 2 * engine_section_entry_bytes;
  std::vector<Section> sections(2);
  sections[0] = {static_cast<std::uint32_t>(SectionKind::program), true,
                 align_up(header_bytes, program_alignment_bytes), program.size(), checksum_of(program)};
  const std::size_t program_end = sections[0].offset + program.size();
  sections[1] = {static_cast<std::uint32_t>(SectionKind::constants), true,
                 align_up(program_end, constants_alignment_bytes), constants_bytes, 0};

  NewFile file(target);
  TRY_VOID(file.open());
  TRY_VOID(file.pad(sections[0].offset));  // the header is known last
  TRY_VOID(file.write(program));
  TRY_VOID(file.pad(sections[1].offset - program_end));
  HashState hash;
  const std::vector<std::byte> zeros(constant_alignment_bytes);
  for (const EngineConstant& constant : engine.constants) {
    const std::span<const std::byte> bytes(constant.bytes->data(), constant.bytes->size_bytes());
    const std::span<const std::byte> gap(zeros.data(), align_up(bytes.size(), constant_alignment_bytes) - bytes.size());
    hash.add(bytes);
    hash.add(gap);
    TRY_VOID(file.write(bytes));
    TRY_VOID(file.write(gap));
  }
  sections[1].checksum = hash.digest();
  TRY_VOID(file.rewind());
  TRY_VOID(file.write(make_header(sections, sections[1].offset + constants_bytes)));
  return file.publish();
}

}  // namespace polyphase
