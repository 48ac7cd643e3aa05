// Runs one tile of an elementwise chain.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "backends/cpu/kernels/apply_endings.h"
#include "backends/cpu/kernels/convert.h"
#include "backends/cpu/kernels/elementwise.h"
#include "backends/cpu/kernels/numbers.h"

namespace polyphase::cpu::POLYPHASE_CLUSTER {

constexpr int64_t elementwise_block = 512;

struct ElementwiseRow {
  const std::byte* from[ElementwisePlan::max_operands];
  std::byte* to;
};

// Elements of operand k from `first` on as a run of floats, converted into `block` where they are not.
inline EndingRun operand_run(const ElementwisePlan& p, const ElementwiseRow& row, int k, int64_t first, int64_t count,
                             float* block) {
  const int64_t stride = p.from_strides[k][p.rank - 1];
  const std::byte* from = row.from[k] + first * stride * bytes_of(p.from_dtypes[k]);
  if (p.from_dtypes[k] == DType::f32) return {reinterpret_cast<const float*>(from), stride};
  load_elements(p.from_dtypes[k], from, stride, block, stride == 0 ? 1 : count);
  return {block, stride == 0 ? 0 : 1};
}

inline void run_elementwise_row(const ElementwisePlan& p, const ElementwiseRow& row, int64_t n) {
  const int last = p.rank - 1;
  const int64_t to_stride = p.to_strides[last];
  const int64_t x_stride = p.from_strides[p.first_operand][last];
  const DType x_dtype = p.from_dtypes[p.first_operand];
  const bool direct_in = x_stride == 1 && x_dtype == DType::f32;
  const bool direct_out = to_stride == 1 && p.to_dtype == DType::f32;
  float block[elementwise_block];
  float operand_block[elementwise_block];
  for (int64_t first = 0; first < n; first += elementwise_block) {
    const int64_t count = std::min(elementwise_block, n - first);
    const std::byte* x = row.from[p.first_operand] + first * x_stride * bytes_of(x_dtype);
    std::byte* to = row.to + first * to_stride * bytes_of(p.to_dtype);
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
    if (!direct_out || source != target) store_elements(p.to_dtype, source, to, to_stride, count);
  }
}

// f(row, elements) for the rows of a tile.
template <class F>
POLYPHASE_INLINE void for_each_elementwise_row(const ElementwisePlan& p, const std::byte* const* inputs,
                                               std::byte* output, int64_t tile, F&& f) {
  const int last = p.rank - 1;
  const int64_t first = tile % p.chunks * p.chunk;
  const int64_t n = std::min(p.chunk, p.sizes[last] - first);
  int64_t rows = 1;
  for (int axis = 0; axis < last; ++axis) rows *= p.sizes[axis];
  const int64_t begin = tile / p.chunks * p.rows_per_tile;
  const int64_t end = std::min(rows, begin + p.rows_per_tile);
  for (int64_t r = begin; r < end; ++r) {
    ElementwiseRow row{};
    int64_t to = first * p.to_strides[last];
    int64_t from[ElementwisePlan::max_operands];
    for (int k = 0; k < p.operand_count; ++k) from[k] = first * p.from_strides[k][last];
    int64_t rest = r;
    for (int axis = last - 1; axis >= 0; --axis) {
      const int64_t i = rest % p.sizes[axis];
      rest /= p.sizes[axis];
      to += i * p.to_strides[axis];
      for (int k = 0; k < p.operand_count; ++k) from[k] += i * p.from_strides[k][axis];
    }
    for (int k = 0; k < p.operand_count; ++k) row.from[k] = inputs[k] + from[k] * bytes_of(p.from_dtypes[k]);
    row.to = output + to * bytes_of(p.to_dtype);
    f(row, n);
  }
}

inline void run_elementwise(const ElementwisePlan& p, const std::byte* const* inputs, std::byte* output, int64_t tile) {
  for_each_elementwise_row(p, inputs, output, tile,
                           [&](const ElementwiseRow& row, int64_t n) { run_elementwise_row(p, row, n); });
}

}  // namespace polyphase::cpu::POLYPHASE_CLUSTER
