// Runs one tile of grid_sample: the places and weights of a few points, then all channels of them.
//
//   lanes are channels where these lie side by side; else channel by channel, the points' places reused
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "backends/cpu/kernels/grid_sample.h"
#include "backends/cpu/simd/vec.h"

namespace polyphase::cpu::POLYPHASE_CLUSTER {

template <typename T>
struct GridPoint {
  int64_t to;
  int32_t count;
  int64_t offset[64];
  T weight[64];
};

template <typename T, typename G>
inline void find_grid_point(const GridSamplePlan& p, const G* grid, int64_t n, int64_t index, GridPoint<T>& point) {
  int64_t at = n * p.grid_strides[0];
  int64_t rest = index;
  point.to = n * p.to_strides[0];
  for (int i = 2; i >= 0; --i) {
    const int64_t place = rest % p.out[i];
    rest /= p.out[i];
    at += place * p.grid_strides[i + 1];
    point.to += place * p.to_strides[i + 2];
  }
  GridTaps taps[3];
  for (int i = 0; i < 3; ++i) {
    if (i < 3 - p.spatial) {
      taps[i] = {{0}, {1.0}, 1};
    } else {
      taps[i] = grid_taps(static_cast<double>(grid[at + (2 - i) * p.grid_strides[4]]), p.in[i], p.rule);
    }
  }
  int32_t count = 0;
  for (int z = 0; z < taps[0].count; ++z) {
    for (int y = 0; y < taps[1].count; ++y) {
      for (int x = 0; x < taps[2].count; ++x) {
        if (taps[0].place[z] < 0 || taps[1].place[y] < 0 || taps[2].place[x] < 0) continue;
        point.offset[count] = taps[0].place[z] * p.from_strides[2] + taps[1].place[y] * p.from_strides[3] +
                              taps[2].place[x] * p.from_strides[4];
        point.weight[count++] = static_cast<T>(taps[0].weight[z] * taps[1].weight[y] * taps[2].weight[x]);
      }
    }
  }
  point.count = count;
}

template <typename T, typename G>
void run_grid_sample_of(const GridSamplePlan& p, const T* from, const G* grid, T* to, int64_t tile) {
  const int64_t runs = (p.points + grid_points_per_tile - 1) / grid_points_per_tile;
  const int64_t n = tile / runs;
  const int64_t first = tile % runs * grid_points_per_tile;
  const int64_t last = std::min(first + grid_points_per_tile, p.points);
  const T* image = from + n * p.from_strides[0];
  const bool inside = p.from_strides[1] == 1 && p.to_strides[1] == 1;
  constexpr int together = 16;
  GridPoint<T> points[together];
  for (int64_t begin = first; begin < last; begin += together) {
    const int count = static_cast<int>(std::min<int64_t>(together, last - begin));
    for (int i = 0; i < count; ++i) find_grid_point(p, grid, n, begin + i, points[i]);
    if (inside) {
      for (int i = 0; i < count; ++i) {
        T* row = to + points[i].to;
        for (int64_t c = 0; c < p.channels; ++c) row[c] = 0;
        for (int k = 0; k < points[i].count; ++k) {
          const T weight = points[i].weight[k];
          const T* pixel = image + points[i].offset[k];
          for (int64_t c = 0; c < p.channels; ++c) row[c] += weight * pixel[c];
        }
      }
      continue;
    }
    for (int64_t c = 0; c < p.channels; ++c) {
      const T* plane = image + c * p.from_strides[1];
      T* result = to + c * p.to_strides[1];
      for (int i = 0; i < count; ++i) {
        T sum = 0;
        for (int k = 0; k < points[i].count; ++k) sum += points[i].weight[k] * plane[points[i].offset[k]];
        result[points[i].to] = sum;
      }
    }
  }
}

inline void run_grid_sample(const GridSamplePlan& p, const std::byte* from, const std::byte* grid, std::byte* to,
                            int64_t tile) {
  const auto with = [&]<typename T>(T*) {
    if (p.grid_dtype == DType::f64) {
      run_grid_sample_of(p, reinterpret_cast<const T*>(from), reinterpret_cast<const double*>(grid),
                         reinterpret_cast<T*>(to), tile);
    } else {
      run_grid_sample_of(p, reinterpret_cast<const T*>(from), reinterpret_cast<const float*>(grid),
                         reinterpret_cast<T*>(to), tile);
    }
  };
  if (p.dtype == DType::f64) {
    with(static_cast<double*>(nullptr));
  } else {
    with(static_cast<float*>(nullptr));
  }
}

}  // namespace polyphase::cpu::POLYPHASE_CLUSTER
