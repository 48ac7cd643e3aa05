// Loops over registers. What a loop indexes stays in registers only if the compiler writes its steps one after the
// other before it looks, which it does for few and short ones.
#pragma once

#include <utility>

#include "backends/cpu/simd/cluster.h"

namespace polyphase::cpu::POLYPHASE_CLUSTER {

template <class F, int... I>
POLYPHASE_INLINE void unrolled(const F& f, std::integer_sequence<int, I...>) {
  (f(I), ...);
}

// f(0), f(1), … f(N - 1), written one after the other; f is a POLYPHASE_INLINE_LAMBDA.
template <int N, class F>
POLYPHASE_INLINE void unrolled(const F& f) {
  unrolled(f, std::make_integer_sequence<int, N>());
}

// The same place, of which the compiler does not know whose it is: what is stored there stays there. It would keep
// small arrays in registers, and then those that a loop needs on the stack.
POLYPHASE_INLINE float* in_memory(float* place) {
#if defined(__GNUC__)
  __asm__("" : "+r"(place));
#endif
  return place;
}

}  // namespace polyphase::cpu::POLYPHASE_CLUSTER
