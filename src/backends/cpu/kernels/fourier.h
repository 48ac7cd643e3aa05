// Fourier transforms by factors of their length, several signals side by side.
//
// A Stockham transform: stage by stage the length is divided by a factor r,
//
//   to[(p·r + k)·m + q] = Σ_j w_r^{jk} · (w_{r·l}^{j·p} · from[(j·l' + …)]),
//
// and the results come out in order, so that no bit reversal is needed. Each element is a run of `lanes` signals.
#pragma once

#include <cstdint>

#include "base/dtype.h"

namespace polyphase::cpu {

inline constexpr int fourier_lanes = 8;
inline constexpr int fourier_most_factors = 64;

struct FourierPlan {
  DType dtype;
  int64_t length;  // n
  int64_t given;   // operand places that are read
  int64_t bins;    // results along the axis
  int64_t outer, inner;
  int64_t from_steps[3];  // elements: outer, axis, inner
  int64_t to_steps[3];
  int32_t is_complex;  // the operand
  int32_t inverse;
  int32_t mirrored;  // the operand is half a spectrum, the result is real
  int32_t factor_count;
  int32_t factors[fourier_most_factors];
  int64_t turns_at;  // byte offset in the plan of cos, sin of 2π·i/n
  int64_t tiles;     // runs of `lanes` signals
};

}  // namespace polyphase::cpu
