// Runs one tile of a softmax: y = exp(x - max) / Σ exp(x - max), the largest element taken out first.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "backends/cpu/kernels/softmax.h"
#include "backends/cpu/simd/math.h"
#include "backends/cpu/simd/vec.h"

namespace polyphase::cpu::POLYPHASE_CLUSTER {

inline void softmax_row(const SoftmaxPlan& p, const float* x, float* y) {
  float largest = -std::numeric_limits<float>::infinity();
  for (int64_t i = 0; i < p.length; ++i) largest = x[i] <= largest ? largest : x[i];
  const VecF top = broadcast(largest);
  double total = 0;
  for (int64_t i = 0; i < p.length; i += vec_width) {
    const int n = static_cast<int>(std::min<int64_t>(vec_width, p.length - i));
    const VecF e = exp(load_first(x + i, n) - top);
    if (p.logarithm == 0) store_first(y + i, e, n);
    float lanes[vec_width];
    store(lanes, e);
    for (int lane = 0; lane < n; ++lane) total += static_cast<double>(lanes[lane]);
  }
  if (p.logarithm != 0) {
    const auto log_total = static_cast<float>(std::log(total));
    for (int64_t i = 0; i < p.length; ++i) y[i] = x[i] - largest - log_total;
    return;
  }
  const VecF divisor = broadcast(static_cast<float>(total));
  for (int64_t i = 0; i < p.length; i += vec_width) {
    const int n = static_cast<int>(std::min<int64_t>(vec_width, p.length - i));
    store_first(y + i, load_first(y + i, n) / divisor, n);
  }
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
    const VecF e = exp(load_first(x + i * p.inner, n) - top);
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
  if (p.inner == 1) return softmax_row(p, x + tile * p.length, y + tile * p.length);
  const int64_t blocks = (p.inner + vec_width - 1) / vec_width;
  const int64_t first = tile % blocks * vec_width;
  const int64_t offset = tile / blocks * p.length * p.inner + first;
  softmax_lanes(p, x + offset, y + offset, static_cast<int>(std::min<int64_t>(vec_width, p.inner - first)));
}

}  // namespace polyphase::cpu::POLYPHASE_CLUSTER
