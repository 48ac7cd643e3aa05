// Normalisation over groups of elements: instance_norm, group_norm, layer_norm in FP32.
//
//   y = (x - mean) / sqrt(variance + epsilon) · scale + bias, mean and variance over one group
//
// rows:    a group is one contiguous run of `length` elements (row-major instance and group norm, layer norm)
// columns: channels inside; a group is `channels_per_group` lanes over all pixels of one image (channels-last instance
// and group norm)
//
// Statistics: chunks of pixels are reduced in FP32 around their own mean while they lie in cache, and merged in FP64 by
// Chan, Golub and LeVeque's update ("Updating formulae and a pairwise algorithm for computing sample variances", 1979).
// The chunks depend on the shape only.
#pragma once

#include <cstdint>

#include "backends/cpu/kernels/endings.h"
#include "base/dtype.h"

namespace polyphase::cpu {

struct NormalizePlan {
  static constexpr int64_t merged_channels = 64;  // at once
  int32_t columns;                                // 1: columns, 0: rows
  int32_t scale_mode;  // 0: none, 1: one per channel, 2: one per element of a row (layer_norm)
  int32_t has_bias;
  int32_t keeps_mean;  // layer_norm without centre: by the mean of squares
  float epsilon;
  int64_t groups;    // rows: number of runs; columns: images
  int64_t length;    // rows: elements of a run; columns: pixels of an image
  int64_t channels;  // columns: lanes of a pixel; rows: channels per image, for scale_mode 1
  int64_t channels_per_group;
  int64_t elements_per_channel;  // rows, scale_mode 1: consecutive elements that share a scale
  int64_t chunk;                 // columns: pixels of one chunk; rows: runs of one tile
  int64_t chunks;                // columns: chunks of one image; rows: tiles
  int64_t channels_per_merge;    // columns: whole groups of channels, whose chunks one tile merges
  int64_t merges;                // columns: such tiles of one image
};

// Columns, and what is done to their results before they are stored.
struct NormalizeColumnsPlan {
  NormalizePlan columns;
  EndingProgram endings;
  EndingOperands operands;
  int64_t out[3];  // spatial sizes, missing axes are 1
  DType type;      // the results', f32 or bf16
  int64_t pixels;  // of a line that are normalised before their endings are applied
};

}  // namespace polyphase::cpu
