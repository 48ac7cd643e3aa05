// The vector vocabulary without any instruction set: 4 lanes of compiler vectors, which become SSE2 or NEON by
// themselves.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "backends/cpu/simd/cluster.h"

namespace polyphase::cpu::POLYPHASE_CLUSTER {

using FloatLanes = float __attribute__((vector_size(16)));
using IntLanes = int32_t __attribute__((vector_size(16)));

template <class T>
struct Vec;

template <>
struct Vec<float> {
  static constexpr int width = 4;
  FloatLanes v;
};

template <>
struct Vec<int32_t> {
  static constexpr int width = 4;
  IntLanes v;
};

struct Mask {
  IntLanes m;
};

POLYPHASE_INLINE Vec<float> broadcast(float x) { return {FloatLanes{x, x, x, x}}; }
POLYPHASE_INLINE Vec<int32_t> broadcast(int32_t x) { return {IntLanes{x, x, x, x}}; }
POLYPHASE_INLINE Vec<int32_t> iota() { return {IntLanes{0, 1, 2, 3}}; }
POLYPHASE_INLINE Vec<float> load(const float* p) {
  Vec<float> r;
  std::memcpy(&r.v, p, sizeof r.v);
  return r;
}
POLYPHASE_INLINE Vec<int32_t> load(const int32_t* p) {
  Vec<int32_t> r;
  std::memcpy(&r.v, p, sizeof r.v);
  return r;
}
// Lane by lane, wherever p lies.
template <class Lanes, class T>
POLYPHASE_INLINE Lanes load_lanes(const T* p, int n) {
  T lanes[sizeof(Lanes) / sizeof(T)] = {};
  for (int i = 0; i < n; ++i) std::memcpy(&lanes[i], p + i, sizeof(T));
  Lanes r;
  std::memcpy(&r, lanes, sizeof r);
  return r;
}
template <class Lanes, class T>
POLYPHASE_INLINE void store_lanes(T* p, const Lanes& a, int lo, int hi) {
  T lanes[sizeof(Lanes) / sizeof(T)];
  std::memcpy(lanes, &a, sizeof a);
  for (int i = lo; i < hi; ++i) std::memcpy(p + i, &lanes[i], sizeof(T));
}
POLYPHASE_INLINE Vec<float> load_first(const float* p, int n) { return {load_lanes<FloatLanes>(p, n)}; }
POLYPHASE_INLINE Vec<int32_t> load_first(const int32_t* p, int n) { return {load_lanes<IntLanes>(p, n)}; }
POLYPHASE_INLINE void store(float* p, Vec<float> a) { std::memcpy(p, &a.v, sizeof a.v); }
// Stores past the caches where there is such a thing; p is aligned to the vector.
POLYPHASE_INLINE void stream(float* p, Vec<float> a) { store(p, a); }
POLYPHASE_INLINE void finish_streams() {}
POLYPHASE_INLINE void store(int32_t* p, Vec<int32_t> a) { std::memcpy(p, &a.v, sizeof a.v); }
inline constexpr bool stores_ranges_fast = false;
POLYPHASE_INLINE void store_range(float* p, Vec<float> a, int lo, int hi) { store_lanes(p, a.v, lo, hi); }
POLYPHASE_INLINE void store_half_range(uint16_t* p, Vec<int32_t> a, int lo, int hi) {
  uint16_t halves[2 * Vec<int32_t>::width];
  std::memcpy(halves, &a.v, sizeof halves);
  std::memcpy(p + lo, halves + lo, static_cast<size_t>(std::max(0, hi - lo)) * sizeof(uint16_t));
}
POLYPHASE_INLINE void store_first(float* p, Vec<float> a, int n) { store_range(p, a, 0, n); }
POLYPHASE_INLINE void store_first(int32_t* p, Vec<int32_t> a, int n) { store_lanes(p, a.v, 0, n); }

POLYPHASE_INLINE Vec<float> operator+(Vec<float> a, Vec<float> b) { return {a.v + b.v}; }
POLYPHASE_INLINE Vec<float> operator-(Vec<float> a, Vec<float> b) { return {a.v - b.v}; }
POLYPHASE_INLINE Vec<float> operator*(Vec<float> a, Vec<float> b) { return {a.v * b.v}; }
POLYPHASE_INLINE Vec<float> operator/(Vec<float> a, Vec<float> b) { return {a.v / b.v}; }
// Two roundings: a portable machine has no fused multiply-add worth calling.
POLYPHASE_INLINE Vec<float> fma(Vec<float> a, Vec<float> b, Vec<float> c) { return {a.v * b.v + c.v}; }
// a*b minus its rounded value, exactly: the product of two floats fits a double.
POLYPHASE_INLINE Vec<float> product_error(Vec<float> a, Vec<float> b) {
  Vec<float> r;
  for (int i = 0; i < 4; ++i) {
    const double product = static_cast<double>(a.v[i]) * static_cast<double>(b.v[i]);
    r.v[i] = static_cast<float>(product - static_cast<double>(static_cast<float>(product)));
  }
  return r;
}
POLYPHASE_INLINE Vec<float> max(Vec<float> a, Vec<float> b) { return {a.v > b.v ? a.v : b.v}; }
POLYPHASE_INLINE Vec<float> min(Vec<float> a, Vec<float> b) { return {a.v < b.v ? a.v : b.v}; }
template <class F>
POLYPHASE_INLINE Vec<float> each_lane(Vec<float> a, F f) {
  return {FloatLanes{f(a.v[0]), f(a.v[1]), f(a.v[2]), f(a.v[3])}};
}
POLYPHASE_INLINE Vec<float> abs(Vec<float> a) {
  return each_lane(a, [](float x) { return std::fabs(x); });
}
POLYPHASE_INLINE Vec<float> sqrt(Vec<float> a) {
  return each_lane(a, [](float x) { return std::sqrt(x); });
}
POLYPHASE_INLINE Vec<float> round_nearest(Vec<float> a) {
  return each_lane(a, [](float x) { return std::nearbyint(x); });
}
POLYPHASE_INLINE Vec<float> floor(Vec<float> a) {
  return each_lane(a, [](float x) { return std::floor(x); });
}

POLYPHASE_INLINE Mask less(Vec<float> a, Vec<float> b) { return {a.v < b.v}; }
POLYPHASE_INLINE Mask less_equal(Vec<float> a, Vec<float> b) { return {a.v <= b.v}; }
POLYPHASE_INLINE Mask equal(Vec<float> a, Vec<float> b) { return {a.v == b.v}; }
POLYPHASE_INLINE bool any(Mask m) { return (m.m[0] | m.m[1] | m.m[2] | m.m[3]) != 0; }
POLYPHASE_INLINE Vec<float> select(Mask m, Vec<float> yes, Vec<float> no) { return {m.m ? yes.v : no.v}; }
POLYPHASE_INLINE Vec<int32_t> select(Mask m, Vec<int32_t> yes, Vec<int32_t> no) { return {m.m ? yes.v : no.v}; }

POLYPHASE_INLINE Vec<int32_t> operator+(Vec<int32_t> a, Vec<int32_t> b) { return {a.v + b.v}; }
POLYPHASE_INLINE Vec<int32_t> operator-(Vec<int32_t> a, Vec<int32_t> b) { return {a.v - b.v}; }
POLYPHASE_INLINE Vec<int32_t> operator&(Vec<int32_t> a, Vec<int32_t> b) { return {a.v & b.v}; }
POLYPHASE_INLINE Vec<int32_t> operator|(Vec<int32_t> a, Vec<int32_t> b) { return {a.v | b.v}; }
template <int n>
POLYPHASE_INLINE Vec<int32_t> shift_left(Vec<int32_t> a) {
  return {a.v << n};
}
template <int n>
POLYPHASE_INLINE Vec<int32_t> shift_right_logical(Vec<int32_t> a) {
  Vec<int32_t> r;
  for (int i = 0; i < 4; ++i) r.v[i] = static_cast<int32_t>(static_cast<uint32_t>(a.v[i]) >> n);
  return r;
}
// Out of range and NaN give the least integer, as the x86 conversion does.
POLYPHASE_INLINE Vec<int32_t> to_int(Vec<float> a) {
  IntLanes r;
  for (int i = 0; i < 4; ++i) {
    const bool fits = a.v[i] >= -2147483648.0F && a.v[i] < 2147483648.0F;
    r[i] = fits ? static_cast<int32_t>(std::nearbyint(a.v[i])) : INT32_MIN;
  }
  return {r};
}
POLYPHASE_INLINE Vec<float> to_float(Vec<int32_t> a) { return {__builtin_convertvector(a.v, FloatLanes)}; }
POLYPHASE_INLINE Vec<int32_t> as_int(Vec<float> a) { return {std::bit_cast<IntLanes>(a.v)}; }
POLYPHASE_INLINE Vec<float> as_float(Vec<int32_t> a) { return {std::bit_cast<FloatLanes>(a.v)}; }

POLYPHASE_INLINE float widen_f16(uint16_t h) {
  const uint32_t sign = static_cast<uint32_t>(h & 0x8000U) << 16U;
  const uint32_t exponent = (h >> 10U) & 0x1fU;
  const uint32_t fraction = h & 0x3ffU;
  if (exponent == 0) {  // zero or subnormal: fraction * 2^-24
    const float magnitude = static_cast<float>(fraction) * 0x1p-24F;
    return sign != 0 ? -magnitude : magnitude;
  }
  const uint32_t wide = exponent == 31 ? 0xffU : exponent + 112U;
  const uint32_t quiet = exponent == 31 && fraction != 0 ? 0x400000U : 0U;
  return std::bit_cast<float>(sign | (wide << 23U) | (fraction << 13U) | quiet);
}
POLYPHASE_INLINE uint16_t narrow_f16(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  const uint32_t sign = (bits >> 16U) & 0x8000U;
  const uint32_t magnitude = bits & 0x7fffffffU;
  if (magnitude > 0x7f800000U) return static_cast<uint16_t>(sign | 0x7e00U | ((magnitude >> 13U) & 0x3ffU));
  if (magnitude >= 0x477ff000U) return static_cast<uint16_t>(sign | 0x7c00U);  // rounds to infinity
  if (magnitude < 0x38800000U) {  // subnormal: let the float adder round at 2^-24
    const float shifted = std::bit_cast<float>(magnitude) + 0.5F;
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x3f000000U));
  }
  const uint32_t rounded = magnitude + 0xfffU + ((magnitude >> 13U) & 1U);
  return static_cast<uint16_t>(sign | ((rounded - 0x38000000U) >> 13U));
}
POLYPHASE_INLINE uint16_t narrow_bf16(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  if ((bits & 0x7fffffffU) > 0x7f800000U) return static_cast<uint16_t>((bits | 0x400000U) >> 16U);
  return static_cast<uint16_t>((bits + 0x7fffU + ((bits >> 16U) & 1U)) >> 16U);
}
POLYPHASE_INLINE Vec<float> load_f16_first(const uint16_t* p, int n) {
  FloatLanes r = {0, 0, 0, 0};
  for (int i = 0; i < n; ++i) r[i] = widen_f16(p[i]);
  return {r};
}
POLYPHASE_INLINE Vec<float> load_f16(const uint16_t* p) { return load_f16_first(p, 4); }
POLYPHASE_INLINE void store_f16_first(uint16_t* p, Vec<float> a, int n) {
  for (int i = 0; i < n; ++i) p[i] = narrow_f16(a.v[i]);
}
POLYPHASE_INLINE void store_f16(uint16_t* p, Vec<float> a) { store_f16_first(p, a, 4); }
POLYPHASE_INLINE void stream_f16(uint16_t* p, Vec<float> a) { store_f16(p, a); }
POLYPHASE_INLINE Vec<float> load_bf16_first(const uint16_t* p, int n) {
  FloatLanes r = {0, 0, 0, 0};
  for (int i = 0; i < n; ++i) r[i] = std::bit_cast<float>(static_cast<uint32_t>(p[i]) << 16U);
  return {r};
}
POLYPHASE_INLINE Vec<float> load_bf16(const uint16_t* p) { return load_bf16_first(p, 4); }
POLYPHASE_INLINE void store_bf16_first(uint16_t* p, Vec<float> a, int n) {
  for (int i = 0; i < n; ++i) p[i] = narrow_bf16(a.v[i]);
}
POLYPHASE_INLINE void store_bf16(uint16_t* p, Vec<float> a) { store_bf16_first(p, a, 4); }
POLYPHASE_INLINE void stream_bf16(uint16_t* p, Vec<float> a) { store_bf16(p, a); }

POLYPHASE_INLINE float sum(Vec<float> a) { return (a.v[0] + a.v[2]) + (a.v[1] + a.v[3]); }
POLYPHASE_INLINE float max_lane(Vec<float> a) {
  const float low = a.v[0] > a.v[1] ? a.v[0] : a.v[1];
  const float high = a.v[2] > a.v[3] ? a.v[2] : a.v[3];
  return low > high ? low : high;
}

// Lane i of the result is lane lanes[i] of a, each below the width.
POLYPHASE_INLINE Vec<float> pick(Vec<float> a, Vec<int32_t> lanes) {
  return {FloatLanes{a.v[lanes.v[0]], a.v[lanes.v[1]], a.v[lanes.v[2]], a.v[lanes.v[3]]}};
}

// low, high = a0 b0 a1 b1 …: the lanes of both in turns.
POLYPHASE_INLINE void zip(Vec<float> a, Vec<float> b, Vec<float>& low, Vec<float>& high) {
  low.v = FloatLanes{a.v[0], b.v[0], a.v[1], b.v[1]};
  high.v = FloatLanes{a.v[2], b.v[2], a.v[3], b.v[3]};
}

// The inverse of zip: every other lane of low and high, one after the other.
POLYPHASE_INLINE void unzip(Vec<float> low, Vec<float> high, Vec<float>& a, Vec<float>& b) {
  a.v = FloatLanes{low.v[0], low.v[2], high.v[0], high.v[2]};
  b.v = FloatLanes{low.v[1], low.v[3], high.v[1], high.v[3]};
}

// Makes the compiler hold `a` in a register instead of reading it from memory again at each use.
POLYPHASE_INLINE void hold(Vec<float>&) {}

// Transposes width × width lanes held in r[0..width).
POLYPHASE_INLINE void transpose_lanes(Vec<float>* r) {
  const FloatLanes a = r[0].v;
  const FloatLanes b = r[1].v;
  const FloatLanes c = r[2].v;
  const FloatLanes d = r[3].v;
  for (int i = 0; i < 4; ++i) r[i].v = FloatLanes{a[i], b[i], c[i], d[i]};
}

}  // namespace polyphase::cpu::POLYPHASE_CLUSTER
