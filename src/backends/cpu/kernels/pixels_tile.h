// The register tile of conv_pixels: M columns by V vectors of pixels, summed over channels and taps.
#pragma once

#include <cstdint>
#include <utility>

#include "backends/cpu/kernels/blocked_sum.h"
#include "backends/cpu/kernels/conv_pixels.h"
#include "backends/cpu/simd/unrolled.h"
#include "backends/cpu/simd/vec.h"

namespace polyphase::cpu::POLYPHASE_CLUSTER {

inline constexpr int64_t pixels_piece = 2 * sum_piece;

// Channels whose products one piece of a sum holds; where one channel has more taps than that, it is cut itself.
inline int64_t channels_per_piece(int64_t taps) { return taps == 0 || taps > pixels_piece ? 1 : pixels_piece / taps; }

struct PixelsTile {
  const float* lines;    // [channel][depth][line][pixel], at the least shift of the first pixel
  const float* weights;  // [channel][tap][M]
  const float* init;     // [M]
  float* sums;           // [M], `sum_pitch` apart
  int64_t sum_pitch;
  int64_t channel_pitch;   // floats of `lines` from channel to channel
  const int64_t* offsets;  // [tap]: floats from the channel's first to the tap's
  int64_t channels;
  int64_t taps;
  int64_t blocks;  // of M columns by V vectors, side by side
  int64_t begun;   // columns whose `sums` hold what products before these came to
  bool ends;       // no products come behind these: `init` is added
};

// Adds the products of some taps of some channels; returns where the next weights lie.
template <int M, int V>
POLYPHASE_INLINE const float* add_products(VecF (&acc)[M * V], const PixelsTile& t, const float* lines,
                                           int64_t channels, int64_t first_tap, int64_t last_tap, const float* weight) {
  const bool is_far = channels > 8;
  const int64_t ahead = 3 * t.channel_pitch + V * vec_width - 1;
  for (int64_t c = 0; c < channels; ++c, lines += t.channel_pitch) {
    for (int64_t k = first_tap; k < last_tap; ++k) {
      const float* line = lines + t.offsets[k];
      // Lines of all channels together lie in the second-level cache; a line's begin came with the block before it.
      if (is_far) __builtin_prefetch(line + ahead, 0, 3);
      VecF x[V];
      unrolled<V>([&](int v) POLYPHASE_INLINE_LAMBDA {
        x[v] = load(line + v * vec_width);
        if constexpr (M > 1) hold(x[v]);  // an unaligned load costs more than the multiply-add it feeds
      });
      unrolled<M>([&](int m) POLYPHASE_INLINE_LAMBDA {
        const VecF w = broadcast(weight[m]);
        unrolled<V>([&](int v) POLYPHASE_INLINE_LAMBDA { acc[m * V + v] = fma(x[v], w, acc[m * V + v]); });
      });
      weight += M;
    }
  }
  return weight;
}

template <int M, int V>
POLYPHASE_INLINE void run_pixels_block(const PixelsTile& t, const float* lines, float* sums) {
  VecF acc[M * V];  // [column][vector]
  unrolled<M * V>([&](int i) POLYPHASE_INLINE_LAMBDA { acc[i] = broadcast(0.0F); });
  const auto place = [&](int i) POLYPHASE_INLINE_LAMBDA { return sums + i / V * t.sum_pitch + i % V * vec_width; };
  int64_t summed = t.begun;  // columns whose sums lie at their places
  if (t.channels * t.taps <= pixels_piece) {
    add_products<M, V>(acc, t, lines, t.channels, 0, t.taps, t.weights);
  } else {
    const float* weight = t.weights;
    const int64_t taps = t.taps > pixels_piece ? pixels_piece : t.taps;
    const int64_t channels = channels_per_piece(t.taps);
    for (int64_t c = 0; c < t.channels; c += channels) {
      const int64_t count = c + channels < t.channels ? channels : t.channels - c;
      for (int64_t k = 0; k < t.taps; k += taps) {
        if (c + k > 0) {
          unrolled<M * V>([&](int i) POLYPHASE_INLINE_LAMBDA {
            store(place(i), i / V < summed ? load(place(i)) + acc[i] : acc[i]);
            acc[i] = broadcast(0.0F);
          });
          summed = M;
        }
        weight = add_products<M, V>(acc, t, lines + c * t.channel_pitch, count, k,
                                    k + taps < t.taps ? k + taps : t.taps, weight);
      }
    }
  }
  unrolled<M>([&](int m) POLYPHASE_INLINE_LAMBDA {
    const VecF init = broadcast(t.ends ? t.init[m] : 0.0F);
    unrolled<V>([&](int v) POLYPHASE_INLINE_LAMBDA {
      const int i = m * V + v;
      VecF sum = m < summed ? load(place(i)) + acc[i] : acc[i];
      if (t.ends) sum = sum + init;  // last: each step before would round at the bias's magnitude
      store(place(i), sum);
    });
  });
}

template <int M, int V>
void run_pixels_tile(const PixelsTile& t) {
  const float* lines = t.lines;
  float* sums = t.sums;
  for (int64_t b = 0; b < t.blocks; ++b, lines += V * vec_width, sums += V * vec_width)
    run_pixels_block<M, V>(t, lines, sums);
}

using PixelsTileFunction = void (*)(const PixelsTile&);

template <int M, class Sequence>
struct PixelsTiles;
template <int M, int... V>
struct PixelsTiles<M, std::integer_sequence<int, V...>> {
  static constexpr PixelsTileFunction by_vectors[] = {run_pixels_tile<M, V + 1>...};
};

template <int... M>
const PixelsTileFunction* pixels_tiles_of(int columns, std::integer_sequence<int, M...>) {
  static constexpr const PixelsTileFunction* table[] = {
      PixelsTiles<M + 1, std::make_integer_sequence<int, pixel_vectors(vec_width, M + 1)>>::by_vectors...};
  return table[columns - 1];
}

// The tiles of so many columns, by vectors from one on.
inline const PixelsTileFunction* pixels_tiles(int columns) {
  return pixels_tiles_of(columns, std::make_integer_sequence<int, pixel_columns(vec_width)>());
}

}  // namespace polyphase::cpu::POLYPHASE_CLUSTER
