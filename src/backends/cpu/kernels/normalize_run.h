// Runs one tile of a normalisation; see normalize.h for the two arrangements.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "backends/cpu/kernels/normalize.h"
#include "backends/cpu/simd/vec.h"

namespace polyphase::cpu::POLYPHASE_CLUSTER {

// Count, mean and sum of squared deviations of the elements seen so far.
struct Moments {
  double count = 0;
  double mean = 0;
  double squares = 0;

  void merge(double other_count, double other_mean, double other_squares) {
    if (other_count == 0) return;
    const double total = count + other_count;
    const double distance = other_mean - mean;
    mean += distance * other_count / total;
    squares += other_squares + distance * distance * count * other_count / total;
    count = total;
  }
};

constexpr int64_t row_chunk = 1024;

inline Moments row_moments(const float* x, int64_t length) {
  Moments moments;
  for (int64_t first = 0; first < length; first += row_chunk) {
    const int64_t n = std::min(row_chunk, length - first);
    const float* chunk = x + first;
    VecF sum = broadcast(0.0F);
    int64_t i = 0;
    for (; i + vec_width <= n; i += vec_width) sum = sum + load(chunk + i);
    const int rest = static_cast<int>(n - i);
    if (rest > 0) sum = sum + load_first(chunk + i, rest);
    float lanes[vec_width];
    store(lanes, sum);
    double total = 0;
    for (const float lane : lanes) total += static_cast<double>(lane);
    const auto mean = static_cast<float>(total / static_cast<double>(n));
    VecF squares = broadcast(0.0F);
    VecF deviations = broadcast(0.0F);
    for (i = 0; i + vec_width <= n; i += vec_width) {
      const VecF d = load(chunk + i) - broadcast(mean);
      squares = fma(d, d, squares);
      deviations = deviations + d;
    }
    store(lanes, squares);
    double square_sum = 0;
    for (const float lane : lanes) square_sum += static_cast<double>(lane);
    store(lanes, deviations);
    double deviation_sum = 0;
    for (const float lane : lanes) deviation_sum += static_cast<double>(lane);
    for (; i < n; ++i) {
      const auto d = static_cast<double>(chunk[i] - mean);
      square_sum += d * d;
      deviation_sum += d;
    }
    // The first sum is rounded at the magnitude of the elements; deviations are exact where they are small beside them.
    const double shift = deviation_sum / static_cast<double>(n);
    moments.merge(static_cast<double>(n), static_cast<double>(mean) + shift,
                  std::max(0.0, square_sum - shift * deviation_sum));
  }
  return moments;
}

struct RowScale {
  double inverse;
  double mean;

  float upper_mean() const { return static_cast<float>(mean); }
  // What rounding takes from the mean: it counts where the mean is large beside the deviations.
  float lower_mean() const { return static_cast<float>(mean - static_cast<double>(upper_mean())); }
};

POLYPHASE_INLINE RowScale row_scale(const Moments& m, float epsilon) {
  const double variance = m.count > 0 ? m.squares / m.count : 0.0;
  return {1.0 / std::sqrt(variance + static_cast<double>(epsilon)), m.mean};
}

inline void run_normalize_row(const NormalizePlan& p, const float* x, const float* scale, const float* bias, float* y,
                              int64_t row) {
  x += row * p.length;
  y += row * p.length;
  Moments moments = row_moments(x, p.length);
  if (p.keeps_mean != 0) {
    moments.squares += moments.mean * moments.mean * moments.count;
    moments.mean = 0;
  }
  const RowScale s = row_scale(moments, p.epsilon);
  if (p.scale_mode == 2) {
    const VecF inverse = broadcast(static_cast<float>(s.inverse));
    const VecF mean = broadcast(s.upper_mean());
    const VecF rest = broadcast(-s.lower_mean()) * inverse;
    for (int64_t i = 0; i < p.length; i += vec_width) {
      const int n = static_cast<int>(std::min<int64_t>(vec_width, p.length - i));
      VecF v = fma(load_first(x + i, n) - mean, inverse, rest);
      if (scale != nullptr) v = v * load_first(scale + i, n);
      if (bias != nullptr) v = v + load_first(bias + i, n);
      store_first(y + i, v, n);
    }
    return;
  }
  const int64_t step = p.scale_mode == 0 && bias == nullptr ? p.length : p.elements_per_channel;
  const int64_t groups_per_image = p.channels / p.channels_per_group;
  int64_t channel = row % groups_per_image * p.channels_per_group;
  for (int64_t first = 0; first < p.length; first += step, ++channel) {
    const double gain = s.inverse * (scale != nullptr ? static_cast<double>(scale[channel]) : 1.0);
    const VecF factor = broadcast(static_cast<float>(gain));
    const VecF mean = broadcast(s.upper_mean());
    const VecF offset = broadcast((bias != nullptr ? bias[channel] : 0.0F) - s.lower_mean() * static_cast<float>(gain));
    const int64_t n = std::min(step, p.length - first);
    int64_t i = 0;
    for (; i + vec_width <= n; i += vec_width) store(y + first + i, fma(load(x + first + i) - mean, factor, offset));
    const int rest = static_cast<int>(n - i);
    if (rest > 0) store_first(y + first + i, fma(load_first(x + first + i, rest) - mean, factor, offset), rest);
  }
}

// Σ value(pixel) over pixels for each lane, in several short sums of floats that are joined in double: long chains of
// roundings would show in the variance, and with it in every result of the channel. `value` gives K vectors, of which
// each has sums of its own, one behind the other in `lanes`.
template <int K, class F>
POLYPHASE_INLINE void sum_pixels(int64_t pixels, double* lanes, F&& value) {
  constexpr int sums = 8 / K;
  VecF partial[sums][K];
  for (auto& sum : partial) {
    for (VecF& one : sum) one = broadcast(0.0F);
  }
  const auto add = [&](int j, int64_t i) {
    VecF terms[K];
    value(i, terms);
    for (int k = 0; k < K; ++k) partial[j][k] = partial[j][k] + terms[k];
  };
  int64_t i = 0;
  for (; i + sums <= pixels; i += sums) {
    for (int j = 0; j < sums; ++j) add(j, i + j);
  }
  for (int j = 0; i < pixels; ++i, ++j) add(j, i);
  for (int lane = 0; lane < K * vec_width; ++lane) lanes[lane] = 0;
  for (const auto& sum : partial) {
    for (int k = 0; k < K; ++k) {
      float floats[vec_width];
      store(floats, sum[k]);
      for (int lane = 0; lane < vec_width; ++lane) lanes[k * vec_width + lane] += static_cast<double>(floats[lane]);
    }
  }
}

// Columns, phase 0: the moments of one chunk of pixels, lane by lane: mean and squares, two doubles for each channel.
inline void run_normalize_chunk(const NormalizePlan& p, const float* x, double* shared, int64_t tile) {
  const int64_t image = tile / p.chunks;
  const int64_t first = tile % p.chunks * p.chunk;
  const int64_t pixels = std::min(p.chunk, p.length - first);
  const float* from = x + (image * p.length + first) * p.channels;
  double* means = shared + tile * p.channels * 2;
  double* squares = means + p.channels;
  const auto count = static_cast<double>(pixels);
  for (int64_t c = 0; c < p.channels; c += vec_width) {
    const int n = static_cast<int>(std::min<int64_t>(vec_width, p.channels - c));
    double sums[vec_width];
    sum_pixels<1>(pixels, sums, [&](int64_t i, VecF* x_at) { *x_at = load_first(from + i * p.channels + c, n); });
    float rounded[vec_width];
    for (int lane = 0; lane < vec_width; ++lane) rounded[lane] = static_cast<float>(sums[lane] / count);
    const VecF mean = load(rounded);
    double around[2 * vec_width];  // squares of deviations, then deviations
    sum_pixels<2>(pixels, around, [&](int64_t i, VecF* terms) {
      terms[1] = load_first(from + i * p.channels + c, n) - mean;
      terms[0] = terms[1] * terms[1];
    });
    for (int lane = 0; lane < n; ++lane) {
      // As in row_moments.
      const double deviation = around[vec_width + lane];
      means[c + lane] = static_cast<double>(rounded[lane]) + deviation / count;
      squares[c + lane] = std::max(0.0, around[lane] - deviation * deviation / count);
    }
  }
}

// Columns, phase 1: merges one image's chunks, and the channels of each group; leaves the mean, the gain and what is
// added, three floats for each channel, behind the chunks. Added is the bias, less what rounding took from the mean.
inline void run_normalize_merge(const NormalizePlan& p, const float* scale, const float* bias, double* shared,
                                int64_t image) {
  float* const mean = reinterpret_cast<float*>(shared + p.groups * p.chunks * p.channels * 2) + image * p.channels * 3;
  float* const gain = mean + p.channels;
  float* const added = gain + p.channels;
  for (int64_t group = 0; group < p.channels; group += p.channels_per_group) {
    Moments moments;
    for (int64_t c = group; c < group + p.channels_per_group; ++c) {
      for (int64_t chunk = 0; chunk < p.chunks; ++chunk) {
        const double* means = shared + (image * p.chunks + chunk) * p.channels * 2;
        const int64_t pixels = std::min(p.chunk, p.length - chunk * p.chunk);
        moments.merge(static_cast<double>(pixels), means[c], means[p.channels + c]);
      }
    }
    const RowScale s = row_scale(moments, p.epsilon);
    for (int64_t c = group; c < group + p.channels_per_group; ++c) {
      mean[c] = s.upper_mean();
      gain[c] = static_cast<float>(s.inverse * (scale != nullptr ? static_cast<double>(scale[c]) : 1.0));
      added[c] = (bias != nullptr ? bias[c] : 0.0F) - s.lower_mean() * gain[c];
    }
  }
}

// Columns, phase 2: applies them to one chunk of pixels.
inline void run_normalize_apply(const NormalizePlan& p, const float* x, float* y, const double* shared, int64_t tile) {
  const int64_t image = tile / p.chunks;
  const int64_t first = tile % p.chunks * p.chunk;
  const int64_t pixels = std::min(p.chunk, p.length - first);
  const float* mean =
      reinterpret_cast<const float*>(shared + p.groups * p.chunks * p.channels * 2) + image * p.channels * 3;
  const float* gain = mean + p.channels;
  const float* added = gain + p.channels;
  const int64_t offset = (image * p.length + first) * p.channels;
  x += offset;
  y += offset;
  for (int64_t i = 0; i < pixels; ++i, x += p.channels, y += p.channels) {
    int64_t c = 0;
    for (; c + vec_width <= p.channels; c += vec_width)
      store(y + c, fma(load(x + c) - load(mean + c), load(gain + c), load(added + c)));
    const int rest = static_cast<int>(p.channels - c);
    if (rest == 0) continue;
    const VecF centred = load_first(x + c, rest) - load_first(mean + c, rest);
    store_first(y + c, fma(centred, load_first(gain + c, rest), load_first(added + c, rest)), rest);
  }
}

}  // namespace polyphase::cpu::POLYPHASE_CLUSTER
