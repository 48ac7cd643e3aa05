// Runs one tile of an elementwise chain.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "backends/cpu/kernels/apply_endings.h"
#include "backends/cpu/kernels/convert.h"
#include "backends/cpu/kernels/elementwise.h"
#include "backends/cpu/kernels/numbers.h"
#include "backends/cpu/kernels/stored_image.h"
#include "backends/cpu/kernels/strided_copy_run.h"

namespace polyphase::cpu::POLYPHASE_CLUSTER {

constexpr int64_t elementwise_block = ElementwisePlan::joined_elements;

// A run of the last axis.
struct ElementwiseRow {
  const std::byte* from[ElementwisePlan::max_operands];
  int64_t strides[ElementwisePlan::max_operands];  // elements, of the operands along the run
  std::byte* to;
  int64_t to_stride;
};

// Elements of operand k from `first` on as a run of floats, converted into `block` where they are not.
inline EndingRun operand_run(const ElementwisePlan& p, const ElementwiseRow& row, int k, int64_t first, int64_t count,
                             float* block) {
  const int64_t stride = row.strides[k];
  const std::byte* from = row.from[k] + first * stride * bytes_of(p.from_dtypes[k]);
  if (p.from_dtypes[k] == DType::f32) return {reinterpret_cast<const float*>(from), stride};
  load_elements(p.from_dtypes[k], from, stride, block, stride == 0 ? 1 : count);
  return {block, stride == 0 ? 0 : 1};
}

inline void run_elementwise_row(const ElementwisePlan& p, const ElementwiseRow& row, int64_t n) {
  const int64_t to_stride = row.to_stride;
  const int64_t x_stride = row.strides[p.first_operand];
  const DType x_dtype = p.from_dtypes[p.first_operand];
  const bool direct_in = x_stride == 1 && x_dtype == DType::f32;
  const bool direct_out = to_stride == 1 && p.to_dtype == DType::f32 && !p.past_caches;
  float block[elementwise_block];
  float operand_block[elementwise_block];
  for (int64_t first = 0; first < n; first += elementwise_block) {
    const int64_t count = std::min(elementwise_block, n - first);
    const std::byte* x = row.from[p.first_operand] + first * x_stride * bytes_of(x_dtype);
    std::byte* const to = row.to + first * to_stride * bytes_of(p.to_dtype);
    float* target = direct_out ? reinterpret_cast<float*>(to) : block;
    const float* source = reinterpret_cast<const float*>(x);
    if (!direct_in) {
      float* into = p.step_count == 0 ? target : block;
      load_elements(x_dtype, x, x_stride, into, count);
      source = into;
    }
    for (int i = 0; i < p.step_count; ++i) {
      const EndingStep& step = p.steps[i];
      EndingRun operand = {nullptr, 0};
      if (takes_operand(step.kind)) operand = operand_run(p, row, step.operand, first, count, operand_block);
      // The last step writes the result: an operand that is overwritten has been read by then.
      float* into = i + 1 == p.step_count ? target : block;
      run_ending(step, operand, source, into, count);
      source = into;
    }
    if (p.past_caches) {
      store_line(source, {to, p.to_dtype}, 1, count, true);
    } else if (!direct_out || source != target) {
      store_elements(p.to_dtype, source, to, to_stride, count);
    }
  }
}

// Goes from row to row of the plan's rows, each from element `first` on: rows may be too short to look for each of them
// by division.
class ElementwiseWalk {
 public:
  ElementwiseWalk(const ElementwisePlan& p, const std::byte* const* inputs, std::byte* output, int64_t r, int64_t first)
      : p_(p), last_(p.rank - 1), to_bytes_(bytes_of(p.to_dtype)) {
    for (int k = 0; k < p.operand_count; ++k) {
      from_bytes_[k] = bytes_of(p.from_dtypes[k]);
      row_.from[k] = inputs[k];
      row_.strides[k] = p.from_strides[k][last_];
    }
    row_.to = output;
    row_.to_stride = p.to_strides[last_];
    advance(last_, first);
    for (int axis = last_ - 1; axis >= 0; --axis) {
      index_[axis] = r % p.sizes[axis];
      r /= p.sizes[axis];
      advance(axis, index_[axis]);
    }
  }

  ElementwiseRow& row() { return row_; }

  POLYPHASE_INLINE void next() {
    for (int axis = last_ - 1; axis >= 0; --axis) {
      advance(axis, 1);
      if (++index_[axis] < p_.sizes[axis]) return;
      advance(axis, -p_.sizes[axis]);
      index_[axis] = 0;
    }
  }

 private:
  POLYPHASE_INLINE void advance(int axis, int64_t places) {
    for (int k = 0; k < p_.operand_count; ++k) row_.from[k] += places * p_.from_strides[k][axis] * from_bytes_[k];
    row_.to += places * p_.to_strides[axis] * to_bytes_;
  }

  const ElementwisePlan& p_;
  int last_;
  int64_t to_bytes_;
  int64_t from_bytes_[ElementwisePlan::max_operands];
  ElementwiseRow row_;
  int64_t index_[max_rank];
};

// Blocks of what lies across, turned; or runs of rows that were joined, of each operand and of the result.
struct TurnedBlocks {
  static constexpr int64_t columns = 64;
  alignas(64) std::byte blocks[ElementwisePlan::most_crossed][ElementwisePlan::crossed_rows * columns * 8];

  static constexpr int64_t run_bytes = ElementwisePlan::joined_elements * 8;
  static_assert((ElementwisePlan::max_operands + 1) * run_bytes <= sizeof(blocks));
  std::byte* run(int i) { return &blocks[0][0] + i * run_bytes; }
};

// Turns `count` elements of `rows` rows of the crossed operands; the row reads them from there then, and writes a
// result that lies across there. The steps are the bytes from row to row, of each operand and of the result.
inline void turn_crossed(const ElementwisePlan& p, int64_t rows, int64_t count, TurnedBlocks& turned,
                         ElementwiseRow& row, int64_t* steps, int64_t& to_step) {
  const int axis = p.rank - 2;
  for (int k = 0; k < p.operand_count; ++k) steps[k] = p.from_strides[k][axis] * bytes_of(p.from_dtypes[k]);
  to_step = p.to_strides[axis] * bytes_of(p.to_dtype);
  for (int i = 0; i < p.crossed_count; ++i) {
    const int k = p.crossed[i];
    const int64_t bytes = bytes_of(p.from_dtypes[k]);
    steps[k] = TurnedBlocks::columns * bytes;
    copy_plane({rows, count, bytes, row.strides[k] * bytes, steps[k], bytes}, static_cast<int>(bytes), row.from[k],
               turned.blocks[i]);
    row.from[k] = turned.blocks[i];
    row.strides[k] = 1;
  }
  if (!p.result_crossed) return;
  row.to = turned.blocks[0];
  row.to_stride = 1;
  to_step = TurnedBlocks::columns * bytes_of(p.to_dtype);
}

// Of a result that lies across: from there to its place.
inline void turn_result(const ElementwisePlan& p, int64_t rows, int64_t count, const TurnedBlocks& turned,
                        std::byte* to) {
  const int64_t bytes = bytes_of(p.to_dtype);
  copy_plane({count, rows, bytes, TurnedBlocks::columns * bytes, p.to_strides[p.rank - 1] * bytes, bytes},
             static_cast<int>(bytes), turned.blocks[0], to);
}

// Makes one row of `rows` of `count` elements each: what has gaps between them is copied. True: the result is written
// to the run of its own, and belongs elsewhere.
inline bool join_rows(const ElementwisePlan& p, int64_t rows, int64_t count, TurnedBlocks& runs, ElementwiseRow& row) {
  const int axis = p.rank - 2;
  for (int k = 0; k < p.operand_count; ++k) {
    const int64_t step = p.from_strides[k][axis];
    if (step == row.strides[k] * count) continue;
    const int64_t bytes = bytes_of(p.from_dtypes[k]);
    copy_plane({rows, count, step * bytes, row.strides[k] * bytes, count * bytes, bytes}, static_cast<int>(bytes),
               row.from[k], runs.run(k));
    row.from[k] = runs.run(k);
    row.strides[k] = 1;
  }
  if (p.to_strides[axis] == row.to_stride * count) return false;
  row.to = runs.run(ElementwisePlan::max_operands);
  row.to_stride = 1;
  return true;
}

inline void part_rows(const ElementwisePlan& p, int64_t rows, int64_t count, const std::byte* run, std::byte* to) {
  const int axis = p.rank - 2;
  const int64_t bytes = bytes_of(p.to_dtype);
  copy_plane({rows, count, count * bytes, bytes, p.to_strides[axis] * bytes, p.to_strides[axis + 1] * bytes},
             static_cast<int>(bytes), run, to);
}

// f(row, elements) for the rows of a tile, or pieces of them. f is called in one place: it is large.
template <class F>
POLYPHASE_INLINE void for_each_elementwise_row(const ElementwisePlan& p, const std::byte* const* inputs,
                                               std::byte* output, int64_t tile, F&& f) {
  const int last = p.rank - 1;
  const int64_t first = tile % p.chunks * p.chunk;
  const int64_t n = std::min(p.chunk, p.sizes[last] - first);
  int64_t all_rows = 1;
  for (int axis = 0; axis < last; ++axis) all_rows *= p.sizes[axis];
  const int64_t end = std::min(all_rows, (tile / p.chunks + 1) * p.rows_per_tile);
  const bool crossed = p.crossed_count > 0 || p.result_crossed;
  const int64_t neighbours = last > 0 ? p.sizes[last - 1] : 1;
  const int64_t piece = crossed ? TurnedBlocks::columns : n;
  TurnedBlocks turned;
  for (int64_t r = tile / p.chunks * p.rows_per_tile, rows = 1; r < end; r += rows) {
    rows = end - r;
    if (crossed || p.joins_rows) {
      const int64_t most = crossed ? int64_t{ElementwisePlan::crossed_rows} : ElementwisePlan::joined_elements / n;
      rows = std::min({most, rows, neighbours - r % neighbours});
    }
    for (int64_t at = 0; at < n; at += piece) {
      const int64_t count = std::min(piece, n - at);
      ElementwiseWalk walk(p, inputs, output, r, first + at);
      ElementwiseRow& row = walk.row();
      std::byte* const to = row.to;
      int64_t steps[ElementwisePlan::max_operands];
      int64_t to_step = 0;
      if (crossed) turn_crossed(p, rows, count, turned, row, steps, to_step);
      const bool parts = p.joins_rows && join_rows(p, rows, count, turned, row);
      for (int64_t i = 0; i < (p.joins_rows ? 1 : rows); ++i) {
        if (i > 0 && crossed) {
          for (int k = 0; k < p.operand_count; ++k) row.from[k] += steps[k];
          row.to += to_step;
        } else if (i > 0) {
          walk.next();
        }
        f(row, p.joins_rows ? rows * count : count);
      }
      if (parts) part_rows(p, rows, count, row.to, to);
      if (p.result_crossed) turn_result(p, rows, count, turned, to);
    }
  }
}

inline void run_elementwise(const ElementwisePlan& p, const std::byte* const* inputs, std::byte* output, int64_t tile) {
  for_each_elementwise_row(p, inputs, output, tile,
                           [&](const ElementwiseRow& row, int64_t n) { run_elementwise_row(p, row, n); });
  if (p.past_caches) finish_streams();
}

}  // namespace polyphase::cpu::POLYPHASE_CLUSTER
