// Small floating-point formats as storage: conversion to and from binary32, correctly rounded (nearest, ties to even).
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace polyphase {

namespace detail {

// Rounds a binary64 to `mantissa_bits` bits below the leading one with exponents from `min_exponent` (subnormals below
// it) and returns the pieces of the encoding: the magnitude scaled so that one unit is one step of the subnormal range.
inline double round_to_format(double magnitude, int mantissa_bits, int min_exponent) {
  if (magnitude == 0) return 0;
  int exponent = std::ilogb(magnitude);
  if (exponent < min_exponent) exponent = min_exponent;
  const double unit = std::ldexp(1.0, exponent - mantissa_bits);
  return std::nearbyint(magnitude / unit) * unit;
}

// Encodes a double as sign | exponent | mantissa. max_finite bounds the format; overflow gives `overflow_code`, NaN
// `nan_code`.
inline std::uint32_t encode_small(double value, int exponent_bits, int mantissa_bits, double max_finite,
                                  std::uint32_t overflow_code, std::uint32_t nan_code) {
  const std::uint32_t sign = std::signbit(value) ? 1U << (exponent_bits + mantissa_bits) : 0U;
  if (std::isnan(value)) return sign | nan_code;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int min_exponent = 1 - bias;
  const double rounded = std::isinf(value) ? value : round_to_format(std::fabs(value), mantissa_bits, min_exponent);
  if (std::fabs(rounded) > max_finite) return sign | overflow_code;
  const double magnitude = std::fabs(rounded);
  if (magnitude < std::ldexp(1.0, min_exponent)) {
    return sign | static_cast<std::uint32_t>(std::ldexp(magnitude, mantissa_bits - min_exponent));
  }
  const int exponent = std::ilogb(magnitude);
  const auto mantissa =
      static_cast<std::uint32_t>(std::ldexp(magnitude, mantissa_bits - exponent)) & ((1U << mantissa_bits) - 1U);
  return sign | (static_cast<std::uint32_t>(exponent + bias) << mantissa_bits) | mantissa;
}

inline float decode_small(std::uint32_t bits, int exponent_bits, int mantissa_bits, bool has_infinity) {
  const bool negative = ((bits >> (exponent_bits + mantissa_bits)) & 1U) != 0;
  const auto exponent = static_cast<int>((bits >> mantissa_bits) & ((1U << exponent_bits) - 1U));
  const auto mantissa = bits & ((1U << mantissa_bits) - 1U);
  const int bias = (1 << (exponent_bits - 1)) - 1;
  float magnitude = 0;
  if (exponent == 0) {
    magnitude = std::ldexp(static_cast<float>(mantissa), 1 - bias - mantissa_bits);
  } else if (exponent == (1 << exponent_bits) - 1 && has_infinity) {
    magnitude = mantissa == 0 ? INFINITY : NAN;
  } else if (exponent == (1 << exponent_bits) - 1 && !has_infinity && mantissa == (1U << mantissa_bits) - 1U) {
    magnitude = NAN;
  } else {
    magnitude = std::ldexp(static_cast<float>(mantissa | (1U << mantissa_bits)), exponent - bias - mantissa_bits);
  }
  return negative ? -magnitude : magnitude;
}

}  // namespace detail

// IEEE 754 binary16.
struct Half {
  std::uint16_t bits = 0;
  Half() = default;
  explicit Half(double value)
      : bits(static_cast<std::uint16_t>(detail::encode_small(value, 5, 10, 65504.0, 0x7c00, 0x7e00))) {}
  explicit operator float() const { return detail::decode_small(bits, 5, 10, true); }
};

// bfloat16: the upper 16 bits of a binary32.
struct BFloat16 {
  std::uint16_t bits = 0;
  BFloat16() = default;
  explicit BFloat16(double value)
      : bits(static_cast<std::uint16_t>(detail::encode_small(value, 8, 7, 3.3895313892515355e38, 0x7f80, 0x7fc0))) {}
  explicit operator float() const { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }
};

// OCP OFP8 E4M3: no infinity, largest 448; what overflows becomes NaN, as ONNX's non-saturating cast has it.
struct Float8E4M3 {
  std::uint8_t bits = 0;
  Float8E4M3() = default;
  explicit Float8E4M3(double value)
      : bits(static_cast<std::uint8_t>(detail::encode_small(value, 4, 3, 448.0, 0x7f, 0x7f))) {}
  explicit operator float() const { return detail::decode_small(bits, 4, 3, false); }
};

// OCP OFP8 E5M2: as binary16 with two mantissa bits.
struct Float8E5M2 {
  std::uint8_t bits = 0;
  Float8E5M2() = default;
  explicit Float8E5M2(double value)
      : bits(static_cast<std::uint8_t>(detail::encode_small(value, 5, 2, 57344.0, 0x7c, 0x7e))) {}
  explicit operator float() const { return detail::decode_small(bits, 5, 2, true); }
};

}  // namespace polyphase
