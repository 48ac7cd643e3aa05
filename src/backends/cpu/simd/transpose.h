// Transposing matrices of floats through registers, for layouts at the border: channels-first <-> channels-last.
#pragma once

#include <cstdint>

#include "backends/cpu/simd/vec.h"

namespace polyphase::cpu::POLYPHASE_CLUSTER {

// to[c * to_pitch + r] = from[r * from_pitch + c] for 0 <= r < rows, 0 <= c < columns, both at most kVecWidth.
POLYPHASE_INLINE void transpose_edge(const float* from, int64_t from_pitch, float* to, int64_t to_pitch, int rows,
                                     int columns) {
  VecF lanes[kVecWidth];
  for (int r = 0; r < kVecWidth; ++r) {
    lanes[r] = r < rows ? load_first(from + r * from_pitch, columns) : broadcast(0.0F);
  }
  transpose_lanes(lanes);
  for (int c = 0; c < columns; ++c) store_first(to + c * to_pitch, lanes[c], rows);
}

POLYPHASE_INLINE void transpose_square(const float* from, int64_t from_pitch, float* to, int64_t to_pitch) {
  VecF lanes[kVecWidth];
  for (int r = 0; r < kVecWidth; ++r) lanes[r] = load(from + r * from_pitch);
  transpose_lanes(lanes);
  for (int c = 0; c < kVecWidth; ++c) store(to + c * to_pitch, lanes[c]);
}

// to[c * to_pitch + r] = from[r * from_pitch + c] for a matrix of any size. The matrices do not overlap.
inline void transpose(const float* from, int64_t from_pitch, float* to, int64_t to_pitch, int64_t rows,
                      int64_t columns) {
  constexpr int kW = kVecWidth;
  for (int64_t r = 0; r < rows; r += kW) {
    const int height = rows - r < kW ? static_cast<int>(rows - r) : kW;
    for (int64_t c = 0; c < columns; c += kW) {
      const int width = columns - c < kW ? static_cast<int>(columns - c) : kW;
      const float* source = from + r * from_pitch + c;
      float* target = to + c * to_pitch + r;
      if (height == kW && width == kW) {
        transpose_square(source, from_pitch, target, to_pitch);
      } else {
        transpose_edge(source, from_pitch, target, to_pitch, height, width);
      }
    }
  }
}

}  // namespace polyphase::cpu::POLYPHASE_CLUSTER
