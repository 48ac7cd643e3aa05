// The lines of depthwise convolution: sums of one channel's pixels, for all phases of the last axis, which leave the
// registers interleaved.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "backends/cpu/kernels/conv_pixels.h"
#include "backends/cpu/kernels/joined_run.h"
#include "backends/cpu/simd/transpose.h"
#include "backends/cpu/simd/vec.h"

namespace polyphase::cpu::POLYPHASE_CLUSTER {

// Vectors of pixels side by side: more would not share a weight's load among notably more products.
constexpr int depthwise_vectors(int phases) { return vec_width == 4 ? 1 : phases == 2 ? 3 : 2; }

// Of the middle axis.
struct DepthwisePhase {
  const int64_t* offsets;  // of the first tap of each line of taps
  const int64_t* offsets_end;
  const float* weights;  // [line of taps][tap][phase of the last axis]
};

// Output lines of a plane, one after the other.
struct DepthwiseLines {
  const DepthwisePhase* phases;
  int64_t phase_count;
  int64_t phase;  // the first line's
  int64_t count;
  int64_t blocks;        // of V vectors of pixels each
  const float* from;     // first pixel of the first line, at its least shift
  int64_t from_step;     // to the lines of the next pixel
  int64_t lead;          // outputs of the first vectors that lie in front of the line
  int64_t end;           // of the vectors' outputs that belong to it
  void* to;              // a JoinedRun of the function's type
  int64_t taps;          // of a line of taps, which lie side by side
  int64_t first_phases;  // that have the first taps
  float bias;
};

// Adds the products of a tap with V vectors of pixels to the sums of `phases` phases.
template <int S, int V>
POLYPHASE_INLINE void add_tap(VecF (&acc)[V][S], const float* from, const float* weight, int64_t phases) {
  VecF x[V];
#pragma GCC unroll 4
  for (int v = 0; v < V; ++v) x[v] = load(from + v * vec_width);
#pragma GCC unroll 4
  for (int r = 0; r < S; ++r) {
    if (r >= phases) break;
    const VecF w = broadcast(weight[r]);
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) acc[v][r] = fma(x[v], w, acc[v][r]);
  }
}

// T taps of a line of them, or any number if it is 0.
template <bool wide, int S, int V, int T>
void run_depthwise_lines(const DepthwiseLines& t) {
  const VecF bias = broadcast(t.bias);
  const int64_t taps = T > 0 ? T : t.taps;
  auto* const to = static_cast<JoinedRun<wide>*>(t.to);
  JoinedRun<wide> run = *to;
  const float* line = t.from;
  int64_t phase = t.phase;
  for (int64_t i = 0; i < t.count; ++i) {
    const DepthwisePhase& p = t.phases[phase];
    const float* from = line;
    int64_t left = t.end;
    for (int64_t b = 0; b < t.blocks; ++b, from += V * vec_width) {
      VecF acc[V][S];
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) {
#pragma GCC unroll 4
        for (int r = 0; r < S; ++r) acc[v][r] = broadcast(0.0F);
      }
      const float* weight = p.weights;
      for (const int64_t* offset = p.offsets; offset != p.offsets_end; ++offset) {
        const float* x = from + *offset;
        add_tap<S, V>(acc, x, weight, t.first_phases);
        weight += S;
        for (int64_t j = 1; j < taps; ++j, weight += S) add_tap<S, V>(acc, ++x, weight, S);
      }
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) {
#pragma GCC unroll 4
        for (int r = 0; r < S; ++r) acc[v][r] = acc[v][r] + bias;
        VecF out[S];
        interleave_lanes(acc[v], out);
#pragma GCC unroll 4
        for (int k = 0; k < S; ++k, left -= vec_width) {
          if (v + k == 0 && b == 0 && t.lead > 0) {
            run.append(drop_lanes(out[0], t.lead), std::min<int64_t>(left, vec_width) - t.lead);
          } else {
            run.append(out[k], left);
          }
        }
      }
    }
    if (++phase < t.phase_count) continue;
    phase = 0;
    line += t.from_step;
  }
  *to = run;
}

using DepthwiseFunction = void (*)(const DepthwiseLines&);

template <bool wide, int S, int T, class Sequence>
struct DepthwiseFunctions;
template <bool wide, int S, int T, int... V>
struct DepthwiseFunctions<wide, S, T, std::integer_sequence<int, V...>> {
  static constexpr DepthwiseFunction by_vectors[] = {run_depthwise_lines<wide, S, V + 1, T>...};
};

template <bool wide, int S, int T>
const DepthwiseFunction* depthwise_functions_of() {
  return DepthwiseFunctions<wide, S, T, std::make_integer_sequence<int, depthwise_vectors(S)>>::by_vectors;
}

// Of so many phases and taps of a line of them, by vectors from one on; `wide`: into a run of f32.
template <bool wide>
const DepthwiseFunction* depthwise_functions(int64_t phases, int64_t taps) {
  if constexpr (most_depthwise_phases(vec_width) == 4) {
    if (phases == 3) return depthwise_functions_of<wide, 3, 0>();
    if (phases == 4) return depthwise_functions_of<wide, 4, 0>();
  }
  if constexpr (vec_width > 4) {  // elsewhere small code matters more
    if (taps == 2) return depthwise_functions_of<wide, 2, 2>();
  }
  return depthwise_functions_of<wide, 2, 0>();
}

}  // namespace polyphase::cpu::POLYPHASE_CLUSTER
