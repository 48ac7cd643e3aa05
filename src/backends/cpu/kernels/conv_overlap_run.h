// Entry point of conv_overlap's tiles in one cluster.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cpu/kernels/conv_overlap.h"
#include "backends/cpu/simd/cluster.h"

namespace polyphase::cpu::POLYPHASE_CLUSTER {

// `scratch` holds plan.scratch_bytes, 64-byte aligned, with any contents.
void run_conv_overlap(const ConvOverlapPlan& plan, const ConvPointers& pointers, int phase, int64_t tile,
                      std::byte* scratch);

}  // namespace polyphase::cpu::POLYPHASE_CLUSTER
