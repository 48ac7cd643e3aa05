// The register tile that convolution and transposed convolution share: rows gathered by pointers times packed columns.
//
//     acc[i][j] = init[i][j] + Σ_segments Σ_c  row[segment][i][c] * panel[tap(segment)][c][j]
//
// A row is one output pixel of one phase; a segment is one tap that at least one row of the block needs, and its row
// pointers lead straight into the channels-last input, or to a row of zeros where the tap falls outside. So no tap
// list, stride, dilation or border reaches the inner loop: it is one broadcast and NV multiply-adds per row and
// channel.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "backends/cpu/kernels/blocked_sum.h"
#include "backends/cpu/kernels/tile_endings.h"
#include "backends/cpu/simd/fetch.h"
#include "backends/cpu/simd/unrolled.h"
#include "backends/cpu/simd/vec.h"

namespace polyphase::cpu::POLYPHASE_CLUSTER {

// Rows by vectors of one tile: 12x2 or 8x3 of 32 registers, 6x2 or 4x3 of 16.
inline constexpr int max_vectors = 3;
inline constexpr int max_rows = vec_width == 16 ? 12 : 6;
constexpr int tile_rows(int vectors) {
  if (vec_width == 16) return vectors == 3 ? 8 : 12;
  return vectors == 3 ? 4 : 6;
}

inline constexpr int64_t panel_columns = 2 * vw;  // of packed weights that lie beside each other

struct GemmTile {
  const float* const* rows;  // [segment][row], `row_pitch` pointers from one segment to the next
  const int32_t* taps;       // [segment]: which tap of the panel
  const float* panel;        // [tap][channels][NV * width], at the first channel of this block
  const float* next_panel;   // what is multiplied later, of which each channel fetches a vector
  int64_t next_share;        // floats of it that each of the first NV tiles fetches
  const float* init;         // added to the products: [row][NV * width], rows `init_pitch` apart (0: one for all)
  float* const* out;         // [row]: where the row goes
  int64_t row_pitch;
  int64_t init_pitch;
  int64_t tap_pitch;  // elements of the panel from one tap to the next
  int64_t out_column;
  int64_t first_channel;
  int64_t channels;
  int32_t segments;
  uint64_t skipped = 0;   // of up to 64 segments, by bit: all rows read zeros there
  int32_t last_lanes;     // of each row's last vector that are stored; the others are whole
  int32_t tiles = 1;      // of as many rows, one behind the other, with one `init` for all
  int32_t tile = 0;       // how many of the panel were before
  int32_t row_tiles = 0;  // tiles of the panel behind which other rows follow, which are fetched instead of the panel
  TileEndings endings;
};

template <int MR, int NV>
POLYPHASE_INLINE void multiply_tile(const GemmTile& t, const float* const* tile_rows, float* const* out,
                                    const float* next) {
  constexpr int count = MR * NV;
  VecF acc[count];  // [row][vector]
  unrolled<count>([&](int i) POLYPHASE_INLINE_LAMBDA { acc[i] = broadcast(0.0F); });
  alignas(64) float totals[count * vw];  // of the pieces before
  // Where the registers hold the sums twice, the compiler would keep both there. Else the tile's rows need all
  // pointers.
  constexpr bool fits_twice = 2 * count < (vw == 16 ? 32 : 16);
  float* const total = fits_twice ? in_memory(totals) : totals;
  bool summed = false;
  // Where the results go is fetched meanwhile: stores that wait for memory would stop the loads of what comes next.
  for (int i = 0; i < MR; ++i) {
    for (int j = 0; j < NV; ++j) prefetch_for_store(out[i] + t.out_column + j * vw);
  }
  if (t.endings.adds) {
    for (int i = 0; i < MR; ++i) prefetch_to_load(t.endings.added_to(out[i] + t.out_column), NV * vw);
  }
  int64_t left = t.segments * t.channels > sum_piece ? sum_piece : INT64_MAX;
  for (int32_t s = 0; s < t.segments; ++s) {
    const float* const* rows = tile_rows + s * t.row_pitch;
    const float* row[MR];
    unrolled<MR>([&](int i) POLYPHASE_INLINE_LAMBDA { row[i] = rows[i] + t.first_channel; });
    const float* b = t.panel + t.taps[s] * t.tap_pitch;
    const int64_t begin = (t.skipped >> static_cast<unsigned>(s & 63) & 1) != 0 ? t.channels : 0;
    for (int64_t first = 0; first < t.channels;) {
      const int64_t end = left < t.channels - first ? first + left : t.channels;
      for (int64_t c = std::max(first, begin); c < end; ++c) {
        VecF column[NV];
        unrolled<NV>([&](int j) POLYPHASE_INLINE_LAMBDA { column[j] = load(b + j * vw); });
        b += NV * vw;
        __builtin_prefetch(next, 0, 2);
        next += vw;
        unrolled<MR>([&](int i) POLYPHASE_INLINE_LAMBDA {
          const VecF a = broadcast(row[i][c]);
          unrolled<NV>([&](int j) POLYPHASE_INLINE_LAMBDA { acc[i * NV + j] = fma(a, column[j], acc[i * NV + j]); });
        });
      }
      left -= end - first;
      first = end;
      if (left > 0) continue;
      left = sum_piece;
      unrolled<count>([&](int i) POLYPHASE_INLINE_LAMBDA {
        store(total + i * vw, summed ? load(total + i * vw) + acc[i] : acc[i]);
        acc[i] = broadcast(0.0F);
      });
      summed = true;
    }
  }
  if (summed) unrolled<count>([&](int i) POLYPHASE_INLINE_LAMBDA { acc[i] = load(total + i * vw) + acc[i]; });
  // Only now, so that a bias or the sums of earlier channels do not make every step round at their magnitude.
  unrolled<count>(
      [&](int i) POLYPHASE_INLINE_LAMBDA { acc[i] = acc[i] + load(t.init + i / NV * t.init_pitch + i % NV * vw); });
  const bool whole = t.last_lanes == vw;
  if (t.endings.adds) {
    unrolled<MR>([&](int i) POLYPHASE_INLINE_LAMBDA {
      const float* const added = t.endings.added_to(out[i] + t.out_column);
      unrolled<NV - 1>([&](int j)
                           POLYPHASE_INLINE_LAMBDA { acc[i * NV + j] = acc[i * NV + j] + load(added + j * vw); });
      const float* const last = added + (NV - 1) * vw;
      VecF& sum = acc[i * NV + NV - 1];
      sum = sum + load_first(last, t.last_lanes);
    });
  }
  activate(t.endings, acc);
  unrolled<MR>([&](int i) POLYPHASE_INLINE_LAMBDA {
    float* const to = out[i] + t.out_column;
    unrolled<NV - 1>([&](int j) POLYPHASE_INLINE_LAMBDA { store(to + j * vw, acc[i * NV + j]); });
    if (whole) {
      store(to + (NV - 1) * vw, acc[i * NV + NV - 1]);
    } else {
      store_first(to + (NV - 1) * vw, acc[i * NV + NV - 1], t.last_lanes);
    }
  });
}

template <int MR, int NV>
void run_gemm_tile(const GemmTile& t) {
  const float* const* rows = t.rows;
  float* const* out = t.out;
  for (int32_t i = t.tile; i < t.tile + t.tiles; ++i, rows += MR, out += MR) {
    multiply_tile<MR, NV>(t, rows, out, i < t.row_tiles ? rows[MR] : t.next_panel + (i < NV ? i : 0) * t.next_share);
  }
}

using GemmTileFunction = void (*)(const GemmTile&);

// Panels of two vectors that are multiplied together with a single row: one panel's sums would wait for each other.
inline constexpr int row_panels = 4;

// sums[panel][2 * width]: the products of the tile's row and `row_panels` panels, `panel_pitch` elements apart, added
// up in the order in which run_gemm_tile does. What stands in the tile of results is not read.
inline void sum_row(const GemmTile& t, int64_t panel_pitch, float* sums) {
  constexpr int count = 2 * row_panels;
  constexpr int64_t ahead = 16;  // channels: a panel's weights are one stream of many
  VecF acc[count];               // [panel][vector]
  unrolled<count>([&](int i) POLYPHASE_INLINE_LAMBDA { acc[i] = broadcast(0.0F); });
  bool summed = false;
  const auto add_summed = [&] {
    unrolled<count>([&](int i) POLYPHASE_INLINE_LAMBDA { acc[i] = load(sums + i * vw) + acc[i]; });
  };
  int64_t left = t.segments * t.channels > sum_piece ? sum_piece : INT64_MAX;
  for (int32_t s = 0; s < t.segments; ++s) {
    const float* const row = t.rows[s * t.row_pitch] + t.first_channel;
    const float* b = t.panel + t.taps[s] * t.tap_pitch;
    for (int64_t first = 0; first < t.channels;) {
      const int64_t end = left < t.channels - first ? first + left : t.channels;
      for (int64_t c = first; c < end; ++c, b += 2 * vw) {
        const VecF a = broadcast(row[c]);
        unrolled<count>([&](int i) POLYPHASE_INLINE_LAMBDA {
          const float* const at = b + i / 2 * panel_pitch + i % 2 * vw;
          if (i % 2 == 0 || vw == 16) __builtin_prefetch(at + ahead * 2 * vw, 0, 3);
          acc[i] = fma(a, load(at), acc[i]);
        });
      }
      left -= end - first;
      first = end;
      if (left > 0) continue;
      left = sum_piece;
      if (summed) add_summed();
      unrolled<count>([&](int i) POLYPHASE_INLINE_LAMBDA {
        store(sums + i * vw, acc[i]);
        acc[i] = broadcast(0.0F);
      });
      summed = true;
    }
  }
  if (summed) add_summed();
  unrolled<count>([&](int i) POLYPHASE_INLINE_LAMBDA { store(sums + i * vw, acc[i]); });
}

template <int NV, int... Rows>
GemmTileFunction pick_gemm_tile(int rows, std::integer_sequence<int, Rows...>) {
  static constexpr GemmTileFunction table[] = {run_gemm_tile<Rows + 1, NV>...};
  return table[rows - 1];
}

// Register tiles of so many rows, as equal as can be: the first `longer` of them have one row more than `rows`.
struct EvenTiles {
  int32_t tiles = 1;
  int32_t rows;
  int32_t longer = 0;

  EvenTiles(int64_t count, int vectors) : rows(static_cast<int32_t>(count)) {
    if (count <= tile_rows(vectors)) return;
    tiles = static_cast<int32_t>(ceil_div(count, tile_rows(vectors)));
    longer = rows % tiles;
    rows /= tiles;
  }
};

// The tile for 1 <= rows <= tile_rows(vectors) rows and 1 <= vectors <= max_vectors vectors of columns.
inline GemmTileFunction gemm_tile(int rows, int vectors) {
  if (vectors == 1) return pick_gemm_tile<1>(rows, std::make_integer_sequence<int, tile_rows(1)>());
  if (vectors == 2) return pick_gemm_tile<2>(rows, std::make_integer_sequence<int, tile_rows(2)>());
  return pick_gemm_tile<3>(rows, std::make_integer_sequence<int, tile_rows(3)>());
}

}  // namespace polyphase::cpu::POLYPHASE_CLUSTER
