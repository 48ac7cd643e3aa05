// Computes one tile of convolution in bf16: the copy of the image, products, endings, and the way out.
#include "backends/cpu/kernels/conv_pairs_run.h"

#include <algorithm>

#include "backends/cpu/kernels/apply_endings.h"
#include "backends/cpu/kernels/convert.h"
#include "backends/cpu/kernels/scratch_pieces.h"
#include "backends/cpu/kernels/stored_image.h"
#include "backends/cpu/simd/rows.h"
#include "backends/cpu/simd/transpose.h"

namespace polyphase::cpu::POLYPHASE_CLUSTER {
namespace {

// Copies lines of the image: phase 0.
class Copier {
 public:
  Copier(const ConvPairsPlan& plan, const ConvPointers& pointers, std::byte* scratch)
      : plan_(plan),
        s_(plan.shape),
        in_(reinterpret_cast<const std::byte*>(pointers.in)),
        copy_(reinterpret_cast<uint16_t*>(pointers.shared)),
        in_bytes_(static_cast<int64_t>(size_bytes(plan.shape.types.in))) {
    ScratchPieces pieces(scratch);
    wide_ = pieces.next<float>(pair_copy_block * pair_copy_block);
    turned_ = pieces.next<float>(pair_copy_block * pair_copy_block);
  }

  void run(int64_t tile) {
    const int64_t last = std::min(plan_.copied_lines(), (tile + 1) * plan_.copy_lines);
    for (int64_t i = tile * plan_.copy_lines; i < last; ++i) line(i);
  }

 private:
  int64_t channels() const { return plan_.format.channels; }

  void line(int64_t number) {
    uint16_t* to = copy_ + number * plan_.pixels * channels();
    const int64_t y = plan_.first_line + number % plan_.lines;
    number /= plan_.lines;
    const int64_t z = number % s_.in[0];
    number /= s_.in[0];
    const int64_t group = number % s_.groups;
    const int64_t x0 = std::clamp<int64_t>(-plan_.first_pixel, 0, plan_.pixels);
    const int64_t x1 = std::clamp<int64_t>(s_.in[2] - plan_.first_pixel, x0, plan_.pixels);
    if (y < 0 || y >= s_.in[1] || x0 == x1) {
      std::fill_n(to, plan_.pixels * channels(), uint16_t{0});
      return;
    }
    std::fill_n(to, x0 * channels(), uint16_t{0});
    std::fill_n(to + x1 * channels(), (plan_.pixels - x1) * channels(), uint16_t{0});
    const int64_t from = number / s_.groups * plan_.in.batch + group * s_.in_channels * plan_.in.channel +
                         z * plan_.in.axis[0] + y * plan_.in.axis[1] + (plan_.first_pixel + x0) * plan_.in.axis[2];
    if (plan_.in.channel == 1) {
      copy_pixels(in_ + from * in_bytes_, to + x0 * channels(), x1 - x0);
    } else {
      turn_pixels(in_ + from * in_bytes_, to + x0 * channels(), x1 - x0);
    }
  }

  void copy_pixels(const std::byte* from, uint16_t* to, int64_t count) const {
    for (int64_t i = 0; i < count; ++i, to += channels()) {
      const std::byte* pixel = from + i * plan_.in.axis[2] * in_bytes_;
      if (s_.types.in == DType::f32) {
        narrow_floats<false>(reinterpret_cast<const float*>(pixel), reinterpret_cast<std::byte*>(to), 1,
                             s_.in_channels);
      } else {
        std::copy_n(reinterpret_cast<const uint16_t*>(pixel), s_.in_channels, to);
      }
      if (s_.in_channels < channels()) to[s_.in_channels] = 0;
    }
  }

  // Channels-first pixels, a block of channels and pixels at a time.
  void turn_pixels(const std::byte* from, uint16_t* to, int64_t count) const {
    for (int64_t c = 0; c < s_.in_channels; c += pair_copy_block) {
      const int64_t block = std::min(pair_copy_block, s_.in_channels - c);
      const int64_t pitch = ceil_div(block, 2) * 2;
      if (pitch != block) std::fill_n(turned_, pair_copy_block * pitch, 0.0F);
      for (int64_t i = 0; i < count; i += pair_copy_block) {
        const int64_t pixels = std::min(pair_copy_block, count - i);
        const std::byte* source = from + (c * plan_.in.channel + i * plan_.in.axis[2]) * in_bytes_;
        if (s_.types.in == DType::f32 && plan_.in.axis[2] == 1) {
          transpose(reinterpret_cast<const float*>(source), plan_.in.channel, turned_, pitch, block, pixels);
        } else {
          for (int64_t k = 0; k < block; ++k) {
            load_elements(s_.types.in, source + k * plan_.in.channel * in_bytes_, plan_.in.axis[2],
                          wide_ + k * pair_copy_block, pixels);
          }
          transpose(wide_, pair_copy_block, turned_, pitch, block, pixels);
        }
        uint16_t* target = to + i * channels() + c;
        if (pitch == channels()) {
          narrow_floats<false>(turned_, reinterpret_cast<std::byte*>(target), 1, pixels * pitch);
          continue;
        }
        for (int64_t p = 0; p < pixels; ++p) {
          narrow_floats<false>(turned_ + p * pitch, reinterpret_cast<std::byte*>(target + p * channels()), 1, pitch);
        }
      }
    }
  }

  const ConvPairsPlan& plan_;
  const ConvShape& s_;
  const std::byte* in_;
  uint16_t* copy_;
  int64_t in_bytes_;  // of an element
  float* wide_;       // [channel][pixel]
  float* turned_;     // [pixel][channel]
};

class Tile {
 public:
  Tile(const ConvPairsPlan& plan, const ConvPointers& pointers, std::byte* scratch)
      : plan_(plan),
        s_(plan.shape),
        p_(pointers),
        axes_{{plan.shape, 0}, {plan.shape, 1}, {plan.shape, 2}},
        phases_(axes_[2].phases()),
        pitch_(plan.columns_per_tile) {
    ScratchPieces pieces(scratch);
    segments_ = pieces.next<int64_t>(plan.most_segments);
    segment_taps_ = pieces.next<int64_t>(plan.most_segments);
    weights_at_ = pieces.next<int64_t>(plan.most_segments);
    sums_ = pieces.next<float>(plan.sum_positions * pitch_);
    turned_ = pieces.next<float>(0);
  }

  void run(int64_t tile) {
    place(tile);
    if (line0_ >= line1_) return;
    for (phase_[2] = 0; phase_[2] < phases_; ++phase_[2]) {
      for (int a = 0; a < 3; ++a) taps_[a] = axes_[a].taps(phase_[a]);
      if (plan_.lines_joined) {
        compute(line0_, line1_);
      } else {
        for (int64_t line = line0_; line < line1_; ++line) compute(line, line + 1);
      }
    }
    plan_.unit->release();
    for (int64_t line = line0_; line < line1_; ++line) write_line(line);
  }

 private:
  int64_t channels() const { return plan_.format.channels; }

  void place(int64_t tile) {
    column0_ = tile % plan_.column_blocks * pitch_;
    column1_ = std::min(plan_.format.columns, column0_ + pitch_);
    tile /= plan_.column_blocks;
    const PairsAxis& x = plan_.axes[2];
    q0_ = x.begin + tile % plan_.q_blocks * plan_.q_per_tile;
    q1_ = std::min(q0_ + plan_.q_per_tile, x.end);
    reached0_ = std::clamp(x.reached_begin, q0_, q1_);
    reached1_ = std::clamp(x.reached_end, reached0_, q1_);
    tile /= plan_.q_blocks;
    const int64_t line_block = tile % plan_.line_blocks;
    tile /= plan_.line_blocks;
    phase_[1] = tile % axes_[1].phases();
    tile /= axes_[1].phases();
    const int64_t z = tile % s_.out[0];
    tile /= s_.out[0];
    group_ = tile % s_.groups;
    place_ = {tile / s_.groups, group_ * s_.out_channels + column0_, {z, 0, 0}};
    phase_[0] = s_.transposed ? floor_mod(z + s_.pre[0], s_.stride[0]) : 0;
    q_depth_ = s_.transposed ? floor_div(z + s_.pre[0], s_.stride[0]) : z;
    line0_ = axes_[1].first_q(phase_[1], 0) + line_block * plan_.lines_per_tile;
    line1_ = std::min(line0_ + plan_.lines_per_tile, axes_[1].first_q(phase_[1], s_.out[1]));
  }

  // Of the tile's sums: where those of one phase of q of a line stand.
  float* sums_at(int64_t line, int64_t q, int64_t phase) const {
    return sums_ + (((line - line0_) * plan_.line_pitch + q - q0_) * phases_ + phase) * pitch_;
  }

  // The present phase of some lines whose rows run on.
  void compute(int64_t line0, int64_t line1) {
    const int64_t segments = reached0_ < reached1_ ? find_segments(line0) : 0;
    if (segments == 0) {
      for (int64_t line = line0; line < line1; ++line) clear(line, phase_[2], phase_[2] + 1, reached0_, reached1_);
      return;
    }
    const int64_t taps = taps_[0].count * taps_[1].count * taps_[2].count;
    const uint16_t* weights = reinterpret_cast<const uint16_t*>(p_.weights) + group_ * plan_.format.group_size +
                              conv_pairs_offset(s_, plan_.format, phase_);
    PairTile t = {};
    t.rows = reinterpret_cast<const uint16_t*>(p_.shared);
    t.segments = segments_;
    t.weights_at = weights_at_;
    t.row_step = axes_[2].in_step() * channels();
    t.out_step = phases_ * pitch_;
    t.segment_count = segments;
    t.depth = plan_.taps_joined ? taps_[2].count * channels() : channels();
    t.row_count = (line1 - line0 - 1) * plan_.line_pitch + reached1_ - reached0_;
    for (int64_t column = column0_; column < column1_; column += pair_panel_columns) {
      t.columns = plan_.format.columns_of(column / pair_panel_columns);
      for (int64_t i = 0; i < segments; ++i) weights_at_[i] = segment_taps_[i] * channels() * t.columns;
      t.panel = weights + column * taps * channels();
      t.out = sums_at(line0, reached0_, phase_[2]) + column - column0_;
      plan_.unit->multiply(t);
    }
  }

  // Where the segments of a line's first reached q begin in the copy, and which taps they are; taps of the outer axes
  // that fall outside of the image are left out.
  int64_t find_segments(int64_t line) {
    int64_t count = 0;
    for (int64_t i = 0; i < taps_[0].count; ++i) {
      const int64_t z = axes_[0].in_step() * q_depth_ + taps_[0].first_shift + i * taps_[0].shift_step;
      if (z < 0 || z >= s_.in[0]) continue;
      for (int64_t j = 0; j < taps_[1].count; ++j) {
        const int64_t y = axes_[1].in_step() * line + taps_[1].first_shift + j * taps_[1].shift_step - plan_.first_line;
        if (y < 0 || y >= plan_.lines) continue;
        const int64_t line_at = ((place_.batch * s_.groups + group_) * s_.in[0] + z) * plan_.lines + y;
        const int64_t taps_w = plan_.taps_joined ? std::min<int64_t>(1, taps_[2].count) : taps_[2].count;
        for (int64_t k = 0; k < taps_w; ++k) {
          const int64_t x =
              axes_[2].in_step() * reached0_ + taps_[2].first_shift + k * taps_[2].shift_step - plan_.first_pixel;
          segments_[count] = (line_at * plan_.pixels + x) * channels();
          segment_taps_[count++] = (i * taps_[1].count + j) * taps_[2].count + k;
        }
      }
    }
    return count;
  }

  void clear(int64_t line, int64_t phase0, int64_t phase1, int64_t q0, int64_t q1) const {
    for (int64_t q = q0; q < q1; ++q) std::fill(sums_at(line, q, phase0), sums_at(line, q, phase1), 0.0F);
  }

  void write_line(int64_t line) {
    clear(line, 0, phases_, q0_, reached0_);
    clear(line, 0, phases_, reached1_, q1_);
    place_.axis[1] = axes_[1].output_of(phase_[1], line);
    const int64_t first = axes_[2].output_of(0, q0_);
    const int64_t x0 = std::max<int64_t>(0, first);
    const int64_t x1 = std::min(s_.out[2], first + (q1_ - q0_) * phases_);
    if (x0 >= x1) return;
    float* values = sums_at(line, q0_, x0 - first);
    const int64_t columns = std::min(column1_, s_.out_channels) - column0_;
    const int64_t out = place_.batch * plan_.out.batch + place_.channel * plan_.out.channel +
                        place_.axis[0] * plan_.out.axis[0] + place_.axis[1] * plan_.out.axis[1] +
                        x0 * plan_.out.axis[2];
    if (plan_.out_planar) {
      write_planar(values, out, x0, x1 - x0, columns);
    } else {
      write_pixels(values, out, x0, x1 - x0, columns);
    }
  }

  void write_pixels(float* values, int64_t out, int64_t x0, int64_t count, int64_t columns) {
    const float* bias = plan_.has_bias ? p_.bias + place_.channel : nullptr;
    for (int64_t i = 0; i < count; ++i, values += pitch_, out += plan_.out.axis[2]) {
      if (bias != nullptr) {
        for (int64_t c = 0; c < columns; ++c) values[c] += bias[c];
      }
      place_.axis[2] = x0 + i;
      apply_endings(plan_.endings, p_.operands, values, columns, place_, true);
      store_line(values, StoredResult(p_.out, s_.types.out) + out, 1, columns, false);
    }
  }

  void write_planar(const float* values, int64_t out, int64_t x0, int64_t count, int64_t columns) {
    const int64_t turned_pitch = plan_.q_per_tile * phases_;
    transpose(values, pitch_, turned_, turned_pitch, count, columns);
    ResultPlace place = place_;
    place.axis[2] = x0;
    StoredResult to = StoredResult(p_.out, s_.types.out) + out;
    for (int64_t c = 0; c < columns; ++c, ++place.channel, to = to + plan_.out.channel) {
      float* line = turned_ + c * turned_pitch;
      if (plan_.out.axis[2] == 1 && c + 1 < columns) fetch_for_store(to + plan_.out.channel, count);
      if (plan_.has_bias) {
        const float bias = p_.bias[place.channel];
        for (int64_t i = 0; i < count; ++i) line[i] += bias;
      }
      apply_endings(plan_.endings, p_.operands, line, count, place, false);
      store_line(line, to, plan_.out.axis[2], count, false);
    }
  }

  const ConvPairsPlan& plan_;
  const ConvShape& s_;
  const ConvPointers& p_;
  const ConvAxis axes_[3];
  const int64_t phases_;
  const int64_t pitch_;  // floats from position to position of the sums
  int64_t* segments_;
  int64_t* segment_taps_;
  int64_t* weights_at_;
  float* sums_;    // [line][q][phase][column]
  float* turned_;  // [column][output position] of a line
  ResultPlace place_ = {};
  int64_t group_ = 0;
  int64_t phase_[3] = {};
  AxisTaps taps_[3] = {};
  int64_t q_depth_ = 0;
  int64_t line0_ = 0, line1_ = 0;  // in q of the present outer phase
  int64_t q0_ = 0, q1_ = 0, reached0_ = 0, reached1_ = 0;
  int64_t column0_ = 0, column1_ = 0;
};

}  // namespace

void run_conv_pairs(const ConvPairsPlan& plan, const ConvPointers& pointers, int phase, int64_t tile,
                    std::byte* scratch) {
  if (phase == 0) return Copier(plan, pointers, scratch).run(tile);
  Tile(plan, pointers, scratch).run(tile);
}

}  // namespace polyphase::cpu::POLYPHASE_CLUSTER
