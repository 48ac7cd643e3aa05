// Results that need little before they are stored leave in one pass: a bias, a sum, a (leaky) ReLU, and rounding.
#pragma once

#include <cstdint>

#include "backends/cpu/kernels/endings.h"
#include "backends/cpu/simd/pairs.h"
#include "backends/cpu/simd/vec.h"

namespace polyphase::cpu::POLYPHASE_CLUSTER {

template <EndingKind activation>
POLYPHASE_INLINE VecF activated(VecF x, VecF slope) {
  const VecF zero = broadcast(0.0F);
  if constexpr (activation == EndingKind::relu) return max(zero, x);
  if constexpr (activation == EndingKind::leaky_relu) return select(less(x, zero), x * slope, x);
  return x;
}

template <bool narrow, EndingKind activation>
void store_brief_rows(const BriefRows& rows, float slope) {
  const BriefRows r = rows;  // which no store can change
  const VecF slopes = broadcast(slope);
  for (int64_t i = 0; i < r.rows; ++i) {
    const float* const values = r.values + i * r.pitch;
    const float* const added = r.added == nullptr ? nullptr : r.added + i * r.added_pitch;
    float* const wide = static_cast<float*>(r.to) + i * r.to_pitch;
    uint16_t* const halves = static_cast<uint16_t*>(r.to) + i * r.to_pitch;
    const auto result = [&](auto at) POLYPHASE_INLINE_LAMBDA {
      VecF x = at(values);
      if (r.bias != nullptr) x = x + at(r.bias);
      if (added != nullptr) x = x + at(added);
      return activated<activation>(x, slopes);
    };
    int64_t c = 0;
    for (; c + vec_width <= r.columns; c += vec_width) {
      const VecF x = result([c](const float* from) POLYPHASE_INLINE_LAMBDA { return load(from + c); });
      narrow ? store_rounded(halves + c, x) : store(wide + c, x);
    }
    if (c == r.columns) continue;
    const int n = static_cast<int>(r.columns - c);
    const VecF x = result([c, n](const float* from) POLYPHASE_INLINE_LAMBDA { return load_first(from + c, n); });
    narrow ? store_bf16_first(halves + c, x, n) : store_first(wide + c, x, n);
  }
}

template <bool narrow>
void store_brief_rows(const BriefEndings& endings, const BriefRows& rows) {
  switch (endings.activation) {
    case EndingKind::relu:
      return store_brief_rows<narrow, EndingKind::relu>(rows, 0);
    case EndingKind::leaky_relu:
      return store_brief_rows<narrow, EndingKind::leaky_relu>(rows, endings.slope);
    default:
      return store_brief_rows<narrow, EndingKind::keep>(rows, 0);
  }
}

}  // namespace polyphase::cpu::POLYPHASE_CLUSTER
