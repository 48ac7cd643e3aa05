// Resampling (nearest, linear, cubic) of FP32 tensors along up to three spatial axes by per-axis lists of (place,
// weight).
//
//   y[o] = Σ_taps w0·w1·w2 · x[p0, p1, p2]
//
// Channels-last, a pixel's channels are vectors. Channels-first, a line of results is: the operand's lines summed by
// the outer axes' weights, then vectors along the line, whose lanes are picked out of one vector of that sum where they
// lie so near to each other. Of a channels-last operand a channels-first result is computed channels-last, and turned.
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
  int32_t taps[3];          // per result place of the axis
  int64_t taps_at[3];       // byte offset of the lists in the plan
  int64_t from_strides[2];  // n, c
  int64_t to_strides[5];
  int32_t channels_inside;  // of both; or of the operand alone, if `turned` is not 0
  DType dtype;
  int64_t turned;       // results along the last axis that are computed channels-last, then turned channels-first
  int64_t tiles;        // as pool's
  bool lines;           // channels-first, the last axis dense on both sides
  bool picks;           // and near enough to be picked out of vectors
  bool keeps_last;      // the last axis stays as it is
  bool copies_last;     // every place of the last axis is one of the operand's
  int64_t in_width;     // the operand's places along the last axis
  int64_t line_block;   // lines of a tile
  int64_t line_blocks;  // of a plane
  int64_t first_at;     // byte offset of a list: the operand's place of lane 0, by vector of results (int64)
  int64_t lanes_at;     // and of [vector][tap][lane] (int32)
  int64_t weights_at;   // and of [vector][tap][lane] (float)
  int64_t scratch_bytes;
};

}  // namespace polyphase::cpu
