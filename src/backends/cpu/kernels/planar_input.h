// Copies an image channels-last, a block of positions at a time: phase 0 of the kernels that need it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "backends/cpu/kernels/conv_shape.h"
#include "backends/cpu/simd/transpose.h"

namespace polyphase::cpu::POLYPHASE_CLUSTER {

// Block `tile` of ceil(points / block) per image; `to` is [batch][point][channel] with `pitch` elements from point to
// point. `from` is channels-first, its lines may lie apart, or channels-last.
inline void copy_channels_last(const ConvShape& shape, const ImageStrides& strides, const float* from, float* to,
                               int64_t pitch, int64_t block, int64_t tile) {
  const int64_t points = shape.in_points();
  const int64_t channels = shape.groups * shape.in_channels;
  const int64_t blocks = ceil_div(points, block);
  const int64_t image = tile / blocks;
  const int64_t last = std::min(points, (tile % blocks + 1) * block);
  const bool lines_join = (shape.in[1] == 1 || strides.axis[1] == shape.in[2] * strides.axis[2]) &&
                          (shape.in[0] == 1 || strides.axis[0] == shape.in[1] * shape.in[2] * strides.axis[2]);
  const int64_t run = lines_join ? points : shape.in[2];
  for (int64_t point = tile % blocks * block; point < last;) {
    const int64_t end = std::min(last, (point / run + 1) * run);
    const int64_t line = point / shape.in[2];
    const int64_t offset = line / shape.in[1] * strides.axis[0] + line % shape.in[1] * strides.axis[1] +
                           point % shape.in[2] * strides.axis[2];
    const float* source = from + image * strides.batch + offset;
    float* target = to + (image * points + point) * pitch;
    if (strides.channel == 1) {
      for (int64_t i = 0; i < end - point; ++i)
        std::memcpy(target + i * pitch, source + i * strides.axis[2], static_cast<size_t>(channels) * sizeof(float));
    } else {
      transpose(source, strides.channel, target, pitch, channels, end - point);
    }
    point = end;
  }
}

// The strides of what copy_channels_last writes.
inline ImageStrides copied_strides(const ConvShape& shape, int64_t pitch) {
  return {shape.in_points() * pitch, 1, {shape.in[1] * shape.in[2] * pitch, shape.in[2] * pitch, pitch}};
}

}  // namespace polyphase::cpu::POLYPHASE_CLUSTER
