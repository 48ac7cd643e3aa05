// Runs one tile of a resampling: rows of results.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "backends/cpu/kernels/resample.h"
#include "backends/cpu/simd/transpose.h"
#include "backends/cpu/simd/vec.h"

namespace polyphase::cpu::POLYPHASE_CLUSTER {

template <class T>
POLYPHASE_INLINE const T* resample_list(const ResamplePlan& p, int64_t at) {
  return reinterpret_cast<const T*>(reinterpret_cast<const std::byte*>(&p) + at);
}

POLYPHASE_INLINE const ResampleTap* resample_taps(const ResamplePlan& p, int axis, int64_t place) {
  return resample_list<ResampleTap>(p, p.taps_at[axis]) + place * p.taps[axis];
}

struct ResampleLists {
  const ResampleTap* axis[3];
};

// to[i] = value(read)[i] for a run of floats, by whole vectors and a last one that is none: `read` loads the run's
// present vector from where another run begins.
template <class Value>
POLYPHASE_INLINE void store_run(float* to, int64_t count, Value value) {
  int64_t i = 0;
  for (; i + vec_width <= count; i += vec_width)
    store(to + i, value([i](const float* from) { return load(from + i); }));
  const int n = static_cast<int>(count - i);
  if (n > 0) store_first(to + i, value([i, n](const float* from) { return load_first(from + i, n); }), n);
}

inline void resample_pixel(const ResamplePlan& p, const ResampleLists& lists, const float* image, float* to) {
  const bool copies = p.taps[0] == 1 && p.taps[1] == 1 && p.taps[2] == 1;
  if (copies) {
    const float* from = image + lists.axis[0]->offset + lists.axis[1]->offset + lists.axis[2]->offset;
    store_run(to, p.channels, [&](auto read) { return read(from); });
    return;
  }
  store_run(to, p.channels, [&](auto read) {
    VecF sum = broadcast(0.0F);
    for (int z = 0; z < p.taps[0]; ++z) {
      for (int y = 0; y < p.taps[1]; ++y) {
        const float outer = lists.axis[0][z].weight * lists.axis[1][y].weight;
        const float* row = image + lists.axis[0][z].offset + lists.axis[1][y].offset;
        for (int x = 0; x < p.taps[2]; ++x)
          sum = fma(broadcast(outer * lists.axis[2][x].weight), read(row + lists.axis[2][x].offset), sum);
      }
    }
    return sum;
  });
}

inline float resample_one(const ResamplePlan& p, const ResampleLists& lists, const float* image) {
  if (p.taps[0] == 1 && p.taps[1] == 1 && p.taps[2] == 1)
    return image[lists.axis[0]->offset + lists.axis[1]->offset + lists.axis[2]->offset];
  float sum = 0;
  for (int z = 0; z < p.taps[0]; ++z) {
    for (int y = 0; y < p.taps[1]; ++y) {
      const float outer = lists.axis[0][z].weight * lists.axis[1][y].weight;
      const float* row = image + lists.axis[0][z].offset + lists.axis[1][y].offset;
      for (int x = 0; x < p.taps[2]; ++x) sum += outer * lists.axis[2][x].weight * row[lists.axis[2][x].offset];
    }
  }
  return sum;
}

// to[x] = Σ over the taps of the outer axes, for `count` places of the last axis.
inline void sum_lines(const ResamplePlan& p, const ResampleLists& lists, const float* image, int64_t count, float* to) {
  store_run(to, count, [&](auto read) {
    VecF sum = broadcast(0.0F);
    for (int z = 0; z < p.taps[0]; ++z) {
      for (int y = 0; y < p.taps[1]; ++y) {
        const float weight = lists.axis[0][z].weight * lists.axis[1][y].weight;
        sum = fma(broadcast(weight), read(image + lists.axis[0][z].offset + lists.axis[1][y].offset), sum);
      }
    }
    return sum;
  });
}

// A line of results out of `line`, of which whole vectors can be read wherever a list says.
inline void resample_line(const ResamplePlan& p, const float* line, float* to) {
  const int taps = p.taps[2];
  if (!p.picks) {
    for (int64_t x = 0; x < p.out[2]; ++x) {
      const ResampleTap* list = resample_taps(p, 2, x);
      float sum = p.copies_last ? line[list->offset] : 0.0F;
      for (int k = 0; k < taps && !p.copies_last; ++k) sum += list[k].weight * line[list[k].offset];
      to[x] = sum;
    }
    return;
  }
  const auto* first = resample_list<int64_t>(p, p.first_at);
  const auto* lanes = resample_list<int32_t>(p, p.lanes_at);
  const auto* weights = resample_list<float>(p, p.weights_at);
  for (int64_t x = 0; x < p.out[2]; x += vec_width) {
    const VecF values = load(line + *first++);
    VecF sum = pick(values, load(lanes));
    if (!p.copies_last) sum = sum * load(weights);
    for (int k = 1; k < taps; ++k)
      sum = fma(pick(values, load(lanes + k * vec_width)), load(weights + k * vec_width), sum);
    lanes += taps * vec_width;
    weights += taps * vec_width;
    if (x + vec_width <= p.out[2]) {
      store(to + x, sum);
    } else {
      store_first(to + x, sum, static_cast<int>(p.out[2] - x));
    }
  }
}

inline void resample_lines(const ResamplePlan& p, ResampleLists& lists, const float* image, float* plane, int64_t y0,
                           float* buffer) {
  const bool copies = p.taps[0] == 1 && p.taps[1] == 1;
  for (int64_t y = y0; y < std::min(p.out[1], y0 + p.line_block); ++y) {
    lists.axis[1] = resample_taps(p, 1, y);
    float* const to = plane + y * p.to_strides[3];
    const float* line = image + lists.axis[0]->offset + lists.axis[1]->offset;
    if (p.keeps_last && !copies) {
      sum_lines(p, lists, image, p.in_width, to);
      continue;
    }
    if (!copies) {
      sum_lines(p, lists, image, p.in_width, buffer);
      line = buffer;
    } else if (p.in_width < vec_width) {
      std::copy_n(line, p.in_width, buffer);
      line = buffer;
    }
    if (p.keeps_last) {
      std::copy_n(line, p.in_width, to);
    } else {
      resample_line(p, line, to);
    }
  }
}

// A line of results out of an operand whose channels lie beside each other.
inline void resample_pixels(const ResamplePlan& p, const float* from, float* to, int64_t line, float* buffer) {
  const int64_t y = line % p.out[1];
  const int64_t z = line / p.out[1] % p.out[0];
  const int64_t n = line / p.out[1] / p.out[0];
  ResampleLists lists{};
  lists.axis[0] = resample_taps(p, 0, z);
  lists.axis[1] = resample_taps(p, 1, y);
  const float* const image = from + n * p.from_strides[0];
  float* const row = to + n * p.to_strides[0] + z * p.to_strides[2] + y * p.to_strides[3];
  const auto resample = [&](int64_t x, float* pixel) {
    lists.axis[2] = resample_taps(p, 2, x);
    resample_pixel(p, lists, image, pixel);
  };
  if (p.turned == 0) {
    for (int64_t x = 0; x < p.out[2]; ++x) resample(x, row + x * p.to_strides[4]);
    return;
  }
  for (int64_t first = 0; first < p.out[2]; first += p.turned) {
    const int64_t count = std::min(p.turned, p.out[2] - first);
    for (int64_t i = 0; i < count; ++i) resample(first + i, buffer + i * p.channels);
    transpose(buffer, p.channels, row + first, p.to_strides[1], count, p.channels);
  }
}

inline void run_resample(const ResamplePlan& p, const float* from, float* to, int64_t tile, float* buffer) {
  if (p.channels_inside != 0) return resample_pixels(p, from, to, tile, buffer);
  ResampleLists lists{};
  const int64_t y0 = tile % p.line_blocks * p.line_block;
  tile /= p.line_blocks;
  const int64_t z = tile % p.out[0];
  const int64_t c = tile / p.out[0] % p.channels;
  const int64_t n = tile / p.out[0] / p.channels;
  lists.axis[0] = resample_taps(p, 0, z);
  const float* image = from + n * p.from_strides[0] + c * p.from_strides[1];
  float* plane = to + n * p.to_strides[0] + c * p.to_strides[1] + z * p.to_strides[2];
  if (p.lines) return resample_lines(p, lists, image, plane, y0, buffer);
  for (int64_t y = y0; y < std::min(p.out[1], y0 + p.line_block); ++y) {
    lists.axis[1] = resample_taps(p, 1, y);
    for (int64_t x = 0; x < p.out[2]; ++x) {
      lists.axis[2] = resample_taps(p, 2, x);
      plane[y * p.to_strides[3] + x * p.to_strides[4]] = resample_one(p, lists, image);
    }
  }
}

}  // namespace polyphase::cpu::POLYPHASE_CLUSTER
