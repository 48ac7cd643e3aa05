// Runs one tile of a pooling: one row of outputs, in FP32 or in bf16, computed in FP32.
//
//   channels inside   lanes are channels
//   lines inside      lanes are pixels: rows of the window ─ max or sum ─▶ line ─ every stride-th ─▶ phases ─ taps ─▶
//   results neither           element by element
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "backends/cpu/kernels/pool.h"
#include "backends/cpu/kernels/stored_image.h"
#include "backends/cpu/simd/transpose.h"
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

// A NaN of the input stays: max returns its second operand where either is a NaN.
POLYPHASE_INLINE VecF pool_join(bool average, VecF sum, VecF value) {
  return average ? sum + value : select(equal(sum, sum), max(sum, value), sum);
}

// A pixel of the result; lanes are channels. `image` is the operand's batch.
template <DType type, bool average>
POLYPHASE_INLINE void pool_channels(const PoolPlan& p, const std::byte* image, const PoolTaps* taps, std::byte* to) {
  const VecF identity = broadcast(average ? 0.0F : -std::numeric_limits<float>::infinity());
  const VecF count = broadcast(average ? pool_count(p, taps) : 1.0F);
  for (int64_t c = 0; c < p.channels; c += vec_width) {
    const int n = lanes_of(p.channels - c);
    VecF sum = identity;
    for (int64_t z = taps[0].first; z < taps[0].last; ++z) {
      for (int64_t y = taps[1].first; y < taps[1].last; ++y) {
        const int64_t row = (taps[0].start + z * p.dilation[0]) * p.from_strides[2] +
                            (taps[1].start + y * p.dilation[1]) * p.from_strides[3] + c;
        for (int64_t x = taps[2].first; x < taps[2].last; ++x) {
          const int64_t at = row + (taps[2].start + x * p.dilation[2]) * p.from_strides[4];
          const VecF value = n == vec_width ? load_stored<type>(image, at) : load_stored_first<type>(image, at, n);
          sum = pool_join(average, sum, value);
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

// A line whose pixels that lie a stride apart are neighbours, so that a tap's pixels are a run of it.
struct PoolPhases {
  const float* line;
  int64_t stride;
  int64_t pitch;
  const float* tap(int64_t t) const { return stride == 1 ? line + t : line + t % stride * pitch + t / stride; }
};

// `room` takes 2 pool_span.
inline PoolPhases part_pool_line(const float* line, int64_t span, int64_t stride, float* room) {
  if (stride == 1) return {line, 1, 0};
  const int64_t pitch = (span - 1) / stride + 1;
  int64_t whole = 0;
  if (stride <= 4) {
    whole = span / stride;
    deinterleave(line, room, pitch, stride, whole);
  }
  for (int64_t r = 0; r < std::min(stride, span); ++r) {
    for (int64_t c = whole; c < pitch && c * stride + r < span; ++c) room[r * pitch + c] = line[c * stride + r];
  }
  return {room, stride, pitch};
}

// Results [first, first + n) of a row, lanes being pixels. taps[0] and taps[1] are the row's; they go to `to` from
// element `to_first` on.
template <DType type>
inline void pool_pixels(const PoolPlan& p, const std::byte* image, PoolTaps* taps, int64_t first, int64_t n,
                        std::byte* to, int64_t to_first) {
  const bool average = p.average != 0;
  const VecF identity = broadcast(average ? 0.0F : -std::numeric_limits<float>::infinity());
  const int64_t span = (n - 1) * p.stride[2] + (p.kernel[2] - 1) * p.dilation[2] + 1;
  const int64_t start = first * p.stride[2] - p.pre[2];
  const int64_t low = std::clamp<int64_t>(-start, 0, span);
  const int64_t high = std::clamp<int64_t>(p.in[2] - start, low, span);
  float joined[pool_span + vec_width];
  float room[2 * pool_span];
  float results[pool_span + vec_width];
  for (int64_t j = 0; j < low; j += vec_width) store(joined + j, identity);
  for (int64_t j = low; j < high; j += vec_width) {
    const int lanes = lanes_of(high - j);
    VecF sum = identity;
    for (int64_t z = taps[0].first; z < taps[0].last; ++z) {
      for (int64_t y = taps[1].first; y < taps[1].last; ++y) {
        const int64_t at = (taps[0].start + z * p.dilation[0]) * p.from_strides[2] +
                           (taps[1].start + y * p.dilation[1]) * p.from_strides[3] + start + j;
        sum = pool_join(average, sum,
                        lanes == vec_width ? load_stored<type>(image, at) : load_stored_first<type>(image, at, lanes));
      }
    }
    store(joined + j, sum);
  }
  for (int64_t j = high; j < span; j += vec_width) store_first(joined + j, identity, lanes_of(span - j));
  const PoolPhases phases = part_pool_line(joined, span, p.stride[2], room);
  for (int64_t t = 0; t < p.kernel[2]; ++t) {
    const float* const values = phases.tap(t * p.dilation[2]);
    for (int64_t i = 0; i < n; i += vec_width) {
      const VecF value = load_first(values + i, lanes_of(n - i));
      store(results + i, t == 0 ? value : pool_join(average, load(results + i), value));
    }
  }
  if (average) {
    // Windows within the line count all their taps.
    const int64_t inside = std::clamp<int64_t>(start < 0 ? (-start - 1) / p.stride[2] + 1 : 0, 0, n);
    const int64_t room_left = p.in[2] - start - (p.kernel[2] - 1) * p.dilation[2] - 1;
    const int64_t beyond = room_left < 0 ? inside : std::clamp<int64_t>(room_left / p.stride[2] + 1, inside, n);
    const auto divide = [&](int64_t i) {
      taps[2] = pool_taps(p, 2, first + i);
      results[i] /= pool_count(p, taps);
    };
    for (int64_t i = 0; i < inside; ++i) divide(i);
    if (inside < beyond) {
      taps[2] = pool_taps(p, 2, first + inside);
      const VecF count = broadcast(pool_count(p, taps));
      for (int64_t i = inside; i < beyond; i += vec_width) {
        const int lanes = lanes_of(beyond - i);
        store_first(results + i, load_first(results + i, lanes) / count, lanes);
      }
    }
    for (int64_t i = beyond; i < n; ++i) divide(i);
  }
  for (int64_t i = 0; i < n; i += vec_width)
    store_stored_first<type>(to, to_first + i, load(results + i), lanes_of(n - i));
}

// How many results of a line have windows within pool_span together.
inline int64_t pool_chunk(const PoolPlan& p) {
  return (pool_span - (p.kernel[2] - 1) * p.dilation[2] - 1) / p.stride[2] + 1;
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
    if (p.lines_inside != 0) {
      const int64_t chunk = pool_chunk(p);
      for (int64_t x = 0; x < p.out[2]; x += chunk)
        pool_pixels<type>(p, image, taps, x, std::min(chunk, p.out[2] - x), to, row + x);
      continue;
    }
    for (int64_t x = 0; x < p.out[2]; ++x) {
      taps[2] = pool_taps(p, 2, x);
      store_stored_first<type>(to, row + x * p.to_strides[4], broadcast(pool_one<type>(p, image, taps)), 1);
    }
  }
}

// ------------------------------------------------------------ places

// Of equals the first counts, of NaN the last, which is greater than all. A window of padding alone gives 0.
inline int64_t find_pool_place(const PoolPlan& p, const float* plane, const PoolTaps* taps) {
  int64_t best = -1;
  float held = 0;
  for (int64_t z = taps[0].first; z < taps[0].last; ++z) {
    for (int64_t y = taps[1].first; y < taps[1].last; ++y) {
      const int64_t line = (taps[0].start + z * p.dilation[0]) * p.in[1] + taps[1].start + y * p.dilation[1];
      for (int64_t x = taps[2].first; x < taps[2].last; ++x) {
        const int64_t place = line * p.in[2] + taps[2].start + x * p.dilation[2];
        const float value = plane[place];
        if (best >= 0 && !(value > held) && !std::isnan(value)) continue;
        best = place;
        held = value;
      }
    }
  }
  return std::max<int64_t>(best, 0);
}

// The places of results [first, first + n), whose windows lie within the line, into `best`; lanes are pixels.
inline void find_pool_places(const PoolPlan& p, const float* plane, const PoolTaps* taps, int64_t first, int64_t n,
                             int32_t* best) {
  const int64_t span = (n - 1) * p.stride[2] + (p.kernel[2] - 1) * p.dilation[2] + 1;
  const int64_t start = first * p.stride[2] - p.pre[2];
  float room[2 * pool_span];
  float held[pool_span + vec_width];
  int32_t steps[vec_width];
  for (int i = 0; i < vec_width; ++i) steps[i] = static_cast<int32_t>(i * p.stride[2]);
  const VecI lanes = load(steps);
  bool begun = false;
  for (int64_t z = taps[0].first; z < taps[0].last; ++z) {
    for (int64_t y = taps[1].first; y < taps[1].last; ++y) {
      const int64_t line = (taps[0].start + z * p.dilation[0]) * p.in[1] + taps[1].start + y * p.dilation[1];
      const PoolPhases phases = part_pool_line(plane + line * p.in[2] + start, span, p.stride[2], room);
      for (int64_t t = 0; t < p.kernel[2]; ++t) {
        const float* const values = phases.tap(t * p.dilation[2]);
        const int64_t at = line * p.in[2] + start + t * p.dilation[2];
        for (int64_t i = 0; i < n; i += vec_width) {
          const VecF value = load_first(values + i, lanes_of(n - i));
          const VecI place = broadcast(static_cast<int32_t>(at + i * p.stride[2])) + lanes;
          if (!begun) {
            store(held + i, value);
            store(best + i, place);
            continue;
          }
          const VecF before = load(held + i);
          const VecI found = load(best + i);
          const Mask wins = less(before, value);
          const Mask number = equal(value, value);
          store(held + i, select(number, select(wins, value, before), value));
          store(best + i, select(number, select(wins, place, found), place));
        }
        begun = true;
      }
    }
  }
  if (!begun) std::fill(best, best + n, 0);
}

inline int64_t column_major_place(const PoolPlan& p, int64_t place) {
  if (place == 0) return 0;  // also of an operand without elements
  const int64_t w = place % p.in[2];
  const int64_t h = place / p.in[2] % p.in[1];
  const int64_t d = place / p.in[2] / p.in[1];
  return d + p.in[0] * (h + p.in[1] * w);
}

inline void run_pool_places(const PoolPlacesPlan& plan, const float* from, int64_t* to, int64_t tile) {
  const PoolPlan& p = plan.windows;
  const int64_t rows = p.out[0] * p.out[1];  // of a plane of the result
  const int64_t blocks = (rows + pool_rows_at_once - 1) / pool_rows_at_once;
  const int64_t plane = tile / blocks;
  const int64_t offset = plane * p.in[0] * p.in[1] * p.in[2];
  const auto placed = [&](int64_t place) {
    return offset + (plan.by_columns != 0 ? column_major_place(p, place) : place);
  };
  // Results [low, high) of each row have windows within the line.
  int64_t low = p.out[2];
  int64_t high = p.out[2];
  if (p.lines_inside != 0) {
    const int64_t room = p.in[2] + p.pre[2] - (p.kernel[2] - 1) * p.dilation[2] - 1;
    low = p.pre[2] <= 0 ? 0 : std::min(p.out[2], (p.pre[2] - 1) / p.stride[2] + 1);
    high = room < 0 ? low : std::clamp(room / p.stride[2] + 1, low, p.out[2]);
  }
  int32_t best[pool_span + vec_width];
  PoolTaps taps[3];
  const int64_t first = tile % blocks * pool_rows_at_once;
  for (int64_t row = first; row < std::min(rows, first + pool_rows_at_once); ++row) {
    taps[0] = pool_taps(p, 0, row / p.out[1]);
    taps[1] = pool_taps(p, 1, row % p.out[1]);
    int64_t* const results = to + (plane * rows + row) * p.out[2];
    const auto one_by_one = [&](int64_t begin, int64_t end) {
      for (int64_t x = begin; x < end; ++x) {
        taps[2] = pool_taps(p, 2, x);
        results[x] = placed(find_pool_place(p, from + offset, taps));
      }
    };
    one_by_one(0, low);
    for (int64_t x = low; x < high;) {
      const int64_t n = std::min(pool_chunk(p), high - x);
      find_pool_places(p, from + offset, taps, x, n, best);
      for (int64_t i = 0; i < n; ++i) results[x + i] = placed(best[i]);
      x += n;
    }
    one_by_one(high, p.out[2]);
  }
}

}  // namespace polyphase::cpu::POLYPHASE_CLUSTER
