// The one symbol of each cluster's sealed object: a loop of multiply-adds on registers.
#pragma once

#include <cstdint>

namespace polyphase::cpu {

struct FmaLoop {
  float (*run)(std::int64_t rounds);
  int flops_per_round;
};

}  // namespace polyphase::cpu

extern "C" {
extern const polyphase::cpu::FmaLoop polyphase_cpu_fma_loop_scalar;
extern const polyphase::cpu::FmaLoop polyphase_cpu_fma_loop_avx2;
extern const polyphase::cpu::FmaLoop polyphase_cpu_fma_loop_avx512;
}
