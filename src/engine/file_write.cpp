// Engine → bytes: constants, program, header, each at its alignment; into a new file or into memory.
#include "base/check.h"
#include "engine/engine_writer.h"
#include "engine/file.h"
#include "engine/file_layout.h"

namespace polyphase {
namespace {

std::span<const std::byte> bytes_of(const EngineConstant& constant) {
  return {constant.bytes->data(), constant.bytes->size_bytes()};
}

}  // namespace

FileLayout::Rest FileLayout::rest(const Engine& engine) const {
  CHECK(places_.size() == engine.constants.size());
  Rest out;
  out.program = write_program(engine, places_);
  out.program_at = align_up(constants_at + constants_bytes_, program_alignment_bytes);
  out.total_bytes = out.program_at + out.program.size();
  const std::vector<Section> sections = {{static_cast<std::uint32_t>(SectionKind::constants), true, constants_at,
                                          constants_bytes_, XXH3_64bits_digest(&hash_)},
                                         {static_cast<std::uint32_t>(SectionKind::program), true, out.program_at,
                                          out.program.size(), checksum_of(out.program)}};
  out.header = make_header(sections, out.total_bytes);
  return out;
}

EngineWriter::EngineWriter(std::string path) : file_(std::move(path)), layout_(std::make_unique<FileLayout>()) {}
EngineWriter::~EngineWriter() = default;

Result<void> EngineWriter::add(std::span<const std::byte> bytes) {
  return layout_->add(bytes,
                      [&](std::size_t at, std::span<const std::byte> piece) { return file_.write_at(at, piece); });
}

Result<void> EngineWriter::read(std::size_t constant, std::size_t offset, std::span<std::byte> out) const {
  return file_.read_at(FileLayout::constants_at + layout_->places()[constant].offset + offset, out);
}

Result<void> EngineWriter::finish(const Engine& engine) {
  const FileLayout::Rest rest = layout_->rest(engine);
  total_bytes_ = rest.total_bytes;
  TRY_VOID(file_.write_at(rest.program_at, rest.program));
  return file_.write_at(0, rest.header);
}

Result<void> EngineWriter::lend(Engine& engine) const {
  TRY(const std::shared_ptr<Buffer> file, file_.map(total_bytes_));
  for (std::size_t i = 0; i < engine.constants.size(); ++i) {
    const ConstantPlace& place = layout_->places()[i];
    engine.constants[i].bytes =
        Buffer::borrow(file, file->data() + FileLayout::constants_at + place.offset, place.size_bytes);
  }
  return {};
}

Result<void> write_engine(const Engine& engine, const std::string& path) {
  TRY(std::string target, writable_path(path));
  EngineWriter writer(std::move(target));
  TRY_VOID(writer.open());
  for (const EngineConstant& constant : engine.constants) TRY_VOID(writer.add(bytes_of(constant)));
  TRY_VOID(writer.finish(engine));
  return writer.publish();
}

std::vector<std::byte> engine_bytes(const Engine& engine) {
  std::size_t constants_bytes = 0;
  for (const EngineConstant& constant : engine.constants)
    constants_bytes += align_up(constant.bytes->size_bytes(), constant_alignment_bytes);
  std::vector<std::byte> out;
  out.reserve(FileLayout::constants_at + constants_bytes);
  out.resize(FileLayout::constants_at);
  FileLayout layout;
  const auto append = [&](std::size_t, std::span<const std::byte> piece) -> Result<void> {
    out.insert(out.end(), piece.begin(), piece.end());
    return {};
  };
  for (const EngineConstant& constant : engine.constants) CHECK(layout.add(bytes_of(constant), append).ok());
  const FileLayout::Rest rest = layout.rest(engine);
  out.resize(rest.program_at);
  out.insert(out.end(), rest.program.begin(), rest.program.end());
  std::copy(rest.header.begin(), rest.header.end(), out.begin());
  return out;
}

}  // namespace polyphase
