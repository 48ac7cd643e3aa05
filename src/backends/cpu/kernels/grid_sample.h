// Reading images of FP32 or FP64 at places that a grid names.
#pragma once

#include <cstdint>

#include "base/dtype.h"
#include "ops/grid_place.h"

namespace polyphase::cpu {

struct GridSamplePlan {
  GridRule rule;
  DType dtype;
  DType grid_dtype;
  int64_t batch, channels, points;
  int32_t spatial;
  int64_t in[3];  // spatial sizes, missing leading axes are 1
  int64_t out[3];
  int64_t from_strides[5];  // elements: n, c, spatial
  int64_t to_strides[5];
  int64_t grid_strides[5];  // elements: n, the points' axes, coordinate
  int64_t tiles;            // batch × runs of points
};

// Points whose places are worked out together, before the channels are walked.
inline constexpr int64_t grid_points_per_tile = 256;

}  // namespace polyphase::cpu
