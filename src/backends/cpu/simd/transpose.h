// Transposing matrices of floats, and of elements half as wide, through registers, for layouts at the border:
// channels-first <-> channels-last.
#pragma once

#include <cstdint>

#include "backends/cpu/simd/fetch.h"
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

// Fetches where a block's rows go, whose last lines nothing has touched yet: the processor does not foresee lines so
// far apart, and stores that wait for one after the other take several times as long.
POLYPHASE_INLINE void fetch_block(float* to, int64_t to_pitch, int height, int width) {
  for (int c = 0; c < width; ++c) prefetch_for_store(to + c * to_pitch + height - 1);
}

// transpose of at most vec_width rows and columns.
POLYPHASE_INLINE void transpose_block(const float* from, int64_t from_pitch, float* to, int64_t to_pitch, int height,
                                      int width) {
  if (height == vec_width && width == vec_width) {
    transpose_square(from, from_pitch, to, to_pitch);
  } else {
    transpose_edge(from, from_pitch, to, to_pitch, height, width);
  }
}

// Of `left` rows or columns those of the next block.
POLYPHASE_INLINE int extent_of_block(int64_t left) { return left < vec_width ? static_cast<int>(left) : vec_width; }

// to[c * to_pitch + r] = from[r * from_pitch + c] for a matrix of any size. The matrices do not overlap.
inline void transpose(const float* from, int64_t from_pitch, float* to, int64_t to_pitch, int64_t rows,
                      int64_t columns) {
  for (int64_t r = 0; r < rows; r += vec_width) {
    for (int64_t c = 0; c < columns; c += vec_width) {
      const bool is_last = c + vec_width >= columns;
      const int64_t next_r = is_last ? r + vec_width : r;
      const int64_t next_c = is_last ? 0 : c + vec_width;
      if (next_r < rows) {
        fetch_block(to + next_c * to_pitch + next_r, to_pitch, extent_of_block(rows - next_r),
                    extent_of_block(columns - next_c));
      }
      transpose_block(from + r * from_pitch + c, from_pitch, to + c * to_pitch + r, to_pitch, extent_of_block(rows - r),
                      extent_of_block(columns - c));
    }
  }
}

// transpose of rows that lie far apart and have not been touched. Blocks of 8 rows fetch those of the next ones
// meanwhile, into the second-level cache, since rows whose distance is a power of two share the few places that they
// have in the first. Blocks of 16 are as many lines as a core has on their way, and gain nothing.
inline void transpose_far_rows(const float* from, int64_t from_pitch, float* to, int64_t to_pitch, int64_t rows,
                               int64_t columns) {
  constexpr int64_t line = 64 / sizeof(float);
  for (int64_t r = 0; r < rows; r += vec_width) {
    const int height = extent_of_block(rows - r);
    const float* const next = from + (r + height) * from_pitch;
    const int next_height = vec_width < line ? extent_of_block(rows - r - height) : 0;
    for (int64_t c = 0; c < columns; c += vec_width) {
      if (c % line == 0) {
        for (int k = 0; k < next_height; ++k) __builtin_prefetch(next + k * from_pitch + c, 0, 2);
      }
      transpose_block(from + r * from_pitch + c, from_pitch, to + c * to_pitch + r, to_pitch, height,
                      extent_of_block(columns - c));
    }
  }
}

// The same of elements of 2 bytes, whatever they mean: two rows side by side are one row of 4 bytes, and whole vectors
// of those are stored. At least vec_width columns: the last ones may be written twice.
inline void transpose_halves(const uint16_t* from, int64_t from_pitch, uint16_t* to, int64_t to_pitch, int64_t rows,
                             int64_t columns) {
  for (int64_t r = 0; r < rows; r += 2 * vec_width) {
    const int64_t height = rows - r < 2 * vec_width ? rows - r : 2 * vec_width;
    for (int64_t first = 0; first < columns; first += vec_width) {
      const int64_t c = first + vec_width <= columns ? first : columns - vec_width;
      const uint16_t* source = from + r * from_pitch + c;
      // The bits of a row as the upper halves of lanes; nothing is converted. What is beyond the last row is not
      // stored.
      const auto row = [&](int64_t i) { return as_int(load_bf16(source + (i < height ? i : 0) * from_pitch)); };
      VecF lanes[vec_width];
      for (int i = 0; i < vec_width; ++i) lanes[i] = as_float(shift_right_logical<16>(row(2 * i)) | row(2 * i + 1));
      transpose_lanes(lanes);
      for (int k = 0; k < vec_width; ++k) {
        uint16_t* target = to + (c + k) * to_pitch + r;
        store_first(reinterpret_cast<int32_t*>(target), as_int(lanes[k]), static_cast<int>(height / 2));
        if (height % 2 != 0) target[height - 1] = source[(height - 1) * from_pitch + k];
      }
    }
  }
}

// Lanes of S vectors from where they are in S others: vector k has lane columns[k][i] of the vector rows[k][i] as its
// lane i.
template <int S>
struct LaneTable {
  int32_t columns[S][vec_width] = {};
  float rows[S][vec_width] = {};

  POLYPHASE_INLINE VecF vector(const VecF (&from)[S], int k) const {
    const VecI column = load(columns[k]);
    const VecF row = load(rows[k]);
    VecF out = pick(from[S - 1], column);
    for (int r = S - 2; r >= 0; --r)
      out = select(less(row, broadcast(static_cast<float>(r) + 0.5F)), pick(from[r], column), out);
    return out;
  }
};

// Of S rows' vectors as they follow each other column by column, and back.
template <int S>
constexpr LaneTable<S> interleaving(bool back) {
  LaneTable<S> table;
  for (int i = 0; i < S * vec_width; ++i) {
    const int vector = i / vec_width;
    const int lane = i % vec_width;
    if (back) {
      table.columns[i % S][i / S] = lane;
      table.rows[i % S][i / S] = static_cast<float>(vector);
    } else {
      table.columns[vector][lane] = i / S;
      table.rows[vector][lane] = static_cast<float>(i % S);
    }
  }
  return table;
}

// out as a whole: [i * S + r] = rows[r][i] for the lanes i of a vector.
template <int S>
POLYPHASE_INLINE void interleave_lanes(const VecF (&rows)[S], VecF (&out)[S]) {
  if constexpr (S == 1) {
    out[0] = rows[0];
  } else if constexpr (S == 2) {
    zip(rows[0], rows[1], out[0], out[1]);
  } else if constexpr (S == 4) {
    VecF even[2];
    VecF odd[2];
    zip(rows[0], rows[2], even[0], even[1]);
    zip(rows[1], rows[3], odd[0], odd[1]);
    for (int i = 0; i < 2; ++i) zip(even[i], odd[i], out[2 * i], out[2 * i + 1]);
  } else {
    static constexpr LaneTable<S> lanes = interleaving<S>(false);
    for (int k = 0; k < S; ++k) out[k] = lanes.vector(rows, k);
  }
}

// The inverse: rows[r][i] = in as a whole: [i * S + r].
template <int S>
POLYPHASE_INLINE void deinterleave_lanes(const VecF (&in)[S], VecF (&rows)[S]) {
  if constexpr (S == 2) {
    unzip(in[0], in[1], rows[0], rows[1]);
  } else if constexpr (S == 4) {
    VecF even[2];
    VecF odd[2];
    for (int i = 0; i < 2; ++i) unzip(in[2 * i], in[2 * i + 1], even[i], odd[i]);
    unzip(even[0], even[1], rows[0], rows[2]);
    unzip(odd[0], odd[1], rows[1], rows[3]);
  } else {
    static constexpr LaneTable<S> lanes = interleaving<S>(true);
    for (int r = 0; r < S; ++r) rows[r] = lanes.vector(in, r);
  }
}

// to[i * S + r] = rows[r][i].
template <int S>
POLYPHASE_INLINE void store_interleaved(const VecF (&rows)[S], float* to) {
  VecF out[S];
  interleave_lanes(rows, out);
  for (int k = 0; k < S; ++k) store(to + k * vec_width, out[k]);
}

// store_interleaved past the caches: `to` begins a vector.
template <int S>
__attribute__((noinline)) void stream_interleaved(const VecF (&rows)[S], float* to) {
  VecF out[S];
  interleave_lanes(rows, out);
  for (int k = 0; k < S; ++k) stream(to + k * vec_width, out[k]);
}

// Whole vectors of columns, the last ones once more where they are not whole; columns by themselves where there is no
// whole vector.
template <class Vector, class Column>
POLYPHASE_INLINE void by_columns(int64_t columns, Vector&& vector, Column&& column) {
  int64_t c = 0;
  for (; c + vec_width <= columns; c += vec_width) vector(c);
  if (c == columns) return;
  if (c > 0) return vector(columns - vec_width);
  for (; c < columns; ++c) column(c);
}

// Rows and `to` do not overlap.
template <int S>
void interleave_rows(const float* const (&from)[S], float* to, int64_t columns) {
  by_columns(
      columns,
      [&](int64_t c) {
        VecF rows[S];
        for (int r = 0; r < S; ++r) rows[r] = load(from[r] + c);
        store_interleaved(rows, to + c * S);
      },
      [&](int64_t c) {
        for (int r = 0; r < S; ++r) to[c * S + r] = from[r][c];
      });
}

// The inverse: to[r * to_pitch + c] = from[c * S + r].
template <int S>
void deinterleave_rows(const float* from, float* to, int64_t to_pitch, int64_t columns) {
  by_columns(
      columns,
      [&](int64_t c) {
        VecF whole[S];
        VecF rows[S];
        for (int r = 0; r < S; ++r) whole[r] = load(from + c * S + r * vec_width);
        deinterleave_lanes(whole, rows);
        for (int r = 0; r < S; ++r) store(to + r * to_pitch + c, rows[r]);
      },
      [&](int64_t c) {
        for (int r = 0; r < S; ++r) to[r * to_pitch + c] = from[c * S + r];
      });
}

// Of two to four rows.
inline void deinterleave(const float* from, float* to, int64_t to_pitch, int64_t rows, int64_t columns) {
  if (rows == 2) return deinterleave_rows<2>(from, to, to_pitch, columns);
  if (rows == 3) return deinterleave_rows<3>(from, to, to_pitch, columns);
  deinterleave_rows<4>(from, to, to_pitch, columns);
}

// to[c * rows + r] = from[r * from_pitch + c] for the first `given` rows, rest[c] for the others: few and long rows.
inline void interleave_first(const float* from, int64_t from_pitch, int64_t given, const float* rest, float* to,
                             int64_t rows, int64_t columns) {
  const auto row = [&](int64_t r) { return r < given ? from + r * from_pitch : rest; };
  if (rows == 2) return interleave_rows<2>({row(0), row(1)}, to, columns);
  if (rows == 3) return interleave_rows<3>({row(0), row(1), row(2)}, to, columns);
  if (rows == 4) return interleave_rows<4>({row(0), row(1), row(2), row(3)}, to, columns);
  for (int64_t r = 0; r < rows; ++r) {
    const float* values = row(r);
    for (int64_t c = 0; c < columns; ++c) to[c * rows + r] = values[c];
  }
}

// to[c * rows + r] = from[r * from_pitch + c]: the rows are few and long.
inline void interleave(const float* from, int64_t from_pitch, float* to, int64_t rows, int64_t columns) {
  if (rows <= 4) return interleave_first(from, from_pitch, rows, nullptr, to, rows, columns);
  transpose(from, from_pitch, to, rows, rows, columns);
}

// transpose where whole cache lines of `to` matter: where its rows lie alike, blocks begin at their vector boundaries,
// and one block of columns is finished before the next, so that every row of `to` is written front to back.
// `past_caches` is for results that are much larger than the caches: whole cache lines of rows go past them.
inline void transpose_to_rows(const float* from, int64_t from_pitch, float* to, int64_t to_pitch, int64_t rows,
                              int64_t columns, bool past_caches) {
  constexpr int64_t line = 64 / sizeof(float);
  const int64_t unit = past_caches ? line : vec_width;
  const auto past = static_cast<int64_t>(reinterpret_cast<uintptr_t>(to) / sizeof(float)) % unit;
  const bool lie_alike = to_pitch % unit == 0;
  const bool streams = past_caches && lie_alike;
  const int64_t lead = !lie_alike || past == 0 ? 0 : unit - past < rows ? unit - past : rows;
  const int64_t streamed = streams ? lead + (rows - lead) / line * line : lead;  // up to this row
  for (int64_t c = 0; c < columns; c += vec_width) {
    const int width = extent_of_block(columns - c);
    const int next_width = extent_of_block(columns - c - width);
    for (int64_t r = 0; r < rows;) {
      const int height = extent_of_block((r < lead ? lead : rows) - r);
      const float* source = from + r * from_pitch + c;
      float* const target = to + c * to_pitch + r;
      if (r >= lead && r < streamed && width == vec_width) {
        transpose_square<true>(source, from_pitch, target, to_pitch);
      } else {
        fetch_block(target + width * to_pitch, to_pitch, height, next_width);
        transpose_block(source, from_pitch, target, to_pitch, height, width);
      }
      r += height;
    }
  }
  if (streams) finish_streams();
}

}  // namespace polyphase::cpu::POLYPHASE_CLUSTER
