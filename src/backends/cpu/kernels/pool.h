// Max and average pooling over (N, C, up to three spatial axes), any strides.
#pragma once

#include <cstdint>

#include "base/dtype.h"

namespace polyphase::cpu {

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
  int32_t channels_inside;  // 1: both tensors have the channel axis contiguous; 0: the last spatial axis is walked by
                            // elements
  int64_t tiles;            // batch × out[0] × out[1], or batch × channels × out[0]
};

}  // namespace polyphase::cpu
