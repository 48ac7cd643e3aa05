// Computes one tile of convolution with few output channels.
#include "backends/cpu/kernels/conv_pixels_run.h"

#include <algorithm>

#include "backends/cpu/kernels/apply_endings.h"
#include "backends/cpu/kernels/pixels_tile.h"
#include "backends/cpu/simd/transpose.h"

namespace polyphase::cpu::POLYPHASE_CLUSTER {
namespace {

class Tile {
 public:
  Tile(const ConvPixelsPlan& plan, const ConvPointers& pointers, std::byte* scratch)
      : plan_(plan), s_(plan.shape), p_(pointers), d_(s_, 0), h_(s_, 1), w_(s_, 2) {
    offsets_ = reinterpret_cast<int64_t*>(scratch);
    lines_ = reinterpret_cast<float*>(scratch + ceil_div(plan.max_taps * 8, 64) * 64);
    sums_ = lines_ + s_.in_channels * plan.max_taps_d * plan.in_lines * plan.pitch;
    line_ = sums_ + plan.format.chunk * plan.format.chunks * plan.x_block;
    bias_ = line_ + s_.out_channels * plan.x_block * w_.phases();
    taps_w_ = s_.transposed ? w_.stacked_taps() : w_.taps(0);
  }

  void run(int64_t tile) {
    const int64_t x_tile = tile % plan_.x_blocks;
    tile /= plan_.x_blocks;
    const int64_t line_tile = tile % plan_.line_blocks;
    tile /= plan_.line_blocks;
    const int64_t depth = tile % plan_.d_lines;
    tile /= plan_.d_lines;
    phase_d_ = tile % d_.phases();
    tile /= d_.phases();
    group_ = tile % s_.groups;
    place_.batch = tile / s_.groups;
    qd_ = d_.first_q(phase_d_, 0) + depth;
    place_.axis[0] = d_.output_of(phase_d_, qd_);
    if (place_.axis[0] >= s_.out[0]) return;
    qh0_ = plan_.first_q[0] + line_tile * plan_.lines_per_tile;
    qh1_ = std::min(plan_.first_q[0] + plan_.q_count[0], qh0_ + plan_.lines_per_tile);
    qw0_ = plan_.first_q[1] + x_tile * plan_.x_block;
    qw1_ = std::min(plan_.first_q[1] + plan_.q_count[1], qw0_ + plan_.x_block);
    copy_lines();
    for (int64_t q = qh0_; q < qh1_; ++q) {
      for (int64_t r = 0; r < h_.phases(); ++r) {
        place_.axis[1] = h_.output_of(r, q);
        if (place_.axis[1] < 0 || place_.axis[1] >= s_.out[1]) continue;
        compute_line(q, r);
        write_line();
      }
    }
  }

 private:
  int64_t first_input_line() const { return qh0_ * h_.in_step() + plan_.shift_h[0]; }

  // All input lines of the tile, zero outside the image.
  void copy_lines() {
    const AxisTaps taps = d_.taps(phase_d_);
    const int64_t count = (qh1_ - 1 - qh0_) * h_.in_step() + plan_.shift_h[1] - plan_.shift_h[0] + 1;
    for (int64_t i = 0; i < taps.count; ++i) {
      const int64_t id = qd_ * d_.in_step() + taps.first_shift + i * taps.shift_step;
      for (int64_t l = 0; l < count; ++l) {
        const int64_t ih = first_input_line() + l;
        const bool inside = id >= 0 && id < s_.in[0] && ih >= 0 && ih < s_.in[1];
        copy_line(lines_ + (i * plan_.in_lines + l) * plan_.pitch, inside, id, ih);
      }
    }
  }

  int64_t channel_pitch() const { return plan_.max_taps_d * plan_.in_lines * plan_.pitch; }

  // Copies `count` floats with `before` zeros in front and at least `after` behind: lines are short, so no calls.
  // Writes up to a vector more, since stores of a part of one take many processors long.
  static void copy_padded(const float* from, float* to, int64_t before, int64_t count, int64_t after) {
    for (int64_t i = 1; i <= before; ++i) to[-i] = 0;
    int64_t i = 0;
    for (; i + vec_width <= count; i += vec_width) store(to + i, load(from + i));
    if (i < count) {
      store(to + i, load_first(from + i, static_cast<int>(count - i)));
      i += vec_width;
    }
    for (; i < count + after; i += vec_width) store(to + i, broadcast(0.0F));
  }

  void copy_line(float* to, bool inside, int64_t id, int64_t ih) {
    const int64_t first = qw0_ + taps_w_.first_shift;  // input position of the line's first float
    const int64_t read = plan_.pitch - vec_width;      // of the line; what lies behind is never looked at
    const int64_t from = std::clamp<int64_t>(-first, 0, read);
    const int64_t end = inside ? std::clamp<int64_t>(s_.in[2] - first, from, read) : from;
    const bool copies = plan_.in_planar && plan_.in.axis[2] == 1 && from < end;
    for (int64_t c = 0; c < s_.in_channels && !copies; ++c) {
      std::fill_n(to + c * channel_pitch(), from, 0.0F);
      std::fill_n(to + c * channel_pitch() + end, read - end, 0.0F);
    }
    if (from == end) return;
    const float* source = p_.in + place_.batch * plan_.in.batch + group_ * s_.in_channels * plan_.in.channel +
                          id * plan_.in.axis[0] + ih * plan_.in.axis[1] + (first + from) * plan_.in.axis[2];
    if (!plan_.in_planar) {
      transpose(source, plan_.in.axis[2], to + from, channel_pitch(), end - from, s_.in_channels);
      return;
    }
    for (int64_t c = 0; c < s_.in_channels; ++c) {
      const float* line = source + c * plan_.in.channel;
      float* target = to + c * channel_pitch() + from;
      if (copies) {
        copy_padded(line, target, from, end - from, read - end);
      } else {
        for (int64_t i = 0; i < end - from; ++i) target[i] = line[i * plan_.in.axis[2]];
      }
    }
  }

  // One output line of phase r of the middle axis, all its columns, into sums_[column][q].
  void compute_line(int64_t q, int64_t r) {
    const AxisTaps taps_d = d_.taps(phase_d_);
    const AxisTaps taps_h = h_.taps(r);
    const ConvPixelsFormat& f = plan_.format;
    PixelsTile t = {};
    t.sum_pitch = plan_.x_block;
    t.channel_pitch = channel_pitch();
    const int64_t taps = taps_d.count * taps_h.count * taps_w_.count;
    t.taps = taps;
    t.offsets = offsets_;
    for (int64_t i = 0; i < taps; ++i) {
      offsets_[i] =
          (i / (taps_h.count * taps_w_.count) * plan_.in_lines + i / taps_w_.count % taps_h.count * taps_h.shift_step) *
              plan_.pitch +
          i % taps_w_.count * taps_w_.shift_step;
    }
    const int64_t before = (d_.taps_before(phase_d_) * s_.kernel[1] + taps_d.count * h_.taps_before(r)) * f.taps_w;
    const float* weights = p_.weights + group_ * f.group_size + before * s_.in_channels * f.chunk * f.chunks;
    const float* lines = lines_;
    if (taps > 0) lines += (q * h_.in_step() + taps_h.first_shift - first_input_line()) * plan_.pitch;
    const int64_t vectors = ceil_div(qw1_ - qw0_, vec_width);
    const int64_t step = channels_at_once(taps_d.count * taps_h.count, taps);
    for (int64_t chunk = 0; chunk < f.chunks; ++chunk) {
      t.init = bias_;
      for (int64_t m = 0; m < f.chunk; ++m) {
        const int64_t column = chunk * f.chunk + m;
        const bool real = plan_.has_bias && column < f.columns;
        bias_[m] = real ? p_.bias[group_ * s_.out_channels + column % s_.out_channels] : 0.0F;
      }
      for (int64_t c = 0; c < std::max<int64_t>(1, s_.in_channels); c += step) {
        t.channels = std::min(step, s_.in_channels - c);
        t.begun = c > 0;
        t.ends = c + step >= s_.in_channels;
        t.weights = weights + (chunk * s_.in_channels + c) * taps * f.chunk;
        for (int64_t v = 0; v < vectors; v += plan_.vectors) {
          t.lines = lines + c * channel_pitch() + v * vec_width;
          t.sums = sums_ + chunk * f.chunk * plan_.x_block + v * vec_width;
          pixels_tile(static_cast<int>(f.chunk), static_cast<int>(std::min<int64_t>(plan_.vectors, vectors - v)))(t);
        }
      }
    }
  }

  // So many channels that their lines stay in the first-level cache while the tiles go along them.
  int64_t channels_at_once(int64_t lines_of_taps, int64_t taps) const {
    constexpr int64_t kept_floats = 5 * 1024;  // of 8192: weights and sums lie there as well
    const int64_t piece = channels_per_piece(taps);
    const int64_t of_piece = piece * std::max<int64_t>(1, lines_of_taps) * (qw1_ - qw0_);
    return piece * std::max<int64_t>(1, kept_floats / std::max<int64_t>(1, of_piece));
  }

  // Interleaves the phases of the last axis, applies the endings along the line, and stores it in the caller's layout.
  void write_line() {
    const int64_t s = w_.phases();
    const int64_t count = (qw1_ - qw0_) * s;
    const int64_t x = w_.output_of(0, qw0_);
    const int64_t lo = std::max<int64_t>(0, -x);
    const int64_t hi = std::min(count, s_.out[2] - x);
    if (lo >= hi) return;
    const int64_t pitch = plan_.x_block * s;
    for (int64_t o = 0; o < s_.out_channels; ++o) {
      float* line = line_ + o * pitch;
      const float* from = sums_ + o * plan_.x_block;
      if (s == 1) {
        std::copy_n(from, count, line);
      } else {
        interleave(from, s_.out_channels * plan_.x_block, line, s, qw1_ - qw0_);
      }
      place_.channel = group_ * s_.out_channels + o;
      place_.axis[2] = x + lo;
      apply_endings(plan_.endings, p_.operands, line + lo, hi - lo, place_, false);
    }
    float* to = p_.out + place_.batch * plan_.out.batch + group_ * s_.out_channels * plan_.out.channel +
                place_.axis[0] * plan_.out.axis[0] + place_.axis[1] * plan_.out.axis[1] + (x + lo) * plan_.out.axis[2];
    if (plan_.out_planar || plan_.out.axis[2] == 1) {
      for (int64_t o = 0; o < s_.out_channels; ++o)
        std::copy_n(line_ + o * pitch + lo, hi - lo, to + o * plan_.out.channel);
    } else {
      transpose(line_ + lo, pitch, to, plan_.out.axis[2], s_.out_channels, hi - lo);
    }
  }

  const ConvPixelsPlan& plan_;
  const ConvShape& s_;
  const ConvPointers& p_;
  ConvAxis d_;
  ConvAxis h_;
  ConvAxis w_;
  AxisTaps taps_w_ = {};
  int64_t* offsets_;
  float* lines_;
  float* sums_;
  float* line_;
  float* bias_;
  int64_t group_ = 0;
  int64_t phase_d_ = 0;
  int64_t qd_ = 0;
  int64_t qh0_ = 0, qh1_ = 0, qw0_ = 0, qw1_ = 0;
  ResultPlace place_ = {};
};

}  // namespace

void run_conv_pixels(const ConvPixelsPlan& plan, const ConvPointers& pointers, int, int64_t tile, std::byte* scratch) {
  Tile(plan, pointers, scratch).run(tile);
}

}  // namespace polyphase::cpu::POLYPHASE_CLUSTER
