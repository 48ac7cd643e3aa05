// Depthwise convolution and transposed convolution: every channel by itself, vectors along the channels.
//
// Weights are packed [kernel point][out channel, padded to whole vectors]. Each output pixel adds its phase's taps
// straight from the channels-last input, which neighbours share where they read the same columns of it; a tile is some
// output lines by a range of the last axis, with all channels. A channel multiplier, a channels-first or a narrow input
// goes through a channels-last copy with one channel per output channel (phase 0).
#pragma once

#include <cstdint>

#include "backends/cpu/kernels/conv_gemm.h"
#include "backends/cpu/kernels/conv_shape.h"
#include "backends/cpu/kernels/endings.h"

namespace polyphase::cpu {

struct ConvDepthwisePlan {
  ConvShape shape;
  ImageStrides in;
  ImageStrides out;
  EndingProgram endings;  // without a leading bias
  bool has_bias;
  bool in_copied;      // phase 0 lays the input out channels-last, channels repeated by the multiplier
  bool past_caches;    // channels-first output so large that the caches cannot hold it for its reader
  bool out_planar;     // channels-first or narrow: lines leave by way of the scratch
  bool run_endings;    // the endings of a channels-last line are one run
  bool fetches_ahead;  // the next input line, as the inner caches do not hold the image
  BriefEndings brief;  // done in registers, if they are all
  int64_t channels;    // of the output
  int64_t pitch;       // channels padded to whole vectors
  int64_t lines_per_tile;
  int64_t line_blocks;
  int64_t x_block;
  int64_t x_blocks;
  int64_t convert_points;
  int64_t max_taps;  // of one phase of the outer axes
  int64_t scratch_bytes;
  int64_t shared_bytes;
};

// Whether so many taps beside each other of a phase are computed for eight outputs at once, which load what they share
// once: numbers that networks have, and not where vectors of 512 bits of single taps wait for their stores. The scalar
// cluster has half the code instead.
inline bool shares_columns(int64_t taps, int64_t in_step, int width) {
  const bool is_wide = width == 16;
  return width > 4 && in_step == 1 && taps >= (is_wide ? 2 : 1) && (taps <= 5 || taps == 7);
}

// For shapes with one input channel per group.
ConvDepthwisePlan plan_conv_depthwise(const ConvShape& shape, const ImageStrides& in, const ImageStrides& out,
                                      const EndingProgram& endings, bool has_bias, int width);
int64_t conv_depthwise_tiles(const ConvDepthwisePlan& plan, int phase);
inline int conv_depthwise_phases(const ConvDepthwisePlan& plan) { return plan.in_copied ? 2 : 1; }

int64_t conv_depthwise_packed_floats(const ConvShape& shape, int width);
void pack_conv_depthwise(const ConvShape& shape, int width, const float* weights, const WeightStrides& strides,
                         PackShare share, float* packed);

}  // namespace polyphase::cpu
