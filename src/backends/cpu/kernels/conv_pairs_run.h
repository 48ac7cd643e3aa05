// Computes one tile of convolution in bf16; compiled once per cluster.
#pragma once

#include <cstddef>

#include "backends/cpu/kernels/conv_pairs.h"
#include "backends/cpu/simd/cluster.h"

namespace polyphase::cpu::POLYPHASE_CLUSTER {

void run_conv_pairs(const ConvPairsPlan& plan, const ConvPointers& pointers, int phase, int64_t tile,
                    std::byte* scratch);

}  // namespace polyphase::cpu::POLYPHASE_CLUSTER
