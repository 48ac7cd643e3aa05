// Transposing matrices of floats through registers, for layouts at the border: channels-first <-> channels-last.
#pragma once

#include <cstdint>

#include "backends/cpu/simd/vec.h"

namespace polyphase::cpu::POLYPHASE_CLUSTER {

// to[c * to_pitch + r] = from[r * from_pitch + c] for 0 <= r < rows, 0 <= c < columns, both at most vec_width.
POLYPHASE_INLINE void transpose_edge(const float* from, int64_t from_pitch, float* to, int64_t to_pitch, int rows,
                                     int columns) {
  VecF lanes[vec_width];
  for (int r = 0; r < vec_width; ++r) {
    lanes[r] = r < rows ? load_first(from + r * from_pitch, columns) : broadcast(0.0F);
  }
  transpose_lanes(lanes);
  for (int c = 0; c < columns; ++c) store_first(to + c * to_pitch, lanes[c], rows);
}

template <bool past_caches = false>
POLYPHASE_INLINE void transpose_square(const float* from, int64_t from_pitch, float* to, int64_t to_pitch) {
  VecF lanes[vec_width];
  for (int r = 0; r < vec_width; ++r) lanes[r] = load(from + r * from_pitch);
  transpose_lanes(lanes);
  for (int c = 0; c < vec_width; ++c) {
    if constexpr (past_caches) {
      stream(to + c * to_pitch, lanes[c]);
    } else {
      store(to + c * to_pitch, lanes[c]);
    }
  }
}

// to[c * to_pitch + r] = from[r * from_pitch + c] for a matrix of any size. The matrices do not overlap.
inline void transpose(const float* from, int64_t from_pitch, float* to, int64_t to_pitch, int64_t rows,
                      int64_t columns) {
  constexpr int vw = vec_width;
  for (int64_t r = 0; r < rows; r += vw) {
    const int height = rows - r < vw ? static_cast<int>(rows - r) : vw;
    for (int64_t c = 0; c < columns; c += vw) {
      const int width = columns - c < vw ? static_cast<int>(columns - c) : vw;
      const float* source = from + r * from_pitch + c;
      float* target = to + c * to_pitch + r;
      if (height == vw && width == vw) {
        transpose_square(source, from_pitch, target, to_pitch);
      } else {
        transpose_edge(source, from_pitch, target, to_pitch, height, width);
      }
    }
  }
}

// Where the lanes of the S vectors that S rows' vectors become come from.
template <int S>
struct InterleavedLanes {
  int32_t column[S][vec_width] = {};
  float row[S][vec_width] = {};
  constexpr InterleavedLanes() {
    for (int i = 0; i < S * vec_width; ++i) {
      column[i / vec_width][i % vec_width] = i / S;
      row[i / vec_width][i % vec_width] = static_cast<float>(i % S);
    }
  }
};

template <int S>
void interleave_rows(const float* from, int64_t from_pitch, float* to, int64_t columns) {
  static constexpr InterleavedLanes<S> lanes;
  const auto whole = [&](int64_t c) {
    VecF rows[S];
    for (int r = 0; r < S; ++r) rows[r] = load(from + r * from_pitch + c);
    for (int k = 0; k < S; ++k) {
      const VecI column = load(lanes.column[k]);
      const VecF row = load(lanes.row[k]);
      VecF out = pick(rows[S - 1], column);
      for (int r = S - 2; r >= 0; --r)
        out = select(less(row, broadcast(static_cast<float>(r) + 0.5F)), pick(rows[r], column), out);
      store(to + c * S + k * vec_width, out);
    }
  };
  int64_t c = 0;
  for (; c + vec_width <= columns; c += vec_width) whole(c);
  if (c == columns) return;
  if (columns >= vec_width) return whole(columns - vec_width);  // some of them once more
  for (; c < columns; ++c) {
    for (int r = 0; r < S; ++r) to[c * S + r] = from[r * from_pitch + c];
  }
}

// to[c * rows + r] = from[r * from_pitch + c]: the rows are few and long.
inline void interleave(const float* from, int64_t from_pitch, float* to, int64_t rows, int64_t columns) {
  if (rows == 2) return interleave_rows<2>(from, from_pitch, to, columns);
  if (rows == 3) return interleave_rows<3>(from, from_pitch, to, columns);
  if (rows == 4) return interleave_rows<4>(from, from_pitch, to, columns);
  transpose(from, from_pitch, to, rows, rows, columns);
}

// transpose where whole cache lines of `to` matter: where its rows lie alike, blocks begin at their vector boundaries,
// and one block of columns is finished before the next, so that every row of `to` is written front to back.
// `past_caches` is for results that are much larger than the caches: whole cache lines of rows go past them.
inline void transpose_to_rows(const float* from, int64_t from_pitch, float* to, int64_t to_pitch, int64_t rows,
                              int64_t columns, bool past_caches) {
  constexpr int64_t line = 64 / sizeof(float);
  const int64_t unit = past_caches ? line : vec_width;
  if (to_pitch % unit != 0) return transpose(from, from_pitch, to, to_pitch, rows, columns);
  const auto past = static_cast<int64_t>(reinterpret_cast<uintptr_t>(to) / sizeof(float)) % unit;
  const int64_t lead = past == 0 ? 0 : unit - past < rows ? unit - past : rows;
  for (int64_t c = 0; c < columns; c += vec_width) {
    const int64_t width = columns - c < vec_width ? columns - c : vec_width;
    if (lead > 0) transpose(from + c, from_pitch, to + c * to_pitch, to_pitch, lead, width);
    int64_t r = lead;
    if (past_caches && width == vec_width) {
      for (const int64_t end = r + (rows - r) / line * line; r < end; r += vec_width)
        transpose_square<true>(from + r * from_pitch + c, from_pitch, to + c * to_pitch + r, to_pitch);
    }
    transpose(from + r * from_pitch + c, from_pitch, to + c * to_pitch + r, to_pitch, rows - r, width);
  }
  if (past_caches) finish_streams();
}

}  // namespace polyphase::cpu::POLYPHASE_CLUSTER
