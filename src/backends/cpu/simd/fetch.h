// Asking for lines of the caches before they are needed, where the processor does not foresee them.
#pragma once

#include <cstdint>

#include "backends/cpu/simd/cluster.h"

namespace polyphase::cpu::POLYPHASE_CLUSTER {

POLYPHASE_INLINE void prefetch_for_store(const void* at) { __builtin_prefetch(at, 1, 3); }

// `count` floats that are loaded, at the least one.
POLYPHASE_INLINE void prefetch_to_load(const float* from, int64_t count) {
  constexpr int64_t line = 16;
  for (int64_t i = 0; i < count; i += line) __builtin_prefetch(from + i, 0, 3);
  __builtin_prefetch(from + count - 1, 0, 3);  // in another line, where they begin within one
}

}  // namespace polyphase::cpu::POLYPHASE_CLUSTER
