// EngineWriter: an engine file that grows while its engine is made: constants as they come to be, then the program, the
// header last. What it gives is what write_engine writes for the finished engine.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "engine/engine.h"
#include "engine/new_file.h"

namespace polyphase {

class FileLayout;

class EngineWriter {
 public:
  // `path`: as writable_path gives it.
  explicit EngineWriter(std::string path);
  ~EngineWriter();

  // Errors of these: io.
  Result<void> open() { return file_.open(); }
  // The bytes of the next constant, which may go afterwards.
  Result<void> add(std::span<const std::byte> bytes);
  // Bytes of a constant from an offset on, as many as `out` has.
  Result<void> read(std::size_t constant, std::size_t offset, std::span<std::byte> out) const;
  // The rest, for the engine whose constants were added in their order.
  Result<void> finish(const Engine& engine);
  // After finish: the engine's constants become views of the file.
  Result<void> lend(Engine& engine) const;
  // The file appears under its name.
  Result<void> publish() { return file_.publish(); }

 private:
  NewFile file_;
  std::unique_ptr<FileLayout> layout_;
  std::size_t total_bytes_ = 0;
};

}  // namespace polyphase
