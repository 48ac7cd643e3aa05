// Which instruction cluster this translation unit is compiled for: the define POLYPHASE_CLUSTER names it.
//
// The name is also the innermost namespace, so the same source compiled three times never shares a symbol:
//     namespace polyphase::cpu::POLYPHASE_CLUSTER { ... }
#pragma once

#ifndef POLYPHASE_CLUSTER
#define POLYPHASE_CLUSTER scalar
#endif

#define POLYPHASE_SIMD_ID_scalar 0
#define POLYPHASE_SIMD_ID_avx2 1
#define POLYPHASE_SIMD_ID_avx512 2
#define POLYPHASE_SIMD_ID_avx512_bf16 2  // these compute in FP32 exactly as avx512 does
#define POLYPHASE_SIMD_ID_amx 2
#define POLYPHASE_SIMD_ID_emulated_amx 0
#define POLYPHASE_SIMD_JOIN(a, b) a##b
#define POLYPHASE_SIMD_EXPAND(a, b) POLYPHASE_SIMD_JOIN(a, b)
#define POLYPHASE_SIMD_ID POLYPHASE_SIMD_EXPAND(POLYPHASE_SIMD_ID_, POLYPHASE_CLUSTER)

// Functions whose values live in registers; POLYPHASE_INLINE_LAMBDA is for lambdas, behind their parameters.
// POLYPHASE_INLINES_NOTHING is for kernels that are compiled and never run (IsaObjects.cmake): a third of the time.
#ifdef POLYPHASE_INLINES_NOTHING
#define POLYPHASE_INLINE inline
#define POLYPHASE_INLINE_LAMBDA
#else
#define POLYPHASE_INLINE inline __attribute__((always_inline))
#define POLYPHASE_INLINE_LAMBDA __attribute__((always_inline))
#endif
