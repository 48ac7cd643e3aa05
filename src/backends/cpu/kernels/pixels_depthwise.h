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

// Vectors of pixels side by side: three would not make lines any shorter.
inline constexpr int depthwise_vectors = vec_width == 4 ? 1 : 2;

// Of the middle axis.
struct DepthwisePhase {
  const int64_t* offsets;  // of column 0 of each line of taps
  const int64_t* offsets_end;
  const float* weights;  // [line of taps][column][phase of the last axis], of those that the column reaches
};

// Output lines of a plane, one after the other.
struct DepthwiseLines {
  const DepthwisePhase* phases;
  int64_t phase_count;
  int64_t phase;  // the first line's
  int64_t count;
  int64_t blocks;     // of V vectors of pixels each
  const float* from;  // the first line's first pixel of column 0
  int64_t from_step;  // to the lines of the next pixel
  int64_t length;     // outputs
  void* to;           // a JoinedRun of the function's type
  int64_t lead;       // phases that the column in front reaches; 0: there is none
  int64_t between;    // columns that reach all
  OutputPhases::Range trail;
  float bias;
  bool half;  // of a run that is not wide
};

// Adds the products of a column, V vectors of pixels, to the sums of the phases that it reaches.
template <int S, int V>
POLYPHASE_INLINE void add_column(VecF (&acc)[V][S], const float* from, const float* weight) {
  VecF x[V];
#pragma GCC unroll 4
  for (int v = 0; v < V; ++v) {
    x[v] = load(from + v * vec_width);
    hold(x[v]);  // or it would be loaded once for each phase
  }
#pragma GCC unroll 4
  for (int r = 0; r < S; ++r) {
    const VecF w = broadcast(weight[r]);
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) acc[v][r] = fma(x[v], w, acc[v][r]);
  }
}
template <int S, int V>
POLYPHASE_INLINE void add_part(VecF (&acc)[V][S], const float* from, const float* weight, int64_t first, int64_t end) {
#pragma GCC unroll 4
  for (int r = 0; r < S; ++r) {
    if (r < first) continue;
    if (r >= end) break;
    const VecF w = broadcast(weight[r]);
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) acc[v][r] = fma(load(from + v * vec_width), w, acc[v][r]);
  }
}

// B columns that reach all phases, or any number if it is 0.
template <bool wide, int S, int V, int B>
void run_depthwise_lines(const DepthwiseLines& t) {
  const VecF bias = broadcast(t.bias);
  const bool half = t.half;
  const int64_t between = B > 0 ? B : t.between;
  const bool has_lead = t.lead > 0;
  const bool has_trail = t.trail.columns() > 0;
  // Of two phases there is no other part than one.
  const int64_t lead_end = S == 2 ? 1 : t.lead;
  const int64_t trail_first = S == 2 ? 1 : t.trail.first;
  const int64_t trail_end = S == 2 ? 2 : t.trail.end;
  auto* const to = static_cast<JoinedRun<wide>*>(t.to);
  JoinedRun<wide> run = *to;
  const float* line = t.from;
  int64_t phase = t.phase;
  for (int64_t i = 0; i < t.count; ++i) {
    const DepthwisePhase& p = t.phases[phase];
    const float* from = line;
    int64_t left = t.length;
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
        if (has_lead) {
          add_part<S, V>(acc, x++, weight, 0, lead_end);
          weight += S;
        }
        for (int64_t c = 0; c < between; ++c, weight += S) add_column<S, V>(acc, x++, weight);
        if (has_trail) {
          add_part<S, V>(acc, x, weight, trail_first, trail_end);
          weight += S;
        }
      }
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) {
#pragma GCC unroll 4
        for (int r = 0; r < S; ++r) acc[v][r] = acc[v][r] + bias;
      }
      if (left >= V * S * vec_width && run.ends_whole()) {
#pragma GCC unroll 4
        for (int v = 0; v < V; ++v) {
          VecF out[S];
          interleave_lanes(acc[v], out);
#pragma GCC unroll 4
          for (int k = 0; k < S; ++k) run.put(out[k], half);
        }
        left -= V * S * vec_width;
        continue;
      }
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) {
        VecF out[S];
        interleave_lanes(acc[v], out);
#pragma GCC unroll 4
        for (int k = 0; k < S; ++k, left -= vec_width) {
          if (left >= vec_width) {
            run.append(out[k], half);
          } else if (left > 0) {
            run.append_first(out[k], left, half);
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

template <bool wide, int S, int B, class Sequence>
struct DepthwiseFunctions;
template <bool wide, int S, int B, int... V>
struct DepthwiseFunctions<wide, S, B, std::integer_sequence<int, V...>> {
  static constexpr DepthwiseFunction by_vectors[] = {run_depthwise_lines<wide, S, V + 1, B>...};
};

template <bool wide, int S, int B>
const DepthwiseFunction* depthwise_functions_of() {
  return DepthwiseFunctions<wide, S, B, std::make_integer_sequence<int, depthwise_vectors>>::by_vectors;
}

// Of so many phases, and columns that reach all of them, by vectors from one on; `wide`: into a run of f32.
template <bool wide>
const DepthwiseFunction* depthwise_functions(int64_t phases, int64_t between) {
  if constexpr (most_depthwise_phases(vec_width) == 4) {
    if (phases == 3) return depthwise_functions_of<wide, 3, 0>();
    if (phases == 4) return depthwise_functions_of<wide, 4, 0>();
  }
  if constexpr (vec_width > 4) {  // elsewhere small code matters more
    if (between == 1) return depthwise_functions_of<wide, 2, 1>();
    if (between == 2) return depthwise_functions_of<wide, 2, 2>();
  }
  return depthwise_functions_of<wide, 2, 0>();
}

}  // namespace polyphase::cpu::POLYPHASE_CLUSTER
