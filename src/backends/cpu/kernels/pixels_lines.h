// Copies the input lines of a tile of conv_pixels channels-first, padded outside the image, and interleaves the phases
// of its output lines.
#pragma once

#include <algorithm>
#include <cstdint>

#include "backends/cpu/kernels/conv_pixels.h"
#include "backends/cpu/kernels/planar_input.h"
#include "backends/cpu/simd/rows.h"
#include "backends/cpu/simd/transpose.h"

namespace polyphase::cpu::POLYPHASE_CLUSTER {

// Copies `count` elements, with `before` zeros in front and `after` behind. Writes up to a vector more, since lines are
// short, and stores of a part of a vector take many processors long.
template <DType type>
POLYPHASE_INLINE void copy_padded(const std::byte* from, float* to, int64_t before, int64_t count, int64_t after) {
  for (int64_t i = 0; i < before; i += vec_width) store(to + i, broadcast(0.0F));
  to += before;
  int64_t i = 0;
  for (; i + vec_width <= count; i += vec_width) store(to + i, load_stored<type>(from, i));
  if (i < count) {
    store(to + i, load_stored_first<type>(from, i, static_cast<int>(count - i)));
    i += vec_width;
  }
  for (; i < count + after; i += vec_width) store(to + i, broadcast(0.0F));
}

POLYPHASE_INLINE void copy_padded(StoredImage from, float* to, int64_t before, int64_t count, int64_t after) {
  if (from.wide()) return copy_padded<DType::f32>(from.data, to, before, count, after);
  if (from.type == DType::f16) return copy_padded<DType::f16>(from.data, to, before, count, after);
  copy_padded<DType::bf16>(from.data, to, before, count, after);
}

// A block of input positions: `extent` from `first` on, any of them outside the image.
struct PixelsBlock {
  StoredImage image;  // of a group
  bool has_next;      // another channel lies behind the group's last
  int64_t first[3];
  int64_t extent[3];
  int64_t read;  // of the pixels of a line, by the tile's outputs
};

// What an image that is padded by its own elements has instead of zeros beside a line: from its start to `from`, and
// from `end` on. `image` is the line's.
inline void pad_line(const ConvPixelsPlan& plan, const PixelsBlock& block, StoredImage image, float* line, int64_t from,
                     int64_t end) {
  const ConvShape& s = plan.shape;
  for (int64_t i = from > 0 ? 0 : end; i < block.read; i = i + 1 == from ? end : i + 1) {
    const StoredImage pixel = image + padded_index(s.pad_mode, block.first[2] + i, s.in[2]) * plan.in.axis[2];
    turn_to_lines(pixel, plan.in.axis[2], line + i, plan.channel_pitch, 1, s.in_channels);
  }
}

// To [channel][depth][line][pixel], as the plan has it, in ascending order: each copy overwrites what the one before
// wrote too much.
inline void copy_pixels(const ConvPixelsPlan& plan, const PixelsBlock& block, float* to) {
  const ConvShape& s = plan.shape;
  const int64_t from = std::clamp<int64_t>(-block.first[2], 0, block.extent[2]);
  const int64_t end = std::clamp<int64_t>(s.in[2] - block.first[2], from, block.extent[2]);
  const bool is_row = plan.in_planar && plan.in.axis[2] == 1;
  constexpr int64_t kept_floats = 64 * 1024;  // of an image that was just written, in the second-level cache
  constexpr int64_t long_line = 1024;         // which the processor foresees well enough
  const bool fetches = s.groups * s.in_channels * s.in_points() > kept_floats && block.extent[2] < long_line;
  const int64_t depth_pitch = plan.tile_lines[1] * plan.pitch;
  const bool pads = s.pad_mode != PadMode::zero;  // channels-last images, also of one channel, which lie either way
  for (int64_t c = 0; c < (plan.in_planar ? s.in_channels : 1); ++c) {
    for (int64_t i = 0; i < block.extent[0]; ++i) {
      const int64_t id = pads ? padded_index(s.pad_mode, block.first[0] + i, s.in[0]) : block.first[0] + i;
      for (int64_t l = 0; l < block.extent[1]; ++l) {
        const int64_t ih = pads ? padded_index(s.pad_mode, block.first[1] + l, s.in[1]) : block.first[1] + l;
        float* line = to + c * plan.channel_pitch + i * depth_pitch + l * plan.pitch;
        const bool inside = id >= 0 && id < s.in[0] && ih >= 0 && ih < s.in[1] && from < end;
        const auto pad = [&] {
          const StoredImage image = block.image + (id * plan.in.axis[0] + ih * plan.in.axis[1]);
          pad_line(plan, block, image, line, from < end ? from : 0, from < end ? end : 0);
        };
        StoredImage source = block.image;
        if (inside) {
          source = source + (c * plan.in.channel + id * plan.in.axis[0] + ih * plan.in.axis[1] +
                             (block.first[2] + from) * plan.in.axis[2]);
        }
        if (is_row) {
          copy_padded(source, line, inside ? from : 0, inside ? end - from : 0, block.extent[2] - (inside ? end : 0));
          if (inside && fetches && (block.has_next || c + 1 < s.in_channels))
            fetch_line(source + plan.in.channel, end - from);
          if (pads) pad();
          continue;
        }
        for (int64_t o = 0; o < (plan.in_planar ? 1 : s.in_channels); ++o) {
          float* other = line + o * plan.channel_pitch;
          std::fill_n(other, inside ? from : block.extent[2], 0.0F);
          if (inside) std::fill_n(other + end, block.extent[2] - end, 0.0F);
        }
        if (pads) pad();
        if (!inside) continue;
        if (plan.in_planar) {
          load_run(source, plan.in.axis[2], line + from, end - from);
        } else {
          turn_to_lines(source, plan.in.axis[2], line + from, plan.channel_pitch, end - from, s.in_channels);
        }
      }
    }
  }
}

// What of a tile's lines lies in the output: elements [lo, hi) of the phases' results in turn, of which the q from
// `first` to `last` are there with all phases.
struct LinePart {
  int64_t lo;
  int64_t hi;
  int64_t first;
  int64_t last;
};

// to[i - lo] = from[i % rows * pitch + i / rows] for lo <= i < hi; lo is less than `rows`.
POLYPHASE_INLINE void interleave_part(const float* from, int64_t pitch, float* to, int64_t rows, const LinePart& part) {
  if (rows == 1) return copy_row(from + part.lo, to, part.hi - part.lo);
  to -= part.lo;
  for (int64_t i = part.lo; i < std::min(part.first * rows, part.hi); ++i) to[i] = from[i * pitch];
  interleave(from + part.first, pitch, to + part.first * rows, rows, part.last - part.first);
  for (int64_t i = part.last * rows; i < part.hi; ++i) to[i] = from[(i - part.last * rows) * pitch + part.last];
}

}  // namespace polyphase::cpu::POLYPHASE_CLUSTER
