// Runs one tile of an elementwise chain.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "backends/cpu/kernels/apply_endings.h"
#include "backends/cpu/kernels/elementwise.h"

namespace polyphase::cpu::POLYPHASE_CLUSTER {

constexpr int64_t elementwise_block = 512;

struct ElementwiseRow {
  const float* from[ElementwisePlan::max_operands];
  float* to;
};

inline void run_elementwise_row(const ElementwisePlan& p, const ElementwiseRow& row, int64_t n) {
  const int last = p.rank - 1;
  const int64_t to_stride = p.to_strides[last];
  float block[elementwise_block];
  for (int64_t first = 0; first < n; first += elementwise_block) {
    const int64_t count = std::min(elementwise_block, n - first);
    const int64_t x_stride = p.from_strides[p.first_operand][last];
    const float* x = row.from[p.first_operand] + first * x_stride;
    float* target = to_stride == 1 ? row.to + first : block;
    const float* source = x;
    if (x_stride != 1) {
      for (int64_t i = 0; i < count; ++i) block[i] = x[i * x_stride];
      source = block;
    }
    for (int i = 0; i < p.step_count; ++i) {
      const EndingStep& step = p.steps[i];
      EndingRun operand = {nullptr, 0};
      if (takes_operand(step.kind)) {
        operand.stride = p.from_strides[step.operand][last];
        operand.data = row.from[step.operand] + first * operand.stride;
      }
      // The last step writes the result: an operand that is overwritten has been read by then.
      float* into = i + 1 == p.step_count ? target : block;
      run_ending(step, operand, source, into, count);
      source = into;
    }
    if (to_stride != 1) {
      for (int64_t i = 0; i < count; ++i) row.to[(first + i) * to_stride] = source[i];
    }
  }
}

inline void run_elementwise(const ElementwisePlan& p, const float* const* inputs, float* output, int64_t tile) {
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
    for (int k = 0; k < p.operand_count; ++k) row.from[k] = inputs[k] + from[k];
    row.to = output + to;
    run_elementwise_row(p, row, n);
  }
}

}  // namespace polyphase::cpu::POLYPHASE_CLUSTER
