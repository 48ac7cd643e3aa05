// Engine → bytes: header, program, constants, each at its alignment; into a new file or into memory.
#define XXH_STATIC_LINKING_ONLY  // declares the state's size
#include <xxhash.h>

#include <array>

#include "base/check.h"
#include "engine/file.h"
#include "engine/file_header.h"
#include "engine/new_file.h"
#include "engine/program.h"

namespace polyphase {
namespace {

// On the stack, where it needs no memory that the system could refuse.
class Checksum {
 public:
  Checksum() { XXH3_64bits_reset(&state_); }
  void add(std::span<const std::byte> bytes) { XXH3_64bits_update(&state_, bytes.data(), bytes.size()); }
  std::uint64_t digest() const { return XXH3_64bits_digest(&state_); }

 private:
  XXH3_state_t state_;
};

// What stands in the file, piece by piece from its first byte to its last.
struct FilePieces {
  explicit FilePieces(const Engine& engine);

  // Calls f(span) for each piece in order; f gives a Result<void>.
  template <typename F>
  Result<void> each(F&& f) const {
    const std::vector<std::byte> zeros(constants_alignment_bytes);
    const auto gap = [&](std::size_t size) { return std::span<const std::byte>(zeros.data(), size); };
    TRY_VOID(f(std::span<const std::byte>(header)));
    TRY_VOID(f(gap(sections[0].offset - header.size())));
    TRY_VOID(f(std::span<const std::byte>(program)));
    TRY_VOID(f(gap(sections[1].offset - sections[0].offset - program.size())));
    for (const auto& piece : constants) TRY_VOID(f(piece));
    return {};
  }
  std::size_t size_bytes() const { return sections[1].offset + sections[1].size_bytes; }

  std::vector<Section> sections{2};
  std::vector<std::byte> header;
  std::vector<std::byte> program;
  std::vector<std::span<const std::byte>> constants;  // with the zeros between them
};

constexpr std::array<std::byte, constant_alignment_bytes> constant_gap{};

FilePieces::FilePieces(const Engine& engine) {
  std::vector<ConstantPlace> places;
  std::size_t constants_bytes = 0;
  Checksum hash;
  for (const EngineConstant& constant : engine.constants) {
    const std::span<const std::byte> bytes(constant.bytes->data(), constant.bytes->size_bytes());
    places.push_back({constants_bytes, bytes.size()});
    constants.push_back(bytes);
    const std::size_t end = constants_bytes + bytes.size();
    constants_bytes = align_up(end, constant_alignment_bytes);
    constants.emplace_back(constant_gap.data(), constants_bytes - end);
    hash.add(bytes);
    hash.add(constants.back());
  }
  program = write_program(engine, places);
  const std::size_t header_bytes = engine_header_bytes + 2 * engine_section_entry_bytes;
  sections[0] = {static_cast<std::uint32_t>(SectionKind::program), true,
                 align_up(header_bytes, program_alignment_bytes), program.size(), checksum_of(program)};
  sections[1] = {static_cast<std::uint32_t>(SectionKind::constants), true,
                 align_up(sections[0].offset + program.size(), constants_alignment_bytes), constants_bytes,
                 hash.digest()};
  header = make_header(sections, size_bytes());
}

}  // namespace

Result<void> write_engine(const Engine& engine, const std::string& path) {
  TRY(const std::string target, writable_path(path));
  const FilePieces pieces(engine);
  NewFile file(target);
  TRY_VOID(file.open());
  TRY_VOID(pieces.each([&](std::span<const std::byte> piece) { return file.write(piece); }));
  return file.publish();
}

std::vector<std::byte> engine_bytes(const Engine& engine) {
  const FilePieces pieces(engine);
  std::vector<std::byte> out;
  out.reserve(pieces.size_bytes());
  const auto written = pieces.each([&](std::span<const std::byte> piece) -> Result<void> {
    out.insert(out.end(), piece.begin(), piece.end());
    return {};
  });
  CHECK(written.ok() && out.size() == pieces.size_bytes());
  return out;
}

}  // namespace polyphase
