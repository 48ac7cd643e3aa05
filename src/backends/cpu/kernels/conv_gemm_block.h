// The rectangle of one conv_gemm tile: which outputs it owns, and the pointers to its input rows and output places.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "backends/cpu/kernels/conv_gemm.h"
#include "backends/cpu/kernels/gemm_tile.h"
#include "backends/cpu/kernels/planar_input.h"
#include "backends/cpu/kernels/row_order.h"
#include "backends/cpu/simd/vec.h"

namespace polyphase::cpu::POLYPHASE_CLUSTER {

// One output row of the tile's outer phase, in coordinates of the output grid (q) and of the output itself.
struct Line {
  int64_t batch;
  int64_t q[2];
};

// The base of the tile, which multiplies and stores; nothing here computes a result.
class GemmBlock {
 public:
  GemmBlock(const ConvGemmPlan& plan, const ConvPointers& pointers, std::byte* scratch)
      : plan_(plan), s_(plan.shape), p_(pointers), d_(s_, 0), h_(s_, 1), w_(s_, 2) {
    carve(scratch);
    in_ = plan.in_copied ? p_.shared : p_.in;
    in_strides_ = plan.in_copied ? pixel_strides(s_.in, plan.copy_pitch) : plan.in;
    if (s_.groups * s_.in_channels == 1) in_strides_.channel = 1;
  }

 protected:
  template <class T>
  T* take(std::byte*& at, int64_t count) {
    T* taken = reinterpret_cast<T*>(at);
    at += ceil_div(count * static_cast<int64_t>(sizeof(T)), 64) * 64;
    return taken;
  }

  void carve(std::byte* at) {
    zeros_ = take<float>(at, plan_.max_depth);
    bias_ = take<float>(at, plan_.n_block + 3 * vec_width);
    lines_ = take<Line>(at, plan_.lines_per_tile);
    rows_ = take<const float*>(at, plan_.max_segments * plan_.max_rows);
    taps_ = take<int32_t>(at, plan_.max_segments);
    outs_ = take<float*>(at, plan_.max_rows);
    sums_at_ = take<float*>(at, plan_.max_rows * plan_.panels_summed);
    sums_ = take<float>(at, plan_.max_rows * plan_.panels_summed * max_vectors * vec_width);
    if (plan_.gathered) gather_ = take<float>(at, plan_.max_rows * plan_.max_depth);
    border_ = take<float>(at, plan_.border_rows * plan_.max_segments * plan_.max_depth);
    if (plan_.local) local_ = take<float>(at, plan_.lines_per_tile * local_pitch());
    if (plan_.sorts) {
      order_ = RowOrder(plan_.max_rows, at);
      at += row_order_bytes(plan_.max_rows);
    }
    if (plan_.out_planar) staging_ = take<float>(at, 0);
    for (int64_t i = 0; i < plan_.max_rows * plan_.panels_summed; ++i) {
      sums_at_[i] = sums_ + i * max_vectors * vec_width;
    }
  }

  // Which rectangle of which phase the tile is; false if nothing lies there.
  bool place(int64_t tile) {
    const int64_t n_tile = tile % plan_.n_blocks;
    tile /= plan_.n_blocks;
    if (plan_.groups_inside) {
      group_ = tile % s_.groups;
      tile /= s_.groups;
    }
    const int64_t phases = plan_.local ? 1 : plan_.outer_phases;
    const int64_t phase = tile % phases;
    tile /= phases;
    const int64_t x_tile = tile % plan_.x_blocks;
    tile /= plan_.x_blocks;
    line0_ = tile % plan_.line_blocks * plan_.lines_per_tile;
    if (!plan_.groups_inside) group_ = tile / plan_.line_blocks;
    n0_ = n_tile * plan_.n_block;
    n1_ = n_tile + 1 == plan_.n_blocks ? plan_.format.columns : n0_ + plan_.n_block;
    phase_[0] = phase / h_.phases();
    phase_[1] = phase % h_.phases();
    const int64_t origin = s_.transposed ? floor_mod(s_.pre[2], w_.stride) : 0;
    x0_ = std::max<int64_t>(0, x_tile * plan_.x_block - origin);
    x1_ = std::min(s_.out[2], (x_tile + 1) * plan_.x_block - origin);
    return x0_ < x1_ && n0_ < n1_ && place_lines();
  }

  bool place_lines() {
    const int64_t first[2] = {d_.first_q(phase_[0], 0), h_.first_q(phase_[1], 0)};
    const int64_t count[2] = {d_.first_q(phase_[0], s_.out[0]) - first[0], h_.first_q(phase_[1], s_.out[1]) - first[1]};
    const int64_t all = s_.batch * count[0] * count[1];
    line_count_ = std::min(plan_.lines_per_tile, all - line0_);
    if (line_count_ <= 0) return false;
    int64_t batch = line0_ / (count[0] * count[1]);
    int64_t d = line0_ / count[1] % count[0];
    int64_t h = line0_ % count[1];
    for (int64_t i = 0; i < line_count_; ++i) {
      lines_[i] = {batch, {first[0] + d, first[1] + h}};
      if (++h < count[1]) continue;
      h = 0;
      if (++d < count[0]) continue;
      d = 0;
      ++batch;
    }
    return true;
  }

  void fill_bias() {
    const int64_t columns = plan_.n_block + 3 * vec_width;
    if (!plan_.has_bias) {
      std::fill_n(bias_, columns, 0.0F);
      return;
    }
    const float* from = p_.bias + group_ * s_.out_channels;
    int64_t channel = n0_ % s_.out_channels;
    float* to = bias_;
    for (float* const end = bias_ + (n1_ - n0_); to < end; channel = 0)
      to = std::copy_n(from + channel, std::min(s_.out_channels - channel, end - to), to);
    std::fill(to, bias_ + columns, 0.0F);
  }

  bool place_column_group() {
    if (plan_.format.stacked) {
      q0_ = floor_div(x0_ + s_.pre[2], w_.stride);
      q1_ = ceil_div(x1_ + s_.pre[2], w_.stride);
    } else {
      q0_ = w_.first_q(column_group_, x0_);
      q1_ = w_.first_q(column_group_, x1_);
    }
    row_count_ = line_count_ * (q1_ - q0_);
    reads_outside_ = false;
    order_.clear();
    taps_d_ = d_.taps(phase_[0]);
    taps_h_ = h_.taps(phase_[1]);
    taps_w_ = plan_.format.stacked ? w_.stacked_taps() : w_.taps(column_group_);
    return row_count_ > 0;
  }

  // Where it lies in the image; -1 outside.
  int64_t input_at(const Line& line, int64_t tap_d, int64_t tap_h) const {
    const int64_t id = d_.in_step() * line.q[0] + taps_d_.first_shift + tap_d * taps_d_.shift_step;
    const int64_t ih = h_.in_step() * line.q[1] + taps_h_.first_shift + tap_h * taps_h_.shift_step;
    if (id < 0 || id >= s_.in[0] || ih < 0 || ih >= s_.in[1]) return -1;
    return line.batch * in_strides_.batch + id * in_strides_.axis[0] + ih * in_strides_.axis[1] +
           group_ * s_.in_channels * in_strides_.channel;
  }
  const float* input_line(const Line& line, int64_t tap_d, int64_t tap_h) const {
    const int64_t at = input_at(line, tap_d, tap_h);
    return at < 0 ? nullptr : in_ + at;
  }

  // Input positions that one line of a tile reads, channels-last: plan.local.
  int64_t local_pitch() const {
    const int64_t step = s_.transposed ? w_.stride : 1;
    return (plan_.x_block / step + 1 + plan_.local_shift[1] - plan_.local_shift[0]) * s_.in_channels;
  }

  // Turns the tile's own piece of a channels-first input, zero outside the image; once for all phases and columns.
  void convert_local() {
    const int64_t q0 = s_.transposed ? floor_div(x0_ + s_.pre[2], w_.stride) : x0_;
    const int64_t q1 = s_.transposed ? ceil_div(x1_ + s_.pre[2], w_.stride) : x1_;
    local_first_ = q0 + plan_.local_shift[0];
    const int64_t end = q1 + plan_.local_shift[1];
    local_pitch_ = (end - local_first_) * s_.in_channels;
    const int64_t from = std::clamp<int64_t>(0, local_first_, end);
    const int64_t to = std::clamp<int64_t>(s_.in[2], from, end);
    const bool whole = from == local_first_ && to == end && end - local_first_ == s_.in[2];
    taps_d_ = d_.taps(0);
    taps_h_ = h_.taps(0);
    for (int64_t l = 0; l < line_count_;) {
      float* line = local_ + l * local_pitch_;
      const int64_t source = input_at(lines_[l], 0, 0);
      int64_t lines = 1;  // whole lines that follow each other in memory are one
      while (whole && source >= 0 && l + lines < line_count_ &&
             input_at(lines_[l + lines], 0, 0) == source + lines * s_.in[2]) {
        ++lines;
      }
      l += lines;
      const int64_t last = source < 0 ? from : to;
      std::fill_n(line, (from - local_first_) * s_.in_channels, 0.0F);
      std::fill_n(line + (last - local_first_) * s_.in_channels, (end - last) * s_.in_channels, 0.0F);
      if (source < 0) continue;
      turn_to_pixels(StoredImage(p_.in, s_.types.in) + (source + from * in_strides_.axis[2]), in_strides_.channel,
                     line + (from - local_first_) * s_.in_channels, s_.in_channels, s_.in_channels,
                     (lines - 1) * s_.in[2] + last - from);
    }
  }

  void point_local_rows() {
    const bool any = taps_d_.count * taps_h_.count * taps_w_.count > 0;
    const bool joined = taps_w_.shift_step == 1;  // neighbouring taps read neighbouring pixels: one long segment
    segments_ = !any ? 0 : joined ? 1 : static_cast<int32_t>(taps_w_.count);
    channels_ = joined ? taps_w_.count * s_.in_channels : s_.in_channels;
    for (int32_t k = 0; k < segments_; ++k) {
      taps_[k] = k;
      const float** at = rows_ + k * row_count_;
      const int64_t shift = q0_ + taps_w_.first_shift + k * taps_w_.shift_step - local_first_;
      for (int64_t l = 0; l < line_count_; ++l) {
        const float* line = local_ + l * local_pitch_ + shift * s_.in_channels;
        for (int64_t q = 0; q < q1_ - q0_; ++q) *at++ = line + q * s_.in_channels;
      }
    }
  }

  // The q in [q0, q1) for which tap j of the last axis reads inside the input.
  ConvAxis::Span inside(int64_t tap) const {
    const int64_t shift = taps_w_.first_shift + tap * taps_w_.shift_step;
    return w_.inside(shift, shift, q0_, q1_);
  }

  // Pieces of a sum are counted over all segments: each stays where it is, whatever else the tile holds, so that a
  // pixel has the same bits in an image and in a part of it.
  bool sums_in_pieces() const { return taps_d_.count * taps_h_.count * taps_w_.count * s_.in_channels > sum_piece; }

  // One segment per line of taps. Rows at the border, where some of the taps lie outside the image, are copied.
  void point_joined_rows() {
    channels_ = taps_w_.count * s_.in_channels;
    segments_ = 0;
    if (taps_w_.count == 0) return;
    float* border = border_;
    const auto [from, to] = w_.inside(taps_w_, q0_, q1_);
    for (int64_t i = 0; i < taps_d_.count; ++i) {
      for (int64_t j = 0; j < taps_h_.count; ++j) {
        const float** at = rows_ + segments_ * row_count_;
        bool any = false;
        for (int64_t l = 0; l < line_count_; ++l) {
          const float* line = pads_with_elements() ? padded_line(lines_[l], i, j) : input_line(lines_[l], i, j);
          any = any || line != nullptr;
          if (line == nullptr) {
            at = std::fill_n(at, q1_ - q0_, zeros_);
            reads_outside_ = true;
            continue;
          }
          for (int64_t q = q0_; q < from; ++q) *at++ = border_row(line, q, border);
          const float* first = line + (w_.in_step() * from + taps_w_.first_shift) * s_.in_channels;
          const int64_t pitch = w_.in_step() * s_.in_channels;
          for (int64_t q = from; q < to; ++q) *at++ = first + (q - from) * pitch;
          for (int64_t q = to; q < q1_; ++q) *at++ = border_row(line, q, border);
        }
        if (any || sums_in_pieces()) taps_[segments_++] = static_cast<int32_t>(i * taps_h_.count + j);
      }
    }
  }

  // Where the joined taps of q begin: a copy of those that lie inside the image, at `border`, which moves on.
  const float* border_row(const float* line, int64_t q, float*& border) const {
    const int64_t first = w_.in_step() * q + taps_w_.first_shift;
    const int64_t begin = std::max<int64_t>(0, first);
    const int64_t end = std::min(s_.in[2], first + taps_w_.count);
    if (!pads_with_elements() && begin >= end) return zeros_;
    float* const row = border;
    border += channels_;
    if (!pads_with_elements()) {
      std::fill(row, row + (begin - first) * s_.in_channels, 0.0F);
      std::copy(line + begin * s_.in_channels, line + end * s_.in_channels, row + (begin - first) * s_.in_channels);
      std::fill(row + (end - first) * s_.in_channels, row + channels_, 0.0F);
      return row;
    }
    for (int64_t k = 0; k < taps_w_.count; ++k) {
      std::copy_n(line + padded_index(s_.pad_mode, first + k, s_.in[2]) * s_.in_channels, s_.in_channels,
                  row + k * s_.in_channels);
    }
    return row;
  }

  // Fills the segments' row pointers; a segment that only reads zeros is left out where that changes no bits.
  void point_rows() {
    channels_ = s_.in_channels;
    segments_ = 0;
    for (int64_t i = 0; i < taps_d_.count; ++i) {
      for (int64_t j = 0; j < taps_h_.count; ++j) {
        bool any = pads_with_elements();
        for (int64_t l = 0; l < line_count_ && !any; ++l) any = input_line(lines_[l], i, j) != nullptr;
        if (!any && !sums_in_pieces()) continue;
        for (int64_t k = 0; k < taps_w_.count; ++k) {
          if (pads_with_elements()) {
            point_padded_segment(i, j, k);
          } else {
            point_segment(i, j, k);
          }
        }
      }
    }
  }

  void point_segment(int64_t i, int64_t j, int64_t k) {
    const auto [from, to] = inside(k);
    if (from == to && !sums_in_pieces()) return;
    const int64_t shift = taps_w_.first_shift + k * taps_w_.shift_step;
    const int64_t pitch = w_.in_step() * in_strides_.axis[2];
    const float** at = rows_ + segments_ * row_count_;
    reads_outside_ = reads_outside_ || from > q0_ || to < q1_;
    for (int64_t l = 0; l < line_count_; ++l) {
      const float* line = input_line(lines_[l], i, j);
      if (line == nullptr || from == to) {
        std::fill_n(at, q1_ - q0_, zeros_);
        reads_outside_ = true;
      } else {
        std::fill_n(at, from - q0_, zeros_);
        const float* first = line + (w_.in_step() * from + shift) * in_strides_.axis[2];
        for (int64_t q = from; q < to; ++q) at[q - q0_] = first + (q - from) * pitch;
        std::fill_n(at + (to - q0_), q1_ - to, zeros_);
      }
      at += q1_ - q0_;
    }
    taps_[segments_++] = static_cast<int32_t>((i * taps_h_.count + j) * taps_w_.count + k);
  }

  bool pads_with_elements() const { return s_.pad_mode != PadMode::zero; }

  const float* padded_line(const Line& line, int64_t tap_d, int64_t tap_h) const {
    const int64_t d = d_.in_step() * line.q[0] + taps_d_.first_shift + tap_d * taps_d_.shift_step;
    const int64_t h = h_.in_step() * line.q[1] + taps_h_.first_shift + tap_h * taps_h_.shift_step;
    return in_ + line.batch * in_strides_.batch + padded_index(s_.pad_mode, d, s_.in[0]) * in_strides_.axis[0] +
           padded_index(s_.pad_mode, h, s_.in[1]) * in_strides_.axis[1] + group_ * s_.in_channels * in_strides_.channel;
  }

  // Every position holds an element of the image: reflected, repeated or from the other end.
  void point_padded_segment(int64_t i, int64_t j, int64_t k) {
    const int64_t shift = taps_w_.first_shift + k * taps_w_.shift_step;
    const float** at = rows_ + segments_ * row_count_;
    for (int64_t l = 0; l < line_count_; ++l) {
      const float* from = padded_line(lines_[l], i, j);
      for (int64_t q = q0_; q < q1_; ++q) {
        *at++ = from + padded_index(s_.pad_mode, w_.in_step() * q + shift, s_.in[2]) * in_strides_.axis[2];
      }
    }
    taps_[segments_++] = static_cast<int32_t>((i * taps_h_.count + j) * taps_w_.count + k);
  }

  // Copies each row's taps side by side: one segment, whose channels are [tap][in channel].
  void gather_rows() {
    const int64_t taps = taps_d_.count * taps_h_.count * taps_w_.count;
    const int64_t depth = taps * s_.in_channels;
    segments_ = taps == 0 ? 0 : 1;
    channels_ = depth;
    taps_[0] = 0;
    std::fill_n(gather_, row_count_ * depth, 0.0F);
    for (int64_t i = 0; i < row_count_; ++i) rows_[i] = gather_ + i * depth;
    for (int64_t l = 0; l < line_count_; ++l) {
      for (int64_t i = 0; i < taps_d_.count; ++i) {
        for (int64_t j = 0; j < taps_h_.count; ++j) {
          const float* line = input_line(lines_[l], i, j);
          if (line == nullptr) continue;
          float* to = gather_ + l * (q1_ - q0_) * depth + (i * taps_h_.count + j) * taps_w_.count * s_.in_channels;
          for (int64_t k = 0; k < taps_w_.count; ++k) gather_tap(line, k, to + k * s_.in_channels, depth);
        }
      }
    }
  }

  void gather_tap(const float* line, int64_t k, float* to, int64_t depth) {
    const auto [from, end] = inside(k);
    const int64_t shift = taps_w_.first_shift + k * taps_w_.shift_step;
    const int channels = static_cast<int>(s_.in_channels);
    for (int64_t q = from; q < end; ++q) {
      const float* source = line + (w_.in_step() * q + shift) * in_strides_.axis[2];
      float* target = to + (q - q0_) * depth;
      if (channels == 1) {
        *target = *source;
      } else {
        for (int c = 0; c < channels; c += vec_width) {
          store_first(target + c, load_first(source + c, std::min(vec_width, channels - c)),
                      std::min(vec_width, channels - c));
        }
      }
    }
  }

  int64_t out_x(int64_t q) const { return w_.output_of(plan_.format.stacked ? 0 : column_group_, q); }
  bool whole_columns() const { return n1_ - n0_ == plan_.format.columns; }
  // Columns of the staging area beside each other at one output position (or at one q, for part of the stacked
  // columns).
  int64_t staging_pitch() const { return plan_.format.stacked && whole_columns() ? s_.out_channels : n1_ - n0_; }
  bool staged_by_q() const { return plan_.out_planar && plan_.format.stacked && !whole_columns(); }

  void point_outputs() {
    const int64_t width = q1_ - q0_;
    for (int64_t l = 0; l < line_count_; ++l) {
      const Line& line = lines_[l];
      float* row;
      int64_t pitch;  // from output position to output position
      if (plan_.out_planar) {
        row = staging_ + l * (staged_by_q() ? width : x1_ - x0_) * staging_pitch();
        pitch = staging_pitch();
      } else {
        row = p_.out + line.batch * plan_.out.batch + d_.output_of(phase_[0], line.q[0]) * plan_.out.axis[0] +
              h_.output_of(phase_[1], line.q[1]) * plan_.out.axis[1] + group_ * s_.out_channels;
        pitch = plan_.out.axis[2];
      }
      for (int64_t q = q0_; q < q1_; ++q) {
        const int64_t position = staged_by_q() ? q - q0_ : out_x(q) - (plan_.out_planar ? x0_ : 0);
        outs_[l * width + q - q0_] = row + position * pitch;
      }
    }
  }

  // The stacked columns [lo, hi) of the row of q that lie inside the tile's outputs.
  void clip(int64_t q, int64_t& lo, int64_t& hi) const {
    const int64_t x = out_x(q);
    lo = std::max(n0_, (x0_ - x) * s_.out_channels);
    hi = std::min(n1_, (x1_ - x) * s_.out_channels);
  }

  const ConvGemmPlan& plan_;
  const ConvShape& s_;
  const ConvPointers& p_;
  ConvAxis d_;
  ConvAxis h_;
  ConvAxis w_;
  const float* in_ = nullptr;
  ImageStrides in_strides_ = {};

  float* zeros_ = nullptr;
  float* bias_ = nullptr;
  Line* lines_ = nullptr;
  const float** rows_ = nullptr;
  int32_t* taps_ = nullptr;
  float** outs_ = nullptr;
  float** sums_at_ = nullptr;
  float* sums_ = nullptr;
  float* gather_ = nullptr;
  float* border_ = nullptr;
  float* local_ = nullptr;
  float* staging_ = nullptr;

  RowOrder order_;

  int64_t line0_ = 0;
  int64_t local_first_ = 0;  // input position of the first pixel of a local line
  int64_t local_pitch_ = 0;

  int64_t group_ = 0;
  int64_t phase_[2] = {};
  int64_t n0_ = 0, n1_ = 0, x0_ = 0, x1_ = 0;
  int64_t line_count_ = 0;
  int64_t column_group_ = 0;
  int64_t q0_ = 0, q1_ = 0;
  int64_t row_count_ = 0;
  bool reads_outside_ = false;  // some rows' taps lie outside of the image, where they read zeros_
  AxisTaps taps_d_ = {}, taps_h_ = {}, taps_w_ = {};
  int32_t segments_ = 0;
  int64_t channels_ = 0;
  int64_t column_ = 0;
  int vectors_ = 0;
};

}  // namespace polyphase::cpu::POLYPHASE_CLUSTER
