// Copies images for conv_pairs: [line][pixel][channel] in bf16, with the zeros or the elements that pad them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "backends/cpu/kernels/conv_pairs.h"
#include "backends/cpu/kernels/planar_input.h"
#include "backends/cpu/kernels/stored_image.h"
#include "backends/cpu/simd/pairs.h"
#include "backends/cpu/simd/unrolled.h"

namespace polyphase::cpu::POLYPHASE_CLUSTER {

// Copies lines of the image, bf16 numbers as they are and others rounded.
class PairsCopier {
 public:
  // `gathered` has room for pairs_gathered_floats.
  PairsCopier(const ConvPairsPlan& plan, const ConvPointers& pointers, float* gathered)
      : plan_(plan),
        s_(plan.shape),
        in_(pointers.in, plan.shape.types.in),
        channels_(plan.format.channels),
        gathered_(gathered) {}

  struct Plane {
    int64_t batch, group, z;
  };

  // Where lines go.
  struct Lines {
    uint16_t* first;
    int64_t step;    // elements
    int64_t ring;    // after so many the first comes again; 0: never
    int64_t origin;  // the line that goes to the first

    uint16_t* at(int64_t line) const { return first + (ring == 0 ? line - origin : (line - origin) % ring) * step; }
    Lines from(int64_t element) const { return {first + element, step, ring, origin}; }
  };

  // The lines [y0, y1) of a plane, `pixels` of each from x0 on; line y goes to to.at(y).
  __attribute__((noinline)) void copy(const Plane& plane, int64_t y0, int64_t y1, int64_t x0, int64_t pixels,
                                      const Lines& to) const {
    if (s_.pad_mode != PadMode::zero) return copy_padded(plane, y0, y1, x0, pixels, to);
    const int64_t left = std::clamp<int64_t>(-x0, 0, pixels);
    const int64_t right = std::clamp<int64_t>(s_.in[2] - x0, left, pixels);
    const int64_t first = left == right ? y1 : std::clamp<int64_t>(0, y0, y1);
    const int64_t last = left == right ? y1 : std::clamp<int64_t>(s_.in[1], first, y1);
    for (int64_t y = y0; y < y1; ++y) {
      if (y < first || y >= last) {
        std::fill_n(to.at(y), pixels * channels_, uint16_t{0});
      } else {
        std::fill_n(to.at(y), left * channels_, uint16_t{0});
        std::fill_n(to.at(y) + right * channels_, (pixels - right) * channels_, uint16_t{0});
      }
    }
    const ImageStrides& in = plan_.in;
    const int64_t width = right - left;
    const StoredImage from = start_of(plane) + (first * in.axis[1] + (x0 + left) * in.axis[2]);
    const Lines target = to.from(left * channels_);
    if (in.channel == 1) {
      for (int64_t y = first; y < last; ++y) copy_pixels(from + (y - first) * in.axis[1], target.at(y), width);
    } else if (in.axis[2] == 1 && in.axis[1] == s_.in[2] && width == s_.in[2]) {
      turn(from, first, (last - first) * width, width, target);
    } else {
      for (int64_t y = first; y < last; ++y) turn(from + (y - first) * in.axis[1], y, width, width, target);
    }
  }

 private:
  StoredImage start_of(const Plane& plane) const {
    return in_ + (plane.batch * plan_.in.batch + plane.group * s_.in_channels * plan_.in.channel +
                  plane.z * plan_.in.axis[0]);
  }

  // Of an image channels-last that is padded by its own elements.
  void copy_padded(const Plane& plane, int64_t y0, int64_t y1, int64_t x0, int64_t pixels, const Lines& to) const {
    const int64_t left = std::clamp<int64_t>(-x0, 0, pixels);
    const int64_t right = std::clamp<int64_t>(s_.in[2] - x0, left, pixels);
    for (int64_t y = y0; y < y1; ++y) {
      const StoredImage line = start_of(plane) + padded_index(s_.pad_mode, y, s_.in[1]) * plan_.in.axis[1];
      const auto copy_one = [&](int64_t x) {
        copy_pixels(line + padded_index(s_.pad_mode, x0 + x, s_.in[2]) * plan_.in.axis[2], to.at(y) + x * channels_, 1);
      };
      for (int64_t x = 0; x < left; ++x) copy_one(x);
      copy_pixels(line + (x0 + left) * plan_.in.axis[2], to.at(y) + left * channels_, right - left);
      for (int64_t x = right; x < pixels; ++x) copy_one(x);
    }
  }

  __attribute__((noinline)) void copy_pixels(StoredImage from, uint16_t* to, int64_t count) const {
    if (plan_.in.axis[2] == s_.in_channels && channels_ == s_.in_channels)
      return copy_elements(from, to, count * channels_);
    for (int64_t i = 0; i < count; ++i, to += channels_) {
      copy_elements(from + i * plan_.in.axis[2], to, s_.in_channels);
      if (s_.in_channels < channels_) to[s_.in_channels] = 0;
    }
  }

  __attribute__((noinline)) static void copy_elements(StoredImage from, uint16_t* to, int64_t count) {
    if (from.type == DType::bf16) {
      std::copy_n(reinterpret_cast<const uint16_t*>(from.data), count, to);
    } else {
      load_bf16_run(from, 1, to, count);
    }
  }

  // `count` pixels from line y on, which lie in lines of `width` behind each other.
  __attribute__((noinline)) void turn(StoredImage from, int64_t y, int64_t count, int64_t width,
                                      const Lines& to) const {
    if (plan_.in.axis[2] != 1) return turn_strided(from, y, count, width, to);
    if (from.type == DType::bf16) return turn_typed<DType::bf16>(from, y, count, width, to);
    turn_typed<DType::f32>(from, y, count, width, to);
  }

  // So many pixels of all channels at a time that what is written stays in the first-level cache.
  template <DType type>
  void turn_typed(StoredImage from, int64_t y, int64_t count, int64_t width, const Lines& to) const {
    constexpr int64_t written_bytes = 16 << 10;
    constexpr int64_t unit = 2 * vec_width;
    const int64_t pixels = std::max<int64_t>(4, written_bytes / (2 * unit * channels_)) * unit;
    for (int64_t p = 0; p < count; p += pixels) {
      const int64_t own = std::min(pixels, count - p);
      for (int64_t c = 0; c < s_.in_channels; c += pair_channels_at_once) {
        const int64_t next = c + pair_channels_at_once;
        const bool is_last = next >= s_.in_channels;
        const StoredImage following = from + (is_last ? p + own : next * plan_.in.channel + p);
        turn_channels<type>({.from = from + (c * plan_.in.channel + p),
                             .following = is_last && p + own == count ? nullptr : following.data,
                             .pitch = plan_.in.channel,
                             .channels = std::min(pair_channels_at_once, s_.in_channels - c),
                             .count = own,
                             .x = p % width,
                             .width = width,
                             .y = y + p / width,
                             .to = to.from(c)});
      }
    }
  }

  void turn_strided(StoredImage from, int64_t y, int64_t count, int64_t width, const Lines& to) const {
    for (int64_t c = 0; c < s_.in_channels; c += pair_channels_at_once) {
      const int64_t channels = std::min(pair_channels_at_once, s_.in_channels - c);
      for (int64_t p = 0; p < count; p += pairs_gathered_pixels) {
        const int64_t pixels = std::min(pairs_gathered_pixels, count - p);
        for (int64_t k = 0; k < channels; ++k) {
          load_run(from + ((c + k) * plan_.in.channel + p * plan_.in.axis[2]), plan_.in.axis[2],
                   gathered_ + k * pairs_gathered_pixels, pixels);
        }
        turn_channels<DType::f32>({.from = StoredImage(gathered_, DType::f32),
                                   .following = nullptr,
                                   .pitch = pairs_gathered_pixels,
                                   .channels = channels,
                                   .count = pixels,
                                   .x = p % width,
                                   .width = width,
                                   .y = y + p / width,
                                   .to = to.from(c)});
      }
    }
  }

  // Some pixels of some channels, which lie in lines of `width`, from pixel x of a line on.
  struct Pixels {
    StoredImage from;
    const std::byte* following;  // what is read next
    int64_t pitch;               // elements from channel to channel
    int64_t channels;
    int64_t count;
    int64_t x, width;
    int64_t y;
    Lines to;
  };

  // Two channels' elements of a vector of pixels are a vector of pairs; a square of those is turned in registers. Its
  // rows are two vectors of pixels of half as many pairs: so each line of the caches is read once and whole. Channels
  // often lie a power of two apart, where the caches cannot hold many of their lines at once.
  template <DType type>
  __attribute__((noinline)) void turn_channels(const Pixels& r) const {
    constexpr int blocks = vec_width > 1 ? 2 : 1;
    constexpr int block_words = vec_width / blocks;
    static_assert(pair_channels_at_once == 2 * block_words);
    constexpr int64_t bytes = type == DType::f32 ? sizeof(float) : sizeof(uint16_t);
    constexpr int64_t block = blocks * vec_width;  // pixels
    constexpr int64_t ahead = fetched_blocks * block;
    const int64_t step = r.pitch * bytes;
    const auto words = static_cast<int>(ceil_div(r.channels, 2));
    int64_t y = r.y;
    int64_t x = r.x;
    uint16_t* target = r.to.at(y);
    // Pixels that are written next: where, and those of the other vectors behind them.
    const auto next = [&] {
      uint16_t* const at = target + x * channels_;
      if (++x == r.width) {
        x = 0;
        target = r.to.at(++y);
      }
      return reinterpret_cast<float*>(at);
    };
    for (int64_t p = 0; p < r.count; p += block) {
      const std::byte* const rows = r.from.data + p * bytes;
      const int64_t over = p + ahead - ceil_div(r.count, block) * block;
      const std::byte* const fetched = over < 0 ? rows + ahead * bytes
                                       : over < r.count && over < ahead && r.following != nullptr
                                           ? r.following + over * bytes
                                           : rows;
      const int64_t left = r.count - p;
      VecF pairs[vec_width];
      if (left >= block && r.channels == pair_channels_at_once) {
        unrolled<block_words>([&](int i) POLYPHASE_INLINE_LAMBDA {
          const std::byte* const even = rows + 2 * i * step;
          fetch_pixels<block * bytes>(fetched + 2 * i * step);
          fetch_pixels<block * bytes>(fetched + (2 * i + 1) * step);
          unrolled<blocks>([&](int b) POLYPHASE_INLINE_LAMBDA {
            pairs[b * block_words + i] = as_float(pair_elements<type>(load_stored<type>(even, b * vec_width),
                                                                      load_stored<type>(even + step, b * vec_width)));
          });
        });
      } else {
        for (int i = 0; i < block_words; ++i) {
          const std::byte* const even = rows + 2 * i * step;
          for (int b = 0; b < blocks; ++b) {
            const auto lanes = static_cast<int>(std::clamp<int64_t>(left - b * vec_width, 0, vec_width));
            const VecF none = broadcast(0.0F);
            const VecF low = i < words ? load_stored_first<type>(even, b * vec_width, lanes) : none;
            const VecF high =
                2 * i + 1 < r.channels ? load_stored_first<type>(even + step, b * vec_width, lanes) : none;
            pairs[b * block_words + i] = as_float(pair_elements<type>(low, high));
          }
        }
      }
      transpose_lanes(pairs);
      for (int b = 0; b < blocks; ++b) {
        const auto lanes = static_cast<int>(std::clamp<int64_t>(left - b * vec_width, 0, vec_width));
        const int first = b * block_words;
        for (int i = 0; i < lanes; ++i) store_range(next() - first, pairs[i], first, first + words);
      }
    }
  }

  template <int64_t bytes>
  POLYPHASE_INLINE static void fetch_pixels(const std::byte* at) {
    for (int64_t i = 0; i < bytes; i += 64) __builtin_prefetch(at + i);
  }

  static constexpr int64_t fetched_blocks = 3;
  static constexpr int64_t pair_channels_at_once = vec_width > 1 ? vec_width : 2;
  static_assert(pair_channels_at_once * pairs_gathered_pixels <= pairs_gathered_floats);

  const ConvPairsPlan& plan_;
  const ConvShape& s_;
  const StoredImage in_;
  const int64_t channels_;
  float* const gathered_;
};

}  // namespace polyphase::cpu::POLYPHASE_CLUSTER
