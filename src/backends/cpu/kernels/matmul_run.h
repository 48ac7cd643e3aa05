// Runs one tile of a matrix product: some rows of y in registers, two vectors wide, over blocks of the inner axis.
#pragma once

#include <algorithm>
#include <cstdint>

#include "backends/cpu/kernels/matmul.h"
#include "backends/cpu/simd/unrolled.h"
#include "backends/cpu/simd/vec.h"

namespace polyphase::cpu::POLYPHASE_CLUSTER {

inline constexpr int matmul_columns = 2 * vec_width;
inline constexpr int matmul_rows = vec_width == 16 ? 12 : 6;  // accumulators: two registers for each row

// Where the columns of b lie that a tile reads; `count` of them are real.
struct MatmulColumns {
  const float* data;
  int64_t row;
  int count;
  bool padded;  // rows hold matmul_columns elements, whatever `count` is
};

struct MatmulRows {
  const float* a;
  int64_t a_row;
  float* y;
  int64_t y_row;
};

// y = or += a · b for `rows` rows and the columns' count.
template <int rows, bool whole>
inline void multiply_rows(const MatmulRows& r, const MatmulColumns& b, int64_t inner, bool add) {
  VecF sums[2 * rows];  // [row][vector]
  unrolled<2 * rows>([&](int i) POLYPHASE_INLINE_LAMBDA { sums[i] = broadcast(0.0F); });
  const int low = std::min(b.count, vec_width);
  const int high = b.count - low;
  for (int64_t k = 0; k < inner; ++k) {
    const float* row = b.data + k * b.row;
    const VecF left = whole ? load(row) : load_first(row, low);
    const VecF right = whole ? load(row + vec_width) : load_first(row + low, high);
    unrolled<rows>([&](int i) POLYPHASE_INLINE_LAMBDA {
      const VecF factor = broadcast(r.a[i * r.a_row + k]);
      sums[2 * i] = fma(factor, left, sums[2 * i]);
      sums[2 * i + 1] = fma(factor, right, sums[2 * i + 1]);
    });
  }
  unrolled<rows>([&](int i) POLYPHASE_INLINE_LAMBDA {
    float* y = r.y + i * r.y_row;
    store_first(y, add ? load_first(y, low) + sums[2 * i] : sums[2 * i], low);
    if (high > 0) store_first(y + low, add ? load_first(y + low, high) + sums[2 * i + 1] : sums[2 * i + 1], high);
  });
}

template <int rows>
inline void multiply_rows(const MatmulRows& r, const MatmulColumns& b, int64_t inner, bool add) {
  if (b.padded || b.count == matmul_columns) return multiply_rows<rows, true>(r, b, inner, add);
  multiply_rows<rows, false>(r, b, inner, add);
}

// The columns of a block of b's rows side by side, filled up with zeros.
inline MatmulColumns pack_columns(const MatmulColumns& b, int64_t inner, float* packed) {
  const int low = std::min(b.count, vec_width);
  for (int64_t k = 0; k < inner; ++k) {
    const float* from = b.data + k * b.row;
    store(packed + k * matmul_columns, load_first(from, low));
    store(packed + k * matmul_columns + vec_width, load_first(from + low, b.count - low));
  }
  return {packed, matmul_columns, b.count, true};
}

inline void run_matmul(const MatmulPlan& p, const float* a, const float* b, float* y, int64_t tile, float* scratch) {
  const int64_t column_tile = tile % p.column_tiles;
  const int64_t row_tile = tile / p.column_tiles % p.row_tiles;
  int64_t batch = tile / p.column_tiles / p.row_tiles;
  for (int axis = p.batch_rank - 1; axis >= 0; --axis) {
    const int64_t at = batch % p.batch_sizes[axis];
    batch /= p.batch_sizes[axis];
    a += at * p.a_batch[axis];
    b += at * p.b_batch[axis];
    y += at * p.y_batch[axis];
  }
  const int64_t first_row = row_tile * p.tile_rows;
  const int64_t rows = std::min(p.tile_rows, p.rows - first_row);
  const int64_t first_column = column_tile * matmul_columns;
  const int count = static_cast<int>(std::min<int64_t>(matmul_columns, p.columns - first_column));
  for (int64_t k = 0; k == 0 || k < p.inner; k += MatmulPlan::inner_block) {
    const int64_t inner = std::min(MatmulPlan::inner_block, p.inner - k);
    MatmulColumns columns = {b + k * p.b_row + first_column, p.b_row, count, false};
    if (rows > matmul_rows) columns = pack_columns(columns, inner, scratch);
    MatmulRows at = {a + first_row * p.a_row + k, p.a_row, y + first_row * p.y_row + first_column, p.y_row};
    int64_t left = rows;
    while (left > 0) {
      const int done = left >= matmul_rows ? matmul_rows : left >= 4 ? 4 : 1;
      if (done == matmul_rows) multiply_rows<matmul_rows>(at, columns, inner, k > 0);
      if (done == 4) multiply_rows<4>(at, columns, inner, k > 0);
      if (done == 1) multiply_rows<1>(at, columns, inner, k > 0);
      at.a += done * p.a_row;
      at.y += done * p.y_row;
      left -= done;
    }
  }
}

}  // namespace polyphase::cpu::POLYPHASE_CLUSTER
