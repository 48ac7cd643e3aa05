// A tile's scratch, cut into pieces of which each begins at a cache line: the plan adds up their sizes, and the tile
// takes them, in any one order.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/dim.h"

namespace polyphase::cpu {

inline constexpr int64_t cache_line = 64;  // bytes
inline constexpr int64_t cache_line_floats = cache_line / static_cast<int64_t>(sizeof(float));
inline constexpr int64_t collision_floats = 512;  // half of what one way of a first-level cache holds

template <class T>
constexpr int64_t scratch_piece_bytes(int64_t count) {
  return ceil_div(count * static_cast<int64_t>(sizeof(T)), cache_line) * cache_line;
}

class ScratchPieces {
 public:
  explicit ScratchPieces(std::byte* from) : at_(from) {}
  template <class T>
  T* next(int64_t count) {
    T* const piece = reinterpret_cast<T*>(at_);
    at_ += scratch_piece_bytes<T>(count);
    return piece;
  }

 private:
  std::byte* at_;
};

}  // namespace polyphase::cpu
