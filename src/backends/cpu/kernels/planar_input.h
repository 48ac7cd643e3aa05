// Turns a channels-first image into channels-last, a block of positions at a time: phase 0 of the kernels that need it.
#pragma once

#include <algorithm>
#include <cstdint>

#include "backends/cpu/kernels/conv_shape.h"
#include "backends/cpu/simd/transpose.h"

namespace polyphase::cpu::POLYPHASE_CLUSTER {

// Block `tile` of ceil(points / block) per image; `to` is dense [batch][point][channel]. Points are dense in `from`.
inline void convert_planar_input(const ConvShape& shape, const ImageStrides& strides, const float* from, float* to,
                                 int64_t block, int64_t tile) {
  const int64_t points = shape.in_points();
  const int64_t channels = shape.groups * shape.in_channels;
  const int64_t blocks = ceil_div(points, block);
  const int64_t image = tile / blocks;
  const int64_t first = tile % blocks * block;
  const int64_t count = std::min(block, points - first);
  transpose(from + image * strides.batch + first * strides.axis[2], strides.channel,
            to + (image * points + first) * channels, channels, channels, count);
}

// The strides of what convert_planar_input writes.
inline ImageStrides converted_strides(const ConvShape& shape) {
  const int64_t channels = shape.groups * shape.in_channels;
  return {shape.in_points() * channels, 1, {shape.in[1] * shape.in[2] * channels, shape.in[2] * channels, channels}};
}

}  // namespace polyphase::cpu::POLYPHASE_CLUSTER
