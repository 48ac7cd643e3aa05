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

// f(h, w) for the lengths of tiles that have no more than two outputs in a direction.
template <class F>
constexpr void each_pair_of_lengths(F&& f) {
  const auto each_length = [](auto g) {
    g(FilterLength<0>());
    g(FilterLength<1>());
    g(FilterLength<2>());
    g(FilterLength<3>());
  };
  each_length([&](auto h) { each_length([&](auto w) { f(h, w); }); });
}

// Of an axis of a tile that has four outputs in a direction, though perhaps not in this one.
template <class F>
constexpr auto with_length_of_fours(std::size_t index, F&& f) {
  switch (index) {
    case 4:
      return f(FilterLength<4>());
    case 5:
      return f(FilterLength<5>());
    case 6:
      return f(FilterLength<6>());
    default:
      return f(FilterLength<0>());
  }
}

POLYPHASE_INLINE VecF add_scaled(float factor, VecF x, VecF sum) { return fma(broadcast(factor), x, sum); }

// Of the inputs of one tile along one axis, in place.
template <class Length>
POLYPHASE_INLINE void transform_inputs(VecF (&d)[Length::points]) {
  if constexpr (Length::outputs == 2 && Length::taps == 2) {
    d[0] = d[0] - d[1];
    d[2] = d[2] - d[1];
  }
  if constexpr (Length::outputs == 2 && Length::taps == 3) {
    const VecF sum = d[1] + d[2];
    const VecF difference = d[2] - d[1];
    d[0] = d[0] - d[2];
    d[3] = d[1] - d[3];
    d[1] = sum;
    d[2] = difference;
  }
  if constexpr (Length::outputs == 4 && Length::taps == 2) {
    const VecF one = add_scaled(-1.125F, d[1], add_scaled(-0.75F, d[2], d[3]));
    const VecF two = add_scaled(1.125F, d[1], add_scaled(-2.25F, d[2], d[3]));
    d[0] = add_scaled(-0.5625F, d[1], add_scaled(-1.5F, d[2], add_scaled(0.84375F, d[0], d[3])));
    d[4] = add_scaled(-0.5625F, d[2], add_scaled(-1.5F, d[3], add_scaled(0.84375F, d[1], d[4])));
    d[3] = add_scaled(-0.5625F, d[1], d[3]);
    d[1] = one;
    d[2] = two;
  }
  if constexpr (Length::outputs == 4 && Length::taps == 3) {
    const VecF even_near = add_scaled(-2.25F, d[2], d[4]);
    const VecF odd_near = broadcast(0.75F) * add_scaled(-2.25F, d[1], d[3]);
    const VecF even_far = add_scaled(-0.5625F, d[2], d[4]);
    const VecF odd_far = broadcast(1.5F) * add_scaled(-0.5625F, d[1], d[3]);
    d[0] = add_scaled(1.265625F, d[0], add_scaled(-2.8125F, d[2], d[4]));
    d[5] = add_scaled(1.265625F, d[1], add_scaled(-2.8125F, d[3], d[5]));
    d[1] = even_near + odd_near;
    d[2] = even_near - odd_near;
    d[3] = even_far + odd_far;
    d[4] = even_far - odd_far;
  }
}

// The outputs along one axis from its products.
template <class Length>
POLYPHASE_INLINE void transform_products(const VecF (&m)[Length::points], VecF (&y)[Length::outputs]) {
  if constexpr (Length::taps == 1) {
    for (int i = 0; i < Length::outputs; ++i) y[i] = m[i];
  } else if constexpr (Length::outputs == 2) {
    y[0] = m[0] + m[1];
    y[1] = m[1] + m[2];
    if constexpr (Length::taps == 3) {
      y[0] = y[0] + m[2];
      y[1] = m[1] - m[2] - m[3];
    }
  } else {
    const VecF sum = m[1] + m[2];
    const VecF difference = m[1] - m[2];
    VecF far_sum = m[3];
    VecF far_difference = m[3];
    if constexpr (Length::taps == 3) {
      far_sum = m[3] + m[4];
      far_difference = m[3] - m[4];
    }
    y[0] = m[0] + (sum + far_sum);
    y[1] = add_scaled(1.5F, far_difference, broadcast(0.75F) * difference);
    y[2] = add_scaled(2.25F, far_sum, broadcast(0.5625F) * sum);
    y[3] = add_scaled(3.375F, far_difference, add_scaled(0.421875F, difference, m[2 + Length::taps]));
  }
}

}  // namespace polyphase::cpu::POLYPHASE_CLUSTER
