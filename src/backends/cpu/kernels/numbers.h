// Runs of elements of any dtype as numbers: read into double (floats) or 64-bit integers (the others), computed on, and
// rounded or wrapped once on their way back. The dtype is looked at once per run.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "backends/cpu/simd/cluster.h"
#include "base/dtype.h"
#include "base/float16.h"

namespace polyphase::cpu::POLYPHASE_CLUSTER {

POLYPHASE_INLINE int64_t bytes_of(DType dtype) {
  switch (dtype) {
    case DType::f64:
    case DType::i64:
    case DType::u64:
      return 8;
    case DType::f32:
    case DType::i32:
    case DType::u32:
      return 4;
    case DType::f16:
    case DType::bf16:
    case DType::i16:
    case DType::u16:
      return 2;
    default:
      return 1;
  }
}

template <class Number>
POLYPHASE_INLINE bool is_nan(Number x) {
  if constexpr (std::is_floating_point_v<Number>)
    return std::isnan(x);
  else
    return false;
}

// i4 and u4 hold their value in a byte.
struct Nibble {
  int8_t value;
};
struct UnsignedNibble {
  uint8_t value;
};
struct Truth {
  uint8_t value;
};

template <class Number, class T>
POLYPHASE_INLINE Number number_of(T x) {
  if constexpr (std::is_arithmetic_v<T>)
    return static_cast<Number>(x);
  else if constexpr (std::is_same_v<T, Nibble> || std::is_same_v<T, UnsignedNibble> || std::is_same_v<T, Truth>)
    return static_cast<Number>(x.value);
  else
    return static_cast<Number>(static_cast<float>(x));
}

template <class T, class Number>
POLYPHASE_INLINE T element_of(Number x) {
  if constexpr (std::is_same_v<T, Truth>)
    return {static_cast<uint8_t>(x != 0 ? 1 : 0)};
  else if constexpr (std::is_same_v<T, Nibble>)
    return {static_cast<int8_t>(static_cast<int8_t>(static_cast<uint8_t>(x) << 4U) >> 4)};
  else if constexpr (std::is_same_v<T, UnsignedNibble>)
    return {static_cast<uint8_t>(static_cast<uint8_t>(x) & 15U)};
  else
    return static_cast<T>(x);
}

template <class T, class Number>
POLYPHASE_INLINE void load_run(const std::byte* from, int64_t stride, int64_t n, Number* to) {
  const T* x = reinterpret_cast<const T*>(from);
  if (stride == 1) {
    for (int64_t i = 0; i < n; ++i) to[i] = number_of<Number>(x[i]);
  } else {
    for (int64_t i = 0; i < n; ++i) to[i] = number_of<Number>(x[i * stride]);
  }
}

template <class T, class Number>
POLYPHASE_INLINE void store_run(const Number* from, int64_t n, std::byte* to, int64_t stride) {
  T* y = reinterpret_cast<T*>(to);
  if (stride == 1) {
    for (int64_t i = 0; i < n; ++i) y[i] = element_of<T>(from[i]);
  } else {
    for (int64_t i = 0; i < n; ++i) y[i * stride] = element_of<T>(from[i]);
  }
}

// f(T{}) for the dtype's element; only dtypes that Number computes.
template <class Number, class F>
POLYPHASE_INLINE void with_element(DType dtype, F&& f) {
  if constexpr (std::is_same_v<Number, double>) {
    switch (dtype) {
      case DType::f32:
        return f(float{});
      case DType::f64:
        return f(double{});
      case DType::f16:
        return f(Half{});
      case DType::bf16:
        return f(BFloat16{});
      case DType::f8e4m3:
        return f(Float8E4M3{});
      default:
        return f(Float8E5M2{});
    }
  } else if constexpr (std::is_same_v<Number, uint64_t>) {
    return f(uint64_t{});
  } else {
    switch (dtype) {
      case DType::i8:
        return f(int8_t{});
      case DType::u8:
        return f(uint8_t{});
      case DType::i16:
        return f(int16_t{});
      case DType::u16:
        return f(uint16_t{});
      case DType::i32:
        return f(int32_t{});
      case DType::u32:
        return f(uint32_t{});
      case DType::i64:
      case DType::u64:
        return f(int64_t{});
      case DType::i4:
        return f(Nibble{});
      case DType::u4:
        return f(UnsignedNibble{});
      default:
        return f(Truth{});
    }
  }
}

// to[i] = from[i * stride]
template <class Number>
inline void load_numbers(DType dtype, const std::byte* from, int64_t stride, int64_t n, Number* to) {
  with_element<Number>(dtype, [&]<class T>(T) { load_run<T>(from, stride, n, to); });
}

// to[i * stride] = from[i]. Code of its own: inlined, it is what GCC warns of as reading sums that nobody set.
template <class Number>
__attribute__((noinline)) void store_numbers(DType dtype, const Number* from, int64_t n, std::byte* to,
                                             int64_t stride) {
  with_element<Number>(dtype, [&]<class T>(T) { store_run<T>(from, n, to, stride); });
}

POLYPHASE_INLINE bool is_real(DType dtype) { return static_cast<int>(dtype) <= static_cast<int>(DType::f8e5m2); }

// f(Number{}) for the type that the dtype computes in.
template <class F>
POLYPHASE_INLINE void with_number(DType dtype, F&& f) {
  if (is_real(dtype)) return f(double{});
  if (dtype == DType::u64) return f(uint64_t{});
  return f(int64_t{});
}

}  // namespace polyphase::cpu::POLYPHASE_CLUSTER
