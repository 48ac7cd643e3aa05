// The transforms of Winograd's minimal filtering (conv_winograd.h) in registers, one vector of channels at a time.
#pragma once

#include "backends/cpu/simd/vec.h"

namespace polyphase::cpu::POLYPHASE_CLUSTER {

constexpr int filter_points(int taps) { return taps == 1 ? 1 : taps + 1; }
constexpr int filter_outputs(int taps) { return taps == 1 ? 1 : 2; }

// Of the inputs of one tile along one axis, in place.
template <int taps>
POLYPHASE_INLINE void transform_inputs(VecF (&d)[filter_points(taps)]) {
  if constexpr (taps == 2) {
    d[0] = d[0] - d[1];
    d[2] = d[2] - d[1];
  }
  if constexpr (taps == 3) {
    const VecF sum = d[1] + d[2];
    const VecF difference = d[2] - d[1];
    d[0] = d[0] - d[2];
    d[3] = d[1] - d[3];
    d[1] = sum;
    d[2] = difference;
  }
}

// The outputs along one axis from its products.
template <int taps>
POLYPHASE_INLINE void transform_products(const VecF (&m)[filter_points(taps)], VecF (&y)[filter_outputs(taps)]) {
  if constexpr (taps == 1) y[0] = m[0];
  if constexpr (taps == 2) {
    y[0] = m[0] + m[1];
    y[1] = m[1] + m[2];
  }
  if constexpr (taps == 3) {
    y[0] = m[0] + m[1] + m[2];
    y[1] = m[1] - m[2] - m[3];
  }
}

}  // namespace polyphase::cpu::POLYPHASE_CLUSTER
