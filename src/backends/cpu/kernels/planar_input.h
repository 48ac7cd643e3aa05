// Copies a channels-first image into the order that a kernel reads: channels-last, a block of positions at a time
// (phase 0 of the kernels that need it), or as a panel of pixels.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "backends/cpu/kernels/conv_shape.h"
#include "backends/cpu/kernels/stored_image.h"
#include "backends/cpu/simd/rows.h"
#include "backends/cpu/simd/transpose.h"

namespace polyphase::cpu::POLYPHASE_CLUSTER {

// Points of an image that lie strides.axis[2] apart.
struct PointRun {
  int64_t offset;  // of the first, in elements
  int64_t count;
};

// Those from `begin` on, before `end`.
inline PointRun run_of_points(const int64_t (&extent)[3], const ImageStrides& strides, int64_t begin, int64_t end) {
  const bool lines_join = extent[1] == 1 || strides.axis[1] == extent[2] * strides.axis[2];
  const bool planes_join = extent[0] == 1 || strides.axis[0] == extent[1] * extent[2] * strides.axis[2];
  const int64_t run = extent[2] * (lines_join ? extent[1] * (planes_join ? extent[0] : 1) : 1);
  const int64_t line = begin / extent[2];
  return {line / extent[1] * strides.axis[0] + line % extent[1] * strides.axis[1] + begin % extent[2] * strides.axis[2],
          std::min(end, (begin / run + 1) * run) - begin};
}

// f(point, offset in elements, count) for the runs of points [begin, end) of an image that lie strides.axis[2] apart.
template <class F>
void each_run_of_points(const int64_t (&extent)[3], const ImageStrides& strides, int64_t begin, int64_t end,
                        const F& f) {
  for (int64_t point = begin; point < end;) {
    const PointRun run = run_of_points(extent, strides, point, end);
    f(point, run.offset, run.count);
    point += run.count;
  }
}

// The same for several channels: the first runs are found once, since divisions for each channel would take longer than
// to copy its pixels.
class PointRuns {
 public:
  PointRuns(const int64_t (&extent)[3], const ImageStrides& strides, int64_t begin, int64_t end)
      : extent_(extent), strides_(strides), begin_(begin), end_(end) {
    for (int64_t point = begin; count_ < most && point < end; point += runs_[count_++].count)
      runs_[count_] = run_of_points(extent, strides, point, end);
  }

  bool is_line() const { return strides_.axis[2] == 1 && count_ == 1; }
  const PointRun& first() const { return runs_[0]; }

  template <class F>
  void each(const F& f) const {
    int i = 0;
    for (int64_t point = begin_; point < end_;) {
      const PointRun run = i < count_ ? runs_[i++] : run_of_points(extent_, strides_, point, end_);
      f(point, run.offset, run.count);
      point += run.count;
    }
  }

 private:
  static constexpr int most = 32;
  const int64_t (&extent_)[3];
  const ImageStrides& strides_;
  PointRun runs_[most];
  int count_ = 0;
  int64_t begin_;
  int64_t end_;
};

// How a panel of pixels lies: [block of pixels][channel][pixel].
struct PixelPanel {
  int64_t block;  // pixels: whole vectors
  int64_t step;   // floats from one block to the next
};

// A channel of the panel: `count` pixels, and zeros behind them as far as vectors go.
POLYPHASE_INLINE void copy_panel_line(const float* pixels, int64_t count, const PixelPanel& panel, float* to) {
  for (; count >= panel.block; count -= panel.block, pixels += panel.block, to += panel.step) {
    for (int64_t v = 0; v < panel.block; v += vec_width) store(to + v, load(pixels + v));
  }
  for (int64_t v = 0; count > 0 && v < panel.block; v += vec_width) {
    const auto lanes = static_cast<int>(std::clamp<int64_t>(count - v, 0, vec_width));
    store(to + v, load_some(pixels + v, lanes));
  }
}

// The pixels [first, last) of all channels of a group's image. `gathered` holds as many pixels, where they do not lie
// side by side or are not wide.
inline void copy_panel(const ConvShape& shape, const ImageStrides& strides, StoredImage image, int64_t first,
                       int64_t last, const PixelPanel& panel, float* gathered, float* to) {
  constexpr int64_t ahead = 4;  // channels
  if (first == last) return;
  const int64_t count = last - first;
  const PointRuns runs(shape.in, strides, first, last);
  for (int64_t c = 0; c < shape.in_channels; ++c, to += panel.block) {
    const StoredImage channel = image + c * strides.channel;
    const bool fetches = strides.axis[2] == 1 && c + ahead < shape.in_channels;
    if (runs.is_line() && image.wide()) {
      const StoredImage line = channel + runs.first().offset;
      if (fetches) fetch_line(line + ahead * strides.channel, count);
      copy_panel_line(line.floats(), count, panel, to);
      continue;
    }
    runs.each([&](int64_t point, int64_t offset, int64_t n) {
      const StoredImage run = channel + offset;
      if (fetches) fetch_line(run + ahead * strides.channel, n);
      load_run(run, strides.axis[2], gathered + point - first, n);
    });
    copy_panel_line(gathered, count, panel, to);
  }
}

// A line of bf16 numbers, rounded once where they are others.
inline void load_bf16_run(StoredImage from, int64_t stride, uint16_t* to, int64_t n) {
  auto* const bytes = reinterpret_cast<std::byte*>(to);
  if (from.wide() && stride == 1) return store_elements(DType::bf16, from.floats(), bytes, 1, n);
  float wide[converted_pixels];
  for (int64_t i = 0; i < n; i += converted_pixels) {
    const int64_t count = std::min(converted_pixels, n - i);
    load_run(from + i * stride, stride, wide, count);
    store_elements(DType::bf16, wide, bytes + i * static_cast<int64_t>(sizeof(uint16_t)), 1, count);
  }
}

// copy_panel of two channels at a time: the words of the panel are pairs of bf16 numbers, the even channel in the lower
// half; an odd last channel has zeros beside it. `gathered` holds a float for each of the pixels.
inline void copy_pair_panel(const ConvShape& shape, const ImageStrides& strides, StoredImage image, int64_t first,
                            int64_t last, const PixelPanel& panel, float* gathered, float* to) {
  constexpr int64_t ahead = 4;  // channels
  if (first == last) return;
  const int64_t pixels = last - first;
  const PointRuns runs(shape.in, strides, first, last);
  auto* const room = reinterpret_cast<uint16_t*>(gathered);
  for (int64_t c = 0; c < shape.in_channels; c += 2, to += panel.block) {
    const bool is_pair = c + 1 < shape.in_channels;
    const uint16_t* lines[2] = {room, is_pair ? room + pixels : room};
    for (int k = 0; k < (is_pair ? 2 : 1); ++k) {
      const StoredImage channel = image + (c + k) * strides.channel;
      const bool fetches = strides.axis[2] == 1 && c + k + ahead < shape.in_channels;
      if (runs.is_line() && image.type == DType::bf16) {
        const StoredImage line = channel + runs.first().offset;
        if (fetches) fetch_line(line + ahead * strides.channel, pixels);
        lines[k] = reinterpret_cast<const uint16_t*>(line.data);
        continue;
      }
      runs.each([&](int64_t point, int64_t offset, int64_t n) {
        const StoredImage run = channel + offset;
        if (fetches) fetch_line(run + ahead * strides.channel, n);
        load_bf16_run(run, strides.axis[2], room + k * pixels + point - first, n);
      });
    }
    const VecI kept = broadcast(is_pair ? -1 : 0xffff);
    const auto pair = [&](VecF even, VecF odd) { return as_float(pair_elements<DType::bf16>(even, odd) & kept); };
    float* target = to;
    int64_t done = 0;
    for (; pixels - done >= panel.block; done += panel.block, target += panel.step) {
      for (int64_t v = 0; v < panel.block; v += vec_width)
        store(target + v, pair(load_bf16(lines[0] + done + v), load_bf16(lines[1] + done + v)));
    }
    for (int64_t v = 0; done < pixels && v < panel.block; v += vec_width) {
      const auto lanes = static_cast<int>(std::clamp<int64_t>(pixels - done - v, 0, vec_width));
      store(target + v, pair(load_bf16_first(lines[0] + done + v, lanes), load_bf16_first(lines[1] + done + v, lanes)));
    }
  }
}

// `count` points that lie `step` elements apart, `pitch` floats from point to point of the copy. `source` is
// channels-first or channels-last.
__attribute__((noinline)) inline void copy_points(StoredImage source, int64_t channel_step, int64_t step,
                                                  int64_t channels, int64_t count, float* to, int64_t pitch) {
  if (channels == 1 && pitch == 1) return load_run(source, step, to, count);
  if (channel_step != 1) return turn_to_pixels(source, channel_step, to, pitch, channels, count);
  for (int64_t i = 0; i < count; ++i) {
    const StoredImage pixel = source + i * step;
    if (pixel.wide()) {
      std::memcpy(to + i * pitch, pixel.data, static_cast<size_t>(channels) * sizeof(float));
    } else {
      load_run(pixel, 1, to + i * pitch, channels);
    }
  }
}

// Block `tile` of ceil(points / block) per image; `to` is [batch][point][channel] with `pitch` elements from point to
// point. `image` is channels-first, its lines may lie apart, or channels-last.
__attribute__((noinline)) inline void copy_channels_last(const ConvShape& shape, const ImageStrides& strides,
                                                         const float* image, float* to, int64_t pitch, int64_t block,
                                                         int64_t tile) {
  const int64_t points = shape.in_points();
  const int64_t channels = shape.groups * shape.in_channels;
  const int64_t blocks = ceil_div(points, block);
  const int64_t batch = tile / blocks;
  const int64_t last = std::min(points, (tile % blocks + 1) * block);
  each_run_of_points(shape.in, strides, tile % blocks * block, last, [&](int64_t point, int64_t offset, int64_t count) {
    const StoredImage source = StoredImage(image, shape.types.in) + (batch * strides.batch + offset);
    copy_points(source, strides.channel, strides.axis[2], channels, count, to + (batch * points + point) * pitch,
                pitch);
  });
}

}  // namespace polyphase::cpu::POLYPHASE_CLUSTER
