// Where things come to lie in an engine file (the picture is in file.h), and their checksums.
#pragma once

#ifndef XXH_STATIC_LINKING_ONLY
#define XXH_STATIC_LINKING_ONLY  // declares the state's size
#endif
#include <xxhash.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "engine/engine.h"
#include "engine/file_header.h"
#include "engine/program.h"

namespace polyphase {

class FileLayout {
 public:
  FileLayout() { XXH3_64bits_reset(&hash_); }

  // Constants begin here in the file.
  static constexpr std::size_t constants_at = constants_alignment_bytes;
  static_assert(engine_header_bytes + 2 * engine_section_entry_bytes <= constants_at);

  // The next constant, with the zeros behind it: write(offset, bytes) is called for piece after piece and gives a
  // Result<void>. Pieces are small enough to be in a cache still when they are read for the second time.
  template <typename Write>
  Result<void> add(std::span<const std::byte> bytes, Write&& write) {
    constexpr std::size_t piece_bytes = std::size_t{1} << 18;
    constexpr std::byte zeros[constant_alignment_bytes] = {};
    const std::size_t gap = align_up(bytes.size(), constant_alignment_bytes) - bytes.size();
    const auto put = [&](std::span<const std::byte> piece) {
      XXH3_64bits_update(&hash_, piece.data(), piece.size());
      const std::size_t at = constants_at + constants_bytes_;
      constants_bytes_ += piece.size();
      return write(at, piece);
    };
    places_.push_back({constants_bytes_, bytes.size()});
    while (!bytes.empty()) {
      const auto piece = bytes.first(std::min(bytes.size(), piece_bytes));
      TRY_VOID(put(piece));
      bytes = bytes.subspan(piece.size());
    }
    if (gap != 0) TRY_VOID(put({zeros, gap}));
    return {};
  }

  // What stands around the constants.
  struct Rest {
    std::vector<std::byte> header;  // at 0
    std::vector<std::byte> program;
    std::size_t program_at = 0;
    std::size_t total_bytes = 0;
  };
  // For the engine whose constants were added, in their order.
  Rest rest(const Engine& engine) const;

  const std::vector<ConstantPlace>& places() const { return places_; }

 private:
  std::vector<ConstantPlace> places_;
  std::size_t constants_bytes_ = 0;
  XXH3_state_t hash_;  // on the stack, where it needs no memory that the system could refuse
};

}  // namespace polyphase
