// Computes one tile of convolution with few output channels.
#include "backends/cpu/kernels/conv_pixels_run.h"

#include <algorithm>

#include "backends/cpu/kernels/apply_endings.h"
#include "backends/cpu/kernels/pixels_lines.h"
#include "backends/cpu/kernels/pixels_tile.h"
#include "backends/cpu/simd/transpose.h"

namespace polyphase::cpu::POLYPHASE_CLUSTER {
namespace {

// Hands out a tile's scratch, each piece at the begin of a cache line.
class Pieces {
 public:
  explicit Pieces(std::byte* from) : at_(from) {}
  template <class T>
  T* next(int64_t count) {
    T* const piece = reinterpret_cast<T*>(at_);
    at_ += ceil_div(count * static_cast<int64_t>(sizeof(T)), 64) * 64;
    return piece;
  }

 private:
  std::byte* at_;
};

void copy_row(const float* from, float* to, int64_t count) {
  int64_t i = 0;
  for (; i + vec_width <= count; i += vec_width) store(to + i, load(from + i));
  if (i == count) return;
  if (count >= vec_width) {
    store(to + count - vec_width, load(from + count - vec_width));
  } else {
    for (; i < count; ++i) to[i] = from[i];
  }
}

// Past the caches, but for what begins and ends within a line of them.
void stream_row(const float* from, float* to, int64_t count) {
  constexpr int64_t line = 64 / sizeof(float);
  const auto past = static_cast<int64_t>(reinterpret_cast<uintptr_t>(to) / sizeof(float)) % line;
  const int64_t lead = std::min(count, (line - past) % line);
  copy_row(from, to, lead);
  int64_t i = lead;
  for (; i + line <= count; i += line) {
    for (int64_t v = 0; v < line; v += vec_width) stream(to + i + v, load(from + i + v));
  }
  copy_row(from + i, to + i, count - i);
}

// to[i - lo] = from[i % rows * pitch + i / rows] for lo <= i < hi, lo being less than `rows`.
void interleave_part(const float* from, int64_t pitch, float* to, int64_t rows, int64_t lo, int64_t hi) {
  if (rows == 1) return copy_row(from + lo, to, hi - lo);
  const int64_t first = lo == 0 ? 0 : 1;
  const int64_t last = std::max(first, hi / rows);
  for (int64_t i = lo; i < std::min(first * rows, hi); ++i) to[i - lo] = from[i * pitch];
  interleave(from + first, pitch, to + first * rows - lo, rows, last - first);
  for (int64_t i = last * rows; i < hi; ++i) to[i - lo] = from[(i - last * rows) * pitch + last];
}

// Register blocks of a run.
struct Blocks {
  int64_t count;
  int64_t vectors;  // of each
};

class Tile {
 public:
  Tile(const ConvPixelsPlan& plan, const ConvPointers& pointers, std::byte* scratch)
      : plan_(plan), s_(plan.shape), f_(plan.format), p_(pointers), d_(s_, 0), h_(s_, 1), w_(s_, 2) {
    Pieces pieces(scratch);
    lines_ = pieces.next<float>(s_.in_channels * plan.channel_pitch + vec_width);
    sums_ = pieces.next<float>(f_.chunk * f_.chunks * plan.sum_pitch);
    bias_ = pieces.next<float>(f_.chunk * f_.chunks);
    line_ = pieces.next<float>(s_.out_channels * plan.tile_q[2] * w_.phases());
    offsets_ = pieces.next<int64_t>(plan.max_taps);
    phases_ = pieces.next<PixelsPhase>(d_.phases() * h_.phases());
    functions_ = pixels_tiles(static_cast<int>(f_.chunk));
    taps_w_ = s_.transposed ? w_.stacked_taps() : w_.taps(0);
  }

  void run(int64_t tile) {
    for (int a = 2; a >= 0; --a) {
      q0_[a] = plan_.first_q[a] + tile % plan_.blocks[a] * plan_.tile_q[a];
      q1_[a] = std::min(plan_.first_q[a] + plan_.q_count[a], q0_[a] + plan_.tile_q[a]);
      tile /= plan_.blocks[a];
    }
    const int64_t first = tile % plan_.group_blocks * plan_.tile_groups;
    place_.batch = tile / plan_.group_blocks;
    find_phases();
    PixelsBlock block = input_block();
    for (group_ = first; group_ < std::min(s_.groups, first + plan_.tile_groups); ++group_) {
      block.image = p_.in + place_.batch * plan_.in.batch + group_ * s_.in_channels * plan_.in.channel;
      block.has_next = group_ + 1 < s_.groups;
      copy_pixels(plan_, block, lines_);
      for (int64_t m = 0; m < f_.chunk * f_.chunks; ++m) {
        const bool is_real = plan_.has_bias && m < f_.columns;
        bias_[m] = is_real ? p_.bias[group_ * s_.out_channels + m % s_.out_channels] : 0.0F;
      }
      for (int64_t r = 0; r < d_.phases() * h_.phases(); ++r) run_phase(r / h_.phases(), r % h_.phases());
    }
    if (plan_.past_caches) finish_streams();
  }

 private:
  // What the tile's lines read, at the least shift of the first q.
  PixelsBlock input_block() const {
    PixelsBlock block = {};
    for (int a = 0; a < 2; ++a) {
      const int64_t step = (a == 0 ? d_ : h_).in_step();
      block.first[a] = q0_[a] * step + plan_.first_shift[a];
      block.extent[a] = (q1_[a] - 1 - q0_[a]) * step + plan_.tile_lines[a] - (plan_.tile_q[a] - 1) * step;
    }
    block.first[2] = q0_[2] + taps_w_.first_shift;
    block.extent[2] = plan_.pitch;
    return block;
  }

  void find_phases() {
    int64_t* offset = offsets_;
    int64_t rows = 0;  // of the kernel, in front of the phase's
    for (int64_t rd = 0; rd < d_.phases(); ++rd) {
      const AxisTaps taps_d = d_.taps(rd);
      for (int64_t rh = 0; rh < h_.phases(); ++rh) {
        const AxisTaps taps_h = h_.taps(rh);
        const int64_t lines = taps_d.count * taps_h.count;
        const int64_t taps = lines * taps_w_.count;
        phases_[rd * h_.phases() + rh] = {taps, offset - offsets_,
                                          rows * f_.taps_w * s_.in_channels * f_.chunk * f_.chunks,
                                          channels_at_once(lines, taps)};
        rows += lines;
        for (int64_t i = 0; i < taps_d.count; ++i) {
          const int64_t depth = taps_d.first_shift + i * taps_d.shift_step - plan_.first_shift[0];
          for (int64_t j = 0; j < taps_h.count; ++j) {
            const int64_t line = taps_h.first_shift + j * taps_h.shift_step - plan_.first_shift[1];
            for (int64_t k = 0; k < taps_w_.count; ++k)
              *offset++ = (depth * plan_.tile_lines[1] + line) * plan_.pitch + k * taps_w_.shift_step;
          }
        }
      }
    }
  }

  // All output lines of one phase of the outer axes.
  void run_phase(int64_t rd, int64_t rh) {
    const PixelsPhase& phase = phases_[rd * h_.phases() + rh];
    const int64_t d0 = std::max(q0_[0], d_.first_q(rd, 0));
    const int64_t d1 = std::min(q1_[0], d_.first_q(rd, s_.out[0]));
    const int64_t h0 = std::max(q0_[1], h_.first_q(rh, 0));
    const int64_t h1 = std::min(q1_[1], h_.first_q(rh, s_.out[1]));
    for (int64_t qd = d0; qd < d1; ++qd) {
      place_.axis[0] = d_.output_of(rd, qd);
      for (int64_t qh = h0; qh < h1; qh += plan_.run_lines) {
        const int64_t count = std::min(plan_.run_lines, h1 - qh);
        const int64_t line = (qd - q0_[0]) * d_.in_step() * plan_.tile_lines[1] + (qh - q0_[1]) * h_.in_step();
        compute_run(phase, lines_ + line * plan_.pitch, (count - 1) * plan_.pitch + q1_[2] - q0_[2]);
        for (int64_t i = 0; i < count; ++i) {
          place_.axis[1] = h_.output_of(rh, qh + i);
          write_line(sums_ + i * plan_.pitch);
        }
      }
    }
  }

  // All columns of `count` q into sums_[column][q].
  void compute_run(const PixelsPhase& phase, const float* lines, int64_t count) {
    const float* weights = p_.weights + group_ * f_.group_size + phase.weights;
    PixelsTile t = {};
    t.sum_pitch = plan_.sum_pitch;
    t.channel_pitch = plan_.channel_pitch;
    t.taps = phase.taps;
    t.offsets = offsets_ + phase.offsets;
    if (count != split_) split(count);
    const int64_t step = phase.channels;
    for (int64_t c = 0; c < s_.in_channels; c += step) {
      t.channels = std::min(step, s_.in_channels - c);
      t.begun = c > 0;
      t.ends = c + step >= s_.in_channels;
      for (int64_t chunk = 0; chunk < f_.chunks; ++chunk) {
        t.init = bias_ + chunk * f_.chunk;
        t.weights = weights + (chunk * s_.in_channels + c) * phase.taps * f_.chunk;
        t.lines = lines + c * plan_.channel_pitch;
        t.sums = sums_ + chunk * f_.chunk * plan_.sum_pitch;
        for (const Blocks& blocks : blocks_) {
          t.blocks = blocks.count;
          if (blocks.count > 0) functions_[blocks.vectors - 1](t);
          t.lines += blocks.count * blocks.vectors * vec_width;
          t.sums += blocks.count * blocks.vectors * vec_width;
        }
      }
    }
  }

  // Divides a run into as few register blocks as can be, of two sizes.
  void split(int64_t count) {
    split_ = count;
    const int64_t vectors = ceil_div(count, vec_width);
    const int64_t blocks = ceil_div(vectors, pixel_vectors(vec_width, static_cast<int>(f_.chunk)));
    blocks_[0] = {vectors % blocks, vectors / blocks + 1};
    blocks_[1] = {blocks - vectors % blocks, vectors / blocks};
  }

  // So many channels that their lines stay in the first-level cache while the tiles go along them.
  int64_t channels_at_once(int64_t lines, int64_t taps) const {
    constexpr int64_t kept_floats = 5 * 1024;  // of 8192: weights and sums lie there as well
    const int64_t piece = channels_per_piece(taps);
    return piece * std::max<int64_t>(1, kept_floats / (piece * std::max<int64_t>(1, lines) * plan_.pitch));
  }

  // Interleaves the phases of the last axis, applies the endings along the line, and stores it in the caller's layout.
  void write_line(const float* sums) {
    const int64_t s = w_.phases();
    const int64_t x = w_.output_of(0, q0_[2]);
    const int64_t lo = std::max<int64_t>(0, -x);
    const int64_t hi = std::min((q1_[2] - q0_[2]) * s, s_.out[2] - x);
    if (lo >= hi) return;
    place_.axis[2] = x + lo;
    float* to = p_.out + place_.batch * plan_.out.batch + group_ * s_.out_channels * plan_.out.channel +
                place_.axis[0] * plan_.out.axis[0] + place_.axis[1] * plan_.out.axis[1] + (x + lo) * plan_.out.axis[2];
    const bool is_row = plan_.out_planar || plan_.out.axis[2] == 1;  // then it is written where it belongs
    const bool is_staged = !is_row || plan_.past_caches;
    const int64_t pitch = is_staged ? plan_.tile_q[2] * s : plan_.out.channel;
    float* line = is_staged ? line_ : to;
    for (int64_t o = 0; o < s_.out_channels; ++o) {
      interleave_part(sums + o * plan_.sum_pitch, s_.out_channels * plan_.sum_pitch, line + o * pitch, s, lo, hi);
      place_.channel = group_ * s_.out_channels + o;
      if (plan_.endings.count > 0) apply_endings(plan_.endings, p_.operands, line + o * pitch, hi - lo, place_, false);
    }
    if (!is_row) {
      transpose(line, pitch, to, plan_.out.axis[2], s_.out_channels, hi - lo);
    } else if (is_staged) {
      for (int64_t o = 0; o < s_.out_channels; ++o) stream_row(line + o * pitch, to + o * plan_.out.channel, hi - lo);
    }
  }

  const ConvPixelsPlan& plan_;
  const ConvShape& s_;
  const ConvPixelsFormat& f_;
  const ConvPointers& p_;
  ConvAxis d_;
  ConvAxis h_;
  ConvAxis w_;
  AxisTaps taps_w_ = {};
  const PixelsTileFunction* functions_ = nullptr;  // by vectors, from one on
  float* lines_;
  float* sums_;
  float* bias_;
  float* line_;
  int64_t* offsets_;
  PixelsPhase* phases_;
  int64_t split_ = 0;  // q that blocks_ are of
  Blocks blocks_[2] = {};
  int64_t group_ = 0;
  int64_t q0_[3] = {};  // of the tile
  int64_t q1_[3] = {};
  ResultPlace place_ = {};
};

}  // namespace

void run_conv_pixels(const ConvPixelsPlan& plan, const ConvPointers& pointers, int, int64_t tile, std::byte* scratch) {
  Tile(plan, pointers, scratch).run(tile);
}

}  // namespace polyphase::cpu::POLYPHASE_CLUSTER
