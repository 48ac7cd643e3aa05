// Runs one tile of a normalisation; see normalize.h for the two arrangements.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "backends/cpu/kernels/apply_endings.h"
#include "backends/cpu/kernels/normalize.h"
#include "backends/cpu/kernels/stored_image.h"
#include "backends/cpu/simd/rows.h"
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
    VecF total = broadcast(0.0F);
    each_vector(n, [&](int64_t i, int lanes) POLYPHASE_INLINE_LAMBDA { total = total + load_some(chunk + i, lanes); });
    const auto mean = static_cast<float>(static_cast<double>(sum(total)) / static_cast<double>(n));
    VecF squares = broadcast(0.0F);
    VecF deviations = broadcast(0.0F);
    each_vector(n, [&](int64_t i, int lanes) POLYPHASE_INLINE_LAMBDA {
      const VecF d = first_lanes(load_some(chunk + i, lanes) - broadcast(mean), lanes, broadcast(0.0F));
      squares = fma(d, d, squares);
      deviations = deviations + d;
    });
    const auto square_sum = static_cast<double>(sum(squares));
    const auto deviation_sum = static_cast<double>(sum(deviations));
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
    each_vector(p.length, [&](int64_t i, int n) POLYPHASE_INLINE_LAMBDA {
      VecF v = fma(load_some(x + i, n) - mean, inverse, rest);
      if (scale != nullptr) v = v * load_some(scale + i, n);
      if (bias != nullptr) v = v + load_some(bias + i, n);
      store_some(y + i, v, n);
    });
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

// Σ value(pixel) over pixels for each lane, in several short sums that are joined two by two: long chains of roundings
// would show in the variance, and with it in every result of the channel. `value` gives K vectors, of which each has
// sums of its own, one behind the other in `lanes`.
template <int K, class F>
POLYPHASE_INLINE void sum_pixels(int64_t pixels, float* lanes, F&& value) {
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
  for (int half = sums / 2; half > 0; half /= 2) {
    for (int j = 0; j < half; ++j) {
      for (int k = 0; k < K; ++k) partial[j][k] = partial[j][k] + partial[j + half][k];
    }
  }
  for (int k = 0; k < K; ++k) store(lanes + k * vec_width, partial[0][k]);
}

// The means of one chunk's pixels for some neighbouring channels, rounded to floats. Several vectors side by side:
// lines of memory that follow each other are read one after the other.
template <int K>
POLYPHASE_INLINE void chunk_means(const float* from, int64_t pitch, int64_t pixels, int n, float* means) {
  sum_pixels<K>(pixels, means, [&](int64_t i, VecF* terms) {
    const float* at = from + i * pitch;
    if constexpr (K == 1) {
      terms[0] = load_first(at, n);
    } else {
      for (int k = 0; k < K; ++k) terms[k] = load(at + k * vec_width);
    }
  });
  for (int lane = 0; lane < K * vec_width; ++lane)
    means[lane] = static_cast<float>(static_cast<double>(means[lane]) / static_cast<double>(pixels));
}

// Columns, phase 0: the moments of one chunk of pixels, lane by lane: mean and squares, two doubles for each channel.
inline void run_normalize_chunk(const NormalizePlan& p, const float* x, double* shared, int64_t tile) {
  constexpr int side_by_side = 4;
  const int64_t image = tile / p.chunks;
  const int64_t first = tile % p.chunks * p.chunk;
  const int64_t pixels = std::min(p.chunk, p.length - first);
  const float* from = x + (image * p.length + first) * p.channels;
  double* means = shared + tile * p.channels * 2;
  double* squares = means + p.channels;
  const auto count = static_cast<double>(pixels);
  float rounded[side_by_side * vec_width];  // means of the channels from `known` to `ready`
  int64_t known = 0;
  int64_t ready = 0;
  for (int64_t c = 0; c < p.channels; c += vec_width) {
    const int n = lanes_of(p.channels - c);
    if (c == ready) {
      known = c;
      const bool is_wide = p.channels - c >= side_by_side * vec_width;
      is_wide ? chunk_means<side_by_side>(from + c, p.channels, pixels, n, rounded)
              : chunk_means<1>(from + c, p.channels, pixels, n, rounded);
      ready = c + (is_wide ? side_by_side : 1) * vec_width;
    }
    const float* const mean_of = rounded + (c - known);
    const VecF mean = load(mean_of);
    float around[2 * vec_width];  // squares of deviations, then deviations
    sum_pixels<2>(pixels, around, [&](int64_t i, VecF* terms) {
      terms[1] = load_first(from + i * p.channels + c, n) - mean;
      terms[0] = terms[1] * terms[1];
    });
    for (int lane = 0; lane < n; ++lane) {
      // As in row_moments.
      const auto deviation = static_cast<double>(around[vec_width + lane]);
      means[c + lane] = static_cast<double>(mean_of[lane]) + deviation / count;
      squares[c + lane] = std::max(0.0, static_cast<double>(around[lane]) - deviation * deviation / count);
    }
  }
}

// The moments of neighbouring channels over all chunks of an image: as many pixels of each, so that weights are shared.
struct ChannelMoments {
  double mean[NormalizePlan::merged_channels];
  double squares[NormalizePlan::merged_channels];
};

POLYPHASE_INLINE void merge_chunks(const NormalizePlan& p, const double* chunks, int64_t count, ChannelMoments& to) {
  std::fill_n(to.mean, count, 0.0);
  std::fill_n(to.squares, count, 0.0);
  double before = 0;
  for (int64_t chunk = 0; chunk < p.chunks; ++chunk, chunks += 2 * p.channels) {
    const auto pixels = static_cast<double>(std::min(p.chunk, p.length - chunk * p.chunk));
    const double weight = pixels / (before + pixels);
    const double product = before * weight;
    for (int64_t c = 0; c < count; ++c) {
      const double distance = chunks[c] - to.mean[c];
      to.mean[c] += distance * weight;
      to.squares[c] += chunks[p.channels + c] + distance * distance * product;
    }
    before += pixels;
  }
}

// Columns, phase 1: merges the chunks of some groups of channels of an image; leaves the mean, the gain and what is
// added, three floats for each channel, behind the chunks. Added is the bias, less what rounding took from the mean.
inline void run_normalize_merge(const NormalizePlan& p, const float* scale, const float* bias, double* shared,
                                int64_t tile) {
  const int64_t image = tile / p.merges;
  float* const mean = reinterpret_cast<float*>(shared + p.groups * p.chunks * p.channels * 2) + image * p.channels * 3;
  float* const gain = mean + p.channels;
  float* const added = gain + p.channels;
  const double* const chunks = shared + image * p.chunks * p.channels * 2;
  const int64_t first = tile % p.merges * p.channels_per_merge;
  const int64_t end = std::min(p.channels, first + p.channels_per_merge);
  Moments group;
  for (int64_t from = first; from < end; from += NormalizePlan::merged_channels) {
    const int64_t count = std::min(NormalizePlan::merged_channels, end - from);
    ChannelMoments channels;
    merge_chunks(p, chunks + from, count, channels);
    for (int64_t c = from; c < from + count; ++c) {
      group.merge(static_cast<double>(p.length), channels.mean[c - from], channels.squares[c - from]);
      if ((c + 1) % p.channels_per_group != 0) continue;
      const RowScale s = row_scale(group, p.epsilon);
      for (int64_t k = c + 1 - p.channels_per_group; k <= c; ++k) {
        mean[k] = s.upper_mean();
        gain[k] = static_cast<float>(s.inverse * (scale != nullptr ? static_cast<double>(scale[k]) : 1.0));
        added[k] = (bias != nullptr ? bias[k] : 0.0F) - s.lower_mean() * gain[k];
      }
      group = {};
    }
  }
}

// What is applied to the channels of a pixel, of few channels as many pixels side by side as fill whole vectors.
class ColumnScales {
 public:
  ColumnScales(const NormalizePlan& p, const float* mean) : channels_(p.channels), tables_{mean} {
    for (int t = 1; t < tables; ++t) tables_[t] = tables_[t - 1] + channels_;
    period_ = channels_;
    if (channels_ >= vec_width) return;
    for (int t = 0; t < tables; ++t) {
      for (int64_t i = 0; i < channels_ * vec_width; ++i) repeated_[t][i] = tables_[t][i % channels_];
      tables_[t] = repeated_[t];
    }
    period_ = channels_ * vec_width;
  }

  // Some pixels, one behind the other.
  void apply(const float* x, float* y, int64_t pixels) const {
    for (int64_t first = 0; first < pixels * channels_; first += period_) {
      each_vector(std::min(period_, pixels * channels_ - first), [&](int64_t i, int n) POLYPHASE_INLINE_LAMBDA {
        const VecF centred = load_some(x + first + i, n) - load_some(tables_[0] + i, n);
        store_some(y + first + i, fma(centred, load_some(tables_[1] + i, n), load_some(tables_[2] + i, n)), n);
      });
    }
  }

 private:
  static constexpr int tables = 3;  // the mean, the factor and what is added then, of each channel
  int64_t channels_;
  int64_t period_;
  const float* tables_[tables];
  float repeated_[tables][(vec_width - 1) * vec_width];
};

// Columns, phase 2: applies them to one chunk of pixels, then the endings while some pixels are at hand; in
// `staged`, room for a pixel, where it is stored in bf16.
inline void run_normalize_apply(const NormalizeColumnsPlan& plan, const float* x, std::byte* y, const double* shared,
                                const float* const* operands, int64_t tile, float* staged) {
  const NormalizePlan& p = plan.columns;
  const int64_t image = tile / p.chunks;
  const int64_t first = tile % p.chunks * p.chunk;
  const int64_t end = std::min(first + p.chunk, p.length);
  const ColumnScales scales(
      p, reinterpret_cast<const float*>(shared + p.groups * p.chunks * p.channels * 2) + image * p.channels * 3);
  const bool is_wide = plan.type == DType::f32;
  x += (image * p.length + first) * p.channels;
  StoredResult to = StoredResult(y, plan.type) + (image * p.length + first) * p.channels;
  for (int64_t pixel = first; pixel < end;) {
    const int64_t line = pixel / plan.out[2];
    const int64_t count = std::min({plan.pixels, end - pixel, (line + 1) * plan.out[2] - pixel});
    float* const values = is_wide ? to.floats() : staged;
    scales.apply(x, values, count);
    if (plan.endings.count > 0) {
      const ResultPlace place = {image, 0, {line / plan.out[1], line % plan.out[1], pixel % plan.out[2]}};
      apply_endings(plan.endings, operands, values, count * p.channels, place, true);
    }
    if (!is_wide) store_run(values, to, 1, p.channels);
    pixel += count;
    x += count * p.channels;
    to = to + count * p.channels;
  }
}

}  // namespace polyphase::cpu::POLYPHASE_CLUSTER
