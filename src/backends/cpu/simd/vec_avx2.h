// The vector vocabulary in AVX2 with FMA and F16C: 8 lanes, masks as vectors of all-ones or all-zeros.
#pragma once

#include <immintrin.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "backends/cpu/simd/cluster.h"
#include "backends/cpu/simd/unrolled.h"

namespace polyphase::cpu::POLYPHASE_CLUSTER {

template <class T>
struct Vec;

template <>
struct Vec<float> {
  static constexpr int width = 8;
  __m256 v;
};

template <>
struct Vec<int32_t> {
  static constexpr int width = 8;
  __m256i v;
};

struct Mask {
  __m256 m;
};

POLYPHASE_INLINE Vec<int32_t> iota() { return {_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7)}; }
POLYPHASE_INLINE __m256i lane_bits(int lo, int hi) {
  const __m256i lane = iota().v;
  return _mm256_andnot_si256(_mm256_cmpgt_epi32(_mm256_set1_epi32(lo), lane),
                             _mm256_cmpgt_epi32(_mm256_set1_epi32(hi), lane));
}

POLYPHASE_INLINE Vec<float> broadcast(float x) { return {_mm256_set1_ps(x)}; }
POLYPHASE_INLINE Vec<int32_t> broadcast(int32_t x) { return {_mm256_set1_epi32(x)}; }
POLYPHASE_INLINE Vec<float> load(const float* p) { return {_mm256_loadu_ps(p)}; }
POLYPHASE_INLINE Vec<int32_t> load(const int32_t* p) {
  return {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))};
}
POLYPHASE_INLINE Vec<float> load_first(const float* p, int n) { return {_mm256_maskload_ps(p, lane_bits(0, n))}; }
POLYPHASE_INLINE Vec<int32_t> load_first(const int32_t* p, int n) {
  return {_mm256_maskload_epi32(p, lane_bits(0, n))};
}
POLYPHASE_INLINE void store(float* p, Vec<float> a) { _mm256_storeu_ps(p, a.v); }
// Stores past the caches; p is aligned to the vector. Visible to others after finish_streams().
POLYPHASE_INLINE void stream(float* p, Vec<float> a) { _mm256_stream_ps(p, a.v); }
POLYPHASE_INLINE void finish_streams() { _mm_sfence(); }
POLYPHASE_INLINE void store(int32_t* p, Vec<int32_t> a) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), a.v); }
POLYPHASE_INLINE void store_first(float* p, Vec<float> a, int n) { _mm256_maskstore_ps(p, lane_bits(0, n), a.v); }
POLYPHASE_INLINE void store_first(int32_t* p, Vec<int32_t> a, int n) {
  _mm256_maskstore_epi32(p, lane_bits(0, n), a.v);
}
// The first n halves, in fours, twos and ones.
__attribute__((noinline)) inline void store_first_halves(uint16_t* p, __m128i a, int n) {
  if (n >= Vec<float>::width) return _mm_storeu_si128(reinterpret_cast<__m128i*>(p), a);
  if (n <= 0) return;
  if ((n & 4) != 0) {
    _mm_storel_epi64(reinterpret_cast<__m128i*>(p), a);
    a = _mm_srli_si128(a, 8);
    p += 4;
  }
  if ((n & 2) != 0) {
    const int pair = _mm_cvtsi128_si32(a);
    std::memcpy(p, &pair, sizeof pair);
    a = _mm_srli_si128(a, 4);
    p += 2;
  }
  if ((n & 1) != 0) *p = static_cast<uint16_t>(_mm_extract_epi16(a, 0));
}
__attribute__((noinline)) inline __m128i load_first_halves(const uint16_t* p, int n) {
  if (n >= Vec<float>::width) return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  __m128i a = _mm_setzero_si128();
  if (n <= 0) return a;
  if ((n & 1) != 0) a = _mm_cvtsi32_si128(p[n - 1]);
  if ((n & 2) != 0) {
    int pair = 0;
    std::memcpy(&pair, p + (n & 4), sizeof pair);
    a = _mm_or_si128(_mm_slli_si128(a, 4), _mm_cvtsi32_si128(pair));
  }
  if ((n & 4) != 0) a = _mm_or_si128(_mm_slli_si128(a, 8), _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
  return a;
}
inline constexpr bool stores_ranges_fast = false;  // 20 to 40 operations on some processors
POLYPHASE_INLINE void store_range(float* p, Vec<float> a, int lo, int hi) {
  _mm256_maskstore_ps(p, lane_bits(lo, hi), a.v);
}
POLYPHASE_INLINE void store_half_range(uint16_t* p, Vec<int32_t> a, int lo, int hi) {
  uint16_t halves[2 * Vec<int32_t>::width];
  std::memcpy(halves, &a.v, sizeof halves);
  std::memcpy(p + lo, halves + lo, static_cast<size_t>(std::max(0, hi - lo)) * sizeof(uint16_t));
}

POLYPHASE_INLINE Vec<float> operator+(Vec<float> a, Vec<float> b) { return {_mm256_add_ps(a.v, b.v)}; }
POLYPHASE_INLINE Vec<float> operator-(Vec<float> a, Vec<float> b) { return {_mm256_sub_ps(a.v, b.v)}; }
POLYPHASE_INLINE Vec<float> operator*(Vec<float> a, Vec<float> b) { return {_mm256_mul_ps(a.v, b.v)}; }
POLYPHASE_INLINE Vec<float> operator/(Vec<float> a, Vec<float> b) { return {_mm256_div_ps(a.v, b.v)}; }
POLYPHASE_INLINE Vec<float> fma(Vec<float> a, Vec<float> b, Vec<float> c) { return {_mm256_fmadd_ps(a.v, b.v, c.v)}; }
// a*b minus its rounded value, exactly.
POLYPHASE_INLINE Vec<float> product_error(Vec<float> a, Vec<float> b) {
  return {_mm256_fmsub_ps(a.v, b.v, _mm256_mul_ps(a.v, b.v))};
}
POLYPHASE_INLINE Vec<float> max(Vec<float> a, Vec<float> b) { return {_mm256_max_ps(a.v, b.v)}; }
POLYPHASE_INLINE Vec<float> min(Vec<float> a, Vec<float> b) { return {_mm256_min_ps(a.v, b.v)}; }
POLYPHASE_INLINE Vec<float> abs(Vec<float> a) { return {_mm256_andnot_ps(_mm256_set1_ps(-0.0F), a.v)}; }
POLYPHASE_INLINE Vec<float> sqrt(Vec<float> a) { return {_mm256_sqrt_ps(a.v)}; }
POLYPHASE_INLINE Vec<float> round_nearest(Vec<float> a) {
  return {_mm256_round_ps(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
}
POLYPHASE_INLINE Vec<float> floor(Vec<float> a) {
  return {_mm256_round_ps(a.v, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC)};
}

POLYPHASE_INLINE Mask less(Vec<float> a, Vec<float> b) { return {_mm256_cmp_ps(a.v, b.v, _CMP_LT_OQ)}; }
POLYPHASE_INLINE Mask less_equal(Vec<float> a, Vec<float> b) { return {_mm256_cmp_ps(a.v, b.v, _CMP_LE_OQ)}; }
POLYPHASE_INLINE Mask equal(Vec<float> a, Vec<float> b) { return {_mm256_cmp_ps(a.v, b.v, _CMP_EQ_OQ)}; }
POLYPHASE_INLINE bool any(Mask m) { return _mm256_movemask_ps(m.m) != 0; }
POLYPHASE_INLINE Vec<float> select(Mask m, Vec<float> yes, Vec<float> no) {
  return {_mm256_blendv_ps(no.v, yes.v, m.m)};
}
POLYPHASE_INLINE Vec<int32_t> select(Mask m, Vec<int32_t> yes, Vec<int32_t> no) {
  return {_mm256_castps_si256(_mm256_blendv_ps(_mm256_castsi256_ps(no.v), _mm256_castsi256_ps(yes.v), m.m))};
}

POLYPHASE_INLINE Vec<int32_t> operator+(Vec<int32_t> a, Vec<int32_t> b) { return {_mm256_add_epi32(a.v, b.v)}; }
POLYPHASE_INLINE Vec<int32_t> operator-(Vec<int32_t> a, Vec<int32_t> b) { return {_mm256_sub_epi32(a.v, b.v)}; }
POLYPHASE_INLINE Vec<int32_t> operator&(Vec<int32_t> a, Vec<int32_t> b) { return {_mm256_and_si256(a.v, b.v)}; }
POLYPHASE_INLINE Vec<int32_t> operator|(Vec<int32_t> a, Vec<int32_t> b) { return {_mm256_or_si256(a.v, b.v)}; }
template <int n>
POLYPHASE_INLINE Vec<int32_t> shift_left(Vec<int32_t> a) {
  return {_mm256_slli_epi32(a.v, n)};
}
template <int n>
POLYPHASE_INLINE Vec<int32_t> shift_right_logical(Vec<int32_t> a) {
  return {_mm256_srli_epi32(a.v, n)};
}
POLYPHASE_INLINE Vec<int32_t> to_int(Vec<float> a) { return {_mm256_cvtps_epi32(a.v)}; }
POLYPHASE_INLINE Vec<float> to_float(Vec<int32_t> a) { return {_mm256_cvtepi32_ps(a.v)}; }
POLYPHASE_INLINE Vec<int32_t> as_int(Vec<float> a) { return {_mm256_castps_si256(a.v)}; }
POLYPHASE_INLINE Vec<float> as_float(Vec<int32_t> a) { return {_mm256_castsi256_ps(a.v)}; }

POLYPHASE_INLINE Vec<float> load_f16(const uint16_t* p) {
  return {_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)))};
}
POLYPHASE_INLINE Vec<float> load_f16_first(const uint16_t* p, int n) {
  return {_mm256_cvtph_ps(load_first_halves(p, n))};
}
POLYPHASE_INLINE void store_f16(uint16_t* p, Vec<float> a) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_cvtps_ph(a.v, _MM_FROUND_TO_NEAREST_INT));
}
POLYPHASE_INLINE void stream_f16(uint16_t* p, Vec<float> a) {
  _mm_stream_si128(reinterpret_cast<__m128i*>(p), _mm256_cvtps_ph(a.v, _MM_FROUND_TO_NEAREST_INT));
}
POLYPHASE_INLINE void store_f16_first(uint16_t* p, Vec<float> a, int n) {
  store_first_halves(p, _mm256_cvtps_ph(a.v, _MM_FROUND_TO_NEAREST_INT), n);
}
POLYPHASE_INLINE Vec<float> widen_bf16(__m128i bits) {
  return {_mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16))};
}
POLYPHASE_INLINE Vec<float> load_bf16(const uint16_t* p) {
  return widen_bf16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}
POLYPHASE_INLINE Vec<float> load_bf16_first(const uint16_t* p, int n) { return widen_bf16(load_first_halves(p, n)); }
POLYPHASE_INLINE __m128i narrow_bf16(Vec<float> a) {
  const __m256i bits = _mm256_castps_si256(a.v);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i rounded = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
  const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
  const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(a.v, a.v, _CMP_UNORD_Q));
  const __m256i upper =
      _mm256_broadcastsi128_si256(_mm_set_epi8(15, 14, 11, 10, 7, 6, 3, 2, 15, 14, 11, 10, 7, 6, 3, 2));
  const __m256i words = _mm256_shuffle_epi8(_mm256_blendv_epi8(rounded, quiet, nan), upper);
  return _mm256_castsi256_si128(_mm256_permute4x64_epi64(words, 0x08));
}
POLYPHASE_INLINE void store_bf16(uint16_t* p, Vec<float> a) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), narrow_bf16(a));
}
POLYPHASE_INLINE void stream_bf16(uint16_t* p, Vec<float> a) {
  _mm_stream_si128(reinterpret_cast<__m128i*>(p), narrow_bf16(a));
}
POLYPHASE_INLINE void store_bf16_first(uint16_t* p, Vec<float> a, int n) { store_first_halves(p, narrow_bf16(a), n); }

POLYPHASE_INLINE float sum(Vec<float> a) {
  __m128 s = _mm_add_ps(_mm256_castps256_ps128(a.v), _mm256_extractf128_ps(a.v, 1));
  s = _mm_add_ps(s, _mm_movehl_ps(s, s));
  return _mm_cvtss_f32(_mm_add_ss(s, _mm_shuffle_ps(s, s, 1)));
}
POLYPHASE_INLINE float max_lane(Vec<float> a) {
  __m128 s = _mm_max_ps(_mm256_castps256_ps128(a.v), _mm256_extractf128_ps(a.v, 1));
  s = _mm_max_ps(s, _mm_movehl_ps(s, s));
  return _mm_cvtss_f32(_mm_max_ss(s, _mm_shuffle_ps(s, s, 1)));
}

// Lane i of the result is lane lanes[i] of a, each below the width.
POLYPHASE_INLINE Vec<float> pick(Vec<float> a, Vec<int32_t> lanes) { return {_mm256_permutevar8x32_ps(a.v, lanes.v)}; }

// low, high = a0 b0 a1 b1 …: the lanes of both in turns.
POLYPHASE_INLINE void zip(Vec<float> a, Vec<float> b, Vec<float>& low, Vec<float>& high) {
  const __m256 firsts = _mm256_unpacklo_ps(a.v, b.v);  // of each half
  const __m256 lasts = _mm256_unpackhi_ps(a.v, b.v);
  low.v = _mm256_permute2f128_ps(firsts, lasts, 0x20);
  high.v = _mm256_permute2f128_ps(firsts, lasts, 0x31);
}

// The inverse of zip: every other lane of low and high, one after the other.
POLYPHASE_INLINE void unzip(Vec<float> low, Vec<float> high, Vec<float>& a, Vec<float>& b) {
  const __m256 firsts = _mm256_permute2f128_ps(low.v, high.v, 0x20);
  const __m256 lasts = _mm256_permute2f128_ps(low.v, high.v, 0x31);
  a.v = _mm256_shuffle_ps(firsts, lasts, 0x88);
  b.v = _mm256_shuffle_ps(firsts, lasts, 0xdd);
}

// Makes the compiler hold `a` in a register instead of reading it from memory again at each use.
POLYPHASE_INLINE void hold(Vec<float>& a) { __asm__("" : "+x"(a.v)); }

// Transposes width × width lanes held in r[0..width).
POLYPHASE_INLINE void transpose_lanes(Vec<float>* r) {
  __m256 t[8];
  unrolled<4>([&](int i) POLYPHASE_INLINE_LAMBDA {
    t[2 * i] = _mm256_unpacklo_ps(r[2 * i].v, r[2 * i + 1].v);
    t[2 * i + 1] = _mm256_unpackhi_ps(r[2 * i].v, r[2 * i + 1].v);
  });
  __m256 u[8];
  unrolled<4>([&](int k) POLYPHASE_INLINE_LAMBDA {
    const int i = 4 * (k / 2);
    const int j = k % 2;
    u[i + 2 * j] = _mm256_shuffle_ps(t[i + j], t[i + 2 + j], 0x44);
    u[i + 2 * j + 1] = _mm256_shuffle_ps(t[i + j], t[i + 2 + j], 0xee);
  });
  unrolled<4>([&](int j) POLYPHASE_INLINE_LAMBDA {
    r[j].v = _mm256_permute2f128_ps(u[j], u[4 + j], 0x20);
    r[4 + j].v = _mm256_permute2f128_ps(u[j], u[4 + j], 0x31);
  });
}

}  // namespace polyphase::cpu::POLYPHASE_CLUSTER
