// Computes one tile of convolution in bf16: the copy of the image and products; pairs_sums.h has what follows.
#include "backends/cpu/kernels/conv_pairs_run.h"

#include <algorithm>

#include "backends/cpu/kernels/pairs_copier.h"
#include "backends/cpu/kernels/pairs_sums.h"
#include "backends/cpu/kernels/scratch_pieces.h"

namespace polyphase::cpu::POLYPHASE_CLUSTER {
namespace {

void copy_tile(const ConvPairsPlan& plan, const ConvPointers& pointers, int64_t tile, std::byte* scratch) {
  const ConvShape& s = plan.shape;
  const PairsCopier copier(plan, pointers, ScratchPieces(scratch).next<float>(pairs_gathered_floats));
  auto* const copy = reinterpret_cast<uint16_t*>(pointers.shared);
  const int64_t line_elements = plan.pixels * plan.format.channels;
  const int64_t last = std::min(plan.copied_lines(), (tile + 1) * plan.copy_lines);
  for (int64_t i = tile * plan.copy_lines; i < last;) {
    const int64_t plane = i / plan.lines;
    const int64_t next = std::min(last, (plane + 1) * plan.lines);
    const int64_t image = plane / s.in[0];
    const int64_t before = plane * plan.lines - plan.first_line;  // lines of the copy before the plane's line 0
    copier.copy({image / s.groups, image % s.groups, plane % s.in[0]}, i - before, next - before, plan.first_pixel,
                plan.pixels, {copy + before * line_elements, line_elements, 0, 0});
    i = next;
  }
}

class PairsWork : private PairsSums {
 public:
  PairsWork(const ConvPairsPlan& plan, const ConvPointers& pointers, std::byte* scratch) : PairsSums(plan, pointers) {
    ScratchPieces pieces(scratch);
    gathered_ = pieces.next<float>(pairs_gathered_floats);
    segments_ = pieces.next<int64_t>(plan.most_segments);
    segment_taps_ = pieces.next<int64_t>(plan.most_segments);
    weights_at_ = pieces.next<int64_t>(plan.most_segments);
    sums_ = pieces.next<float>(plan.sum_positions * pitch_);
    turned_ = pieces.next<float>(plan.out_planar ? pair_columns * plan.run_pitch : 0);
    interleaved_ = pieces.next<float>(plan.interleaved);
    ring_ = pieces.next<uint16_t>(0);
  }

  void run(int64_t tile) {
    place(tile);
    plan_.in_strips ? run_strip() : compute_block(tile_line1_);
    plan_.unit->release();
    if (plan_.past_caches) finish_streams();
  }

 private:
  int64_t channels() const { return plan_.format.channels; }

  void place(int64_t tile) {
    const int64_t column_blocks = plan_.tile_column_blocks();
    const int64_t column_block = tile % column_blocks;
    tile /= column_blocks;
    const PairsAxis& x = plan_.axes[2];
    const int64_t owned = plan_.in_strips ? plan_.strip_q : plan_.q_per_tile;
    const int64_t first_q = x.begin + tile % plan_.q_blocks * owned;
    set_q(first_q, std::min(first_q + owned, x.end));
    tile /= plan_.q_blocks;
    const int64_t line_block = tile % plan_.line_blocks;
    tile /= plan_.line_blocks;
    const int64_t phase_blocks = axes_[1].phases() / plan_.line_phases;
    first_line_phase_ = tile % phase_blocks * plan_.line_phases;
    tile /= phase_blocks;
    const int64_t z = tile % s_.out[0];
    tile /= s_.out[0];
    group_ = tile % s_.groups;
    place_ = {tile / s_.groups, 0, {z, 0, 0}};
    set_columns(column_block * pitch_);
    phase_[0] = s_.transposed ? floor_mod(z + s_.pre[0], s_.stride[0]) : 0;
    q_depth_ = s_.transposed ? floor_div(z + s_.pre[0], s_.stride[0]) : z;
    taps_[0] = axes_[0].taps(phase_[0]);
    line0_ = plan_.axes[1].begin + line_block * plan_.lines_per_tile;
    tile_line1_ = std::min(line0_ + plan_.lines_per_tile, plan_.axes[1].end);
  }

  void set_q(int64_t q0, int64_t q1) {
    const PairsAxis& x = plan_.axes[2];
    q0_ = q0;
    q1_ = q1;
    reached0_ = std::clamp(x.reached_begin, q0_, q1_);
    reached1_ = std::clamp(x.reached_end, reached0_, q1_);
  }

  void set_columns(int64_t column) {
    column0_ = column;
    column1_ = std::min(plan_.format.columns, column + pitch_);
    place_.channel = group_ * s_.out_channels + column;
  }

  // Some lines at a time: what they read of the image, and then its pieces and columns.
  void run_strip() {
    const PairsCopier copier(plan_, p_, gathered_);
    const PairsAxis& y = plan_.axes[1];
    const int64_t step = axes_[1].in_step();
    const int64_t first_q = q0_;
    const int64_t last_q = q1_;
    const int64_t pixels = reached0_ == reached1_ ? 0
                                                  : axes_[2].in_step() * (reached1_ - 1 - reached0_) +
                                                        plan_.axes[2].greatest_shift - plan_.axes[2].least_shift + 1;
    strip_pixel_ = axes_[2].in_step() * reached0_ + plan_.axes[2].least_shift;
    const int64_t line_elements = plan_.strip_pixels * channels();
    const int64_t end = plan_.first_line + plan_.lines;
    int64_t copied = plan_.first_line;  // lines of the image before this one are there, or no longer needed
    for (; line0_ < tile_line1_; line0_ += plan_.step_lines) {
      const int64_t line1 = std::min(line0_ + plan_.step_lines, tile_line1_);
      const int64_t from = std::max(copied, step * line0_ + y.least_shift);
      const int64_t to = std::min(step * (line1 - 1) + y.greatest_shift + 1, end);
      for (int64_t i = 0; i < taps_[0].count && from < to && pixels > 0; ++i) {
        const int64_t z = tap_plane(i);
        if (z < 0) continue;
        copier.copy({place_.batch, group_, z}, from, to, strip_pixel_, pixels,
                    {ring_ + i * plan_.ring_lines * line_elements, line_elements, plan_.ring_lines, plan_.first_line});
      }
      copied = std::max(copied, to);
      for (int64_t q = first_q; q < last_q; q += plan_.q_per_tile) {
        set_q(q, std::min(q + plan_.q_per_tile, last_q));
        for (int64_t column = 0; column < plan_.format.columns; column += pitch_) {
          set_columns(column);
          compute_block(line1);
        }
      }
    }
  }

  // The plane of the image that a tap reads; -1: none.
  int64_t tap_plane(int64_t i) const {
    const int64_t z = axes_[0].in_step() * q_depth_ + taps_[0].first_shift + i * taps_[0].shift_step;
    if (s_.pad_mode != PadMode::zero) return padded_index(s_.pad_mode, z, s_.in[0]);
    return z < s_.in[0] ? std::max<int64_t>(z, -1) : -1;
  }

  int64_t ring_line(int64_t plane, int64_t line) const { return plane * plan_.ring_lines + line % plan_.ring_lines; }

  // The q of a phase that have outputs, of the lines [line0_, line1).
  int64_t first_line(int64_t phase) const { return std::max(line0_, axes_[1].first_q(phase, 0)); }
  int64_t last_line(int64_t phase, int64_t line1) const { return std::min(line1, axes_[1].first_q(phase, s_.out[1])); }

  // All results of the lines [line0_, line1), pieces [q0_, q1_) of them.
  void compute_block(int64_t line1) {
    for (int64_t r = first_line_phase_; r < first_line_phase_ + plan_.line_phases; ++r) {
      const int64_t first = first_line(r);
      const int64_t last = last_line(r, line1);
      if (first >= last) continue;
      phase_[1] = r;
      taps_[1] = axes_[1].taps(r);
      for (phase_[2] = 0; phase_[2] < phases_; ++phase_[2]) {
        taps_[2] = axes_[2].taps(phase_[2]);
        if (plan_.lines_joined) {
          compute(first, last);
        } else {
          for (int64_t line = first; line < last; ++line) compute(line, line + 1);
        }
      }
      for (int64_t line = first; line < last; ++line) {
        clear(line, r, 0, phases_, q0_, reached0_);
        clear(line, r, 0, phases_, reached1_, q1_);
      }
    }
    write(line1);
  }

  // The present phase of some lines whose rows run on.
  void compute(int64_t line0, int64_t line1) {
    const int64_t segments = reached0_ < reached1_ ? find_segments(line0) : 0;
    if (segments == 0) {
      for (int64_t line = line0; line < line1; ++line)
        clear(line, phase_[1], phase_[2], phase_[2] + 1, reached0_, reached1_);
      return;
    }
    const int64_t taps = taps_[0].count * taps_[1].count * taps_[2].count;
    for (int64_t i = 0; i < segments; ++i) weights_at_[i] = segment_taps_[i] * channels() * pair_columns;
    PairTile t = {};
    t.rows = plan_.in_strips ? ring_ : reinterpret_cast<const uint16_t*>(plan_.in_place ? p_.in : p_.shared);
    t.segments = segments_;
    t.weights_at = weights_at_;
    t.panel_step = taps * channels() * pair_columns;
    t.panels = reinterpret_cast<const uint16_t*>(p_.weights) + group_ * plan_.format.group_size +
               conv_pairs_offset(s_, plan_.format, phase_) + column0_ / pair_columns * t.panel_step;
    t.row_step = axes_[2].in_step() * channels();
    t.out = sums_at(line0, phase_[1], reached0_, phase_[2]);
    t.out_step = phases_ * pitch_;
    t.segment_count = segments;
    t.depth = plan_.taps_joined ? taps_[2].count * channels() : channels();
    t.row_count = (line1 - line0 - 1) * plan_.line_pitch + reached1_ - reached0_;
    t.columns = column1_ - column0_;
    if (t.depth != prepared_depth_) plan_.unit->prepare(prepared_depth_ = t.depth);
    const int64_t tail = plan_.in_place ? rows_past_image(t) : 0;
    t.row_count -= tail;
    if (t.row_count > 0) plan_.unit->multiply(t);
    if (tail > 0) multiply_tail(t, tail);
  }

  // The last rows, fewer than a block, if that would end behind the image.
  int64_t rows_past_image(const PairTile& t) const {
    const int64_t end = s_.batch * s_.in_points() * channels();
    const int64_t last_row = (ceil_div(t.row_count, matrix_rows) * matrix_rows - 1) * t.row_step;
    const int64_t last_segment = *std::max_element(t.segments, t.segments + t.segment_count);
    return last_segment + last_row + t.depth <= end ? 0 : t.row_count % matrix_rows;
  }

  // From a copy of them, which may be read as a whole block.
  __attribute__((noinline)) void multiply_tail(PairTile t, int64_t rows) {
    const int64_t first = t.row_count;
    uint16_t* const copy = ring_;
    const int64_t row_step = t.segment_count * t.depth;
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t s = 0; s < t.segment_count; ++s)
        std::copy_n(t.rows + t.segments[s] + (first + i) * t.row_step, t.depth, copy + i * row_step + s * t.depth);
    }
    for (int64_t s = 0; s < t.segment_count; ++s) segments_[s] = s * t.depth;
    t.rows = copy;
    t.row_step = row_step;
    t.out += first * t.out_step;
    t.row_count = rows;
    plan_.unit->multiply(t);
  }

  // Where the segments of a line's first reached q begin in the copy, and which taps they are; taps of the outer axes
  // that fall outside of the image are left out.
  int64_t find_segments(int64_t line) {
    int64_t count = 0;
    for (int64_t i = 0; i < taps_[0].count; ++i) {
      const int64_t z = tap_plane(i);
      if (z < 0) continue;
      for (int64_t j = 0; j < taps_[1].count; ++j) {
        const int64_t y = axes_[1].in_step() * line + taps_[1].first_shift + j * taps_[1].shift_step - plan_.first_line;
        if (y < 0 || y >= plan_.lines) continue;
        const int64_t first =
            plan_.in_strips ? ring_line(i, y) * plan_.strip_pixels - strip_pixel_
                            : (((place_.batch * s_.groups + group_) * s_.in[0] + z) * plan_.lines + y) * plan_.pixels -
                                  plan_.first_pixel;
        const int64_t taps_w = plan_.taps_joined ? std::min<int64_t>(1, taps_[2].count) : taps_[2].count;
        for (int64_t k = 0; k < taps_w; ++k) {
          const int64_t x = axes_[2].in_step() * reached0_ + taps_[2].first_shift + k * taps_[2].shift_step;
          segments_[count] = (first + x) * channels();
          segment_taps_[count++] = (i * taps_[1].count + j) * taps_[2].count + k;
        }
      }
    }
    return count;
  }

  __attribute__((noinline)) void clear(int64_t line, int64_t line_phase, int64_t phase0, int64_t phase1, int64_t q0,
                                       int64_t q1) const {
    for (int64_t q = q0; q < q1; ++q)
      std::fill(sums_at(line, line_phase, q, phase0), sums_at(line, line_phase, q, phase1), 0.0F);
  }

  float* gathered_;
  int64_t* segments_;
  int64_t* segment_taps_;
  int64_t* weights_at_;
  uint16_t* ring_;  // [plane][line][pixel][channel] of a strip; of an image in place its last rows
  int64_t phase_[3] = {};
  AxisTaps taps_[3] = {};
  int64_t q_depth_ = 0;
  int64_t tile_line1_ = 0;
  int64_t reached0_ = 0, reached1_ = 0;
  int64_t strip_pixel_ = 0;  // of the image, with which the lines of the ring begin
  int64_t prepared_depth_ = 0;
};

}  // namespace

void run_conv_pairs(const ConvPairsPlan& plan, const ConvPointers& pointers, int phase, int64_t tile,
                    std::byte* scratch) {
  if (phase == 0) return copy_tile(plan, pointers, tile, scratch);
  PairsWork(plan, pointers, scratch).run(tile);
}

}  // namespace polyphase::cpu::POLYPHASE_CLUSTER
