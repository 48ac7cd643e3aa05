// The register tile of conv_disjoint: M columns by V vectors of pixels, summed over some channels.
//
// S columns beside each other are the phases of one output line: they leave the registers interleaved.
#pragma once

#include <cstdint>
#include <utility>

#include "backends/cpu/kernels/conv_disjoint.h"
#include "backends/cpu/kernels/conv_pixels.h"
#include "backends/cpu/simd/transpose.h"
#include "backends/cpu/simd/vec.h"

namespace polyphase::cpu::POLYPHASE_CLUSTER {

struct ProductTile {
  const float* pixels;           // [channel][pixel], `pitch` floats from channel to channel
  const float* weights;          // [channel][M]
  const float* init;             // [M]
  float* partial;                // [M][V] vectors: sums of the channels before these, or for those behind
  const ProductTarget* targets;  // [V]
  int64_t first_line;
  int64_t lines;  // of these columns, at most M / S: what follows is filling
  int64_t pitch;
  int64_t channels;
  bool begun;  // `partial` holds what channels before these came to
  bool ends;   // no channels come behind these: `init` is added
};

template <int M, int V, int S>
void run_product_tile(const ProductTile& t) {
  VecF acc[M][V];
  for (int m = 0; m < M; ++m) {
    for (int v = 0; v < V; ++v) acc[m][v] = broadcast(0.0F);
  }
  const float* pixels = t.pixels;
  const float* weights = t.weights;
  const float* const end = pixels + t.channels * t.pitch;
#pragma GCC unroll 4
  for (; pixels != end; pixels += t.pitch, weights += M) {
    VecF x[V];
    for (int v = 0; v < V; ++v) x[v] = load(pixels + v * vec_width);
    for (int m = 0; m < M; ++m) {
      const VecF w = broadcast(weights[m]);
      for (int v = 0; v < V; ++v) acc[m][v] = fma(x[v], w, acc[m][v]);
    }
  }
  const auto partial = [&t](int m, int v) { return t.partial + (m * V + v) * vec_width; };
  if (t.begun) {
    for (int m = 0; m < M; ++m) {
      for (int v = 0; v < V; ++v) acc[m][v] = load(partial(m, v)) + acc[m][v];
    }
  }
  if (!t.ends) {
    for (int m = 0; m < M; ++m) {
      for (int v = 0; v < V; ++v) store(partial(m, v), acc[m][v]);
    }
    return;
  }
  for (int l = 0; l < M / S && l < t.lines; ++l) {
    for (int v = 0; v < V; ++v) {
      VecF rows[S];
      for (int s = 0; s < S; ++s) rows[s] = acc[l * S + s][v] + broadcast(t.init[l * S + s]);
      float* to = t.targets[v].first + t.targets[v].lines[t.first_line + l];
      if constexpr (S == 1) {
        store(to, rows[0]);
      } else {
        store_interleaved(rows, to);
      }
    }
  }
}

using ProductTileFunction = void (*)(const ProductTile&);

template <int S, int M>
ProductTileFunction pick_product_tile(int vectors) {
  if (vectors == 1) return run_product_tile<M, 1, S>;
  return run_product_tile<M, pixel_vectors(vec_width, M), S>;
}

template <int S, int... M>
ProductTileFunction pick_product_tile(int columns, int vectors, std::integer_sequence<int, M...>) {
  ProductTileFunction found = nullptr;
  const auto try_columns = [&](auto count) {
    if constexpr (is_chunk(vec_width, count, S)) {
      if (columns == count) found = pick_product_tile<S, count>(vectors);
    }
  };
  (try_columns(std::integral_constant<int, M + 1>()), ...);
  return found;
}

// For one vector of pixels, or as many as fit beside the columns, of which `phases` are interleaved.
inline ProductTileFunction product_tile(int columns, int vectors, int phases) {
  static_assert(most_interleaved_phases == 4);
  constexpr auto all = std::make_integer_sequence<int, pixel_columns(vec_width)>();
  if (phases == 2) return pick_product_tile<2>(columns, vectors, all);
  if (phases == 3) return pick_product_tile<3>(columns, vectors, all);
  if (phases == 4) return pick_product_tile<4>(columns, vectors, all);
  return pick_product_tile<1>(columns, vectors, all);
}

}  // namespace polyphase::cpu::POLYPHASE_CLUSTER
