// Asking for lines of the caches before they are needed, where the processor does not foresee them.
#pragma once

#include "backends/cpu/simd/cluster.h"

namespace polyphase::cpu::POLYPHASE_CLUSTER {

POLYPHASE_INLINE void prefetch_for_store(const void* at) { __builtin_prefetch(at, 1, 3); }

}  // namespace polyphase::cpu::POLYPHASE_CLUSTER
