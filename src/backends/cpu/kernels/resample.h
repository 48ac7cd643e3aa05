// Resampling (nearest, linear, cubic) of FP32 tensors along up to three spatial axes by per-axis lists of (place,
// weight).
//
//   y[o] = Σ_taps w0·w1·w2 · x[p0, p1, p2]
#pragma once

#include <cstdint>

#include "base/dtype.h"

namespace polyphase::cpu {

struct ResampleTap {
  int64_t offset;  // elements
  float weight;
  double exact;  // the weight for sums in FP64
};

struct ResamplePlan {
  int64_t batch, channels;
  int64_t out[3];
  int32_t taps[3];          // per result place of the axis; lists are padded with weight 0
  int64_t taps_at[3];       // byte offset of the lists in the plan
  int64_t from_strides[2];  // n, c
  int64_t to_strides[5];
  int32_t channels_inside;
  DType dtype;
  int64_t tiles;  // as pool's
};

}  // namespace polyphase::cpu
