// .npz through libzip.
#include "io/npz.h"

#include <zip.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <set>

#include "io/npy.h"
#include "io/try.h"
#include "io/whole_file.h"

namespace polyphase::io {
namespace {

constexpr std::string_view extension = ".npy";
// Deflate cannot shrink further than 1032 to 1: what claims more is a bomb or broken.
constexpr std::uint64_t max_inflation = 1100;
constexpr zip_int64_t max_members = 100'000;

struct Discard {
  void operator()(zip_t* archive) const { zip_discard(archive); }
  void operator()(zip_file_t* member) const { zip_fclose(member); }
};

std::string words_of(int code) {
  zip_error_t error;
  zip_error_init_with_code(&error, code);
  std::string text = zip_error_strerror(&error);
  zip_error_fini(&error);
  return text;
}

Error cannot(const std::string& what, const std::string& path, const std::string& why) {
  return {ErrorCode::io, "cannot " + what + " '" + path + "': " + why + ".",
          "Check that the path is right, that you may use it, and that the disk has space."};
}

Result<NamedTensor> read_member(zip_t* archive, zip_uint64_t index, const std::string& path) {
  zip_stat_t status;
  if (zip_stat_index(archive, index, 0, &status) != 0 || (status.valid & ZIP_STAT_SIZE) == 0 ||
      status.name == nullptr) {
    return cannot("read", path, zip_strerror(archive));
  }
  std::string name = status.name;
  const std::string shown = path + ":" + name;
  if ((status.valid & ZIP_STAT_COMP_SIZE) != 0 && status.size / max_inflation > status.comp_size) {
    return Error{ErrorCode::corrupt,
                 "'" + shown + "' claims " + std::to_string(status.size) + " bytes out of " +
                     std::to_string(status.comp_size) + ".",
                 "The archive is damaged: write it again with numpy.savez."};
  }
  const std::unique_ptr<zip_file_t, Discard> member(zip_fopen_index(archive, index, 0));
  if (member == nullptr) return cannot("read", shown, zip_strerror(archive));
  const ByteSource source = [&](std::span<std::byte> bytes) -> Result<void> {
    while (!bytes.empty()) {
      const zip_int64_t got =
          zip_fread(member.get(), bytes.data(), std::min<std::size_t>(bytes.size(), std::size_t{1} << 30));
      if (got <= 0) {
        const std::string why = got < 0 ? zip_file_strerror(member.get()) : "it ends too early";
        return Error{ErrorCode::corrupt, "'" + shown + "' is damaged: " + why + ".", "Copy or write the file again."};
      }
      bytes = bytes.subspan(static_cast<std::size_t>(got));
    }
    return {};
  };
  IO_TRY(api::Tensor tensor, read_npy(source, status.size, shown));
  std::byte past_end{};
  if (zip_fread(member.get(), &past_end, 1) < 0) {  // the checksum is compared at the end
    return Error{ErrorCode::corrupt, "'" + shown + "' is damaged: " + zip_file_strerror(member.get()) + ".",
                 "Copy or write the file again."};
  }
  name.resize(name.size() - extension.size());
  return NamedTensor{std::move(name), std::move(tensor)};
}

bool is_array(const char* name) {
  const std::string_view text = name == nullptr ? std::string_view() : name;
  return text.size() > extension.size() && text.substr(text.size() - extension.size()) == extension;
}

Result<void> add_member(zip_t* archive, const std::string& name, const NpyImage& image) {
  // One piece of memory that libzip frees: header and elements.
  const std::size_t count = image.elements.size_bytes();
  auto* bytes = static_cast<char*>(std::malloc(image.header.size() + count));
  if (bytes == nullptr)
    return Error{ErrorCode::out_of_memory, "no memory for the bytes of '" + name + "'.",
                 "Use a machine with more memory."};
  std::copy(image.header.begin(), image.header.end(), bytes);
  if (count > 0) std::memcpy(bytes + image.header.size(), image.elements.data(), count);
  zip_source_t* const source = zip_source_buffer(archive, bytes, image.header.size() + count, 1);
  if (source == nullptr) {
    std::free(bytes);
    return Error{ErrorCode::out_of_memory, "cannot store '" + name + "': " + zip_strerror(archive) + ".",
                 "Use a machine with more memory."};
  }
  const zip_int64_t index = zip_file_add(archive, (name + std::string(extension)).c_str(), source, ZIP_FL_ENC_UTF_8);
  if (index < 0) {
    zip_source_free(source);
    return Error{ErrorCode::invalid_argument, "cannot store '" + name + "': " + zip_strerror(archive) + ".",
                 "Give the output another name, or write it as .npy."};
  }
  const auto at = static_cast<zip_uint64_t>(index);
  zip_set_file_compression(archive, at, ZIP_CM_STORE, 0);
  zip_file_set_dostime(archive, at, 0, (1 << 5) | 1, 0);  // 1980-01-01, the first date zip knows
  return {};
}

}  // namespace

Result<std::vector<NamedTensor>> read_npz(const std::string& path) {
  IO_TRY_VOID(expect_file(path));
  int code = 0;
  const std::unique_ptr<zip_t, Discard> archive(zip_open(path.c_str(), ZIP_RDONLY, &code));
  if (archive == nullptr) {
    if (code != ZIP_ER_NOZIP && code != ZIP_ER_INCONS) return cannot("open", path, words_of(code));
    return Error{ErrorCode::corrupt, "'" + path + "' is not an .npz archive: " + words_of(code) + ".",
                 "Write it with numpy.savez; give a single array with --input NAME=FILE.npy."};
  }
  const zip_int64_t count = zip_get_num_entries(archive.get(), 0);
  if (count > max_members)
    return Error{ErrorCode::corrupt, "'" + path + "' has " + std::to_string(count) + " members.",
                 "Write the arrays into several archives."};
  std::vector<NamedTensor> tensors;
  std::set<std::string> names;
  for (zip_int64_t i = 0; i < count; ++i) {
    const auto index = static_cast<zip_uint64_t>(i);
    if (!is_array(zip_get_name(archive.get(), index, 0))) continue;
    IO_TRY(NamedTensor tensor, read_member(archive.get(), index, path));
    if (!names.insert(tensor.name).second) {
      return Error{ErrorCode::corrupt, "'" + path + "' holds the name '" + tensor.name + "' twice.",
                   "Write it again with numpy.savez, each name once."};
    }
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

Result<void> write_npz(const std::string& path, std::span<const NamedTensor> tensors) {
  if (tensors.empty())
    return Error{ErrorCode::invalid_argument, "there is nothing to write to '" + path + "'.",
                 "Give at least one tensor."};
  IO_TRY(NewFile file, NewFile::create(path));
  if (!file.is_plain()) {
    return Error{ErrorCode::io, "cannot write '" + path + "': it is a device or a pipe.",
                 "Give the name of a file, such as out.npz."};
  }
  int code = 0;
  std::unique_ptr<zip_t, Discard> archive(zip_open(file.path().c_str(), ZIP_CREATE | ZIP_TRUNCATE, &code));
  if (archive == nullptr) return cannot("write", path, words_of(code));
  for (const NamedTensor& item : tensors) {
    IO_TRY(const NpyImage image, make_npy(item.tensor));
    IO_TRY_VOID(add_member(archive.get(), item.name, image));
  }
  if (zip_close(archive.get()) != 0) return cannot("write", path, zip_strerror(archive.get()));
  static_cast<void>(archive.release());  // closed: nothing to discard
  return file.publish();
}

}  // namespace polyphase::io
