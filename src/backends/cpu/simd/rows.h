// Runs of floats, whole vectors and what is left behind them.
#pragma once

#include <algorithm>
#include <cstdint>

#include "backends/cpu/simd/vec.h"

namespace polyphase::cpu::POLYPHASE_CLUSTER {

// f(i, lanes) for each vector of a run.
template <class F>
POLYPHASE_INLINE void each_vector(int64_t count, F f) {
  int64_t i = 0;
  for (; i + vec_width <= count; i += vec_width) f(i, vec_width);
  if (i < count) f(i, static_cast<int>(count - i));
}

// The first n lanes, or all.
POLYPHASE_INLINE VecF load_some(const float* x, int n) { return n == vec_width ? load(x) : load_first(x, n); }
POLYPHASE_INLINE void store_some(float* y, VecF v, int n) { n == vec_width ? store(y, v) : store_first(y, v, n); }
// v in its first n lanes, `otherwise` in the others.
POLYPHASE_INLINE VecF first_lanes(VecF v, int n, VecF otherwise) {
  return n == vec_width ? v : select(less(to_float(iota()), broadcast(static_cast<float>(n))), v, otherwise);
}

// Zeros as far as whole vectors go. Compilers that see such a loop call memset, which takes longer than the one or two
// vectors that a border mostly is.
POLYPHASE_INLINE void store_zeros(float* to, int64_t count) {
  for (int64_t i = 0; i < count; i += vec_width) {
    store(to + i, broadcast(0.0F));
    asm volatile("");  // a loop with this in it stays one
  }
}

// Where whole vectors leave a rest, the last one is written over the one before: rows do not overlap.
inline void copy_row(const float* from, float* to, int64_t count) {
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
inline void stream_row(const float* from, float* to, int64_t count) {
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

}  // namespace polyphase::cpu::POLYPHASE_CLUSTER
