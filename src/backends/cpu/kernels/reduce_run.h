// Runs one tile of a reduction: up to 64 results along the innermost kept axis.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "backends/cpu/kernels/reduce.h"
#include "backends/cpu/simd/cluster.h"

namespace polyphase::cpu::POLYPHASE_CLUSTER {

template <ReduceKind kind>
POLYPHASE_INLINE double reduce_start() {
  if constexpr (kind == ReduceKind::max || kind == ReduceKind::log_sum_exp)
    return -std::numeric_limits<double>::infinity();
  if constexpr (kind == ReduceKind::min) return std::numeric_limits<double>::infinity();
  if constexpr (kind == ReduceKind::prod) return 1;
  return 0;
}

// One step. For log_sum_exp this finds the largest element; the sum follows in a second walk.
template <ReduceKind kind>
POLYPHASE_INLINE double reduce_step(double sum, double x) {
  if constexpr (kind == ReduceKind::max || kind == ReduceKind::log_sum_exp)
    return x <= sum ? sum : x;  // NaN wins, and stays
  if constexpr (kind == ReduceKind::min) return x >= sum ? sum : x;
  if constexpr (kind == ReduceKind::prod) return sum * x;
  if constexpr (kind == ReduceKind::l1) return sum + std::fabs(x);
  if constexpr (kind == ReduceKind::sum_square) return sum + x * x;
  return sum + x;
}

template <ReduceKind kind>
POLYPHASE_INLINE double reduce_join(double a, double b) {
  if constexpr (kind == ReduceKind::l1 || kind == ReduceKind::sum_square) return a + b;
  return std::isnan(a) ? a : reduce_step<kind>(a, b);
}

// The kinds that walk alike share the code of one, and differ by what becomes of the sum.
POLYPHASE_INLINE double reduce_finish(ReduceKind kind, double sum, int64_t count) {
  if (kind == ReduceKind::mean) return sum / static_cast<double>(count);
  if (kind == ReduceKind::l2) return std::sqrt(sum);
  return kind == ReduceKind::log_sum ? std::log(sum) : sum;
}

// Calls f(row) for every combination of the reduced axes but the last; `row` is the element offset of its first
// element.
template <class F>
POLYPHASE_INLINE void for_each_reduced_row(const ReducePlan& p, F&& f) {
  int64_t index[max_rank] = {};
  int64_t offset = 0;
  const int last = p.reduced_rank - 1;
  for (;;) {
    f(offset);
    int axis = last - 1;
    for (; axis >= 0; --axis) {
      offset += p.from_reduced[axis];
      if (++index[axis] < p.reduced_sizes[axis]) break;
      offset -= p.from_reduced[axis] * p.reduced_sizes[axis];
      index[axis] = 0;
    }
    if (axis < 0) return;
  }
}

template <class Step, class Join>
POLYPHASE_INLINE double reduce_one(const ReducePlan& p, const float* x, double start, Step&& step, Join&& join) {
  const int64_t n = p.reduced_sizes[p.reduced_rank - 1];
  const int64_t stride = p.from_reduced[p.reduced_rank - 1];
  constexpr int parts = 8;  // independent chains, joined in order
  double sums[parts];
  std::fill(sums, sums + parts, start);
  for_each_reduced_row(p, [&](int64_t offset) {
    const float* row = x + offset;
    int64_t i = 0;
    for (; i + parts <= n; i += parts) {
      for (int k = 0; k < parts; ++k) sums[k] = step(sums[k], static_cast<double>(row[(i + k) * stride]));
    }
    for (; i < n; ++i) sums[i % parts] = step(sums[i % parts], static_cast<double>(row[i * stride]));
  });
  double sum = sums[0];
  for (int k = 1; k < parts; ++k) sum = join(sum, sums[k]);
  return sum;
}

template <ReduceKind kind>
inline void reduce_results(const ReducePlan& p, const float* x, float* y, int64_t n, int64_t from_stride,
                           int64_t to_stride) {
  if (kind != ReduceKind::log_sum_exp && from_stride == 1 && p.from_reduced[p.reduced_rank - 1] != 1) {
    double sums[reduce_block];
    std::fill(sums, sums + n, reduce_start<kind>());
    const int64_t rows = p.reduced_sizes[p.reduced_rank - 1];
    const int64_t stride = p.from_reduced[p.reduced_rank - 1];
    for_each_reduced_row(p, [&](int64_t offset) {
      for (int64_t r = 0; r < rows; ++r) {
        const float* row = x + offset + r * stride;
        for (int64_t i = 0; i < n; ++i) {
          const double joined = reduce_step<kind>(sums[i], static_cast<double>(row[i]));
          sums[i] = (kind == ReduceKind::max || kind == ReduceKind::min) && sums[i] != sums[i] ? sums[i] : joined;
        }
      }
    });
    for (int64_t i = 0; i < n; ++i) y[i * to_stride] = static_cast<float>(reduce_finish(p.kind, sums[i], p.count));
    return;
  }
  for (int64_t i = 0; i < n; ++i) {
    const float* from = x + i * from_stride;
    double sum = reduce_one(
        p, from, reduce_start<kind>(), [](double s, double v) { return s != s ? s : reduce_step<kind>(s, v); },
        reduce_join<kind>);
    if constexpr (kind == ReduceKind::log_sum_exp) {
      const double largest = std::isinf(sum) && sum < 0 ? 0 : sum;
      const double total = reduce_one(
          p, from, 0.0, [largest](double s, double v) { return s + std::exp(v - largest); },
          [](double a, double b) { return a + b; });
      sum = std::isinf(sum) && sum > 0 ? sum : largest + std::log(total);
    }
    y[i * to_stride] = static_cast<float>(reduce_finish(p.kind, sum, p.count));
  }
}

// Where a tile begins, in elements, and its results.
struct ReduceTile {
  int64_t from;
  int64_t to;
  int64_t count;
};

inline ReduceTile reduce_tile(const ReducePlan& p, int64_t tile) {
  const int last = p.kept_rank - 1;
  const int64_t first = tile % p.blocks * reduce_block;
  const int64_t n = std::min(reduce_block, p.kept_sizes[last] - first);
  int64_t rest = tile / p.blocks;
  int64_t from = first * p.from_kept[last];
  int64_t to = first * p.to_kept[last];
  for (int axis = last - 1; axis >= 0; --axis) {
    const int64_t i = rest % p.kept_sizes[axis];
    rest /= p.kept_sizes[axis];
    from += i * p.from_kept[axis];
    to += i * p.to_kept[axis];
  }
  return {from, to, n};
}

inline void run_reduce(const ReducePlan& p, const float* x, float* y, int64_t tile) {
  const ReduceTile at = reduce_tile(p, tile);
  const int last = p.kept_rank - 1;
  const auto run = [&]<ReduceKind kind>() {
    reduce_results<kind>(p, x + at.from, y + at.to, at.count, p.from_kept[last], p.to_kept[last]);
  };
  switch (p.kind) {
    case ReduceKind::sum:
    case ReduceKind::mean:
    case ReduceKind::log_sum:
      return run.template operator()<ReduceKind::sum>();
    case ReduceKind::max:
      return run.template operator()<ReduceKind::max>();
    case ReduceKind::min:
      return run.template operator()<ReduceKind::min>();
    case ReduceKind::prod:
      return run.template operator()<ReduceKind::prod>();
    case ReduceKind::l1:
      return run.template operator()<ReduceKind::l1>();
    case ReduceKind::log_sum_exp:
      return run.template operator()<ReduceKind::log_sum_exp>();
    case ReduceKind::l2:
    case ReduceKind::sum_square:
      return run.template operator()<ReduceKind::sum_square>();
    default:
      return;
  }
}

}  // namespace polyphase::cpu::POLYPHASE_CLUSTER
