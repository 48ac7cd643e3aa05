// Matrix products in FP32: y[i, j] = Σ_k a[i, k] b[k, j] for each matrix of a batch. Neither operand is packed ahead,
// so that both may be computed; a tile of several rows lays its columns of b side by side first.
//
//            columns of one tile            a tile: rows × columns of y
//   a [rows, inner] · b [inner, columns] = y [rows, columns]        elements of a row are neighbours in all three
#pragma once

#include <cstdint>

#include "base/tensor.h"

namespace polyphase::cpu {

struct MatmulPlan {
  static constexpr int64_t inner_block = 256;  // sums of this many products are added up: shorter chains of roundings
  int64_t rows;
  int64_t inner;
  int64_t columns;
  int64_t a_row;  // elements from row to row
  int64_t b_row;
  int64_t y_row;
  int64_t tile_rows;
  int64_t tile_columns;  // two vectors
  int64_t row_tiles;
  int64_t column_tiles;
  int64_t batches;
  int32_t batch_rank;
  int64_t batch_sizes[max_rank];
  int64_t a_batch[max_rank];  // elements along each batch axis; 0 where the operand is broadcast
  int64_t b_batch[max_rank];
  int64_t y_batch[max_rank];
};

}  // namespace polyphase::cpu
