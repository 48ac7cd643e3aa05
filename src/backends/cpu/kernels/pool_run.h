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
#include "backends/cpu/simd/unrolled.h"
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
  const int64_t end = start + (p.kernel[axis] - 1) * d;
  if (start >= 0 && end < std::min(p.in[axis], p.padded[axis] - p.pre[axis]))
    return {start, 0, p.kernel[axis], p.kernel[axis]};
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

template <bool average, int V>
POLYPHASE_INLINE void begin_pool(VecF (&sums)[V]) {
  unrolled<V>([&](int v) POLYPHASE_INLINE_LAMBDA {
    sums[v] = broadcast(average ? 0.0F : -std::numeric_limits<float>::infinity());
  });
}

// V vectors beside each other of all taps of a window, from element `at` on, where its first tap is.
template <DType type, bool average, int V>
POLYPHASE_INLINE void pool_window(const PoolPlan& p, const std::byte* image, int64_t at, const PoolTaps* taps,
                                  VecF (&sums)[V], int lanes) {
  begin_pool<average>(sums);
  const int64_t step = p.dilation[2] * p.from_strides[4];
  for (int64_t z = taps[0].first; z < taps[0].last; ++z) {
    for (int64_t y = taps[1].first; y < taps[1].last; ++y) {
      const int64_t row = at + z * p.dilation[0] * p.from_strides[2] + y * p.dilation[1] * p.from_strides[3];
      for (int64_t x = taps[2].first; x < taps[2].last; ++x) {
        unrolled<V>([&](int v) POLYPHASE_INLINE_LAMBDA {
          const int64_t from = row + x * step + v * vec_width;
          const bool whole = V > 1 || lanes == vec_width;
          const VecF value = whole ? load_stored<type>(image, from) : load_stored_first<type>(image, from, lanes);
          sums[v] = pool_join(average, sums[v], value);
        });
      }
    }
  }
}

// Channels `c` and those behind it of a pixel of the result.
template <DType type, bool average, int V>
POLYPHASE_INLINE void pool_vectors(const PoolPlan& p, const std::byte* image, int64_t at, const PoolTaps* taps,
                                   VecF count, std::byte* to, int64_t c, int lanes) {
  VecF sums[V];
  pool_window<type, average>(p, image, at + c, taps, sums, lanes);
  unrolled<V>([&](int v) POLYPHASE_INLINE_LAMBDA {
    store_stored_first<type>(to, c + v * vec_width, average ? sums[v] / count : sums[v], V > 1 ? vec_width : lanes);
  });
}

// A line of the result; lanes are channels. taps[0] and taps[1] are the line's, `image` the operand's batch.
template <DType type, bool average>
inline void pool_channels(const PoolPlan& p, const std::byte* image, PoolTaps* taps, std::byte* to) {
  constexpr auto element = static_cast<int64_t>(type == DType::f32 ? sizeof(float) : sizeof(uint16_t));
  constexpr int at_once = 4;
  for (int64_t x = 0; x < p.out[2]; ++x, to += p.to_strides[4] * element) {
    taps[2] = pool_taps(p, 2, x);
    const VecF count = broadcast(average ? pool_count(p, taps) : 1.0F);
    const int64_t at =
        taps[0].start * p.from_strides[2] + taps[1].start * p.from_strides[3] + taps[2].start * p.from_strides[4];
    int64_t c = 0;
    for (; c + at_once * vec_width <= p.channels; c += at_once * vec_width)
      pool_vectors<type, average, at_once>(p, image, at, taps, count, to, c, vec_width);
    for (; c < p.channels; c += vec_width)
      pool_vectors<type, average, 1>(p, image, at, taps, count, to, c, lanes_of(p.channels - c));
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

// What the lines of the row's windows come to, one upon the other, from element `at` of the image on: `count` pixels.
template <DType type, bool average>
inline void join_pool_lines(const PoolPlan& p, const std::byte* image, const PoolTaps* taps, int64_t at, int64_t count,
                            float* to) {
  const PoolTaps lines[] = {taps[0], taps[1], {0, 0, 1, 1}};
  constexpr int at_once = 4;
  const int64_t row = at + taps[0].start * p.from_strides[2] + taps[1].start * p.from_strides[3];
  int64_t i = 0;
  for (; i + at_once * vec_width <= count; i += at_once * vec_width) {
    VecF sums[at_once];
    pool_window<type, average>(p, image, row + i, lines, sums, vec_width);
    unrolled<at_once>([&](int v) POLYPHASE_INLINE_LAMBDA { store(to + i + v * vec_width, sums[v]); });
  }
  for (; i < count; i += vec_width) {
    VecF sums[1];
    pool_window<type, average>(p, image, row + i, lines, sums, lanes_of(count - i));
    store(to + i, sums[0]);
  }
}

// The taps of `n` windows along a line, some of them at a time.
template <bool average>
inline void join_pool_taps(const PoolPlan& p, const PoolPhases& phases, int64_t n, float* results) {
  constexpr int at_once = 8;
  for (int64_t first = 0; first < p.kernel[2]; first += at_once) {
    const int64_t count = std::min<int64_t>(at_once, p.kernel[2] - first);
    const float* taps[at_once];
    for (int64_t t = 0; t < count; ++t) taps[t] = phases.tap((first + t) * p.dilation[2]);
    const auto join = [&](int64_t i, auto load_them) POLYPHASE_INLINE_LAMBDA {
      VecF sum = load_them((first == 0 ? taps[0] : results) + i);
      for (int64_t t = first == 0 ? 1 : 0; t < count; ++t) sum = pool_join(average, sum, load_them(taps[t] + i));
      store(results + i, sum);
    };
    int64_t i = 0;
    for (; i + vec_width <= n; i += vec_width) join(i, [](const float* at) { return load(at); });
    const auto rest = static_cast<int>(n - i);  // what lies behind the line may be subnormal
    if (rest > 0) join(i, [rest](const float* at) { return load_first(at, rest); });
  }
}

// What the sums of a row are divided by, which most rows of a plane share.
class PoolCounts {
 public:
  // Of results [first, first + n) of the row that taps[0] and taps[1] are of.
  const float* of(const PoolPlan& p, PoolTaps* taps, int64_t first, int64_t n) {
    taps[2] = {0, 0, 1, 1};
    const float lines = pool_count(p, taps);
    if (first == first_ && lines == lines_) return counts_;
    first_ = first;
    lines_ = lines;
    for (int64_t i = 0; i < n; ++i) {
      taps[2] = pool_taps(p, 2, first + i);
      counts_[i] = pool_count(p, taps);
    }
    return counts_;
  }

 private:
  int64_t first_ = -1;
  float lines_ = 0;
  float counts_[pool_span + vec_width];
};

// Results [first, first + n) of a row, lanes being pixels. taps[0] and taps[1] are the row's; they go to `to` from
// element `to_first` on.
template <DType type, bool average>
inline void pool_pixels(const PoolPlan& p, const std::byte* image, PoolTaps* taps, PoolCounts& counts, int64_t first,
                        int64_t n, std::byte* to, int64_t to_first) {
  const VecF identity = broadcast(average ? 0.0F : -std::numeric_limits<float>::infinity());
  const int64_t span = (n - 1) * p.stride[2] + (p.kernel[2] - 1) * p.dilation[2] + 1;
  const int64_t start = first * p.stride[2] - p.pre[2];
  const int64_t low = std::clamp<int64_t>(-start, 0, span);
  const int64_t high = std::clamp<int64_t>(p.in[2] - start, low, span);
  float joined[pool_span + 2 * vec_width];
  float room[2 * pool_span + 2 * vec_width];
  float results[pool_span + vec_width];
  for (int64_t j = 0; j < low; j += vec_width) store(joined + j, identity);
  join_pool_lines<type, average>(p, image, taps, start + low, high - low, joined + low);
  for (int64_t j = high; j < span; j += vec_width) store(joined + j, identity);
  join_pool_taps<average>(p, part_pool_line(joined, span, p.stride[2], room), n, results);
  const float* const divisors = average ? counts.of(p, taps, first, n) : nullptr;
  for (int64_t i = 0; i < n; i += vec_width) {
    const int lanes = lanes_of(n - i);
    VecF result = load(results + i);
    if (average) result = first_lanes(result, lanes, broadcast(0.0F)) / load_first(divisors + i, lanes);
    store_stored_first<type>(to, to_first + i, result, lanes);
  }
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
    const std::byte* const image = from + n * p.from_strides[0] * element;
    std::byte* const line = to + row * element;
    if (p.average != 0) {
      pool_channels<type, true>(p, image, taps, line);
    } else {
      pool_channels<type, false>(p, image, taps, line);
    }
    return;
  }
  const int64_t z = tile % p.out[0];
  const int64_t c = tile / p.out[0] % p.channels;
  const int64_t n = tile / p.out[0] / p.channels;
  const std::byte* const image = from + (n * p.from_strides[0] + c * p.from_strides[1]) * element;
  taps[0] = pool_taps(p, 0, z);
  PoolCounts counts;
  for (int64_t y = 0; y < p.out[1]; ++y) {
    taps[1] = pool_taps(p, 1, y);
    const int64_t row = n * p.to_strides[0] + c * p.to_strides[1] + z * p.to_strides[2] + y * p.to_strides[3];
    if (p.lines_inside != 0) {
      const int64_t chunk = pool_chunk(p);
      for (int64_t x = 0; x < p.out[2]; x += chunk) {
        const int64_t count = std::min(chunk, p.out[2] - x);
        if (p.average != 0) {
          pool_pixels<type, true>(p, image, taps, counts, x, count, to, row + x);
        } else {
          pool_pixels<type, false>(p, image, taps, counts, x, count, to, row + x);
        }
      }
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
