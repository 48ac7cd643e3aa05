// The loops of panel lines, by what lies side by side in the weights.
#pragma once

#include <algorithm>

#include "backends/cpu/kernels/panel_lines.h"
#include "backends/cpu/simd/rows.h"
#include "backends/cpu/simd/transpose.h"
#include "backends/cpu/simd/vec.h"

namespace polyphase::cpu::POLYPHASE_CLUSTER {

// Columns of a matrix whose rows are lanes: each is a line of the panel. `to_of(column)` is where it begins; columns
// are asked for in ascending order.
template <class Places>
POLYPHASE_INLINE void turn_lines(const PanelLines& p, const float* from, int64_t columns, Places&& place_of) {
  for (int64_t column = 0; column < columns; column += vw) {
    const int width = columns - column < vw ? static_cast<int>(columns - column) : vw;
    float* to[vw];
    for (int k = 0; k < width; ++k) to[k] = place_of(column + k);
    for (int64_t lane = 0; lane < p.lanes; lane += vw) {
      const int height = static_cast<int>(std::clamp<int64_t>(p.filled - lane, 0, vw));
      const float* source = from + lane * p.lane_step + column;
      VecF square[vw];
      for (int r = 0; r < vw; ++r) {
        if (r >= height) {
          square[r] = broadcast(0.0F);
        } else {
          square[r] = load_some(source + r * p.lane_step, width);
        }
      }
      transpose_lanes(square);
      if (p.lanes - lane >= vw) {
        for (int k = 0; k < width; ++k) store(to[k] + lane, square[k]);
      } else {
        for (int k = 0; k < width; ++k) store_first(to[k] + lane, square[k], static_cast<int>(p.lanes - lane));
      }
    }
  }
}

// Lanes that are neighbours in the weights too.
inline void copy_line(const PanelLines& p, const float* from, float* to) {
  for (int64_t lane = 0; lane < p.lanes; lane += vw) {
    const int height = static_cast<int>(std::clamp<int64_t>(p.filled - lane, 0, vw));
    const VecF v = load_some(from + lane, height);
    if (p.lanes - lane >= vw) {
      store(to + lane, v);
    } else {
      store_first(to + lane, v, static_cast<int>(p.lanes - lane));
    }
  }
}

inline void gather_line(const PanelLines& p, const float* from, float* to) {
  for (int64_t lane = 0; lane < p.filled; ++lane) to[lane] = from[lane * p.lane_step];
  std::fill(to + p.filled, to + p.lanes, 0.0F);
}

inline void run_panel_lines(const PanelLines& p) {
  if (p.tap_count == 0) return;
  bool taps_lie_together = true;
  for (int64_t t = 1; t < p.tap_count; ++t)
    taps_lie_together = taps_lie_together && p.taps[t].from == p.taps[t - 1].from + 1;
  if (p.lane_step != 1 && taps_lie_together && (p.channel_step == p.tap_count || p.channels == 1)) {
    int64_t tap = 0;
    int64_t channel = 0;
    turn_lines(p, p.from + p.taps[0].from, p.channels * p.tap_count, [&](int64_t) {
      float* const to = p.to + p.taps[tap].to + channel * p.line_step;
      if (++tap == p.tap_count) {
        tap = 0;
        ++channel;
      }
      return to;
    });
  } else if (p.lane_step != 1 && taps_lie_together && p.channel_step != 1) {
    for (int64_t c = 0; c < p.channels; ++c) {
      float* const to = p.to + c * p.line_step;
      turn_lines(p, p.from + c * p.channel_step + p.taps[0].from, p.tap_count,
                 [&](int64_t tap) { return to + p.taps[tap].to; });
    }
  } else if (p.lane_step != 1 && p.channel_step == 1) {
    for (int64_t t = 0; t < p.tap_count; ++t) {
      float* const to = p.to + p.taps[t].to;
      turn_lines(p, p.from + p.taps[t].from, p.channels, [&](int64_t channel) { return to + channel * p.line_step; });
    }
  } else {
    for (int64_t c = 0; c < p.channels; ++c) {
      for (int64_t t = 0; t < p.tap_count; ++t) {
        const float* from = p.from + p.taps[t].from + c * p.channel_step;
        float* const to = p.to + p.taps[t].to + c * p.line_step;
        p.lane_step == 1 ? copy_line(p, from, to) : gather_line(p, from, to);
      }
    }
  }
}

}  // namespace polyphase::cpu::POLYPHASE_CLUSTER
