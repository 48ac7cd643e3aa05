// Results that need little before they are stored leave in one pass: a bias, a sum, a (leaky) ReLU, and rounding.
#pragma once

#include <cstdint>

#include "backends/cpu/kernels/apply_endings.h"
#include "backends/cpu/kernels/conv_pairs.h"
#include "backends/cpu/simd/pairs.h"
#include "backends/cpu/simd/vec.h"

namespace polyphase::cpu::POLYPHASE_CLUSTER {

POLYPHASE_INLINE VecF load_wide(const float* from) { return load(from); }
POLYPHASE_INLINE VecF load_wide(const uint16_t* from) { return load_bf16(from); }
POLYPHASE_INLINE VecF load_wide_first(const float* from, int n) { return load_first(from, n); }
POLYPHASE_INLINE VecF load_wide_first(const uint16_t* from, int n) { return load_bf16_first(from, n); }

template <bool narrow, EndingKind activation>
void store_brief_rows(const BriefRows& rows, bool added_in_bf16, float first, float second) {
  const BriefRows r = rows;  // which no store can change
  const VecF alpha = broadcast(first);
  const VecF beta = broadcast(second);
  for (int64_t i = 0; i < r.rows; ++i) {
    const float* const values = r.values + i * r.pitch;
    const float* const added = added_in_bf16 ? nullptr : static_cast<const float*>(r.added);
    const uint16_t* const added_halves = added_in_bf16 ? static_cast<const uint16_t*>(r.added) : nullptr;
    const int64_t added_at = i * r.added_pitch;
    float* const wide = static_cast<float*>(r.to) + i * r.to_pitch;
    uint16_t* const halves = static_cast<uint16_t*>(r.to) + i * r.to_pitch;
    const auto result = [&](auto at) POLYPHASE_INLINE_LAMBDA {
      VecF x = at(values);
      if (r.bias != nullptr) x = x + at(r.bias);
      if (added != nullptr) x = x + at(added + added_at);
      if (added_halves != nullptr) x = x + at(added_halves + added_at);
      return ending_value<activation>(x, x, alpha, beta);
    };
    int64_t c = 0;
    for (; c + vec_width <= r.columns; c += vec_width) {
      const VecF x = result([c](auto from) POLYPHASE_INLINE_LAMBDA { return load_wide(from + c); });
      narrow ? store_rounded(halves + c, x) : store(wide + c, x);
    }
    if (c == r.columns) continue;
    const int n = static_cast<int>(r.columns - c);
    const VecF x = result([c, n](auto from) POLYPHASE_INLINE_LAMBDA { return load_wide_first(from + c, n); });
    narrow ? store_bf16_first(halves + c, x, n) : store_first(wide + c, x, n);
  }
}

template <bool narrow>
void store_brief_rows(const BriefEndings& endings, const BriefRows& rows) {
  switch (endings.activation) {
    case EndingKind::relu:
      return store_brief_rows<narrow, EndingKind::relu>(rows, endings.added_in_bf16, 0, 0);
    case EndingKind::leaky_relu:
      return store_brief_rows<narrow, EndingKind::leaky_relu>(rows, endings.added_in_bf16, endings.alpha, 0);
    case EndingKind::clip:
      return store_brief_rows<narrow, EndingKind::clip>(rows, endings.added_in_bf16, endings.alpha, endings.beta);
    default:
      return store_brief_rows<narrow, EndingKind::keep>(rows, endings.added_in_bf16, 0, 0);
  }
}

}  // namespace polyphase::cpu::POLYPHASE_CLUSTER
