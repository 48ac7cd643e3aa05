// Header and section table of an engine file; the picture is in file.h.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace polyphase {

inline constexpr std::array<std::uint8_t, 8> engine_magic = {0x89, 'P', 'P', 'E', 0x0D, 0x0A, 0x1A, 0x0A};
inline constexpr std::size_t engine_header_bytes = 32;
inline constexpr std::size_t engine_section_entry_bytes = 32;
inline constexpr std::size_t program_alignment_bytes = 64;
inline constexpr std::size_t constants_alignment_bytes = 4096;
inline constexpr std::size_t constant_alignment_bytes = 64;

enum class SectionKind : std::uint32_t { program = 1, constants = 2 };

struct Section {
  std::uint32_t kind = 0;
  bool required = true;  // a reader that does not know the kind must refuse the file
  std::uint64_t offset = 0;
  std::uint64_t size_bytes = 0;
  std::uint64_t checksum = 0;
};

std::uint64_t checksum_of(std::span<const std::byte> bytes);
std::size_t align_up(std::size_t offset, std::size_t alignment);

// The header and table as bytes, with their checksum filled in.
std::vector<std::byte> make_header(const std::vector<Section>& sections, std::uint64_t total_bytes);

// Checks everything about the file that needs no knowledge of its sections' contents: magic, version, length, table,
// checksums, zeros between sections. `path` is for messages.
Result<std::vector<Section>> check_header(std::span<const std::byte> file, const std::string& path);

// What a file that is no engine seems to be, as words for a message and what to do with it.
Error refuse_foreign_file(std::span<const std::byte> file, const std::string& path);

}  // namespace polyphase
