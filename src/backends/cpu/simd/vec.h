// The vector vocabulary of the CPU kernels: one register of floats or 32-bit integers, as wide as the cluster has.
//
// Every cluster header defines the same words:
//   Vec<float>, Vec<int32_t>   value types with `width` lanes; vec_width
//   Mask                       one truth value per lane
//   load, load_first(p, n), store, store_first(p, v, n), store_range(p, v, lo, hi), stream, broadcast, iota
//   store_half_range(p, v, lo, hi)  the same for elements of 16 bits, two in a lane
//   + - * /, fma(a, b, c) = a*b + c, product_error(a, b) = a*b - round(a*b), max, min, abs, sqrt, round_nearest, floor
//   less, less_equal, equal, any(mask), select(mask, if_true, if_false)
//   to_int (nearest), to_float, as_int, as_float, shift_left<n>, shift_right_logical<n>, &, |
//   load_f16, load_bf16, store_f16, store_bf16 (rounding to nearest even), their _first forms, stream_f16, stream_bf16
//   pick, zip, unzip (lanes in another order), sum, max_lane, hold (keeps a value in a register)
//   stores_ranges_fast         whether store_range takes about as long as store
// `load_first` reads only n elements and fills the rest with zero. `max(a, b)` and `min(a, b)` return b where either is
// a NaN, so `max(zero, x)` keeps a NaN of x. Nothing here needs alignment.
#pragma once

#include <cstdint>

#include "backends/cpu/simd/cluster.h"

#if POLYPHASE_SIMD_ID == 2
#include "backends/cpu/simd/vec_avx512.h"
#elif POLYPHASE_SIMD_ID == 1
#include "backends/cpu/simd/vec_avx2.h"
#else
#include "backends/cpu/simd/vec_scalar.h"
#endif

namespace polyphase::cpu::POLYPHASE_CLUSTER {

using VecF = Vec<float>;
using VecI = Vec<int32_t>;
inline constexpr int vec_width = VecF::width;
inline constexpr int vw = vec_width;  // where it stands in every line

// Lanes of the next vector where so many elements, at least one, are left.
constexpr int lanes_of(int64_t left) { return static_cast<int>(left < vec_width ? left : vec_width); }

}  // namespace polyphase::cpu::POLYPHASE_CLUSTER
