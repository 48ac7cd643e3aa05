// Runs of elements of any stride between their storage and FP32.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cpu/simd/vec.h"
#include "base/dtype.h"

namespace polyphase::cpu::POLYPHASE_CLUSTER {

template <class T>
inline void widen_numbers(const std::byte* from, int64_t stride, float* to, int64_t n) {
  const T* x = reinterpret_cast<const T*>(from);
  if (stride == 1) {
    for (int64_t i = 0; i < n; ++i) to[i] = static_cast<float>(x[i]);
  } else {
    for (int64_t i = 0; i < n; ++i) to[i] = static_cast<float>(x[i * stride]);
  }
}

// `half`: f16, otherwise bf16.
template <bool half>
inline void widen_floats(const std::byte* from, int64_t stride, float* to, int64_t n) {
  const auto* x = reinterpret_cast<const uint16_t*>(from);
  if (stride == 1) {
    int64_t i = 0;
    for (; i + vec_width <= n; i += vec_width) store(to + i, half ? load_f16(x + i) : load_bf16(x + i));
    const auto rest = static_cast<int>(n - i);
    if (rest > 0) store_first(to + i, half ? load_f16_first(x + i, rest) : load_bf16_first(x + i, rest), rest);
    return;
  }
  for (int64_t i = 0; i < n; i += vec_width) {
    const int count = n - i < vec_width ? static_cast<int>(n - i) : vec_width;
    uint16_t lanes[vec_width] = {};
    for (int k = 0; k < count; ++k) lanes[k] = x[(i + k) * stride];
    store_first(to + i, half ? load_f16(lanes) : load_bf16(lanes), count);
  }
}

template <bool half>
inline void narrow_floats(const float* from, std::byte* to, int64_t stride, int64_t n) {
  auto* y = reinterpret_cast<uint16_t*>(to);
  if (stride == 1) {
    int64_t i = 0;
    for (; i + vec_width <= n; i += vec_width)
      half ? store_f16(y + i, load(from + i)) : store_bf16(y + i, load(from + i));
    const auto rest = static_cast<int>(n - i);
    if (rest == 0) return;
    const VecF last = load_first(from + i, rest);
    half ? store_f16_first(y + i, last, rest) : store_bf16_first(y + i, last, rest);
    return;
  }
  for (int64_t i = 0; i < n; i += vec_width) {
    const int count = n - i < vec_width ? static_cast<int>(n - i) : vec_width;
    const VecF values = load_first(from + i, count);
    uint16_t lanes[vec_width];
    half ? store_f16(lanes, values) : store_bf16(lanes, values);
    for (int k = 0; k < count; ++k) y[(i + k) * stride] = lanes[k];
  }
}

// to[i] = from[i * stride]
inline void load_elements(DType dtype, const std::byte* from, int64_t stride, float* to, int64_t n) {
  switch (dtype) {
    case DType::f32:
      return widen_numbers<float>(from, stride, to, n);
    case DType::f16:
      return widen_floats<true>(from, stride, to, n);
    case DType::bf16:
      return widen_floats<false>(from, stride, to, n);
    case DType::i8:
      return widen_numbers<int8_t>(from, stride, to, n);
    case DType::u8:
    case DType::boolean:
      return widen_numbers<uint8_t>(from, stride, to, n);
    case DType::i16:
      return widen_numbers<int16_t>(from, stride, to, n);
    case DType::u16:
      return widen_numbers<uint16_t>(from, stride, to, n);
    default:
      return;
  }
}

// to[i * stride] = from[i], rounded once
inline void store_elements(DType dtype, const float* from, std::byte* to, int64_t stride, int64_t n) {
  if (dtype == DType::f16) return narrow_floats<true>(from, to, stride, n);
  if (dtype == DType::bf16) return narrow_floats<false>(from, to, stride, n);
  auto* y = reinterpret_cast<float*>(to);
  for (int64_t i = 0; i < n; ++i) y[i * stride] = from[i];
}

}  // namespace polyphase::cpu::POLYPHASE_CLUSTER
