// Zip archives through libzip.
#include "wire/zip_archive.h"

#include <zip.h>

#include <algorithm>
#include <cstring>

#include "wire/printable.h"
#include "wire/regular_file.h"

namespace polyphase::wire {
namespace {

constexpr zip_int64_t most_members = 1'000'000;
constexpr const char* write_again = "The file is damaged or not finished: copy it again, or save the program again.";

struct CloseMember {
  void operator()(zip_file_t* member) const { zip_fclose(member); }
};

std::string words_of(zip_error_t* error) {
  const bool has_no_end = zip_error_code_zip(error) == ZIP_ER_NOZIP;
  std::string text =
      has_no_end ? "the list of its members, which stands at the end, is missing" : zip_error_strerror(error);
  zip_error_fini(error);
  return text;
}

constexpr std::int64_t most_deflated = 1032;  // bytes that one byte of deflate can stand for (RFC 1951)

Error damaged_archive(const std::string& what) { return {ErrorCode::corrupt, what + ".", write_again}; }

}  // namespace

struct ZipArchive::Handle {
  zip_t* archive = nullptr;
  std::int64_t size_bytes = 0;  // of the file
  ~Handle() {
    if (archive != nullptr) zip_discard(archive);
  }
};

ZipArchive::ZipArchive(std::unique_ptr<Handle> handle) : handle_(std::move(handle)) {}
ZipArchive::~ZipArchive() = default;
ZipArchive::ZipArchive(ZipArchive&& other) noexcept = default;
ZipArchive& ZipArchive::operator=(ZipArchive&& other) noexcept = default;

Result<ZipArchive> ZipArchive::open(const std::filesystem::path& path) {
  TRY(const auto file, RegularFile::open(path));  // no FIFO, no folder
  int code = 0;
  auto handle = std::make_unique<Handle>();
  handle->archive = zip_open(path.c_str(), ZIP_RDONLY, &code);
  handle->size_bytes = file->size_bytes();
  if (handle->archive == nullptr) {
    zip_error_t error;
    zip_error_init_with_code(&error, code);
    return damaged_archive("the archive cannot be read: " + words_of(&error));
  }
  return list_of(std::move(handle));
}

Result<ZipArchive> ZipArchive::of_bytes(std::span<const std::byte> bytes) {
  zip_error_t error;
  zip_error_init(&error);
  zip_source_t* const source = zip_source_buffer_create(bytes.data(), bytes.size(), 0, &error);
  if (source == nullptr) return damaged_archive("the archive cannot be read: " + words_of(&error));
  auto handle = std::make_unique<Handle>();
  handle->archive = zip_open_from_source(source, ZIP_RDONLY, &error);
  handle->size_bytes = static_cast<std::int64_t>(bytes.size());
  if (handle->archive == nullptr) {
    zip_source_free(source);
    return damaged_archive("the archive cannot be read: " + words_of(&error));
  }
  zip_error_fini(&error);
  return list_of(std::move(handle));
}

Result<ZipArchive> ZipArchive::list_of(std::unique_ptr<Handle> handle) {
  const zip_int64_t count = zip_get_num_entries(handle->archive, 0);
  if (count > most_members) return damaged_archive("the archive has " + std::to_string(count) + " members");
  ZipArchive out(std::move(handle));
  for (zip_int64_t i = 0; i < count; ++i) {
    const char* name = zip_get_name(out.handle_->archive, static_cast<zip_uint64_t>(i), ZIP_FL_ENC_RAW);
    if (name == nullptr) return damaged_archive("member " + std::to_string(i) + " of the archive has no name");
    out.names_.emplace_back(name);
  }
  return out;
}

bool ZipArchive::has(const std::string& name) const {
  return std::find(names_.begin(), names_.end(), name) != names_.end();
}

Result<std::shared_ptr<Buffer>> ZipArchive::read(const std::string& name, bool packed) const {
  zip_t* const archive = handle_->archive;
  const std::string shown = "member " + quoted_name(name) + " of the archive";
  const zip_int64_t index = zip_name_locate(archive, name.c_str(), ZIP_FL_ENC_RAW);
  zip_stat_t status;
  if (index < 0 || zip_stat_index(archive, static_cast<zip_uint64_t>(index), 0, &status) != 0 ||
      (status.valid & ZIP_STAT_SIZE) == 0)
    return damaged_archive(shown + " is missing");
  if (!packed && (status.valid & ZIP_STAT_COMP_METHOD) != 0 && status.comp_method != ZIP_CM_STORE)
    return Error{ErrorCode::unsupported, shown + " is compressed; PyTorch stores members as they are.",
                 "Save the program again with torch.export.save, and do not pack the file again."};
  const std::int64_t most = packed ? handle_->size_bytes * most_deflated : handle_->size_bytes;
  if (static_cast<std::int64_t>(status.size) > most || static_cast<std::int64_t>(status.size) < 0)
    return damaged_archive(shown + " claims " + std::to_string(status.size) + " bytes, more than the file has");
  const std::unique_ptr<zip_file_t, CloseMember> member(zip_fopen_index(archive, static_cast<zip_uint64_t>(index), 0));
  if (member == nullptr) return damaged_archive(shown + " cannot be read: " + zip_strerror(archive));
  TRY(auto buffer, Buffer::allocate_brief(status.size));
  for (std::size_t done = 0; done < status.size;) {
    const zip_int64_t got = zip_fread(member.get(), buffer->data() + done, status.size - done);
    if (got <= 0) {
      const std::string why = got < 0 ? zip_file_strerror(member.get()) : "it ends too early";
      return damaged_archive(shown + " is damaged: " + why);
    }
    done += static_cast<std::size_t>(got);
  }
  std::byte past_end{};
  if (zip_fread(member.get(), &past_end, 1) < 0)  // the checksum is compared at the end
    return damaged_archive(shown + " is damaged: " + zip_file_strerror(member.get()));
  return buffer;
}

Result<std::string> ZipArchive::read_text(const std::string& name) const {
  TRY(const auto buffer, read(name));
  return std::string(reinterpret_cast<const char*>(buffer->data()), buffer->size_bytes());
}

}  // namespace polyphase::wire
