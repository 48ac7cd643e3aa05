// What one cluster transforms inputs and multiplies them with (conv_winograd.h), in floats or in pairs.
#pragma once

#include <algorithm>
#include <array>

#include "backends/cpu/kernels/blocked_sum.h"
#include "backends/cpu/kernels/conv_winograd.h"
#include "backends/cpu/kernels/gemm_tile.h"
#include "backends/cpu/kernels/winograd_fours.h"
#include "backends/cpu/kernels/winograd_transform.h"
#include "backends/cpu/simd/pairs.h"
#include "backends/cpu/simd/rows.h"

namespace polyphase::cpu::POLYPHASE_CLUSTER {

static_assert(winograd_block_rows(vec_width) % tile_rows(1) == 0 &&
              winograd_block_rows(vec_width) % tile_rows(2) == 0 && winograd_block_rows(vec_width) % tile_rows(3) == 0);

// One register tile of rows. Leaner than run_gemm_tile, whose beginning and end would cost as much as the short
// products here. Each word fetches a vector of `next`: weights from behind the second-level cache would be waited for.
template <Products products, int NV>
void multiply_winograd_rows(const WinogradProduct& t, const float* rows, const float* next, float* out) {
  constexpr int MR = tile_rows(NV);
  const float* panel = t.panel;
  for (int64_t first = 0; first < t.depth; first += sum_piece) {
    const int64_t end = std::min(t.depth, first + sum_piece);
    VecF acc[MR][NV];
    unrolled<MR * NV>([&](int i) POLYPHASE_INLINE_LAMBDA { acc[i / NV][i % NV] = broadcast(0.0F); });
    for (int64_t word = first; word < end; ++word) {
      VecF column[NV];
      unrolled<NV>([&](int j) POLYPHASE_INLINE_LAMBDA { column[j] = load(panel + j * vec_width); });
      panel += NV * vec_width;
      __builtin_prefetch(next, 0, 2);
      next += vec_width;
      unrolled<MR>([&](int i) POLYPHASE_INLINE_LAMBDA {
        const VecF a = broadcast(rows[i * t.pitch + word]);
        unrolled<NV>([&](int j) POLYPHASE_INLINE_LAMBDA {
          acc[i][j] = add_product<products == Products::pairs>(acc[i][j], a, column[j]);
        });
      });
    }
    unrolled<MR * NV>([&](int i) POLYPHASE_INLINE_LAMBDA {
      float* const to = out + i * vec_width;
      const VecF sum = acc[i / NV][i % NV];
      store(to, first == 0 ? sum : sum + load(to));
    });
  }
}

// Fewer rows than a register tile holds. They are not filled up by what lies behind them: of whatever was in the
// scratch before, words may be subnormal as floats, whose products take a hundred times as long.
inline void multiply_last_winograd_rows(const WinogradProduct& t, int64_t row, int count, const float* next) {
  const auto no_more = [] {  // added to a sum, leaves it as it is, also where that is -0
    std::array<float, max_vectors* vec_width> zeros = {};
    zeros.fill(-0.0F);
    return zeros;
  };
  alignas(64) static constexpr std::array<float, max_vectors* vec_width> init = no_more();
  const int64_t lanes = t.vectors * vec_width;
  const float* rows[max_rows];
  float* out[max_rows];
  for (int i = 0; i < count; ++i) {
    rows[i] = t.rows + (row + i) * t.pitch;
    out[i] = t.out + (row + i) * lanes;
  }
  const int32_t tap = 0;
  gemm_tile(count, t.vectors)({.rows = rows,
                               .taps = &tap,
                               .panel = t.panel,
                               .next_panel = next,
                               .next_share = 0,
                               .init = init.data(),
                               .out = out,
                               .row_pitch = count,
                               .init_pitch = 0,
                               .tap_pitch = 0,
                               .out_column = 0,
                               .first_channel = 0,
                               .channels = t.depth,
                               .segments = 1,
                               .last_lanes = vec_width,
                               .endings = {}});
}

// Pairs have no subnormal operands: what lies behind the last row is multiplied along with it, and never looked at.
template <Products products>
void multiply_winograd(const WinogradProduct& t) {
  const auto multiply = t.vectors == 1   ? multiply_winograd_rows<products, 1>
                        : t.vectors == 2 ? multiply_winograd_rows<products, 2>
                                         : multiply_winograd_rows<products, 3>;
  const int rows = tile_rows(t.vectors);
  const int64_t share = t.depth * vec_width;
  int64_t count = 0;
  int64_t tile = 0;
  for (int64_t row = 0; row < t.row_count; row += count, ++tile) {
    const int64_t left = t.row_count - row;
    const bool is_whole = products == Products::pairs || left % rows == 0 || left >= 2 * rows;
    count = is_whole ? rows : left > rows ? ceil_div(left, 2) : left;  // the last two as equal as can be
    const float* const fetched = t.next + (tile < t.vectors ? tile : 0) * share;
    if (count == rows) {
      multiply(t, t.rows + row * t.pitch, fetched, t.out + row * t.vectors * vec_width);
    } else {
      multiply_last_winograd_rows(t, row, static_cast<int>(count), fetched);
    }
  }
}

template <Products products, class H, class W>
POLYPHASE_INLINE void transform_winograd_tile(const WinogradInputs& t, int64_t tile) {
  const int64_t offset = tile * t.step;
  float* const to = t.to + tile * t.pitch;
  for (int64_t c = 0; c < t.channels; c += vec_width) {
    const int lanes = lanes_of(t.channels - c);
    VecF rows[H::points][W::points];
    unrolled<W::points>([&](int j) POLYPHASE_INLINE_LAMBDA {
      VecF column[H::points];
      unrolled<H::points>([&](int i) POLYPHASE_INLINE_LAMBDA {
        const float* const from = t.from[i * W::points + j] + offset + c;
        column[i] = load_some(from, lanes);
        // The first points of the next tile along the line are this one's last.
        if (j + W::outputs >= W::points) __builtin_prefetch(from + t.step, 0, 3);
      });
      transform_inputs<H>(column);
      unrolled<H::points>([&](int i) POLYPHASE_INLINE_LAMBDA { rows[i][j] = column[i]; });
    });
    unrolled<H::points>([&](int i) POLYPHASE_INLINE_LAMBDA {
      transform_inputs<W>(rows[i]);
      unrolled<W::points>([&](int j) POLYPHASE_INLINE_LAMBDA {
        float* const point = to + (i * W::points + j) * t.apart;
        if constexpr (products == Products::pairs) {
          store_for_pairs(reinterpret_cast<uint16_t*>(point) + c, rows[i][j]);
        } else {
          store(point + c, rows[i][j]);
        }
      });
    });
  }
}

template <Products products, class H, class W>
void transform_winograd_inputs(const WinogradInputs& t) {
  for (int64_t tile = 0; tile < t.tiles; ++tile) transform_winograd_tile<products, H, W>(t, tile);
}

// Four outputs in one direction or in both, in floats (winograd_fours.h).
inline void transform_winograd_inputs_of_fours(const WinogradInputs& t) {
  const auto columns =
      with_length_of_fours(t.lengths[0], [](auto h) { return transform_columns_of_fours<decltype(h)>; });
  const auto rows = with_length_of_fours(t.lengths[1], [](auto w) { return transform_rows_of_fours<decltype(w)>; });
  const int points_h = winograd_lengths[t.lengths[0]].points();
  const int points_w = winograd_lengths[t.lengths[1]].points();
  PointsOfFours points;
  for (int64_t tile = 0; tile < t.tiles; ++tile) {
    for (int64_t c = 0; c < t.channels; c += vec_width) {
      columns(t.from, tile * t.step + c, lanes_of(t.channels - c), points_w, t.step, points);
      rows(points, points_h, t.to + tile * t.pitch + c, t.apart);
    }
  }
}

template <Products products>
constexpr WinogradUnit winograd_unit() {
  WinogradUnit unit = {};
  if constexpr (products == Products::floats) {
    for (auto& of_h : unit.transform) {
      for (auto& transform : of_h) transform = transform_winograd_inputs_of_fours;
    }
  }
  each_pair_of_lengths([&](auto h, auto w) {
    unit.transform[h.index][w.index] = transform_winograd_inputs<products, decltype(h), decltype(w)>;
  });
  unit.multiply = multiply_winograd<products>;
  return unit;
}

}  // namespace polyphase::cpu::POLYPHASE_CLUSTER
