// Header and section table: bytes out, bytes checked.
#include "engine/file_header.h"

#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <iterator>

#include "engine/file.h"

namespace polyphase {
namespace {

static_assert(std::endian::native == std::endian::little, "engine files are little endian and mapped as they lie");

constexpr std::size_t checksum_at = 24;
constexpr std::uint32_t max_sections = 64;
constexpr std::uint32_t required_flag = 1;

template <typename T>
void put(std::vector<std::byte>& bytes, std::size_t at, T value) {
  std::memcpy(bytes.data() + at, &value, sizeof(T));
}

template <typename T>
T get(std::span<const std::byte> bytes, std::size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof(T));
  return value;
}

std::string hex(std::uint64_t value) {
  std::string out(16, '0');
  for (std::size_t i = 16; i-- > 0; value >>= 4) out[i] = "0123456789abcdef"[value & 15];
  return out;
}

Error refuse_truncated(const std::string& path, std::uint64_t expected, std::uint64_t found) {
  return {ErrorCode::corrupt,
          "'" + path + "' is truncated: expected " + std::to_string(expected) + " bytes, found " +
              std::to_string(found) + ".",
          "Copy the whole file again, or compile the model again."};
}

Error refuse_damaged(const std::string& path, const std::string& what) {
  return {ErrorCode::corrupt, "'" + path + "' is damaged: " + what + ".",
          "Copy the file again, or compile the model again."};
}

std::string section_name(std::uint32_t kind) {
  if (kind == static_cast<std::uint32_t>(SectionKind::program)) return "program";
  if (kind == static_cast<std::uint32_t>(SectionKind::constants)) return "constants";
  return "number " + std::to_string(kind);
}

std::uint64_t header_checksum(std::span<const std::byte> header) {
  std::vector<std::byte> copy(header.begin(), header.end());
  std::fill_n(copy.begin() + checksum_at, 8, std::byte{0});
  return checksum_of(copy);
}

// The sections in order, without overlap, inside the file, with zeros between them and their own checksums.
Result<void> check_sections(std::span<const std::byte> file, const std::vector<Section>& sections,
                            std::size_t header_end, const std::string& path) {
  std::size_t end = header_end;
  for (const Section& section : sections) {
    const std::string name = section_name(section.kind);
    if (section.offset < end || section.offset > file.size() || section.size_bytes > file.size() - section.offset) {
      return refuse_damaged(path, "section " + name + " does not lie behind the one before it inside the file");
    }
    const std::size_t alignment = section.kind == static_cast<std::uint32_t>(SectionKind::constants)
                                      ? constants_alignment_bytes
                                      : program_alignment_bytes;
    if (section.offset % alignment != 0) return refuse_damaged(path, "section " + name + " is not aligned");
    const auto gap = file.subspan(end, section.offset - end);
    if (!std::all_of(gap.begin(), gap.end(), [](std::byte byte) { return byte == std::byte{0}; })) {
      return refuse_damaged(path, "bytes before section " + name + " are not zero");
    }
    const std::uint64_t found = checksum_of(file.subspan(section.offset, section.size_bytes));
    if (found != section.checksum) {
      return refuse_damaged(path,
                            "section " + name + " has checksum " + hex(found) + ", expected " + hex(section.checksum));
    }
    end = section.offset + section.size_bytes;
  }
  if (end != file.size()) return refuse_damaged(path, "bytes follow the last section");
  return {};
}

}  // namespace

std::uint64_t checksum_of(std::span<const std::byte> bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

std::size_t align_up(std::size_t offset, std::size_t alignment) {
  return (offset + alignment - 1) / alignment * alignment;
}

std::vector<std::byte> make_header(const std::vector<Section>& sections, std::uint64_t total_bytes) {
  std::vector<std::byte> bytes(engine_header_bytes + sections.size() * engine_section_entry_bytes);
  std::memcpy(bytes.data(), engine_magic.data(), engine_magic.size());
  put(bytes, 8, engine_format_major);
  put(bytes, 10, engine_format_minor);
  put(bytes, 12, static_cast<std::uint32_t>(sections.size()));
  put(bytes, 16, total_bytes);
  std::size_t at = engine_header_bytes;
  for (const Section& section : sections) {
    put(bytes, at, section.kind);
    put(bytes, at + 4, section.required ? required_flag : 0U);
    put(bytes, at + 8, section.offset);
    put(bytes, at + 16, section.size_bytes);
    put(bytes, at + 24, section.checksum);
    at += engine_section_entry_bytes;
  }
  put(bytes, checksum_at, header_checksum(bytes));
  return bytes;
}

Result<std::vector<Section>> check_header(std::span<const std::byte> file, const std::string& path) {
  if (file.size() < engine_magic.size() || std::memcmp(file.data(), engine_magic.data(), engine_magic.size()) != 0) {
    const bool beginning = !file.empty() && file.size() < engine_magic.size() &&
                           std::memcmp(file.data(), engine_magic.data(), file.size()) == 0;
    if (!beginning) return refuse_foreign_file(file, path);
  }
  if (file.size() < engine_header_bytes) return refuse_truncated(path, engine_header_bytes, file.size());
  const auto count = get<std::uint32_t>(file, 12);
  if (count > max_sections) return refuse_damaged(path, "its header counts " + std::to_string(count) + " sections");
  const std::size_t header_end = engine_header_bytes + count * engine_section_entry_bytes;
  if (file.size() < header_end) return refuse_truncated(path, get<std::uint64_t>(file, 16), file.size());
  const auto expected = get<std::uint64_t>(file, checksum_at);
  const std::uint64_t found = header_checksum(file.first(header_end));
  if (found != expected)
    return refuse_damaged(path, "its header has checksum " + hex(found) + ", expected " + hex(expected));

  const auto major = get<std::uint16_t>(file, 8);
  if (major != engine_format_major) {
    return Error{ErrorCode::incompatible,
                 "'" + path + "' has engine format " + std::to_string(major) + "." +
                     std::to_string(get<std::uint16_t>(file, 10)) + ", made by " +
                     (major > engine_format_major ? "a newer" : "an older") + " Polyphase; this one reads format " +
                     std::to_string(engine_format_major) + ".",
                 major > engine_format_major ? "Update Polyphase, or compile the model again with this version."
                                             : "Compile the model again with this version."};
  }
  const auto total = get<std::uint64_t>(file, 16);
  if (total > file.size()) return refuse_truncated(path, total, file.size());
  if (total < file.size()) {
    return refuse_damaged(path, "it is longer than it says: expected " + std::to_string(total) + " bytes, found " +
                                    std::to_string(file.size()));
  }
  std::vector<Section> sections;
  for (std::size_t at = engine_header_bytes; at < header_end; at += engine_section_entry_bytes) {
    const auto flags = get<std::uint32_t>(file, at + 4);
    sections.push_back({get<std::uint32_t>(file, at), (flags & required_flag) != 0, get<std::uint64_t>(file, at + 8),
                        get<std::uint64_t>(file, at + 16), get<std::uint64_t>(file, at + 24)});
  }
  TRY_VOID(check_sections(file, sections, header_end, path));
  return sections;
}

}  // namespace polyphase
