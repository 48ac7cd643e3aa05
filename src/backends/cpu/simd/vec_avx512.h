// The vector vocabulary in AVX-512 (F, BW, DQ, VL): 16 lanes, a mask register per comparison.
#pragma once

// g++ 12 warns about its own deliberately undefined registers inside these intrinsics.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#ifndef __clang__
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>
#pragma GCC diagnostic pop

#include <cstdint>

#include "backends/cpu/simd/cluster.h"
#include "backends/cpu/simd/unrolled.h"

namespace polyphase::cpu::POLYPHASE_CLUSTER {

template <class T>
struct Vec;

template <>
struct Vec<float> {
  static constexpr int width = 16;
  __m512 v;
};

template <>
struct Vec<int32_t> {
  static constexpr int width = 16;
  __m512i v;
};

struct Mask {
  __mmask16 m;
};

POLYPHASE_INLINE __mmask16 lane_bits(int lo, int hi) {
  return static_cast<__mmask16>(((1U << static_cast<unsigned>(hi)) - 1U) & ~((1U << static_cast<unsigned>(lo)) - 1U));
}

POLYPHASE_INLINE Vec<float> broadcast(float x) { return {_mm512_set1_ps(x)}; }
POLYPHASE_INLINE Vec<int32_t> broadcast(int32_t x) { return {_mm512_set1_epi32(x)}; }
POLYPHASE_INLINE Vec<int32_t> iota() {
  return {_mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)};
}
POLYPHASE_INLINE Vec<float> load(const float* p) { return {_mm512_loadu_ps(p)}; }
POLYPHASE_INLINE Vec<int32_t> load(const int32_t* p) { return {_mm512_loadu_si512(p)}; }
POLYPHASE_INLINE Vec<float> load_first(const float* p, int n) { return {_mm512_maskz_loadu_ps(lane_bits(0, n), p)}; }
POLYPHASE_INLINE Vec<int32_t> load_first(const int32_t* p, int n) {
  return {_mm512_maskz_loadu_epi32(lane_bits(0, n), p)};
}
POLYPHASE_INLINE void store(float* p, Vec<float> a) { _mm512_storeu_ps(p, a.v); }
// Stores past the caches; p is aligned to the vector. Visible to others after finish_streams().
POLYPHASE_INLINE void stream(float* p, Vec<float> a) { _mm512_stream_ps(p, a.v); }
POLYPHASE_INLINE void finish_streams() { _mm_sfence(); }
POLYPHASE_INLINE void store(int32_t* p, Vec<int32_t> a) { _mm512_storeu_si512(p, a.v); }
POLYPHASE_INLINE void store_first(float* p, Vec<float> a, int n) { _mm512_mask_storeu_ps(p, lane_bits(0, n), a.v); }
POLYPHASE_INLINE void store_first(int32_t* p, Vec<int32_t> a, int n) {
  _mm512_mask_storeu_epi32(p, lane_bits(0, n), a.v);
}
inline constexpr bool stores_ranges_fast = true;
POLYPHASE_INLINE void store_range(float* p, Vec<float> a, int lo, int hi) {
  _mm512_mask_storeu_ps(p, lane_bits(lo, hi), a.v);
}
POLYPHASE_INLINE void store_half_range(uint16_t* p, Vec<int32_t> a, int lo, int hi) {
  const auto below = [](int n) { return (uint64_t{1} << static_cast<unsigned>(n)) - 1; };
  _mm512_mask_storeu_epi16(p, static_cast<__mmask32>(below(hi) & ~below(lo)), a.v);
}

POLYPHASE_INLINE Vec<float> operator+(Vec<float> a, Vec<float> b) { return {_mm512_add_ps(a.v, b.v)}; }
POLYPHASE_INLINE Vec<float> operator-(Vec<float> a, Vec<float> b) { return {_mm512_sub_ps(a.v, b.v)}; }
POLYPHASE_INLINE Vec<float> operator*(Vec<float> a, Vec<float> b) { return {_mm512_mul_ps(a.v, b.v)}; }
POLYPHASE_INLINE Vec<float> operator/(Vec<float> a, Vec<float> b) { return {_mm512_div_ps(a.v, b.v)}; }
POLYPHASE_INLINE Vec<float> fma(Vec<float> a, Vec<float> b, Vec<float> c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
// a*b minus its rounded value, exactly.
POLYPHASE_INLINE Vec<float> product_error(Vec<float> a, Vec<float> b) {
  return {_mm512_fmsub_ps(a.v, b.v, _mm512_mul_ps(a.v, b.v))};
}
POLYPHASE_INLINE Vec<float> max(Vec<float> a, Vec<float> b) { return {_mm512_max_ps(a.v, b.v)}; }
POLYPHASE_INLINE Vec<float> min(Vec<float> a, Vec<float> b) { return {_mm512_min_ps(a.v, b.v)}; }
POLYPHASE_INLINE Vec<float> abs(Vec<float> a) { return {_mm512_abs_ps(a.v)}; }
POLYPHASE_INLINE Vec<float> sqrt(Vec<float> a) { return {_mm512_sqrt_ps(a.v)}; }
POLYPHASE_INLINE Vec<float> round_nearest(Vec<float> a) {
  return {_mm512_roundscale_ps(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
}
POLYPHASE_INLINE Vec<float> floor(Vec<float> a) {
  return {_mm512_roundscale_ps(a.v, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC)};
}

POLYPHASE_INLINE Mask less(Vec<float> a, Vec<float> b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_LT_OQ)}; }
POLYPHASE_INLINE Mask less_equal(Vec<float> a, Vec<float> b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_LE_OQ)}; }
POLYPHASE_INLINE Mask equal(Vec<float> a, Vec<float> b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_EQ_OQ)}; }
POLYPHASE_INLINE bool any(Mask m) { return m.m != 0; }
POLYPHASE_INLINE Vec<float> select(Mask m, Vec<float> yes, Vec<float> no) {
  return {_mm512_mask_blend_ps(m.m, no.v, yes.v)};
}
POLYPHASE_INLINE Vec<int32_t> select(Mask m, Vec<int32_t> yes, Vec<int32_t> no) {
  return {_mm512_mask_blend_epi32(m.m, no.v, yes.v)};
}

POLYPHASE_INLINE Vec<int32_t> operator+(Vec<int32_t> a, Vec<int32_t> b) { return {_mm512_add_epi32(a.v, b.v)}; }
POLYPHASE_INLINE Vec<int32_t> operator-(Vec<int32_t> a, Vec<int32_t> b) { return {_mm512_sub_epi32(a.v, b.v)}; }
POLYPHASE_INLINE Vec<int32_t> operator&(Vec<int32_t> a, Vec<int32_t> b) { return {_mm512_and_si512(a.v, b.v)}; }
POLYPHASE_INLINE Vec<int32_t> operator|(Vec<int32_t> a, Vec<int32_t> b) { return {_mm512_or_si512(a.v, b.v)}; }
template <int n>
POLYPHASE_INLINE Vec<int32_t> shift_left(Vec<int32_t> a) {
  return {_mm512_slli_epi32(a.v, n)};
}
template <int n>
POLYPHASE_INLINE Vec<int32_t> shift_right_logical(Vec<int32_t> a) {
  return {_mm512_srli_epi32(a.v, n)};
}
POLYPHASE_INLINE Vec<int32_t> to_int(Vec<float> a) { return {_mm512_cvtps_epi32(a.v)}; }
POLYPHASE_INLINE Vec<float> to_float(Vec<int32_t> a) { return {_mm512_cvtepi32_ps(a.v)}; }
POLYPHASE_INLINE Vec<int32_t> as_int(Vec<float> a) { return {_mm512_castps_si512(a.v)}; }
POLYPHASE_INLINE Vec<float> as_float(Vec<int32_t> a) { return {_mm512_castsi512_ps(a.v)}; }

POLYPHASE_INLINE Vec<float> load_f16(const uint16_t* p) {
  return {_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))};
}
POLYPHASE_INLINE Vec<float> load_f16_first(const uint16_t* p, int n) {
  return {_mm512_cvtph_ps(_mm256_maskz_loadu_epi16(lane_bits(0, n), p))};
}
POLYPHASE_INLINE void store_f16(uint16_t* p, Vec<float> a) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtps_ph(a.v, _MM_FROUND_TO_NEAREST_INT));
}
POLYPHASE_INLINE void stream_f16(uint16_t* p, Vec<float> a) {
  _mm256_stream_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtps_ph(a.v, _MM_FROUND_TO_NEAREST_INT));
}
POLYPHASE_INLINE void store_f16_first(uint16_t* p, Vec<float> a, int n) {
  _mm256_mask_storeu_epi16(p, lane_bits(0, n), _mm512_cvtps_ph(a.v, _MM_FROUND_TO_NEAREST_INT));
}
POLYPHASE_INLINE Vec<float> widen_bf16(__m256i bits) {
  return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16))};
}
POLYPHASE_INLINE __m256i narrow_bf16(Vec<float> a) {
  const __m512i bits = _mm512_castps_si512(a.v);
  const __mmask16 odd = _mm512_test_epi32_mask(bits, _mm512_set1_epi32(0x10000));
  const __m512i even = _mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff));
  const __m512i rounded = _mm512_mask_add_epi32(even, odd, bits, _mm512_set1_epi32(0x8000));
  const __mmask16 nan = _mm512_cmp_ps_mask(a.v, a.v, _CMP_UNORD_Q);
  const __m512i x = _mm512_mask_or_epi32(rounded, nan, bits, _mm512_set1_epi32(0x400000));
  const __m256i upper = _mm256_set_epi16(31, 29, 27, 25, 23, 21, 19, 17, 15, 13, 11, 9, 7, 5, 3, 1);
  return _mm512_castsi512_si256(_mm512_permutexvar_epi16(_mm512_castsi256_si512(upper), x));
}
POLYPHASE_INLINE Vec<float> load_bf16(const uint16_t* p) {
  return widen_bf16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}
POLYPHASE_INLINE Vec<float> load_bf16_first(const uint16_t* p, int n) {
  return widen_bf16(_mm256_maskz_loadu_epi16(lane_bits(0, n), p));
}
POLYPHASE_INLINE void store_bf16(uint16_t* p, Vec<float> a) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), narrow_bf16(a));
}
POLYPHASE_INLINE void stream_bf16(uint16_t* p, Vec<float> a) {
  _mm256_stream_si256(reinterpret_cast<__m256i*>(p), narrow_bf16(a));
}
POLYPHASE_INLINE void store_bf16_first(uint16_t* p, Vec<float> a, int n) {
  _mm256_mask_storeu_epi16(p, lane_bits(0, n), narrow_bf16(a));
}

POLYPHASE_INLINE float sum(Vec<float> a) { return _mm512_reduce_add_ps(a.v); }
POLYPHASE_INLINE float max_lane(Vec<float> a) { return _mm512_reduce_max_ps(a.v); }

// Lane i of the result is lane lanes[i] of a, each below the width.
POLYPHASE_INLINE Vec<float> pick(Vec<float> a, Vec<int32_t> lanes) { return {_mm512_permutexvar_ps(lanes.v, a.v)}; }

// low, high = a0 b0 a1 b1 …: the lanes of both in turns.
POLYPHASE_INLINE void zip(Vec<float> a, Vec<float> b, Vec<float>& low, Vec<float>& high) {
  const __m512i first = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
  low.v = _mm512_permutex2var_ps(a.v, first, b.v);
  high.v = _mm512_permutex2var_ps(a.v, _mm512_add_epi32(first, _mm512_set1_epi32(8)), b.v);
}

// The inverse of zip: every other lane of low and high, one after the other.
POLYPHASE_INLINE void unzip(Vec<float> low, Vec<float> high, Vec<float>& a, Vec<float>& b) {
  const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
  a.v = _mm512_permutex2var_ps(low.v, even, high.v);
  b.v = _mm512_permutex2var_ps(low.v, _mm512_add_epi32(even, _mm512_set1_epi32(1)), high.v);
}

// Makes the compiler hold `a` in a register instead of reading it from memory again at each use.
POLYPHASE_INLINE void hold(Vec<float>& a) { __asm__("" : "+v"(a.v)); }

// Transposes width × width lanes held in r[0..width).
POLYPHASE_INLINE void transpose_lanes(Vec<float>* r) {
  __m512 t[16];
  unrolled<8>([&](int i) POLYPHASE_INLINE_LAMBDA {
    t[2 * i] = _mm512_unpacklo_ps(r[2 * i].v, r[2 * i + 1].v);
    t[2 * i + 1] = _mm512_unpackhi_ps(r[2 * i].v, r[2 * i + 1].v);
  });
  __m512 u[16];
  unrolled<8>([&](int k) POLYPHASE_INLINE_LAMBDA {
    const int i = 4 * (k / 2);
    const int j = k % 2;
    const __m512d a = _mm512_castps_pd(t[i + j]);
    const __m512d b = _mm512_castps_pd(t[i + 2 + j]);
    u[i + 2 * j] = _mm512_castpd_ps(_mm512_unpacklo_pd(a, b));
    u[i + 2 * j + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(a, b));
  });
  // u[4 * group + j] holds, per 128-bit quarter q, column 4q + j of rows 4*group..
  unrolled<4>([&](int j) POLYPHASE_INLINE_LAMBDA {
    const __m512 a = _mm512_shuffle_f32x4(u[j], u[4 + j], 0x88);
    const __m512 b = _mm512_shuffle_f32x4(u[8 + j], u[12 + j], 0x88);
    const __m512 c = _mm512_shuffle_f32x4(u[j], u[4 + j], 0xdd);
    const __m512 d = _mm512_shuffle_f32x4(u[8 + j], u[12 + j], 0xdd);
    r[j].v = _mm512_shuffle_f32x4(a, b, 0x88);
    r[8 + j].v = _mm512_shuffle_f32x4(a, b, 0xdd);
    r[4 + j].v = _mm512_shuffle_f32x4(c, d, 0x88);
    r[12 + j].v = _mm512_shuffle_f32x4(c, d, 0xdd);
  });
}

}  // namespace polyphase::cpu::POLYPHASE_CLUSTER
