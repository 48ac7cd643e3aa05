// The register tile of conv_pixels: M columns by V vectors of pixels, summed over channels and taps.
#pragma once

#include <cstdint>
#include <utility>

#include "backends/cpu/kernels/conv_pixels.h"
#include "backends/cpu/simd/vec.h"

namespace polyphase::cpu::POLYPHASE_CLUSTER {

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
};

template <int M, int V>
void run_pixels_tile(const PixelsTile& t) {
  VecF acc[M][V];
  for (int m = 0; m < M; ++m) {
    for (int v = 0; v < V; ++v) acc[m][v] = broadcast(0.0F);
  }
  const float* weight = t.weights;
  for (int64_t c = 0; c < t.channels; ++c) {
    const float* lines = t.lines + c * t.channel_pitch;
    for (int64_t k = 0; k < t.taps; ++k) {
      const float* line = lines + t.offsets[k];
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
  for (int m = 0; m < M; ++m) {
    const VecF init = broadcast(t.init[m]);  // last: each step before would round at the bias's magnitude
    for (int v = 0; v < V; ++v) store(t.sums + m * t.sum_pitch + v * vec_width, acc[m][v] + init);
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
