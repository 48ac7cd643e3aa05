// The transforms of Winograd's minimal filtering (conv_winograd.h) in registers, one vector of channels at a time.
#pragma once

#include "backends/cpu/kernels/conv_winograd.h"
#include "backends/cpu/simd/vec.h"

namespace polyphase::cpu::POLYPHASE_CLUSTER {

// One axis of a tile, as winograd_lengths[index] says.
template <int index_>
struct FilterLength {
  static constexpr int index = index_;
  static constexpr int outputs = winograd_lengths[index].outputs;
  static constexpr int taps = winograd_lengths[index].taps;
  static constexpr int points = winograd_lengths[index].points();
};

template <class F>
constexpr void each_filter_length(F&& f) {
  f(FilterLength<0>());
  f(FilterLength<1>());
  f(FilterLength<2>());
  f(FilterLength<3>());
}

// Of the inputs of one tile along one axis, in place.
template <class Length>
POLYPHASE_INLINE void transform_inputs(VecF (&d)[Length::points]) {
  if constexpr (Length::taps == 2) {
    d[0] = d[0] - d[1];
    d[2] = d[2] - d[1];
  }
  if constexpr (Length::taps == 3) {
    const VecF sum = d[1] + d[2];
    const VecF difference = d[2] - d[1];
    d[0] = d[0] - d[2];
    d[3] = d[1] - d[3];
    d[1] = sum;
    d[2] = difference;
  }
}

// The outputs along one axis from its products.
template <class Length>
POLYPHASE_INLINE void transform_products(const VecF (&m)[Length::points], VecF (&y)[Length::outputs]) {
  if constexpr (Length::taps == 1) {
    for (int i = 0; i < Length::outputs; ++i) y[i] = m[i];
  }
  if constexpr (Length::taps == 2) {
    y[0] = m[0] + m[1];
    y[1] = m[1] + m[2];
  }
  if constexpr (Length::taps == 3) {
    y[0] = m[0] + m[1] + m[2];
    y[1] = m[1] - m[2] - m[3];
  }
}

}  // namespace polyphase::cpu::POLYPHASE_CLUSTER
