// Copies the input lines of a tile of conv_pixels channels-first, padded outside the image, and interleaves the phases
// of its output lines.
#pragma once

#include <algorithm>
#include <cstdint>

#include "backends/cpu/kernels/conv_pixels.h"
#include "backends/cpu/kernels/planar_input.h"
#include "backends/cpu/simd/pairs.h"
#include "backends/cpu/simd/rows.h"
#include "backends/cpu/simd/transpose.h"

namespace polyphase::cpu::POLYPHASE_CLUSTER {

// Copies `count` elements, with `before` zeros in front and `after` behind. Writes up to a vector more, since lines are
// short, and stores of a part of a vector take many processors long.
template <DType type>
POLYPHASE_INLINE void copy_padded(const std::byte* from, float* to, int64_t before, int64_t count, int64_t after) {
  store_zeros(to, before);
  to += before;
  int64_t i = 0;
  for (; i + vec_width <= count; i += vec_width) store(to + i, load_stored<type>(from, i));
  if (i < count) {
    store(to + i, load_stored_first<type>(from, i, static_cast<int>(count - i)));
    i += vec_width;
  }
  store_zeros(to + i, count + after - i);
}

POLYPHASE_INLINE void copy_padded(StoredImage from, float* to, int64_t before, int64_t count, int64_t after) {
  if (from.wide()) return copy_padded<DType::f32>(from.data, to, before, count, after);
  if (from.type == DType::f16) return copy_padded<DType::f16>(from.data, to, before, count, after);
  copy_padded<DType::bf16>(from.data, to, before, count, after);
}

// The same where elements lie behind the `count`, which are read up to the end of a vector.
template <DType type>
POLYPHASE_INLINE void copy_padded_whole(const std::byte* from, float* to, int64_t before, int64_t count,
                                        int64_t after) {
  store_zeros(to, before);
  to += before;
  for (int64_t i = 0; i < count; i += vec_width) store(to + i, load_stored<type>(from, i));
  to += count;
  store_zeros(to, after);
}

// Words of pairs of two channels' elements, rounded where they are not bf16; zeros where there is no odd channel.
template <DType type>
POLYPHASE_INLINE void copy_padded_pairs(const std::byte* even, const std::byte* odd, float* to, int64_t before,
                                        int64_t count, int64_t after) {
  const VecI kept = broadcast(odd != nullptr ? -1 : 0xffff);
  if (odd == nullptr) odd = even;
  const auto pair = [&](VecF low, VecF high) { return as_float(pair_elements<type>(low, high) & kept); };
  store_zeros(to, before);
  to += before;
  int64_t i = 0;
  for (; i + vec_width <= count; i += vec_width)
    store(to + i, pair(load_stored<type>(even, i), load_stored<type>(odd, i)));
  if (i < count) {
    const auto rest = static_cast<int>(count - i);
    store(to + i, pair(load_stored_first<type>(even, i, rest), load_stored_first<type>(odd, i, rest)));
    i += vec_width;
  }
  store_zeros(to + i, count + after - i);
}

POLYPHASE_INLINE void copy_padded_pairs(StoredImage even, const std::byte* odd, float* to, int64_t before,
                                        int64_t count, int64_t after) {
  if (even.wide()) return copy_padded_pairs<DType::f32>(even.data, odd, to, before, count, after);
  if (even.type == DType::f16) return copy_padded_pairs<DType::f16>(even.data, odd, to, before, count, after);
  copy_padded_pairs<DType::bf16>(even.data, odd, to, before, count, after);
}

// A block of input positions: `extent` from `first` on, any of them outside the image.
struct PixelsBlock {
  StoredImage image;  // of a group
  bool has_next;      // another channel lies behind the group's last
  int64_t first[3];
  int64_t extent[3];
  int64_t read;  // of the pixels of a line, by the tile's outputs
};

// A line of every channel, `pitch` floats apart.
struct ChannelLines {
  float* first;
  int64_t pitch;
};

// Copies the input lines of a tile to [word][depth][line][pixel], as the plan has it. `turned` has plan.turned_floats.
class PixelsCopy {
 public:
  PixelsCopy(const ConvPixelsPlan& plan, const PixelsBlock& block, float* turned)
      : plan_(plan), s_(plan.shape), block_(block), turned_(turned) {
    from_ = std::clamp<int64_t>(-block.first[2], 0, block.extent[2]);
    end_ = std::clamp<int64_t>(s_.in[2] - block.first[2], from_, block.extent[2]);
    constexpr int64_t kept_floats = 64 * 1024;  // of an image that was just written, in the second-level cache
    constexpr int64_t long_line = 1024;         // which the processor foresees well enough
    fetches_ = s_.groups * s_.in_channels * s_.in_points() > kept_floats && block.extent[2] < long_line;
  }

  // In ascending order: each copy overwrites what the one before wrote too much.
  void run(float* to) const {
    clear_ends(to);
    const bool is_row = plan_.in_planar && plan_.in.axis[2] == 1;
    const bool by_words = is_row && plan_.turned_floats == 0 && plan_.steps == 1;
    const int64_t depth_pitch = plan_.tile_lines[1] * plan_.pitch;
    const bool pads = s_.pad_mode != PadMode::zero;  // channels-last images, also of one channel, which lie either way
    if (by_words && !pads && s_.products == Products::floats) return copy_channels(to);
    for (int64_t word = 0; word < (by_words ? s_.in_words() : 1); ++word) {
      for (int64_t i = 0; i < block_.extent[0]; ++i) {
        const int64_t id = pads ? padded_index(s_.pad_mode, block_.first[0] + i, s_.in[0]) : block_.first[0] + i;
        for (int64_t l = 0; l < block_.extent[1]; ++l) {
          const int64_t ih = pads ? padded_index(s_.pad_mode, block_.first[1] + l, s_.in[1]) : block_.first[1] + l;
          float* const line = to + word * plan_.channel_pitch + i * depth_pitch + l * plan_.pitch;
          const bool inside = id >= 0 && id < s_.in[0] && ih >= 0 && ih < s_.in[1] && from_ < end_;
          const int64_t at = inside || pads ? id * plan_.in.axis[0] + ih * plan_.in.axis[1] : 0;
          if (by_words) {
            copy_word(word, at, inside, line);
            if (pads) pad({line, plan_.channel_pitch}, at);
          } else if (s_.products == Products::pairs) {
            copy_turned({turned_, plan_.pitch}, at, inside);
            pair_turned(line);
          } else {
            copy_turned({line, plan_.channel_pitch}, at, inside);
          }
        }
      }
    }
  }

 private:
  // Lines are read as whole vectors, depthwise ones as whole register blocks, and what lies behind them may be
  // subnormal as floats, whose products take a hundred times as long; pairs of bf16 know none. Zeros are overwritten
  // where other lines follow.
  void clear_ends(float* to) const {
    if (s_.products == Products::pairs) return;
    const int64_t behind = plan_.depthwise ? lines_slack(vec_width) : vec_width;
    const int64_t depth_pitch = plan_.tile_lines[1] * plan_.pitch;
    const int64_t first = block_.extent[1] < plan_.tile_lines[1] ? 0 : block_.extent[0] - 1;
    for (int64_t i = first; i < block_.extent[0]; ++i) {
      float* end = to + i * depth_pitch + block_.extent[1] * plan_.pitch;
      for (int64_t word = 0; word < s_.in_words(); ++word, end += plan_.channel_pitch) store_zeros(end, behind);
    }
  }

  void copy_channels(float* to) const {
    if (block_.image.wide()) return copy_channels<DType::f32>(to);
    block_.image.type == DType::f16 ? copy_channels<DType::f16>(to) : copy_channels<DType::bf16>(to);
  }

  // Channels whose lines lie in rows; zeros outside of the image.
  template <DType type>
  void copy_channels(float* to) const {
    const int64_t first = std::clamp<int64_t>(-block_.first[1], 0, block_.extent[1]);
    const int64_t end = from_ < end_ ? std::clamp(s_.in[1] - block_.first[1], first, block_.extent[1]) : first;
    const auto zeros = [&](float* line, int64_t lines) { copy_padded<type>(nullptr, line, 0, 0, lines * plan_.pitch); };
    for (int64_t c = 0; c < s_.in_channels; ++c, to += plan_.channel_pitch) {
      for (int64_t i = 0; i < block_.extent[0]; ++i) {
        float* const lines = to + i * plan_.tile_lines[1] * plan_.pitch;
        const int64_t id = block_.first[0] + i;
        const bool is_inside = id >= 0 && id < s_.in[0] && first < end;
        zeros(lines, is_inside ? first : block_.extent[1]);
        if (!is_inside) continue;
        copy_channel_lines<type>(c, id, block_.first[1] + first, end - first, lines + first * plan_.pitch);
        zeros(lines + end * plan_.pitch, block_.extent[1] - end);
      }
    }
  }

  // Neighbouring lines of a channel that lie in the image.
  template <DType type>
  void copy_channel_lines(int64_t c, int64_t id, int64_t ih, int64_t count, float* to) const {
    const ImageStrides& by = plan_.in;
    const bool has_next = block_.has_next || c + 1 < s_.in_channels;
    const bool fetches_next = fetches_ && has_next;
    const bool fetches_room = fetches_ && block_.extent[1] > 1;
    StoredImage from = block_.image + (c * by.channel + id * by.axis[0] + ih * by.axis[1] + block_.first[2] + from_);
    // Elements of the image that lie behind the line, at the least.
    const bool is_ascending = by.channel >= 0 && by.axis[0] >= 0 && by.axis[1] >= 0;
    const int64_t channels = s_.in_channels - 1 - c + (block_.has_next ? 1 : 0);
    int64_t behind = is_ascending ? channels * by.channel + (s_.in[0] - 1 - id) * by.axis[0] +
                                        (s_.in[1] - 1 - ih) * by.axis[1] + s_.in[2] - block_.first[2] - end_
                                  : 0;
    for (int64_t l = 0; l < count; ++l) {
      if (fetches_room) fetch_for_store({to + plan_.pitch, DType::f32}, plan_.pitch);
      if (fetches_next) fetch_line(from + by.channel, end_ - from_);
      if (behind >= vec_width) {
        copy_padded_whole<type>(from.data, to, from_, end_ - from_, block_.extent[2] - end_);
      } else {
        copy_padded<type>(from.data, to, from_, end_ - from_, block_.extent[2] - end_);
      }
      from = from + by.axis[1];
      behind -= by.axis[1];
      to += plan_.pitch;
    }
  }

  // A line of the channel, or pair of channels, that lies so many elements behind the group's image.
  void copy_word(int64_t word, int64_t at, bool inside, float* line) const {
    const bool in_pairs = s_.products == Products::pairs;
    const int64_t channel = in_pairs ? 2 * word : word;
    const bool has_odd = in_pairs && channel + 1 < s_.in_channels;
    StoredImage source = block_.image;
    if (inside) source = source + (channel * plan_.in.channel + at + block_.first[2] + from_);
    const int64_t before = inside ? from_ : 0;
    const int64_t count = inside ? end_ - from_ : 0;
    const int64_t after = block_.extent[2] - (inside ? end_ : 0);
    if (in_pairs) {
      copy_padded_pairs(source, has_odd ? (source + plan_.in.channel).data : nullptr, line, before, count, after);
    } else {
      copy_padded(source, line, before, count, after);
    }
    // The next line of the word; the tile's lines together lie in the second-level cache.
    if (fetches_ && block_.extent[1] > 1) fetch_for_store({line + plan_.pitch, DType::f32}, plan_.pitch);
    const int64_t copied = has_odd ? 2 : 1;
    for (int64_t next = copied; inside && fetches_ && next < 2 * copied; ++next) {
      if (block_.has_next || channel + next < s_.in_channels) fetch_line(source + next * plan_.in.channel, count);
    }
  }

  // A line of every channel, from so many elements behind the group's image on: in one piece, or in pieces of every
  // `steps` pixels.
  void copy_turned(const ChannelLines& lines, int64_t at, bool inside) const {
    const int64_t steps = plan_.steps;
    const ImageStrides& by = plan_.in;
    const StoredImage source = block_.image + (at + block_.first[2] * by.axis[2]);
    const bool parts_rows = steps > 1 && plan_.in_planar && by.axis[2] == 1;
    for (int64_t step = 0; step < steps; ++step) {
      const int64_t begin = inside ? ceil_div(from_ - step, steps) : plan_.step_pitch;
      const int64_t end = inside ? ceil_div(end_ - step, steps) : plan_.step_pitch;
      float* const piece = lines.first + step * plan_.step_pitch;
      for (int64_t c = 0; c < s_.in_channels; ++c) {
        std::fill_n(piece + c * lines.pitch, begin, 0.0F);
        std::fill(piece + c * lines.pitch + end, piece + c * lines.pitch + plan_.step_pitch, 0.0F);
      }
      if (begin < end && !parts_rows)
        turn_piece(source + (begin * steps + step) * by.axis[2], {piece + begin, lines.pitch}, end - begin);
    }
    for (int64_t c = 0; inside && parts_rows && c < s_.in_channels; ++c)
      part_row(source + c * by.channel, lines.first + c * lines.pitch);
    if (s_.pad_mode != PadMode::zero) pad(lines, at);
  }

  // `count` pixels a stride apart, of every channel.
  void turn_piece(StoredImage from, const ChannelLines& to, int64_t count) const {
    const int64_t apart = plan_.steps * plan_.in.axis[2];
    if (!plan_.in_planar) return turn_to_lines(from, apart, to.first, to.pitch, count, s_.in_channels);
    for (int64_t c = 0; c < s_.in_channels; ++c)
      load_run(from + c * plan_.in.channel, apart, to.first + c * to.pitch, count);
  }

  // What lies in the image, to the pieces of a line; narrow elements are widened some at a time.
  void part_row(StoredImage from, float* to) const {
    if (from.wide()) return part_run(from.floats() + from_, from_, end_, to);
    constexpr int64_t at_once = 32 * 12;  // whole vectors of any number of steps
    float wide[at_once];
    for (int64_t i = from_; i < end_;) {
      const int64_t next = std::min(end_, (i / at_once + 1) * at_once);
      load_run(from + i, 1, wide, next - i);
      part_run(wide, i, next, to);
      i = next;
    }
  }

  // Pixels [begin, end) of a line, the first of which lies at `from`, to the line's pieces.
  void part_run(const float* from, int64_t begin, int64_t end, float* to) const {
    const int64_t steps = plan_.steps;
    const int64_t first = std::min(ceil_div(begin, steps) * steps, end);  // whole pixels of q
    const int64_t last = std::max(end / steps * steps, first);
    const auto part = [&](int64_t i) { to[i % steps * plan_.step_pitch + i / steps] = from[i - begin]; };
    for (int64_t i = begin; i < first; ++i) part(i);
    deinterleave(from + (first - begin), to + first / steps, plan_.step_pitch, steps, (last - first) / steps);
    for (int64_t i = last; i < end; ++i) part(i);
  }

  // What an image that is padded by its own elements has instead of zeros beside a line.
  void pad(const ChannelLines& lines, int64_t at) const {
    const int64_t from = from_ < end_ ? from_ : 0;
    const int64_t end = from_ < end_ ? end_ : 0;
    for (int64_t i = from > 0 ? 0 : end; i < block_.read; i = i + 1 == from ? end : i + 1) {
      const int64_t x = padded_index(s_.pad_mode, block_.first[2] + i, s_.in[2]);
      turn_to_lines(block_.image + (at + x * plan_.in.axis[2]), plan_.in.axis[2], lines.first + i, lines.pitch, 1,
                    s_.in_channels);
    }
  }

  // To the line of every word, `line` being the first one's.
  void pair_turned(float* line) const {
    for (int64_t c = 0; c < s_.in_channels; c += 2, line += plan_.channel_pitch) {
      const float* const even = turned_ + c * plan_.pitch;
      const float* const odd = c + 1 < s_.in_channels ? even + plan_.pitch : even;
      const VecI kept = broadcast(odd != even ? -1 : 0xffff);
      for (int64_t i = 0; i < block_.extent[2]; i += vec_width) {
        const int lanes = lanes_of(block_.extent[2] - i);
        store_first(line + i, as_float(pair_sums(load_first(even + i, lanes), load_first(odd + i, lanes)) & kept),
                    lanes);
      }
    }
  }

  const ConvPixelsPlan& plan_;
  const ConvShape& s_;
  const PixelsBlock& block_;
  float* turned_;
  int64_t from_;  // pixels of a line that lie in the image
  int64_t end_;
  bool fetches_;
};

// What of a tile's lines lies in the output: elements [lo, hi) of the phases' results in turn, of which the q from
// `first` to `last` are there with all phases.
struct LinePart {
  int64_t lo;
  int64_t hi;
  int64_t first;
  int64_t last;

  // Of the un-cropped q from q0 to q1 of the last axis.
  static LinePart of(const ConvAxis& axis, int64_t q0, int64_t q1) {
    const int64_t x = axis.output_of(0, q0);
    const int64_t lo = std::max<int64_t>(0, -x);
    const int64_t hi = std::min((q1 - q0) * axis.phases(), axis.out - x);
    const int64_t first = lo == 0 ? 0 : 1;
    return {lo, hi, first, std::max(first, floor_div(hi, axis.phases()))};
  }
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
