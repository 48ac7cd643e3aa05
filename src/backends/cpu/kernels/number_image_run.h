// Runs one tile of a pooling or resampling in any dtype: a row of results, lanes are channels of any stride.
#pragma once

#include <algorithm>
#include <cstdint>

#include "backends/cpu/kernels/number_reduce_run.h"
#include "backends/cpu/kernels/numbers.h"
#include "backends/cpu/kernels/pool_run.h"
#include "backends/cpu/kernels/resample_run.h"

namespace polyphase::cpu::POLYPHASE_CLUSTER {

inline constexpr int64_t channel_run = 128;

// f(element offset) for the window's elements inside the image.
template <class F>
POLYPHASE_INLINE void for_each_pool_tap(const PoolPlan& p, const PoolTaps* taps, F&& f) {
  for (int64_t z = taps[0].first; z < taps[0].last; ++z) {
    for (int64_t y = taps[1].first; y < taps[1].last; ++y) {
      for (int64_t x = taps[2].first; x < taps[2].last; ++x) {
        f((taps[0].start + z * p.dilation[0]) * p.from_strides[2] +
          (taps[1].start + y * p.dilation[1]) * p.from_strides[3] +
          (taps[2].start + x * p.dilation[2]) * p.from_strides[4]);
      }
    }
  }
}

template <bool average, class Number>
inline void number_pool_pixel(const PoolPlan& p, const std::byte* image, const PoolTaps* taps, std::byte* to) {
  constexpr ReduceKind kind = average ? ReduceKind::sum : ReduceKind::max;
  const int64_t bytes = bytes_of(p.dtype);
  const Number start = average                          ? Number{0}
                       : std::is_same_v<Number, double> ? static_cast<Number>(-std::numeric_limits<double>::infinity())
                                                        : static_cast<Number>(p.least);
  Number sums[channel_run];
  Number block[channel_run];
  for (int64_t c = 0; c < p.channels; c += channel_run) {
    const int64_t n = std::min(channel_run, p.channels - c);
    std::fill(sums, sums + n, start);
    for_each_pool_tap(p, taps, [&](int64_t offset) {
      load_numbers(p.dtype, image + (offset + c * p.from_strides[1]) * bytes, p.from_strides[1], n, block);
      for (int64_t i = 0; i < n; ++i) sums[i] = number_step<kind>(sums[i], block[i]);
    });
    if constexpr (average) {
      const auto count = static_cast<Number>(pool_count(p, taps));
      for (int64_t i = 0; i < n; ++i) sums[i] = count == 0 ? Number{0} : sums[i] / count;
    }
    store_numbers(p.dtype, sums, n, to + c * p.to_strides[1] * bytes, p.to_strides[1]);
  }
}

// A tile: the results at one place of the first two axes.
inline void run_number_pool(const PoolPlan& p, const std::byte* from, std::byte* to, int64_t tile) {
  const int64_t bytes = bytes_of(p.dtype);
  const int64_t y = tile % p.out[1];
  const int64_t z = tile / p.out[1] % p.out[0];
  const int64_t n = tile / p.out[1] / p.out[0];
  PoolTaps taps[3] = {pool_taps(p, 0, z), pool_taps(p, 1, y), {}};
  const std::byte* image = from + n * p.from_strides[0] * bytes;
  std::byte* row = to + (n * p.to_strides[0] + z * p.to_strides[2] + y * p.to_strides[3]) * bytes;
  for (int64_t x = 0; x < p.out[2]; ++x) {
    taps[2] = pool_taps(p, 2, x);
    std::byte* pixel = row + x * p.to_strides[4] * bytes;
    if (p.average != 0) {
      number_pool_pixel<true, double>(p, image, taps, pixel);
    } else {
      with_number(p.dtype, [&]<class Number>(Number) { number_pool_pixel<false, Number>(p, image, taps, pixel); });
    }
  }
}

inline void number_resample_pixel(const ResamplePlan& p, const ResampleLists& lists, const std::byte* image,
                                  std::byte* to) {
  const int64_t bytes = bytes_of(p.dtype);
  double sums[channel_run];
  double block[channel_run];
  for (int64_t c = 0; c < p.channels; c += channel_run) {
    const int64_t n = std::min(channel_run, p.channels - c);
    std::fill(sums, sums + n, 0.0);
    for (int z = 0; z < p.taps[0]; ++z) {
      for (int y = 0; y < p.taps[1]; ++y) {
        for (int x = 0; x < p.taps[2]; ++x) {
          const double weight = lists.axis[0][z].exact * lists.axis[1][y].exact * lists.axis[2][x].exact;
          if (weight == 0) continue;
          const int64_t offset = lists.axis[0][z].offset + lists.axis[1][y].offset + lists.axis[2][x].offset;
          load_numbers(p.dtype, image + (offset + c * p.from_strides[1]) * bytes, p.from_strides[1], n, block);
          for (int64_t i = 0; i < n; ++i) sums[i] += weight * block[i];
        }
      }
    }
    store_numbers(p.dtype, sums, n, to + c * p.to_strides[1] * bytes, p.to_strides[1]);
  }
}

inline void run_number_resample(const ResamplePlan& p, const std::byte* from, std::byte* to, int64_t tile) {
  const int64_t bytes = bytes_of(p.dtype);
  const int64_t y = tile % p.out[1];
  const int64_t z = tile / p.out[1] % p.out[0];
  const int64_t n = tile / p.out[1] / p.out[0];
  ResampleLists lists{};
  lists.axis[0] = resample_taps(p, 0, z);
  lists.axis[1] = resample_taps(p, 1, y);
  std::byte* row = to + (n * p.to_strides[0] + z * p.to_strides[2] + y * p.to_strides[3]) * bytes;
  for (int64_t x = 0; x < p.out[2]; ++x) {
    lists.axis[2] = resample_taps(p, 2, x);
    number_resample_pixel(p, lists, from + n * p.from_strides[0] * bytes, row + x * p.to_strides[4] * bytes);
  }
}

}  // namespace polyphase::cpu::POLYPHASE_CLUSTER
