// Runs one tile of a resampling: one row of results.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "backends/cpu/kernels/resample.h"
#include "backends/cpu/simd/vec.h"

namespace polyphase::cpu::POLYPHASE_CLUSTER {

POLYPHASE_INLINE const ResampleTap* resample_taps(const ResamplePlan& p, int axis, int64_t place) {
  const auto* lists = reinterpret_cast<const ResampleTap*>(reinterpret_cast<const std::byte*>(&p) + p.taps_at[axis]);
  return lists + place * p.taps[axis];
}

struct ResampleLists {
  const ResampleTap* axis[3];
};

inline void resample_pixel(const ResamplePlan& p, const ResampleLists& lists, const float* image, float* to) {
  const bool copies = p.taps[0] == 1 && p.taps[1] == 1 && p.taps[2] == 1;
  if (copies) {
    const float* from = image + lists.axis[0]->offset + lists.axis[1]->offset + lists.axis[2]->offset;
    for (int64_t c = 0; c < p.channels; c += vec_width) {
      const int n = static_cast<int>(std::min<int64_t>(vec_width, p.channels - c));
      store_first(to + c, load_first(from + c, n), n);
    }
    return;
  }
  for (int64_t c = 0; c < p.channels; c += vec_width) {
    const int n = static_cast<int>(std::min<int64_t>(vec_width, p.channels - c));
    VecF sum = broadcast(0.0F);
    for (int z = 0; z < p.taps[0]; ++z) {
      for (int y = 0; y < p.taps[1]; ++y) {
        const float outer = lists.axis[0][z].weight * lists.axis[1][y].weight;
        if (outer == 0.0F) continue;
        const float* row = image + lists.axis[0][z].offset + lists.axis[1][y].offset + c;
        for (int x = 0; x < p.taps[2]; ++x) {
          const float weight = outer * lists.axis[2][x].weight;
          if (weight != 0.0F) sum = fma(broadcast(weight), load_first(row + lists.axis[2][x].offset, n), sum);
        }
      }
    }
    store_first(to + c, sum, n);
  }
}

inline float resample_one(const ResamplePlan& p, const ResampleLists& lists, const float* image) {
  if (p.taps[0] == 1 && p.taps[1] == 1 && p.taps[2] == 1)
    return image[lists.axis[0]->offset + lists.axis[1]->offset + lists.axis[2]->offset];
  float sum = 0;
  for (int z = 0; z < p.taps[0]; ++z) {
    for (int y = 0; y < p.taps[1]; ++y) {
      const float outer = lists.axis[0][z].weight * lists.axis[1][y].weight;
      if (outer == 0.0F) continue;
      const float* row = image + lists.axis[0][z].offset + lists.axis[1][y].offset;
      for (int x = 0; x < p.taps[2]; ++x) {
        const float weight = outer * lists.axis[2][x].weight;
        if (weight != 0.0F) sum += weight * row[lists.axis[2][x].offset];
      }
    }
  }
  return sum;
}

inline void run_resample(const ResamplePlan& p, const float* from, float* to, int64_t tile) {
  ResampleLists lists{};
  if (p.channels_inside != 0) {
    const int64_t y = tile % p.out[1];
    const int64_t z = tile / p.out[1] % p.out[0];
    const int64_t n = tile / p.out[1] / p.out[0];
    lists.axis[0] = resample_taps(p, 0, z);
    lists.axis[1] = resample_taps(p, 1, y);
    float* row = to + n * p.to_strides[0] + z * p.to_strides[2] + y * p.to_strides[3];
    for (int64_t x = 0; x < p.out[2]; ++x) {
      lists.axis[2] = resample_taps(p, 2, x);
      resample_pixel(p, lists, from + n * p.from_strides[0], row + x * p.to_strides[4]);
    }
    return;
  }
  const int64_t z = tile % p.out[0];
  const int64_t c = tile / p.out[0] % p.channels;
  const int64_t n = tile / p.out[0] / p.channels;
  lists.axis[0] = resample_taps(p, 0, z);
  const float* image = from + n * p.from_strides[0] + c * p.from_strides[1];
  for (int64_t y = 0; y < p.out[1]; ++y) {
    lists.axis[1] = resample_taps(p, 1, y);
    float* row = to + n * p.to_strides[0] + c * p.to_strides[1] + z * p.to_strides[2] + y * p.to_strides[3];
    for (int64_t x = 0; x < p.out[2]; ++x) {
      lists.axis[2] = resample_taps(p, 2, x);
      row[x * p.to_strides[4]] = resample_one(p, lists, image);
    }
  }
}

}  // namespace polyphase::cpu::POLYPHASE_CLUSTER
