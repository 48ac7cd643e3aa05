// The register tile of conv_pixels: M columns by V vectors of pixels, summed over words, which are channels or pairs of
// them, and taps.
#pragma once

#include <cstdint>
#include <utility>

#include "backends/cpu/kernels/blocked_sum.h"
#include "backends/cpu/kernels/conv_pixels.h"
#include "backends/cpu/kernels/scratch_pieces.h"
#include "backends/cpu/simd/pairs.h"
#include "backends/cpu/simd/unrolled.h"
#include "backends/cpu/simd/vec.h"

namespace polyphase::cpu::POLYPHASE_CLUSTER {

inline constexpr int64_t pixels_piece = 2 * sum_piece;

// Words whose products one piece of a sum holds; where one word has more taps than that, it is cut itself.
inline int64_t words_per_piece(int64_t taps) { return taps == 0 || taps > pixels_piece ? 1 : pixels_piece / taps; }

// Adds the products of one tap of one word.
template <Products products, int M, int V>
POLYPHASE_INLINE void add_products_of_tap(VecF (&acc)[M * V], const float* line, const float* weight) {
  VecF x[V];
  unrolled<V>([&](int v) POLYPHASE_INLINE_LAMBDA {
    x[v] = load(line + v * vec_width);
    if constexpr (M > 1) hold(x[v]);  // an unaligned load costs more than the multiply-add it feeds
  });
  unrolled<M>([&](int m) POLYPHASE_INLINE_LAMBDA {
    const VecF w = broadcast(weight[m]);
    unrolled<V>([&](int v) POLYPHASE_INLINE_LAMBDA {
      acc[m * V + v] = add_product<products == Products::pairs>(acc[m * V + v], x[v], w);
    });
  });
}

// Adds the products of some taps of some words; returns where the next weights lie.
template <Products products, int M, int V>
POLYPHASE_INLINE const float* add_products(VecF (&acc)[M * V], const PixelsTile& t, const float* lines,
                                           const float* fetched, int64_t words, int64_t first_tap, int64_t last_tap,
                                           const float* weight) {
  if constexpr (products == Products::floats) {
    if (last_tap - first_tap == 1) {
      const float* line = lines + t.offsets[first_tap];
      for (const float* const end = weight + words * M; weight != end;
           weight += M, line += t.channel_pitch, fetched += t.fetched_pitch) {
        __builtin_prefetch(fetched, 0, 3);
        if (t.fetches_block) {
          unrolled<(V * vec_width - 1) / cache_line_floats>(
              [&](int i) POLYPHASE_INLINE_LAMBDA { __builtin_prefetch(fetched + (i + 1) * cache_line_floats, 0, 3); });
        }
        add_products_of_tap<products, M, V>(acc, line, weight);
      }
      return weight;
    }
  }
  const bool is_far = words > 8;
  const int64_t ahead = 3 * t.channel_pitch + V * vec_width - 1;
  for (int64_t c = 0; c < words; ++c, lines += t.channel_pitch) {
    for (int64_t k = first_tap; k < last_tap; ++k, weight += M) {
      const float* line = lines + t.offsets[k];
      // Lines of all words together lie in the second-level cache; a line's begin came with the block before it.
      if (is_far) __builtin_prefetch(line + ahead, 0, 3);
      add_products_of_tap<products, M, V>(acc, line, weight);
    }
  }
  return weight;
}

template <Products products, int M, int V>
POLYPHASE_INLINE void run_pixels_block(const PixelsTile& t, int64_t words, const float* lines, float* sums) {
  VecF acc[M * V];  // [column][vector]
  const auto place = [&](int i) POLYPHASE_INLINE_LAMBDA { return sums + i / V * t.sum_pitch + i % V * vec_width; };
  if (products == Products::floats && t.continues) {
    unrolled<M * V>([&](int i) POLYPHASE_INLINE_LAMBDA { acc[i] = load(place(i)); });
  } else {
    unrolled<M * V>([&](int i) POLYPHASE_INLINE_LAMBDA { acc[i] = broadcast(0.0F); });
  }
  int64_t summed = t.begun;  // columns whose sums lie at their places
  const auto add_summed = [&](int m) POLYPHASE_INLINE_LAMBDA {
    if (m >= summed) return;
    unrolled<V>([&](int v) POLYPHASE_INLINE_LAMBDA { acc[m * V + v] = load(place(m * V + v)) + acc[m * V + v]; });
  };
  const float* weight = t.weights;
  const int64_t taps = t.taps > pixels_piece ? pixels_piece : t.taps;
  for (int64_t c = 0; c < t.words; c += words) {
    const int64_t count = c + words < t.words ? words : t.words - c;
    for (int64_t k = 0; k < t.taps; k += taps) {
      if (c + k > 0) {
        unrolled<M>([&](int m) POLYPHASE_INLINE_LAMBDA {
          add_summed(m);
          unrolled<V>([&](int v) POLYPHASE_INLINE_LAMBDA {
            store(place(m * V + v), acc[m * V + v]);
            acc[m * V + v] = broadcast(0.0F);
          });
        });
        summed = M;
      }
      weight = add_products<products, M, V>(acc, t, lines + c * t.channel_pitch,
                                            t.fetched + (lines - t.lines) + c * t.fetched_pitch, count, k,
                                            k + taps < t.taps ? k + taps : t.taps, weight);
    }
  }
  unrolled<M>([&](int m) POLYPHASE_INLINE_LAMBDA {
    add_summed(m);
    if (t.ends) {  // last: each step before would round at the bias's magnitude
      const VecF init = broadcast(t.init[m]);
      unrolled<V>([&](int v) POLYPHASE_INLINE_LAMBDA { acc[m * V + v] = acc[m * V + v] + init; });
    }
    unrolled<V>([&](int v) POLYPHASE_INLINE_LAMBDA { store(place(m * V + v), acc[m * V + v]); });
  });
}

template <Products products, int M, int V>
void run_pixels_tile(const PixelsTile& t) {
  const float* lines = t.lines;
  float* sums = t.sums;
  const int64_t words = words_per_piece(t.taps);
  for (int64_t b = 0; b < t.blocks; ++b, lines += V * vec_width, sums += V * vec_width)
    run_pixels_block<products, M, V>(t, words, lines, sums);
}

template <Products products, int M, class Sequence>
struct PixelsTiles;
template <Products products, int M, int... V>
struct PixelsTiles<products, M, std::integer_sequence<int, V...>> {
  static constexpr PixelsTileFunction by_vectors[] = {run_pixels_tile<products, M, V + 1>...};
};

template <Products products, int... M>
const PixelsTileFunction* pixels_tiles_of(int columns, std::integer_sequence<int, M...>) {
  static constexpr const PixelsTileFunction* table[] = {
      PixelsTiles<products, M + 1, std::make_integer_sequence<int, pixel_vectors(vec_width, M + 1)>>::by_vectors...};
  return table[columns - 1];
}

// The tiles of so many columns, by vectors from one on.
template <Products products>
const PixelsTileFunction* pixels_tiles(int columns) {
  return pixels_tiles_of<products>(columns, std::make_integer_sequence<int, pixel_columns(vec_width)>());
}

}  // namespace polyphase::cpu::POLYPHASE_CLUSTER
