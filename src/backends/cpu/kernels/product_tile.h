// The register tile of conv_disjoint: M columns by V vectors of pixels, summed over some words: channels, or pairs of
// them in the clusters that multiply those in vectors.
//
// K columns beside each other are the taps of one output line: they leave the registers interleaved as its S phases, of
// which those without a tap are `init` alone.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "backends/cpu/kernels/conv_disjoint.h"
#include "backends/cpu/kernels/conv_pixels.h"
#include "backends/cpu/simd/pairs.h"
#include "backends/cpu/simd/transpose.h"
#include "backends/cpu/simd/unrolled.h"
#include "backends/cpu/simd/vec.h"

namespace polyphase::cpu::POLYPHASE_CLUSTER {

struct ProductTile {
  const float* pixels;           // [word][pixel], `pitch` floats from word to word
  const float* weights;          // [word][M]
  const float* next_weights;     // as many, which are read soon
  const float* init;             // [M]
  float* partial;                // [M][V] vectors: sums of the words before these, or for those behind
  const ProductTarget* targets;  // [V]
  int64_t first_line;
  int64_t lines;  // of these columns, at most M / K: what follows is filling
  int64_t pitch;
  int64_t words;
  bool begun;  // `partial` holds what words before these came to
  bool ends;   // no words come behind these: `init` is added
};

// The outputs of a vector's pixels that lie in several lines of the image, or in part outside of it.
template <int S>
__attribute__((noinline)) void store_runs(const VecF (&rows)[S], const ProductTarget& target, float* to) {
  VecF outputs[S];
  interleave_lanes(rows, outputs);
  for (const ProductRun* run = target.runs; run != target.runs + target.run_count; ++run)
    store_range(to + run->at, outputs[run->vector], run->from, run->to);
}

// The same in bf16: two outputs are a lane's word.
template <int S>
__attribute__((noinline)) void store_narrow_runs(const VecF (&words)[S], const ProductTarget& target, uint16_t* to) {
  VecF outputs[S];
  interleave_lanes(words, outputs);
  for (const ProductRun* run = target.runs; run != target.runs + target.run_count; ++run) {
    if ((run->from | run->to) % 2 == 0) {
      store_range(reinterpret_cast<float*>(to + run->at), outputs[run->vector], run->from / 2, run->to / 2);
    } else {
      store_half_range(to + run->at, as_int(outputs[run->vector]), run->from, run->to);
    }
  }
}

// As whole vectors of half the width, or, where phases of bf16 come in pairs, as store_target does.
template <int S>
__attribute__((noinline)) void store_narrow_target(const VecF (&rows)[S], const ProductTarget& target, int64_t line) {
  auto* const to = reinterpret_cast<uint16_t*>(target.first) + line;
  if constexpr (S % 2 == 0) {
    if (target.type == DType::bf16) {
      VecF words[S / 2];
      for (int k = 0; k < S / 2; ++k) words[k] = as_float(pair_sums(rows[2 * k], rows[2 * k + 1]));
      if (target.runs != nullptr) return store_narrow_runs(words, target, to);
      auto* const at = reinterpret_cast<float*>(to);
      return target.streams ? stream_interleaved(words, at) : store_interleaved(words, at);
    }
  }
  VecF outputs[S];
  interleave_lanes(rows, outputs);
  const bool half = target.type == DType::f16;
  for (int k = 0; k < S; ++k) {
    uint16_t* const at = to + k * vec_width;
    if (target.streams) {
      half ? stream_f16(at, outputs[k]) : stream_bf16(at, outputs[k]);
    } else {
      half ? store_f16(at, outputs[k]) : store_bf16(at, outputs[k]);
    }
  }
}

// The outputs of a vector's pixels to the block's line that begins so many elements behind the target's first.
template <int S>
POLYPHASE_INLINE void store_target(const VecF (&rows)[S], const ProductTarget& target, int64_t line) {
  if (target.type != DType::f32) return store_narrow_target(rows, target, line);
  float* const to = reinterpret_cast<float*>(target.first) + line;
  if constexpr (stores_ranges_fast) {
    if (target.runs != nullptr) return store_runs(rows, target, to);
  }
  if (target.streams) return stream_interleaved(rows, to);
  store_interleaved(rows, to);
}

// Whether all vectors go to floats, of one line each where ranges are slow.
template <int V>
POLYPHASE_INLINE bool leaves_straight(const ProductTarget* targets) {
  bool does = true;
  for (int v = 0; v < V; ++v)
    does = does && targets[v].type == DType::f32 && (stores_ranges_fast || targets[v].runs == nullptr);
  return does;
}

// The outputs of a vector of pixels, of all lines of a tile, straight from the registers.
template <int S, int N>
POLYPHASE_INLINE void store_outputs(const VecF (&outputs)[N], const ProductTarget& target, int64_t first_line) {
  const int64_t* const lines = target.lines + first_line;
  auto* const first = reinterpret_cast<float*>(target.first);
  if (stores_ranges_fast && target.runs != nullptr) {
    const ProductRun* run = target.runs;
    const ProductRun* const end = run + target.run_count;
    unrolled<S>([&](int s) POLYPHASE_INLINE_LAMBDA {
      for (; run != end && run->vector == s; ++run) {
        float* const at = first + run->at;
        const int from = run->from;
        const int to = run->to;
        unrolled<N / S>([&](int l)
                            POLYPHASE_INLINE_LAMBDA { store_range(at + lines[l], outputs[l * S + s], from, to); });
      }
    });
    return;
  }
  const auto leave = [&](auto streams) POLYPHASE_INLINE_LAMBDA {
    unrolled<N>([&](int i) POLYPHASE_INLINE_LAMBDA {
      float* const at = first + lines[i / S] + i % S * vec_width;
      streams ? stream(at, outputs[i]) : store(at, outputs[i]);
    });
  };
  target.streams ? leave(std::true_type()) : leave(std::false_type());
}

// Sums [line][K][vector] of the words of a tile to where they go: of tiles with filling, and what is not stored as it
// is computed.
template <Products products, int S, int K>
__attribute__((noinline)) void leave_from_memory(const ProductTile& t, const float* sums, int lines, int vectors) {
  for (int l = 0; l < lines && l < t.lines; ++l) {
    for (int v = 0; v < vectors; ++v) {
      VecF rows[S];
      for (int s = 0; s < K; ++s)
        rows[s] = load(sums + ((l * K + s) * vectors + v) * vec_width) + broadcast(t.init[l * K + s]);
      for (int s = K; s < S; ++s) rows[s] = broadcast(t.init[l * K]);
      if constexpr (products == Products::pairs) {
        for (int s = 0; s < S; ++s) rows[s] = flush_sum(rows[s]);
      }
      const ProductTarget& target = t.targets[v];
      store_target(rows, target, target.lines[t.first_line + l]);
    }
  }
}

template <Products products, int M, int V, int S, int K>
void run_product_tile(const ProductTile& t) {
  VecF acc[M * V];
  unrolled<M * V>([&](int i) POLYPHASE_INLINE_LAMBDA { acc[i] = broadcast(0.0F); });
  constexpr int much = 12;  // a step of so many products is not worth being written several times
  const float* pixels = t.pixels;
  const float* weights = t.weights;
  const float* next = t.next_weights;
  const float* const end = pixels + t.words * t.pitch;
  const auto add_word = [&]() POLYPHASE_INLINE_LAMBDA {
    VecF x[V];
    unrolled<V>([&](int v) POLYPHASE_INLINE_LAMBDA { x[v] = load(pixels + v * vec_width); });
    unrolled<M>([&](int m) POLYPHASE_INLINE_LAMBDA {
      const VecF w = broadcast(weights[m]);
      unrolled<V>([&](int v) POLYPHASE_INLINE_LAMBDA {
        acc[m * V + v] = add_product<products == Products::pairs>(acc[m * V + v], x[v], w);
      });
    });
    pixels += t.pitch;
    weights += M;
    if constexpr (M * V >= much) {
      __builtin_prefetch(next, 0, 3);
      next += M;
    }
  };
  if constexpr (M * V < much && products == Products::floats) {
#pragma GCC unroll 4
    while (pixels != end) add_word();
  } else {
#pragma GCC unroll 1
    while (pixels != end) add_word();
  }
  float* const partial = t.partial;
  if (t.begun) unrolled<M * V>([&](int i) POLYPHASE_INLINE_LAMBDA { acc[i] = load(partial + i * vec_width) + acc[i]; });
  constexpr bool is_largest = M == pixel_columns(vec_width) / K * K;  // others are not worth as much code
  if constexpr (products == Products::floats && is_largest) {
    if (t.ends && t.lines * K >= M && leaves_straight<V>(t.targets)) {
      unrolled<V>([&](int v) POLYPHASE_INLINE_LAMBDA {
        VecF outputs[M / K * S];  // [line][S]
        unrolled<M / K>([&](int l) POLYPHASE_INLINE_LAMBDA {
          VecF rows[S];
          unrolled<S>([&](int s) POLYPHASE_INLINE_LAMBDA {
            const VecF init = broadcast(t.init[l * K + (s < K ? s : 0)]);
            rows[s] = s < K ? acc[(l * K + s) * V + v] + init : init;
          });
          VecF joined[S];
          interleave_lanes(rows, joined);
          unrolled<S>([&](int s) POLYPHASE_INLINE_LAMBDA { outputs[l * S + s] = joined[s]; });
        });
        store_outputs<S>(outputs, t.targets[v], t.first_line);
      });
      return;
    }
  }
  alignas(64) float last[M * V * vec_width];
  float* const to = t.ends ? last : partial;
  unrolled<M * V>([&](int i) POLYPHASE_INLINE_LAMBDA { store(to + i * vec_width, acc[i]); });
  if (t.ends) leave_from_memory<products, S, K>(t, last, M / K, V);
}

using ProductTileFunction = void (*)(const ProductTile&);

template <Products products, int S, int K, int M>
ProductTileFunction pick_product_tile(int vectors) {
  if (vectors == 1) return run_product_tile<products, M, 1, S, K>;
  return run_product_tile<products, M, pixel_vectors(vec_width, M), S, K>;
}

template <Products products, int S, int K, int... M>
ProductTileFunction pick_product_tile(int columns, int vectors, std::integer_sequence<int, M...>) {
  ProductTileFunction found = nullptr;
  const auto try_columns = [&](auto count) {
    if constexpr (is_chunk(vec_width, count, K)) {
      if (columns == count) found = pick_product_tile<products, S, K, count>(vectors);
    }
  };
  (try_columns(std::integral_constant<int, M + 1>()), ...);
  return found;
}

// For one vector of pixels, or as many as fit beside the columns, of which `taps` leave as `phases` outputs.
template <Products products>
ProductTileFunction product_tile(int columns, int vectors, int taps, int phases) {
  static_assert(most_interleaved_phases == 4);
  constexpr auto all = std::make_integer_sequence<int, pixel_columns(vec_width)>();
  if (taps == 2) return pick_product_tile<products, 2, 2>(columns, vectors, all);
  if (taps == 3) return pick_product_tile<products, 3, 3>(columns, vectors, all);
  if (taps == 4) return pick_product_tile<products, 4, 4>(columns, vectors, all);
  if constexpr (vec_width >= least_width_of_gaps) {
    if (phases == 2) return pick_product_tile<products, 2, 1>(columns, vectors, all);
  }
  return pick_product_tile<products, 1, 1>(columns, vectors, all);
}

// What multiply_panel reads behind the weights of `chunk`: of the next one, the next pixels, words or block.
inline const float* weights_behind(const PanelProduct& p, int64_t word, int64_t pixel, int64_t chunk, int64_t chunks) {
  if (chunk + 1 < chunks) return p.weights + ((chunk + 1) * p.words + word) * p.chunk;
  if (pixel + p.block < p.pixels) return p.weights + word * p.chunk;
  const bool is_last = word + p.depth >= p.words;
  return p.weights + (is_last ? chunks * p.words : word + p.depth) * p.chunk;
}

template <Products products>
void multiply_panel(const PanelProduct& p) {
  ProductTile t = {};
  t.pitch = p.block;
  const int64_t chunks = ceil_div(p.columns, p.chunk);
  const auto tile_of = [&](int64_t pixels) {
    return product_tile<products>(static_cast<int>(p.chunk), static_cast<int>(ceil_div(pixels, vec_width)),
                                  static_cast<int>(p.taps), static_cast<int>(p.phases));
  };
  const ProductTileFunction whole = tile_of(p.block);
  for (int64_t c = 0; c < std::max<int64_t>(1, p.words); c += p.depth) {
    t.words = std::min(p.depth, p.words - c);
    t.begun = c > 0;
    t.ends = c + p.depth >= p.words;
    t.partial = p.partial;
    for (int64_t pixel = 0; pixel < p.pixels; pixel += p.block) {
      t.pixels = p.panel + pixel / p.block * p.panel_step + c * p.block;
      t.targets = p.targets + pixel / vec_width;
      const ProductTileFunction function = p.pixels - pixel < p.block ? tile_of(p.pixels - pixel) : whole;
      for (int64_t chunk = 0; chunk < chunks; ++chunk, t.partial += p.chunk * p.block) {
        t.weights = p.weights + (chunk * p.words + c) * p.chunk;
        t.next_weights = weights_behind(p, c, pixel, chunk, chunks);
        t.init = p.init + chunk * p.chunk;
        t.first_line = chunk * p.chunk / p.taps;
        t.lines = p.columns / p.taps - t.first_line;
        function(t);
      }
    }
  }
}

}  // namespace polyphase::cpu::POLYPHASE_CLUSTER
