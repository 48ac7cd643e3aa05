// Matrix products and convolutions in FP64 and in 64-bit integers that wrap, for every dtype that FP32 cannot stand
// for.
//
// Both are tiles of 4 rows by 16 columns of sums. A row is a row of a, or one result pixel; a column is a column of b,
// or one output channel, packed side by side:
//
//     weights of a convolution     [group][16 output channels][tap][input channel][16]
#pragma once

#include <cstdint>

#include "backends/cpu/kernels/conv_shape.h"
#include "backends/cpu/kernels/matmul.h"
#include "base/dtype.h"

namespace polyphase::cpu {

inline constexpr int64_t product_columns = 16;

struct NumberMatmulPlan {
  MatmulPlan walk;
  DType dtype;
};

struct NumberConvPlan {
  ConvShape shape;
  ImageStrides in;
  ImageStrides out;
  DType dtype;
  int32_t bias;  // which operand; -1: none
  int32_t data;
  int64_t bias_stride;
  int64_t column_blocks;  // of one group
  int64_t x_chunk;        // pixels of a row that one tile computes: whole strides
  int64_t x_chunks;
  int64_t tiles;  // batch × groups × column blocks × out[0] × out[1] × chunks
};

// The input position that tap t of output o reads; false: none, as the position falls between inputs.
inline bool tap_position(const ConvShape& s, int axis, int64_t o, int64_t t, int64_t& position) {
  if (!s.transposed) {
    position = o * s.stride[axis] + t * s.dilation[axis] - s.pre[axis];
    return true;
  }
  const int64_t at = o + s.pre[axis] - t * s.dilation[axis];
  position = floor_div(at, s.stride[axis]);
  return position * s.stride[axis] == at;
}

}  // namespace polyphase::cpu
