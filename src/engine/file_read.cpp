// File → Engine: header, checksums, program, then everything that must hold in an engine.
#include <algorithm>
#include <cstring>
#include <fstream>

#include "engine/check.h"
#include "engine/file.h"
#include "engine/file_header.h"
#include "engine/mapped_file.h"
#include "engine/program.h"

namespace polyphase {
namespace {

const Section* find_section(const std::vector<Section>& sections, SectionKind kind) {
  const auto found = std::find_if(sections.begin(), sections.end(), [&](const Section& section) {
    return section.kind == static_cast<std::uint32_t>(kind);
  });
  return found == sections.end() ? nullptr : &*found;
}

Result<void> know_all_required(const std::vector<Section>& sections, const std::string& path) {
  for (const Section& section : sections) {
    const bool known = section.kind == static_cast<std::uint32_t>(SectionKind::program) ||
                       section.kind == static_cast<std::uint32_t>(SectionKind::constants);
    if (known || !section.required) continue;
    return Error{
        ErrorCode::incompatible,
        "'" + path + "' needs section kind " + std::to_string(section.kind) + ", which this Polyphase does not know.",
        "Update Polyphase, or compile the model again with this version."};
  }
  return {};
}

}  // namespace

Result<Engine> read_engine_bytes(const std::shared_ptr<Buffer>& bytes, const std::string& path,
                                 const Registry& registry) {
  const std::span<const std::byte> file(bytes->data(), bytes->size_bytes());
  TRY(const std::vector<Section> sections, check_header(file, path));
  TRY_VOID(know_all_required(sections, path));
  const Section* program = find_section(sections, SectionKind::program);
  const Section* constants = find_section(sections, SectionKind::constants);
  if (program == nullptr || constants == nullptr) {
    return Error{ErrorCode::corrupt, "'" + path + "' lacks its program or its constants.", "Compile the model again."};
  }
  auto engine = read_program(file.subspan(program->offset, program->size_bytes), bytes, constants->offset,
                             constants->size_bytes, registry);
  if (!engine.ok()) return std::move(engine).error().within("while reading '" + path + "'");
  auto checked = check_engine(*engine, registry);
  if (!checked.ok()) return std::move(checked).error().within("while reading '" + path + "'");
  return engine;
}

Result<Engine> read_engine(const std::string& path, const Registry& registry) {
  TRY(const std::shared_ptr<Buffer> bytes, map_file(path));
  return read_engine_bytes(bytes, path, registry);
}

bool is_engine_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::array<char, engine_magic.size()> first{};
  return file.read(first.data(), first.size()) && std::memcmp(first.data(), engine_magic.data(), first.size()) == 0;
}

}  // namespace polyphase
