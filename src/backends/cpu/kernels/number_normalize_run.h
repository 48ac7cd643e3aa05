// Runs one tile of a normalisation (a group) or of a softmax (some neighbours) in FP64.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "backends/cpu/kernels/number_normalize.h"
#include "backends/cpu/kernels/numbers.h"

namespace polyphase::cpu::POLYPHASE_CLUSTER {

inline constexpr int64_t normalize_run = 512;

struct NormalizePlace {
  int64_t from[NumberNormalizePlan::operand_count];
  int64_t to;
};

// Adds index i of axis `axis`.
POLYPHASE_INLINE void go_along(const NumberNormalizePlan& p, int axis, int64_t i, NormalizePlace& at) {
  for (int k = 0; k < NumberNormalizePlan::operand_count; ++k) at.from[k] += i * p.strides[k][axis];
  at.to += i * p.to_strides[axis];
}

// f(place, elements) for runs along the last axis that together are the group.
template <class F>
POLYPHASE_INLINE void for_each_normalize_run(const NumberNormalizePlan& p, const NormalizePlace& group, F&& f) {
  const int last = p.outer_rank + p.inner_rank - 1;
  int64_t rows = 1;
  for (int axis = p.outer_rank; axis < last; ++axis) rows *= p.sizes[axis];
  for (int64_t r = 0; r < rows; ++r) {
    NormalizePlace row = group;
    int64_t rest = r;
    for (int axis = last - 1; axis >= p.outer_rank; --axis) {
      go_along(p, axis, rest % p.sizes[axis], row);
      rest /= p.sizes[axis];
    }
    for (int64_t i = 0; i < p.sizes[last]; i += normalize_run) {
      NormalizePlace at = row;
      go_along(p, last, i, at);
      f(at, std::min(normalize_run, p.sizes[last] - i));
    }
  }
}

struct NormalizeInputs {
  const NumberNormalizePlan& p;
  const std::byte* const* inputs;

  void load(int k, const NormalizePlace& at, int64_t n, double* to) const {
    const int64_t stride = p.strides[k][p.outer_rank + p.inner_rank - 1];
    const std::byte* from = inputs[p.input[k]] + at.from[k] * bytes_of(p.dtypes[k]);
    load_numbers(p.dtypes[k], from, stride, stride == 0 ? 1 : n, to);
    if (stride == 0) std::fill(to + 1, to + n, to[0]);
  }
  bool has(int k) const { return p.input[k] >= 0; }

  double sum(const NormalizePlace& group, double mean, bool squares) const {
    constexpr int parts = 8;
    double sums[parts] = {};
    double block[normalize_run];
    for_each_normalize_run(p, group, [&](const NormalizePlace& at, int64_t n) {
      load(NumberNormalizePlan::x, at, n, block);
      for (int64_t i = 0; i < n; ++i) block[i] = squares ? (block[i] - mean) * (block[i] - mean) : block[i];
      std::fill(block + n, block + std::min(normalize_run, (n + parts - 1) / parts * parts), 0.0);
      for (int64_t i = 0; i < n; i += parts) {
        for (int k = 0; k < parts; ++k) sums[k] += block[i + k];
      }
    });
    double total = 0;
    for (const double part : sums) total += part;
    return total;
  }
};

inline void run_number_normalize(const NumberNormalizePlan& p, const std::byte* const* inputs, std::byte* output,
                                 int64_t tile) {
  NormalizePlace group{};
  for (int axis = p.outer_rank - 1; axis >= 0; --axis) {
    go_along(p, axis, tile % p.sizes[axis], group);
    tile /= p.sizes[axis];
  }
  const NormalizeInputs in{p, inputs};
  double mean = 0;
  double variance = 0;
  if (p.given_moments != 0) {
    in.load(NumberNormalizePlan::mean, group, 1, &mean);
    in.load(NumberNormalizePlan::variance, group, 1, &variance);
  } else {
    const auto count = static_cast<double>(p.count);
    mean = p.keeps_mean != 0 ? 0 : in.sum(group, 0, false) / count;
    variance = in.sum(group, mean, true) / count;
  }
  const double factor = 1 / std::sqrt(variance + p.epsilon);
  const DType dtype = p.dtypes[NumberNormalizePlan::x];
  const int64_t to_stride = p.to_strides[p.outer_rank + p.inner_rank - 1];
  double block[normalize_run];
  double parameter[normalize_run];
  for_each_normalize_run(p, group, [&](const NormalizePlace& at, int64_t n) {
    in.load(NumberNormalizePlan::x, at, n, block);
    for (int64_t i = 0; i < n; ++i) block[i] = (block[i] - mean) * factor;
    if (in.has(NumberNormalizePlan::scale)) {
      in.load(NumberNormalizePlan::scale, at, n, parameter);
      for (int64_t i = 0; i < n; ++i) block[i] *= parameter[i];
    }
    if (in.has(NumberNormalizePlan::bias)) {
      in.load(NumberNormalizePlan::bias, at, n, parameter);
      for (int64_t i = 0; i < n; ++i) block[i] += parameter[i];
    }
    store_numbers(dtype, block, n, output + at.to * bytes_of(dtype), to_stride);
  });
}

// The largest element taken out first; a NaN stays.
inline void run_number_softmax(const NumberSoftmaxPlan& p, const std::byte* x, std::byte* y, int64_t tile) {
  const int64_t bytes = bytes_of(p.dtype);
  const int64_t first = tile % p.lane_blocks * NumberSoftmaxPlan::lanes;
  const int64_t n = std::min(NumberSoftmaxPlan::lanes, p.lane_count - first);
  const int64_t start = tile / p.lane_blocks * p.block_stride + first * p.lane;
  double top[NumberSoftmaxPlan::lanes];
  double total[NumberSoftmaxPlan::lanes] = {};
  double row[NumberSoftmaxPlan::lanes];
  std::fill(top, top + n, -std::numeric_limits<double>::infinity());
  const auto load = [&](int64_t i) { load_numbers(p.dtype, x + (start + i * p.step) * bytes, p.lane, n, row); };
  for (int64_t i = 0; i < p.length; ++i) {
    load(i);
    for (int64_t k = 0; k < n; ++k) top[k] = row[k] <= top[k] || top[k] != top[k] ? top[k] : row[k];
  }
  for (int64_t i = 0; i < p.length; ++i) {
    load(i);
    for (int64_t k = 0; k < n; ++k) total[k] += std::exp(row[k] - top[k]);
  }
  if (p.logarithm != 0) {
    for (int64_t k = 0; k < n; ++k) total[k] = std::log(total[k]);
  }
  for (int64_t i = 0; i < p.length; ++i) {
    load(i);
    for (int64_t k = 0; k < n; ++k)
      row[k] = p.logarithm != 0 ? row[k] - top[k] - total[k] : std::exp(row[k] - top[k]) / total[k];
    store_numbers(p.dtype, row, n, y + (start + i * p.step) * bytes, p.lane);
  }
}

}  // namespace polyphase::cpu::POLYPHASE_CLUSTER
