// What a tile of conv_pairs has computed, and its way out: endings, and the order of the output.
#pragma once

#include <algorithm>
#include <cstdint>

#include "backends/cpu/kernels/apply_endings.h"
#include "backends/cpu/kernels/conv_gemm.h"
#include "backends/cpu/kernels/conv_pairs.h"
#include "backends/cpu/kernels/stored_image.h"
#include "backends/cpu/simd/rows.h"
#include "backends/cpu/simd/transpose.h"
#include "backends/cpu/simd/unrolled.h"

namespace polyphase::cpu::POLYPHASE_CLUSTER {

// The sums of a tile, of the lines from line0_ on, pieces [q0_, q1_) of them, columns [column0_, column1_).
class PairsSums {
 protected:
  PairsSums(const ConvPairsPlan& plan, const ConvPointers& pointers)
      : plan_(plan),
        s_(plan.shape),
        p_(pointers),
        axes_{{plan.shape, 0}, {plan.shape, 1}, {plan.shape, 2}},
        phases_(axes_[2].phases()),
        pitch_(plan.columns_per_tile) {}

  // Where those of one phase of q of a line stand.
  float* sums_at(int64_t line, int64_t line_phase, int64_t q, int64_t phase) const {
    const int64_t row = (line_phase - first_line_phase_) * plan_.step_lines + line - line0_;
    return sums_ + ((row * plan_.line_pitch + q - q0_) * phases_ + phase) * pitch_;
  }

  // All results of the lines [line0_, line1).
  void write(int64_t line1) {
    if (!plan_.stack.is_on) return write_lines(line1);
    for (int64_t line = line0_; line < line1; ++line) {
      plan_.out_planar ? write_interleaved(line) : write_stacked_pixels(line);
    }
  }

 private:
  // The results of the lines [line0_, line1) in the order of the output.
  void write_lines(int64_t line1) {
    const int64_t first = axes_[2].output_of(0, q0_);
    const int64_t x0 = std::max<int64_t>(0, first);
    const int64_t x1 = std::min(s_.out[2], first + (q1_ - q0_) * phases_);
    if (x0 >= x1) return;
    place_.axis[2] = x0;
    const int64_t columns = std::min(column1_, s_.out_channels) - column0_;
    const bool all_phases = plan_.line_phases == axes_[1].phases();
    const int64_t step = all_phases ? 1 : axes_[1].phases();
    const int64_t y0 = axes_[1].output_of(first_line_phase_, line0_);
    const int64_t y1 = axes_[1].output_of(first_line_phase_, line1);
    // Outputs before the first begin at the first of the same phase.
    for (int64_t y = y0 < 0 ? floor_mod(y0, step) : y0; y < std::min(y1, s_.out[1]);) {
      const int64_t lines = std::min(plan_.run_lines, ceil_div(std::min(y1, s_.out[1]) - y, step));
      place_.axis[1] = y;
      if (plan_.out_planar) {
        write_planar(lines, x0 - first, x1 - x0, columns);
      } else {
        write_pixels(values_of(y, x0 - first), x1 - x0, columns);
      }
      y += lines * step;
    }
  }

  // One place for the code of all ways to store, and of all endings.
  __attribute__((noinline)) void store_results(const float* from, StoredResult to, int64_t stride, int64_t n) const {
    store_line(from, to, stride, n, plan_.past_caches);
  }
  __attribute__((noinline)) void end(float* values, int64_t count, const ResultPlace& place, bool along_channels,
                                     const EndingRows& rows = {}) const {
    apply_endings(plan_.endings, p_.operands, values, count, place, along_channels, rows);
  }

  // Of an output line of the block, from its pixel `x` on.
  float* values_of(int64_t y, int64_t x) const {
    const int64_t phase = s_.transposed ? floor_mod(y + s_.pre[1], s_.stride[1]) : 0;
    const int64_t line = s_.transposed ? floor_div(y + s_.pre[1], s_.stride[1]) : y;
    return sums_at(line, phase, q0_, x);
  }

  __attribute__((noinline)) static void add_row(const float* row, float* to, int64_t count) {
    int64_t i = 0;
    for (; i + vec_width <= count; i += vec_width) store(to + i, load(to + i) + load(row + i));
    for (; i < count; ++i) to[i] += row[i];
  }

  void write_pixels(float* values, int64_t count, int64_t columns) const {
    StoredResult to = result_at(place_);
    if (plan_.brief.are_all) return write_briefly(values, count, columns, to);
    const float* bias = plan_.has_bias ? p_.bias + place_.channel : nullptr;
    for (int64_t i = 0; i < count && bias != nullptr; ++i) add_row(bias, values + i * pitch_, columns);
    if (plan_.endings_join && columns == pitch_) {
      end(values, count * columns, place_, true);
    } else {
      end(values, columns, place_, true, {count, pitch_, 1});
    }
    store_pixels(values, count, columns, to);
  }

  void store_pixels(const float* values, int64_t count, int64_t columns, StoredResult to) const {
    if (columns == pitch_ && plan_.out.axis[2] == columns) return store_results(values, to, 1, count * columns);
    for (int64_t i = 0; i < count; ++i, values += pitch_, to = to + plan_.out.axis[2])
      store_results(values, to, 1, columns);
  }

  __attribute__((noinline)) void write_briefly(float* values, int64_t count, int64_t columns, StoredResult to) const {
    BriefRows rows = {.values = values,
                      .pitch = pitch_,
                      .bias = plan_.has_bias ? p_.bias + place_.channel : nullptr,
                      .added = nullptr,
                      .added_pitch = 0,
                      .to = to.data,
                      .to_pitch = plan_.out.axis[2],
                      .rows = count,
                      .columns = columns};
    if (plan_.brief.added >= 0) {
      const ImageStrides& strides = plan_.endings.operands[plan_.brief.added];
      rows.added = operand_at(p_.operands[plan_.brief.added], strides, place_, plan_.brief.added_in_bf16);
      rows.added_pitch = strides.axis[2];
    }
    // What goes past the caches does so by whole lines.
    if (plan_.past_caches) {
      rows.to = values;
      rows.to_pitch = pitch_;
    }
    const bool rounds = !to.wide() && !plan_.past_caches;
    (rounds ? plan_.unit->store_in_bf16 : plan_.unit->store)(plan_.brief, rows);
    if (plan_.past_caches) store_pixels(values, count, columns, to);
  }

  // Some lines from the present place on, which follow each other in the output where they are several.
  __attribute__((noinline)) void write_planar(int64_t lines, int64_t x, int64_t count, int64_t columns) const {
    ResultPlace place = place_;
    StoredResult to = result_at(place_);
    const int64_t run = lines * count;
    for (int64_t c0 = 0; c0 < columns; c0 += pair_columns) {
      const int64_t height = std::min(pair_columns, columns - c0);
      float bias[pair_columns] = {};
      if (plan_.has_bias) std::copy_n(p_.bias + place.channel, height, bias);
      const bool is_narrow = plan_.turned_narrow;
      for (int64_t k = 0; k < lines; ++k) {
        const float* const values = values_of(place_.axis[1] + k, x) + c0;
        if (is_narrow) {
          plan_.unit->turn(
              {values, pitch_, bias, reinterpret_cast<uint16_t*>(turned_) + k * count, plan_.run_pitch, count});
        } else {
          turn_wide(values, bias, turned_ + k * count, count);
        }
      }
      for (int64_t c = 0; c < height; ++c, ++place.channel, to = to + plan_.out.channel) {
        if (plan_.out.axis[2] == 1 && !plan_.past_caches && c0 + c + 1 < columns)
          fetch_for_store(to + plan_.out.channel, run);
        if (is_narrow) {
          store_halves(reinterpret_cast<const uint16_t*>(turned_) + c * plan_.run_pitch,
                       reinterpret_cast<uint16_t*>(to.data), run);
          continue;
        }
        float* const values = turned_ + c * plan_.run_pitch;
        for (int64_t k = 0; k < lines && plan_.endings.count > 0; ++k) {
          place.axis[1] = place_.axis[1] + k;
          end(values + k * count, count, place, false);
        }
        store_results(values, to, plan_.out.axis[2], run);
      }
    }
  }

  // The channel of the result that a group of columns is.
  __attribute__((noinline)) int64_t stacked_channel(int64_t columns) const {
    return group_ * plan_.stack.channels + columns / (plan_.stack.strides[0] * plan_.stack.strides[1]);
  }

  // Where a line of a group of columns goes, and how many of its results are there; none for lines outside.
  struct StackedLine {
    ResultPlace place;
    int64_t skipped;  // results before the first
    int64_t count;
  };

  __attribute__((noinline)) StackedLine place_of(int64_t line, int64_t columns) const {
    const PairsStack& stack = plan_.stack;
    const ConvShape& image = plan_.image;
    const auto output = [&](int a, int64_t q, int64_t phase) {
      return (q + stack.first_q[a]) * stack.strides[a] + phase - image.pre[a];
    };
    const int64_t phase_d = columns / stack.strides[1] % stack.strides[0];
    const int64_t z = output(0, place_.axis[0], phase_d);
    const int64_t y = output(1, line, columns % stack.strides[1]);
    const int64_t first = output(2, q0_, 0);
    const int64_t x0 = std::max<int64_t>(0, first);
    const int64_t x1 = std::min(image.out[2], first + (q1_ - q0_) * stack.strides[2]);
    const bool is_inside = z >= 0 && z < image.out[0] && y >= 0 && y < image.out[1];
    return {{place_.batch, stacked_channel(columns), {z, y, x0}},
            x0 - first,
            is_inside ? std::max<int64_t>(0, x1 - x0) : 0};
  }

  StoredResult result_at(const ResultPlace& place) const {
    return StoredResult(p_.out, s_.types.out) +
           (place.batch * plan_.out.batch + place.channel * plan_.out.channel + place.axis[0] * plan_.out.axis[0] +
            place.axis[1] * plan_.out.axis[1] + place.axis[2] * plan_.out.axis[2]);
  }

  // The results of a line whose columns are phases.
  void write_interleaved(int64_t line) const {
    const PairsStack& stack = plan_.stack;
    for (int64_t column = column0_; column < column1_; column += pair_columns) {
      const int64_t first = column / pair_columns * stack.groups_of_panel();
      const int64_t last = std::min(first + stack.groups_of_panel(), stack.column_groups());
      float bias[pair_columns] = {};
      for (int64_t i = first; i < last && plan_.has_bias; ++i)
        std::fill_n(bias + (i - first) * stack.strides[2], stack.strides[2], p_.bias[stacked_channel(i)]);
      turn_wide(sums_at(line, 0, q0_, 0) + column - column0_, bias, turned_, q1_ - q0_);
      for (int64_t i = first; i < last; ++i) {
        const StackedLine to = place_of(line, i);
        if (to.count == 0) continue;
        interleave(turned_ + (i - first) * stack.strides[2] * plan_.run_pitch, plan_.run_pitch, interleaved_,
                   stack.strides[2], q1_ - q0_);
        float* const values = interleaved_ + to.skipped;
        end(values, to.count, to.place, false);
        store_results(values, result_at(to.place), plan_.out.axis[2], to.count);
      }
    }
  }

  // The same of an image channels-last: pixel by pixel the channels that the block holds.
  void write_stacked_pixels(int64_t line) const {
    const PairsStack& stack = plan_.stack;
    const int64_t line_phases = stack.strides[0] * stack.strides[1];
    const int64_t first_columns = column0_ / pair_columns * stack.groups_of_panel();
    const int64_t last_columns = std::min(column1_ / pair_columns * stack.groups_of_panel(), stack.column_groups());
    for (int64_t r = 0; r < line_phases; ++r) {
      StackedLine to = place_of(line, r);
      const int64_t first = ceil_div(std::max<int64_t>(0, first_columns - r), line_phases);
      const int64_t last = ceil_div(std::max<int64_t>(0, last_columns - r), line_phases);
      if (first >= last) continue;
      to.place.channel += first;
      for (int64_t i = to.skipped; i < to.skipped + to.count; ++i, ++to.place.axis[2]) {
        const float* const values = sums_at(line, 0, q0_ + i / stack.strides[2], 0) - column0_ + i % stack.strides[2];
        for (int64_t c = first; c < last; ++c) {
          const int64_t columns = c * line_phases + r;
          const float value = values[columns / stack.groups_of_panel() * pair_columns +
                                     columns % stack.groups_of_panel() * stack.strides[2]];
          interleaved_[c - first] = value + (plan_.has_bias ? p_.bias[to.place.channel + c - first] : 0);
        }
        end(interleaved_, last - first, to.place, true);
        store_results(interleaved_, result_at(to.place), 1, last - first);
      }
    }
  }

  // to[c * run_pitch + i] = values[i * pitch + c] + bias[c] for a panel's columns, and what there is room for behind i.
  void turn_wide(const float* values, const float* bias, float* to, int64_t count) const {
    for (int64_t c = 0; c < pair_columns; c += vec_width) {
      const VecF added = load(bias + c);
      for (int64_t i = 0; i < count; i += vec_width) {
        VecF lanes[vec_width];
        unrolled<vec_width>([&](int k) POLYPHASE_INLINE_LAMBDA {
          lanes[k] = load(values + std::min(i + k, count - 1) * pitch_ + c) + added;
        });
        transpose_lanes(lanes);
        unrolled<vec_width>([&](int k)
                                POLYPHASE_INLINE_LAMBDA { store(to + (c + k) * plan_.run_pitch + i, lanes[k]); });
      }
    }
  }

  void store_halves(const uint16_t* from, uint16_t* to, int64_t count) const {
    if (!plan_.past_caches) {
      std::copy_n(from, count, to);
      return;
    }
    constexpr int64_t line = 64 / sizeof(uint16_t);
    const auto past = static_cast<int64_t>(reinterpret_cast<uintptr_t>(to) / sizeof(uint16_t)) % line;
    const int64_t lead = std::min(count, (line - past) % line);
    std::copy_n(from, lead, to);
    const int64_t whole = (count - lead) / line * line;
    store_results(reinterpret_cast<const float*>(from + lead),
                  StoredResult(reinterpret_cast<float*>(to + lead), DType::f32), 1, whole / 2);
    const int64_t done = lead + whole;
    std::copy_n(from + done, count - done, to + done);
  }

 protected:
  const ConvPairsPlan& plan_;
  const ConvShape& s_;
  const ConvPointers& p_;
  const ConvAxis axes_[3];
  const int64_t phases_;
  const int64_t pitch_;      // floats from position to position of the sums
  float* sums_ = nullptr;    // [phase of lines][line][q][phase][column]
  float* turned_ = nullptr;  // [column][output position] of a run
  float* interleaved_ = nullptr;
  ResultPlace place_ = {};
  int64_t group_ = 0;
  int64_t first_line_phase_ = 0;
  int64_t line0_ = 0;  // in q; the sums begin with it
  int64_t q0_ = 0, q1_ = 0;
  int64_t column0_ = 0, column1_ = 0;
};

}  // namespace polyphase::cpu::POLYPHASE_CLUSTER
