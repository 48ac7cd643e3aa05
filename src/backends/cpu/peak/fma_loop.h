// As many independent fused multiply-adds as hide their latency, on registers alone; compiled once per cluster.
#pragma once

#include <cstdint>

#include "backends/cpu/simd/vec.h"

namespace polyphase::cpu::POLYPHASE_CLUSTER {

// Two units with a latency of four or five cycles need ten chains; twelve and two constants fit 16 registers.
constexpr int fma_chains = 12;
constexpr int fma_flops_per_round = 2 * fma_chains * vec_width;

inline float fma_loop(int64_t rounds) {
  VecF sums[fma_chains];
  for (int i = 0; i < fma_chains; ++i) sums[i] = broadcast(static_cast<float>(i));
  const VecF factor = broadcast(0.999F);  // the sums settle near 1: no denormals, no infinities
  const VecF addend = broadcast(0.001F);
  for (int64_t round = 0; round < rounds; ++round) {
    for (int i = 0; i < fma_chains; ++i) sums[i] = fma(sums[i], factor, addend);
  }
  float total = 0;
  for (int i = 0; i < fma_chains; ++i) total += sum(sums[i]);
  return total;
}

}  // namespace polyphase::cpu::POLYPHASE_CLUSTER
