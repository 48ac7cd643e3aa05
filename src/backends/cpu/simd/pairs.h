// Products of pairs: bf16 numbers two by two, added up in FP32.
//
// Every cluster has the words
//   dot_pairs(acc, a, b)   acc + a.low * b.low + a.high * b.high in every lane, whose 32 bits are two bf16 numbers
//   store_for_pairs(p, a)  store_bf16, of numbers that will be such factors
//   flush_sum(a)           what such a sum is after FP32 numbers were added to it: without subnormals where it has none
//   store_rounded(p, a)    store_bf16, by such an instruction where no number is subnormal, which it would flush
//   pair_sums(a, b)        those of both as bf16, rounded to nearest even: a's in the lower halves of the lanes
// but for the cluster with a matrix unit, which has the words of <amxtileintrin.h> and the last two of these. The
// clusters with instructions for it flush subnormal numbers to zero (Intel SDM, VDPBF16PS and TDPBF16PS); the others do
// not.
#pragma once

#include <cstdint>

#include "backends/cpu/simd/vec.h"

#define POLYPHASE_PAIRS_ID_scalar 0
#define POLYPHASE_PAIRS_ID_avx2 0
#define POLYPHASE_PAIRS_ID_avx512 0
#define POLYPHASE_PAIRS_ID_avx512_bf16 1
#define POLYPHASE_PAIRS_ID_amx 2
#define POLYPHASE_PAIRS_ID_emulated_amx 2  // a test's
#define POLYPHASE_PAIRS_ID POLYPHASE_SIMD_EXPAND(POLYPHASE_PAIRS_ID_, POLYPHASE_CLUSTER)

namespace polyphase::cpu::POLYPHASE_CLUSTER {

#if defined(__AVX512BF16__)
POLYPHASE_INLINE bool has_subnormals(VecF a) {
  constexpr int denormal = 0x20;
  return _mm512_fpclass_ps_mask(a.v, denormal) != 0;
}
POLYPHASE_INLINE void store_flushed(uint16_t* p, VecF a) {
  const __m256bh rounded = _mm512_cvtneps_pbh(a.v);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), reinterpret_cast<const __m256i&>(rounded));
}
POLYPHASE_INLINE VecI pair_flushed(VecF a, VecF b) {
  const __m512bh rounded = _mm512_cvtne2ps_pbh(b.v, a.v);
  const VecI halves = shift_left<16>(iota() + broadcast(int32_t{vec_width})) | iota();
  return {_mm512_permutexvar_epi16(halves.v, reinterpret_cast<const __m512i&>(rounded))};
}
#endif

#if POLYPHASE_PAIRS_ID == 1
POLYPHASE_INLINE VecF dot_pairs(VecF acc, VecI a, VecI b) {
  return {_mm512_dpbf16_ps(acc.v, reinterpret_cast<__m512bh>(a.v), reinterpret_cast<__m512bh>(b.v))};
}
POLYPHASE_INLINE void store_for_pairs(uint16_t* p, VecF a) { store_flushed(p, a); }
POLYPHASE_INLINE VecF flush_sum(VecF a) { return dot_pairs(a, broadcast(0), broadcast(0)); }
POLYPHASE_INLINE VecI pair_sums(VecF a, VecF b) { return pair_flushed(a, b); }
#elif POLYPHASE_PAIRS_ID == 0
POLYPHASE_INLINE VecF dot_pairs(VecF acc, VecI a, VecI b) {
  const VecI upper = broadcast(static_cast<int32_t>(0xffff0000U));
  acc = fma(as_float(a & upper), as_float(b & upper), acc);
  return fma(as_float(shift_left<16>(a)), as_float(shift_left<16>(b)), acc);
}
POLYPHASE_INLINE void store_for_pairs(uint16_t* p, VecF a) { store_bf16(p, a); }
POLYPHASE_INLINE VecF flush_sum(VecF a) { return a; }
#endif

#if POLYPHASE_PAIRS_ID != 1
POLYPHASE_INLINE VecI pair_sums(VecF a, VecF b) {
#if defined(__AVX512BF16__)
  if (!has_subnormals(a) && !has_subnormals(b)) [[likely]]
    return pair_flushed(a, b);
#endif
  const auto round = [](VecF x) {
    const VecI bits = as_int(x);
    const VecI odd = shift_right_logical<16>(bits) & broadcast(1);
    const VecI quiet = bits | broadcast(0x400000);
    return select(equal(x, x), bits + odd + broadcast(0x7fff), quiet);
  };
  return (round(b) & broadcast(static_cast<int32_t>(0xffff0000U))) | shift_right_logical<16>(round(a));
}
#endif

POLYPHASE_INLINE void store_rounded(uint16_t* p, VecF a) {
#if defined(__AVX512BF16__)
  if (!has_subnormals(a)) [[likely]]
    return store_flushed(p, a);
#endif
  store_bf16(p, a);
}

#if POLYPHASE_PAIRS_ID != 2
// acc + x * w of floats, or of the pairs that their bits are.
template <bool of_pairs>
POLYPHASE_INLINE VecF add_product(VecF acc, VecF x, VecF w) {
  if constexpr (of_pairs) return dot_pairs(acc, as_int(x), as_int(w));
  return fma(x, w, acc);
}
#endif

}  // namespace polyphase::cpu::POLYPHASE_CLUSTER
