// Runs one tile of a pooling: one row of outputs, in FP32 or in bf16, computed in FP32. With channels inside, lanes are
// channels; otherwise one channel at a time.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "backends/cpu/kernels/pool.h"
#include "backends/cpu/kernels/stored_image.h"
#include "backends/cpu/simd/vec.h"
#include "base/float16.h"

namespace polyphase::cpu::POLYPHASE_CLUSTER {

// The taps of one axis that fall into the input: input = start + t·dilation for first <= t < last.
struct PoolTaps {
  int64_t start;
  int64_t first;
  int64_t last;
  int64_t counted;  // taps within the padded extent
};

POLYPHASE_INLINE PoolTaps pool_taps(const PoolPlan& p, int axis, int64_t o) {
  const int64_t d = p.dilation[axis];
  const int64_t start = o * p.stride[axis] - p.pre[axis];
  const int64_t first = start >= 0 ? 0 : (-start + d - 1) / d;
  const int64_t last = start >= p.in[axis] ? 0 : std::min(p.kernel[axis], (p.in[axis] - start + d - 1) / d);
  const int64_t room = p.padded[axis] - p.pre[axis] - start;  // to the end of the padding
  const int64_t counted = room <= 0 ? 0 : std::min(p.kernel[axis], (room + d - 1) / d);
  return {start, first, std::max(first, last), counted};
}

// What the sum is divided by. (Division, not a product with the reciprocal: exact where the average is.)
POLYPHASE_INLINE float pool_count(const PoolPlan& p, const PoolTaps* taps) {
  double count = 1;  // billions of padded taps in each axis are more than an int64_t counts
  for (int axis = 0; axis < 3; ++axis)
    count *= static_cast<double>(p.include_pad != 0 ? taps[axis].counted : taps[axis].last - taps[axis].first);
  return static_cast<float>(count);
}

// A pixel of the result; lanes are channels. `image` is the operand's batch.
template <DType type, bool average>
POLYPHASE_INLINE void pool_channels(const PoolPlan& p, const std::byte* image, const PoolTaps* taps, std::byte* to) {
  const VecF identity = broadcast(average ? 0.0F : -std::numeric_limits<float>::infinity());
  const VecF count = broadcast(average ? pool_count(p, taps) : 1.0F);
  for (int64_t c = 0; c < p.channels; c += vec_width) {
    const int n = static_cast<int>(std::min<int64_t>(vec_width, p.channels - c));
    VecF sum = identity;
    for (int64_t z = taps[0].first; z < taps[0].last; ++z) {
      for (int64_t y = taps[1].first; y < taps[1].last; ++y) {
        const int64_t row = (taps[0].start + z * p.dilation[0]) * p.from_strides[2] +
                            (taps[1].start + y * p.dilation[1]) * p.from_strides[3] + c;
        for (int64_t x = taps[2].first; x < taps[2].last; ++x) {
          const int64_t at = row + (taps[2].start + x * p.dilation[2]) * p.from_strides[4];
          const VecF value = n == vec_width ? load_stored<type>(image, at) : load_stored_first<type>(image, at, n);
          // A NaN of the input stays: max returns its second operand where either is a NaN.
          sum = average ? sum + value : select(equal(sum, sum), max(sum, value), sum);
        }
      }
    }
    store_stored_first<type>(to, c, average ? sum / count : sum, n);
  }
}

template <DType type>
inline float pool_one(const PoolPlan& p, const std::byte* image, const PoolTaps* taps) {
  using Stored = std::conditional_t<type == DType::f32, float, BFloat16>;
  float sum = p.average != 0 ? 0.0F : -std::numeric_limits<float>::infinity();
  for (int64_t z = taps[0].first; z < taps[0].last; ++z) {
    for (int64_t y = taps[1].first; y < taps[1].last; ++y) {
      const int64_t row = (taps[0].start + z * p.dilation[0]) * p.from_strides[2] +
                          (taps[1].start + y * p.dilation[1]) * p.from_strides[3];
      for (int64_t x = taps[2].first; x < taps[2].last; ++x) {
        const int64_t at = row + (taps[2].start + x * p.dilation[2]) * p.from_strides[4];
        const auto value = static_cast<float>(reinterpret_cast<const Stored*>(image)[at]);
        if (p.average != 0) {
          sum += value;
        } else if (!(value <= sum) && !std::isnan(sum)) {
          sum = value;
        }
      }
    }
  }
  return p.average != 0 ? sum / pool_count(p, taps) : sum;
}

template <DType type>
inline void run_pool(const PoolPlan& p, const std::byte* from, std::byte* to, int64_t tile) {
  constexpr auto element = static_cast<int64_t>(type == DType::f32 ? sizeof(float) : sizeof(uint16_t));
  PoolTaps taps[3];
  if (p.channels_inside != 0) {
    taps[1] = pool_taps(p, 1, tile % p.out[1]);
    taps[0] = pool_taps(p, 0, tile / p.out[1] % p.out[0]);
    const int64_t n = tile / p.out[1] / p.out[0];
    const int64_t row =
        n * p.to_strides[0] + (tile / p.out[1] % p.out[0]) * p.to_strides[2] + (tile % p.out[1]) * p.to_strides[3];
    for (int64_t x = 0; x < p.out[2]; ++x) {
      taps[2] = pool_taps(p, 2, x);
      const std::byte* const image = from + n * p.from_strides[0] * element;
      std::byte* const pixel = to + (row + x * p.to_strides[4]) * element;
      if (p.average != 0) {
        pool_channels<type, true>(p, image, taps, pixel);
      } else {
        pool_channels<type, false>(p, image, taps, pixel);
      }
    }
    return;
  }
  const int64_t z = tile % p.out[0];
  const int64_t c = tile / p.out[0] % p.channels;
  const int64_t n = tile / p.out[0] / p.channels;
  const std::byte* const image = from + (n * p.from_strides[0] + c * p.from_strides[1]) * element;
  taps[0] = pool_taps(p, 0, z);
  for (int64_t y = 0; y < p.out[1]; ++y) {
    taps[1] = pool_taps(p, 1, y);
    const int64_t row = n * p.to_strides[0] + c * p.to_strides[1] + z * p.to_strides[2] + y * p.to_strides[3];
    for (int64_t x = 0; x < p.out[2]; ++x) {
      taps[2] = pool_taps(p, 2, x);
      store_stored_first<type>(to, row + x * p.to_strides[4], broadcast(pool_one<type>(p, image, taps)), 1);
    }
  }
}

}  // namespace polyphase::cpu::POLYPHASE_CLUSTER
