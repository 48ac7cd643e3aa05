// Small floating-point formats as storage: conversion to and from binary32, correctly rounded (nearest, ties to even).
#pragma once

#include <bit>
#include <cstdint>

namespace polyphase {

namespace detail {

// A format sign | exponent | mantissa, IEEE-like: subnormals below the least exponent.
struct SmallFormat {
  int exponent_bits;
  int mantissa_bits;
  std::uint32_t max_code;       // the largest finite number
  std::uint32_t overflow_code;  // what lies beyond it
  std::uint32_t nan_code;
  constexpr int bias() const { return (1 << (exponent_bits - 1)) - 1; }
};

// 2 to a power within binary64's normal range.
constexpr double power_of_two(int exponent) {
  return std::bit_cast<double>(static_cast<std::uint64_t>(exponent + 1023) << 52U);
}

// Rounds on the bits: a binary64 with its exponent rebased is the target's code with extra mantissa bits, and a carry
// out of the mantissa steps to the next exponent by itself.
template <SmallFormat format>
std::uint32_t encode_small(double value) {
  constexpr int shift = 52 - format.mantissa_bits;
  constexpr std::uint64_t rebase = static_cast<std::uint64_t>(1023 - format.bias()) << 52U;
  const auto bits = std::bit_cast<std::uint64_t>(value);
  const std::uint64_t magnitude = bits & ~(std::uint64_t{1} << 63U);
  const std::uint32_t sign = static_cast<std::uint32_t>(bits >> 63U) << (format.exponent_bits + format.mantissa_bits);
  if (magnitude > std::uint64_t{0x7ff} << 52U) return sign | format.nan_code;
  std::uint64_t code = 0;
  if (magnitude >= std::bit_cast<std::uint64_t>(power_of_two(1 - format.bias()))) {
    const std::uint64_t rebased = magnitude - rebase;
    const std::uint64_t half = (std::uint64_t{1} << (shift - 1)) - 1 + ((rebased >> shift) & 1U);
    code = (rebased + half) >> shift;
  } else {
    // Subnormal: an integer count of the least step; adding 2^52 rounds it to one.
    constexpr double steps = power_of_two(format.mantissa_bits + format.bias() - 1);
    constexpr double integers_begin = power_of_two(52);
    code = static_cast<std::uint64_t>(std::bit_cast<double>(magnitude) * steps + integers_begin - integers_begin);
  }
  return sign | (code > format.max_code ? format.overflow_code : static_cast<std::uint32_t>(code));
}

template <SmallFormat format>
float decode_small(std::uint32_t bits) {
  constexpr std::uint32_t magnitude_mask = (1U << (format.exponent_bits + format.mantissa_bits)) - 1U;
  constexpr std::uint32_t mantissa_mask = (1U << format.mantissa_bits) - 1U;
  const std::uint32_t sign = (bits & ~magnitude_mask) << (31 - format.exponent_bits - format.mantissa_bits);
  const std::uint32_t magnitude = bits & magnitude_mask;
  std::uint32_t out = 0;
  if (magnitude > format.max_code) {
    constexpr bool has_infinity = format.overflow_code != format.nan_code;
    out = has_infinity && magnitude == format.overflow_code ? 0x7f800000U : 0x7fc00000U;
  } else if (magnitude <= mantissa_mask) {
    constexpr auto step = static_cast<float>(power_of_two(1 - format.bias() - format.mantissa_bits));
    out = std::bit_cast<std::uint32_t>(static_cast<float>(magnitude) * step);
  } else {
    out = (magnitude << (23 - format.mantissa_bits)) + (static_cast<std::uint32_t>(127 - format.bias()) << 23U);
  }
  return std::bit_cast<float>(out | sign);
}

inline constexpr SmallFormat half_format{5, 10, 0x7bff, 0x7c00, 0x7e00};
inline constexpr SmallFormat bfloat16_format{8, 7, 0x7f7f, 0x7f80, 0x7fc0};
inline constexpr SmallFormat e4m3_format{4, 3, 0x7e, 0x7f, 0x7f};
inline constexpr SmallFormat e5m2_format{5, 2, 0x7b, 0x7c, 0x7e};

}  // namespace detail

// IEEE 754 binary16.
struct Half {
  std::uint16_t bits = 0;
  Half() = default;
  explicit Half(double value) : bits(static_cast<std::uint16_t>(detail::encode_small<detail::half_format>(value))) {}
  explicit operator float() const { return detail::decode_small<detail::half_format>(bits); }
};

// bfloat16: the upper 16 bits of a binary32.
struct BFloat16 {
  std::uint16_t bits = 0;
  BFloat16() = default;
  explicit BFloat16(double value)
      : bits(static_cast<std::uint16_t>(detail::encode_small<detail::bfloat16_format>(value))) {}
  explicit operator float() const { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }
};

// OCP OFP8 E4M3: no infinity, largest 448; what overflows becomes NaN, as ONNX's non-saturating cast has it.
struct Float8E4M3 {
  std::uint8_t bits = 0;
  Float8E4M3() = default;
  explicit Float8E4M3(double value)
      : bits(static_cast<std::uint8_t>(detail::encode_small<detail::e4m3_format>(value))) {}
  explicit operator float() const { return detail::decode_small<detail::e4m3_format>(bits); }
};

// OCP OFP8 E5M2: as binary16 with two mantissa bits.
struct Float8E5M2 {
  std::uint8_t bits = 0;
  Float8E5M2() = default;
  explicit Float8E5M2(double value)
      : bits(static_cast<std::uint8_t>(detail::encode_small<detail::e5m2_format>(value))) {}
  explicit operator float() const { return detail::decode_small<detail::e5m2_format>(bits); }
};

}  // namespace polyphase
