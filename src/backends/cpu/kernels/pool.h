// Max and average pooling over (N, C, up to three spatial axes), any strides.
#pragma once

#include <cstdint>

#include "base/dtype.h"

namespace polyphase::cpu {

// Pixels of a line that are pooled at once where lanes are pixels.
inline constexpr int64_t pool_span = 1024;

struct PoolPlan {
  int64_t batch, channels;
  int64_t in[3], out[3];  // spatial sizes, missing axes are 1
  int64_t kernel[3], stride[3], dilation[3], pre[3];
  int64_t padded[3];        // in + pre + post: what include_pad counts
  int64_t from_strides[5];  // elements: n, c, spatial
  int64_t to_strides[5];
  DType dtype;
  int64_t least;    // what a window of padding alone gives in integers
  int32_t average;  // 0: max
  int32_t include_pad;
  int32_t channels_inside;  // 1: both tensors have the channel axis contiguous, and lanes are channels
  int32_t lines_inside;     // 1: both have the last spatial axis contiguous, windows are short, and lanes are pixels
  int64_t tiles;            // batch × out[0] × out[1], or batch × channels × out[0]
};

// Where max_pool finds its elements, between row-major tensors. A tile is some rows of one plane of the result.
struct PoolPlacesPlan {
  PoolPlan windows;
  int32_t by_columns;  // 1: places count along the first spatial axis first
};

inline constexpr int64_t pool_rows_at_once = 16;

}  // namespace polyphase::cpu
