// The two passes of filters of four outputs (conv_winograd.h), each along one direction: of inputs and of products.
#pragma once

#include <cstdint>

#include "backends/cpu/kernels/conv_winograd.h"
#include "backends/cpu/kernels/winograd_transform.h"
#include "backends/cpu/simd/rows.h"
#include "backends/cpu/simd/unrolled.h"

namespace polyphase::cpu::POLYPHASE_CLUSTER {

// One direction after the other, through memory, since no register file holds their points, and two small functions of
// each length are less code than one of each pair of lengths.
using PointsOfFours = VecF[winograd_most_points][winograd_most_points];

template <class H>
void transform_columns_of_fours(const float* const* from, int64_t offset, int lanes, int points_w, int64_t step,
                                PointsOfFours& to) {
  for (int j = 0; j < points_w; ++j) {
    VecF column[H::points];
    unrolled<H::points>([&](int i) POLYPHASE_INLINE_LAMBDA {
      const float* const at = from[i * points_w + j] + offset;
      column[i] = load_some(at, lanes);
      if (j + winograd_most_outputs >= points_w) __builtin_prefetch(at + step, 0, 3);
    });
    transform_inputs<H>(column);
    unrolled<H::points>([&](int i) POLYPHASE_INLINE_LAMBDA { to[i][j] = column[i]; });
  }
}

template <class W>
void transform_rows_of_fours(const PointsOfFours& from, int points_h, float* to, int64_t apart) {
  for (int i = 0; i < points_h; ++i) {
    VecF row[W::points];
    unrolled<W::points>([&](int j) POLYPHASE_INLINE_LAMBDA { row[j] = from[i][j]; });
    transform_inputs<W>(row);
    unrolled<W::points>([&](int j) POLYPHASE_INLINE_LAMBDA { store(to + (i * W::points + j) * apart, row[j]); });
  }
}

// Outputs of a direction from its products, `apart` from point to point.
template <class W>
void sum_rows_of_fours(const float* products, int64_t apart, int points_h, PointsOfFours& to) {
  for (int i = 0; i < points_h; ++i) {
    VecF m[W::points];
    VecF y[W::outputs];
    unrolled<W::points>([&](int j) POLYPHASE_INLINE_LAMBDA { m[j] = load(products + (i * W::points + j) * apart); });
    transform_products<W>(m, y);
    unrolled<W::outputs>([&](int j) POLYPHASE_INLINE_LAMBDA { to[i][j] = y[j]; });
  }
}

template <class H>
void sum_columns_of_fours(const PointsOfFours& from, int outputs_w, VecF* to) {
  for (int j = 0; j < outputs_w; ++j) {
    VecF m[H::points];
    VecF y[H::outputs];
    unrolled<H::points>([&](int i) POLYPHASE_INLINE_LAMBDA { m[i] = from[i][j]; });
    transform_products<H>(m, y);
    unrolled<H::outputs>([&](int i) POLYPHASE_INLINE_LAMBDA { to[i * outputs_w + j] = y[i]; });
  }
}

}  // namespace polyphase::cpu::POLYPHASE_CLUSTER
