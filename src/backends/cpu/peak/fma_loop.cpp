// As many independent fused multiply-adds as hide their latency, on registers alone; compiled once per cluster.
#include "backends/cpu/peak/fma_loop.h"

#include <cstdint>

#include "backends/cpu/simd/vec.h"

namespace polyphase::cpu::POLYPHASE_CLUSTER {
namespace {

// Two units with a latency of four or five cycles need ten chains; twelve and two constants fit 16 registers.
constexpr int chains = 12;

float fma_loop(std::int64_t rounds) {
  VecF sums[chains];
  for (int i = 0; i < chains; ++i) sums[i] = broadcast(static_cast<float>(i));
  const VecF factor = broadcast(0.999F);  // the sums settle near 1: no denormals, no infinities
  const VecF addend = broadcast(0.001F);
  for (std::int64_t round = 0; round < rounds; ++round) {
    for (int i = 0; i < chains; ++i) sums[i] = fma(sums[i], factor, addend);
  }
  float total = 0;
  for (int i = 0; i < chains; ++i) total += sum(sums[i]);
  return total;
}

}  // namespace
}  // namespace polyphase::cpu::POLYPHASE_CLUSTER

#define FMA_LOOP_NAME_(cluster) polyphase_cpu_fma_loop_##cluster
#define FMA_LOOP_NAME(cluster) FMA_LOOP_NAME_(cluster)

extern "C" const polyphase::cpu::FmaLoop FMA_LOOP_NAME(POLYPHASE_CLUSTER) = {
    polyphase::cpu::POLYPHASE_CLUSTER::fma_loop,
    2 * polyphase::cpu::POLYPHASE_CLUSTER::chains* polyphase::cpu::POLYPHASE_CLUSTER::vec_width};
