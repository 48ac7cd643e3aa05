// Copies a channels-first image into the order that a kernel reads: channels-last, a block of positions at a time
// (phase 0 of the kernels that need it), or as a panel of pixels.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "backends/cpu/kernels/conv_shape.h"
#include "backends/cpu/simd/transpose.h"

namespace polyphase::cpu::POLYPHASE_CLUSTER {

// Fetches a line that is copied soon: lines of different channels are too far apart for the processor to foresee them.
POLYPHASE_INLINE void fetch_line(const float* from, int64_t count) {
  constexpr int64_t line = 64 / sizeof(float);
  for (int64_t i = 0; i < count; i += line) __builtin_prefetch(from + i, 0, 2);
}

// f(point, offset in elements, count) for the runs of points [begin, end) of an image that lie strides.axis[2] apart.
template <class F>
void each_run_of_points(const int64_t (&extent)[3], const ImageStrides& strides, int64_t begin, int64_t end, F f) {
  const bool lines_join = (extent[1] == 1 || strides.axis[1] == extent[2] * strides.axis[2]) &&
                          (extent[0] == 1 || strides.axis[0] == extent[1] * extent[2] * strides.axis[2]);
  const int64_t run = lines_join ? extent[0] * extent[1] * extent[2] : extent[2];
  for (int64_t point = begin; point < end;) {
    const int64_t next = std::min(end, (point / run + 1) * run);
    const int64_t line = point / extent[2];
    f(point,
      line / extent[1] * strides.axis[0] + line % extent[1] * strides.axis[1] + point % extent[2] * strides.axis[2],
      next - point);
    point = next;
  }
}

// How a panel of pixels lies: [block of pixels][channel][pixel].
struct PixelPanel {
  int64_t block;  // pixels: whole vectors
  int64_t step;   // floats from one block to the next
};

// The pixels [first, last) of all channels of a group's image, zeros behind them as far as vectors go. `gathered` holds
// as many pixels, where they do not lie side by side.
inline void copy_panel(const ConvShape& shape, const ImageStrides& strides, const float* image, int64_t first,
                       int64_t last, const PixelPanel& panel, float* gathered, float* to) {
  constexpr int64_t ahead = 4;  // channels
  for (int64_t c = 0; c < shape.in_channels; ++c) {
    const float* channel = image + c * strides.channel;
    const float* pixels = gathered;
    each_run_of_points(shape.in, strides, first, last, [&](int64_t point, int64_t offset, int64_t count) {
      if (strides.axis[2] == 1 && count == last - first) {
        pixels = channel + offset;
        if (c + ahead < shape.in_channels) fetch_line(pixels + ahead * strides.channel, count);
        return;
      }
      float* target = gathered + point - first;
      for (int64_t i = 0; i < count; ++i) target[i] = channel[offset + i * strides.axis[2]];
    });
    float* target = to + c * panel.block;
    int64_t left = last - first;
    for (; left >= panel.block; left -= panel.block, pixels += panel.block, target += panel.step) {
      for (int64_t v = 0; v < panel.block; v += vec_width) store(target + v, load(pixels + v));
    }
    if (left == 0) continue;
    for (int64_t v = 0; v < panel.block; v += vec_width) {
      const auto lanes = static_cast<int>(std::clamp<int64_t>(left - v, 0, vec_width));
      store(target + v, lanes == vec_width ? load(pixels + v) : load_first(pixels + v, lanes));
    }
  }
}

// Block `tile` of ceil(points / block) per image; `to` is [batch][point][channel] with `pitch` elements from point to
// point. `from` is channels-first, its lines may lie apart, or channels-last.
inline void copy_channels_last(const ConvShape& shape, const ImageStrides& strides, const float* from, float* to,
                               int64_t pitch, int64_t block, int64_t tile) {
  const int64_t points = shape.in_points();
  const int64_t channels = shape.groups * shape.in_channels;
  const int64_t blocks = ceil_div(points, block);
  const int64_t image = tile / blocks;
  const int64_t last = std::min(points, (tile % blocks + 1) * block);
  const auto copy = [&](int64_t point, int64_t offset, int64_t count) {
    const float* source = from + image * strides.batch + offset;
    float* target = to + (image * points + point) * pitch;
    if (strides.channel == 1) {
      for (int64_t i = 0; i < count; ++i)
        std::memcpy(target + i * pitch, source + i * strides.axis[2], static_cast<size_t>(channels) * sizeof(float));
    } else {
      transpose(source, strides.channel, target, pitch, channels, count);
    }
  };
  each_run_of_points(shape.in, strides, tile % blocks * block, last, copy);
}

// The strides of what copy_channels_last writes.
inline ImageStrides copied_strides(const ConvShape& shape, int64_t pitch) {
  return {shape.in_points() * pitch, 1, {shape.in[1] * shape.in[2] * pitch, shape.in[2] * pitch, pitch}};
}

}  // namespace polyphase::cpu::POLYPHASE_CLUSTER
