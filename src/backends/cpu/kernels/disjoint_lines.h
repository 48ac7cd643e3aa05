// One line of one channel into one output line of a transposed convolution whose taps do not meet: every pixel becomes
// as many outputs as the last axis has phases.
#pragma once

#include <cstdint>

#include "backends/cpu/simd/transpose.h"
#include "backends/cpu/simd/vec.h"

namespace polyphase::cpu::POLYPHASE_CLUSTER {

// to[i * S + s] = fma(from[i], weights[s], start) for the pixels i < n; `to` and `from` do not overlap.
template <int S>
void scale_to_phases(const float* from, const float* weights, float start, float* to, int64_t n) {
  VecF w[S];
  for (int s = 0; s < S; ++s) w[s] = broadcast(weights[s]);
  const auto scale = [&](VecF x, float* target) {
    VecF rows[S];
    for (int s = 0; s < S; ++s) rows[s] = fma(x, w[s], broadcast(start));
    store_interleaved(rows, target);
  };
  int64_t i = 0;
  for (; i + vec_width <= n; i += vec_width) scale(load(from + i), to + i * S);
  if (i == n) return;
  if (n >= vec_width)
    return scale(load(from + n - vec_width), to + (n - vec_width) * S);  // some are computed once more
  float rest[vec_width * S];
  scale(load_first(from, static_cast<int>(n)), rest);
  for (int64_t k = 0; k < n * S; ++k) to[k] = rest[k];
}

// `phases` as scale_to_phases knows them: 2, 3 or 4.
inline void scale_to_phases(int64_t phases, const float* from, const float* weights, float start, float* to,
                            int64_t n) {
  if (phases == 2) return scale_to_phases<2>(from, weights, start, to, n);
  if (phases == 3) return scale_to_phases<3>(from, weights, start, to, n);
  return scale_to_phases<4>(from, weights, start, to, n);
}

}  // namespace polyphase::cpu::POLYPHASE_CLUSTER
