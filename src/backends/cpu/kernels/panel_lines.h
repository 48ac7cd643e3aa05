// Lines of a panel: the one way in which weights of any strides get into the packed formats of convolutions and cells.
//
// A line is what one input channel c says through one tap t to so many output channels side by side, its lanes:
//
//     to[taps[t].to + c * line_step + lane] = from[taps[t].from + c * channel_step + lane * lane_step]
//
// In the weights the lanes usually lie far apart, and taps or channels are neighbours: so squares of lanes by these are
// turned in registers, each cache line is read once, and each line of the panel is written once.
#pragma once

#include <cstdint>

#include "base/float16.h"
#include "kernel/row.h"

namespace polyphase::cpu {

struct PanelTap {
  int64_t from;
  int64_t to;
};

struct PanelLines {
  const float* from;
  float* to;
  int64_t lanes;   // of a line; those from `filled` on become zero
  int64_t filled;  // lanes that the weights have
  int64_t lane_step;
  int64_t channels;
  int64_t channel_step;
  int64_t line_step;
  const PanelTap* taps;  // ascending `from`
  int64_t tap_count;
};

using PanelLinesFunction = void (*)(const PanelLines& lines);

// Writes them with the best vectors that the CPU at hand has: the same bits on any.
void write_panel_lines(const PanelLines& lines);

// Lines of channels, zeros behind an odd last one, as `words` lines of pairs in bf16.
inline void pair_channels(const float* wide, int64_t words, int64_t lanes, uint32_t* pairs) {
  const auto bits = [](float x) { return uint32_t{BFloat16(static_cast<double>(x)).bits}; };
  for (int64_t word = 0; word < words; ++word, wide += 2 * lanes) {
    for (int64_t lane = 0; lane < lanes; ++lane) *pairs++ = bits(wide[lane]) | bits(wide[lanes + lane]) << 16U;
  }
}

// The share of `units` that have to be written, as a range.
struct PackRange {
  int64_t begin;
  int64_t end;
  PackRange(int64_t units, PackShare share)
      : begin(units * share.index / share.count), end(units * (share.index + 1) / share.count) {}
};

}  // namespace polyphase::cpu
