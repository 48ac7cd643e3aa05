// How long sums of FP32 products are added up.
#pragma once

#include <cstdint>

namespace polyphase::cpu {

// Long sums are added up in pieces of this many terms: the rounding error then grows with the square roots of the piece
// and of their number, not of the whole length (blocked summation; Higham, "The accuracy of floating point summation",
// 1993).
inline constexpr int64_t sum_piece = 128;

}  // namespace polyphase::cpu
