// Runs one tile of grid_sample: the places and weights of a few points, then all channels of them.
//
//   lanes are channels where these lie side by side and are not few; else channel by channel, the points' places reused
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

// Goes from point to point of a batch.
class GridWalk {
 public:
  GridWalk(const GridSamplePlan& p, int64_t n, int64_t index)
      : p_(p), at_(n * p.grid_strides[0]), to_(n * p.to_strides[0]) {
    for (int i = 2; i >= 0; --i) {
      place_[i] = index % p.out[i];
      index /= p.out[i];
      at_ += place_[i] * p.grid_strides[i + 1];
      to_ += place_[i] * p.to_strides[i + 2];
    }
  }

  int64_t at() const { return at_; }  // in the grid
  int64_t to() const { return to_; }

  POLYPHASE_INLINE void next() {
    for (int i = 2; i >= 0; --i) {
      at_ += p_.grid_strides[i + 1];
      to_ += p_.to_strides[i + 2];
      if (++place_[i] < p_.out[i]) return;
      at_ -= p_.out[i] * p_.grid_strides[i + 1];
      to_ -= p_.out[i] * p_.to_strides[i + 2];
      place_[i] = 0;
    }
  }

 private:
  const GridSamplePlan& p_;
  int64_t at_;
  int64_t to_;
  int64_t place_[3];
};

template <typename T, typename G>
inline void find_grid_point(const GridSamplePlan& p, const G* grid, const GridWalk& walk, GridPoint<T>& point) {
  point.to = walk.to();
  GridTaps taps[3];
  for (int i = 0; i < 3; ++i) {
    if (i < 3 - p.spatial) {
      taps[i] = {{0}, {1.0}, 1};
    } else {
      taps[i] = grid_taps(static_cast<double>(grid[walk.at() + (2 - i) * p.grid_strides[4]]), p.in[i], p.rule);
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

// The neighbours of a place along one axis, those that lie inside, as grid_taps has them for linear interpolation.
struct GridNeighbours {
  int64_t offset[2];
  double weight[2];
  int count;

  POLYPHASE_INLINE GridNeighbours(double coordinate, int64_t size, int64_t stride, const GridRule& rule) : count(0) {
    const auto all = static_cast<double>(size);
    const double at = grid_bounded(grid_elements(coordinate, size, rule), size, rule);
    const double first = std::floor(at);
    const double second = at - first;
    const double weights[2] = {1 - second, second};
    for (int i = 0; i < 2; ++i) {
      if (!(first + i >= 0 && first + i < all)) continue;
      offset[count] = (static_cast<int64_t>(first) + i) * stride;
      weight[count++] = weights[i];
    }
  }
};

template <typename T, typename G>
inline void find_linear_point(const GridSamplePlan& p, const G* grid, const GridWalk& walk, GridPoint<T>& point) {
  point.to = walk.to();
  point.count = 0;
  const G* const at = grid + walk.at();
  const GridNeighbours across(static_cast<double>(at[0]), p.in[2], p.from_strides[4], p.rule);
  const GridNeighbours down(static_cast<double>(at[p.grid_strides[4]]), p.in[1], p.from_strides[3], p.rule);
  for (int y = 0; y < down.count; ++y) {
    for (int x = 0; x < across.count; ++x) {
      point.offset[point.count] = down.offset[y] + across.offset[x];
      point.weight[point.count++] = static_cast<T>(down.weight[y] * across.weight[x]);
    }
  }
}

template <typename T, typename G>
void run_grid_sample_of(const GridSamplePlan& p, const T* from, const G* grid, T* to, int64_t tile) {
  const int64_t runs = (p.points + grid_points_per_tile - 1) / grid_points_per_tile;
  const int64_t n = tile / runs;
  const int64_t first = tile % runs * grid_points_per_tile;
  const int64_t last = std::min(first + grid_points_per_tile, p.points);
  const T* image = from + n * p.from_strides[0];
  const bool inside = p.from_strides[1] == 1 && p.to_strides[1] == 1 && p.channels > 4;
  constexpr int together = 16;
  const bool linear = p.spatial == 2 && p.rule.mode == GridMode::linear;
  GridPoint<T> points[together];
  GridWalk walk(p, n, first);
  for (int64_t begin = first; begin < last; begin += together) {
    const int count = static_cast<int>(std::min<int64_t>(together, last - begin));
    for (int i = 0; i < count; ++i, walk.next()) {
      if (linear) {
        find_linear_point(p, grid, walk, points[i]);
      } else {
        find_grid_point(p, grid, walk, points[i]);
      }
    }
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
