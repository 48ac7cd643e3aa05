// Runs one tile of a softmax: y = exp(x - max) / Σ exp(x - max), the largest element taken out first.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "backends/cpu/kernels/blocked_sum.h"
#include "backends/cpu/kernels/softmax.h"
#include "backends/cpu/simd/math.h"
#include "backends/cpu/simd/rows.h"
#include "backends/cpu/simd/vec.h"

namespace polyphase::cpu::POLYPHASE_CLUSTER {

// NaN is left out: the sum has it from its own exponential.
inline float largest_of(const float* x, int64_t length) {
  const VecF lowest = broadcast(-std::numeric_limits<float>::infinity());
  VecF largest = lowest;
  each_vector(length, [&](int64_t i, int n) POLYPHASE_INLINE_LAMBDA {
    largest = max(first_lanes(load_some(x + i, n), n, lowest), largest);
  });
  return max_lane(largest);
}

inline void softmax_row(const SoftmaxPlan& p, const float* x, float* y) {
  const float largest = largest_of(x, p.length);
  const VecF top = broadcast(largest);
  double total = 0;
  constexpr int64_t piece = sum_piece * vec_width;
  for (int64_t first = 0; first < p.length; first += piece) {
    VecF sums = broadcast(0.0F);
    each_vector(std::min(piece, p.length - first), [&](int64_t i, int n) POLYPHASE_INLINE_LAMBDA {
      const VecF e = exp_or_zero(load_some(x + first + i, n) - top);
      if (p.logarithm == 0) store_some(y + first + i, e, n);
      sums = sums + first_lanes(e, n, broadcast(0.0F));
    });
    total += static_cast<double>(sum(sums));
  }
  if (p.logarithm != 0) {
    const VecF log_total = broadcast(static_cast<float>(std::log(total)));
    each_vector(p.length, [&](int64_t i, int n)
                              POLYPHASE_INLINE_LAMBDA { store_some(y + i, load_some(x + i, n) - top - log_total, n); });
    return;
  }
  const VecF divisor = broadcast(static_cast<float>(total));
  each_vector(p.length,
              [&](int64_t i, int n) POLYPHASE_INLINE_LAMBDA { store_some(y + i, load_some(y + i, n) / divisor, n); });
}

// Lanes are neighbours along `inner`.
inline void softmax_lanes(const SoftmaxPlan& p, const float* x, float* y, int n) {
  VecF top = broadcast(-std::numeric_limits<float>::infinity());
  for (int64_t i = 0; i < p.length; ++i) {
    const VecF v = load_first(x + i * p.inner, n);
    top = select(equal(top, top), max(top, v), top);
  }
  VecF total = broadcast(0.0F);
  for (int64_t i = 0; i < p.length; ++i) {
    const VecF e = exp_or_zero(load_first(x + i * p.inner, n) - top);
    if (p.logarithm == 0) store_first(y + i * p.inner, e, n);
    total = total + e;
  }
  if (p.logarithm != 0) {
    const VecF log_total = log(total);
    for (int64_t i = 0; i < p.length; ++i)
      store_first(y + i * p.inner, load_first(x + i * p.inner, n) - top - log_total, n);
    return;
  }
  for (int64_t i = 0; i < p.length; ++i) store_first(y + i * p.inner, load_first(y + i * p.inner, n) / total, n);
}

inline void run_softmax(const SoftmaxPlan& p, const float* x, float* y, int64_t tile) {
  if (p.inner == 1) {
    const int64_t last = std::min(p.outer, (tile + 1) * p.rows);
    for (int64_t row = tile * p.rows; row < last; ++row) softmax_row(p, x + row * p.length, y + row * p.length);
    return;
  }
  const int64_t blocks = (p.inner + vec_width - 1) / vec_width;
  const int64_t first = tile % blocks * vec_width;
  const int64_t offset = tile / blocks * p.length * p.inner + first;
  softmax_lanes(p, x + offset, y + offset, lanes_of(p.inner - first));
}

}  // namespace polyphase::cpu::POLYPHASE_CLUSTER
