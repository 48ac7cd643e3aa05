// The register tile of conv_pixels: M columns by V vectors of pixels, summed over channels and taps.
#pragma once

#include <cstdint>
#include <utility>

#include "backends/cpu/kernels/blocked_sum.h"
#include "backends/cpu/kernels/conv_pixels.h"
#include "backends/cpu/simd/vec.h"

namespace polyphase::cpu::POLYPHASE_CLUSTER {

inline constexpr int64_t pixels_piece = 2 * sum_piece;

// Channels whose products one piece of a sum holds; where one channel has more taps than that, it is cut itself.
inline int64_t channels_per_piece(int64_t taps) { return taps == 0 || taps > pixels_piece ? 1 : pixels_piece / taps; }

struct PixelsTile {
  const float* lines;    // [channel][depth tap][input line][pixel], at the least shift of the first pixel
  const float* weights;  // [channel][tap d][tap h][tap w][M]
  const float* init;     // [M]
  float* sums;           // [M], `sum_pitch` apart
  int64_t sum_pitch;
  int64_t channel_pitch;   // floats of `lines` from channel to channel
  const int64_t* offsets;  // [tap]: floats from the channel's first to the tap's
  int64_t channels;
  int64_t taps;
  bool begun;  // `sums` holds what channels before these came to
  bool ends;   // no channels come behind these: `init` is added
};

template <int M, int V>
void run_pixels_tile(const PixelsTile& t) {
  VecF acc[M][V];
  for (int m = 0; m < M; ++m) {
    for (int v = 0; v < V; ++v) acc[m][v] = broadcast(0.0F);
  }
  const auto place = [&t](int m, int v) { return t.sums + m * t.sum_pitch + v * vec_width; };
  const float* weight = t.weights;
  const int64_t ahead = 3 * t.channel_pitch + V * vec_width - 1;
  bool summed = t.begun;  // whether pieces of the sum lie at their places
  const int64_t taps = t.taps > pixels_piece ? pixels_piece : t.taps;
  const int64_t channels = channels_per_piece(t.taps);
  for (int64_t c0 = 0; c0 < t.channels; c0 += channels) {
    const int64_t c1 = c0 + channels < t.channels ? c0 + channels : t.channels;
    for (int64_t k0 = 0; k0 < t.taps; k0 += taps) {
      const int64_t k1 = k0 + taps < t.taps ? k0 + taps : t.taps;
      if (c0 + k0 > 0) {
        for (int m = 0; m < M; ++m) {
          for (int v = 0; v < V; ++v) {
            store(place(m, v), summed ? load(place(m, v)) + acc[m][v] : acc[m][v]);
            acc[m][v] = broadcast(0.0F);
          }
        }
        summed = true;
      }
      for (int64_t c = c0; c < c1; ++c) {
        const float* lines = t.lines + c * t.channel_pitch;
        for (int64_t k = k0; k < k1; ++k) {
          const float* line = lines + t.offsets[k];
          // Lines of all channels together lie in the second-level cache; a line's begin came with the block before it.
          __builtin_prefetch(line + ahead, 0, 3);
          VecF x[V];
          for (int v = 0; v < V; ++v) {
            x[v] = load(line + v * vec_width);
            if constexpr (M > 1) hold(x[v]);  // an unaligned load costs more than the multiply-add it feeds
          }
          for (int m = 0; m < M; ++m) {
            const VecF w = broadcast(weight[m]);
            for (int v = 0; v < V; ++v) acc[m][v] = fma(x[v], w, acc[m][v]);
          }
          weight += M;
        }
      }
    }
  }
  for (int m = 0; m < M; ++m) {
    for (int v = 0; v < V; ++v) {
      VecF sum = summed ? load(place(m, v)) + acc[m][v] : acc[m][v];
      if (t.ends) sum = sum + broadcast(t.init[m]);  // last: each step before would round at the bias's magnitude
      store(place(m, v), sum);
    }
  }
}

using PixelsTileFunction = void (*)(const PixelsTile&);

template <int M, int... V>
PixelsTileFunction pick_pixels_tile(int vectors, std::integer_sequence<int, V...>) {
  static constexpr PixelsTileFunction table[] = {run_pixels_tile<M, V + 1>...};
  return table[vectors - 1];
}

template <int... M>
PixelsTileFunction pick_pixels_tile(int columns, int vectors, std::integer_sequence<int, M...>) {
  PixelsTileFunction found = nullptr;
  ((columns == M + 1 ? void(found = pick_pixels_tile<M + 1>(
                                vectors, std::make_integer_sequence<int, pixel_vectors(vec_width, M + 1)>()))
                     : void()),
   ...);
  return found;
}

inline PixelsTileFunction pixels_tile(int columns, int vectors) {
  return pick_pixels_tile(columns, vectors, std::make_integer_sequence<int, pixel_columns(vec_width)>());
}

}  // namespace polyphase::cpu::POLYPHASE_CLUSTER
