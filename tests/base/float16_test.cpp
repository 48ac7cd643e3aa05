// The small float formats, exhaustively: every pattern survives, and rounding is to nearest, ties to even, between
// every two neighbours.
#include "base/float16.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace polyphase {
namespace {

template <typename T>
T of_bits(std::uint32_t bits) {
  T out;
  out.bits = static_cast<decltype(out.bits)>(bits);
  return out;
}

template <typename T>
constexpr std::uint32_t pattern_count = sizeof(T) == 2 ? 65536U : 256U;

template <typename T>
double value_of(std::uint32_t bits) {
  return static_cast<double>(static_cast<float>(of_bits<T>(bits)));
}

template <typename T>
class SmallFloat : public testing::Test {};
using Formats = testing::Types<Half, BFloat16, Float8E4M3, Float8E5M2>;
TYPED_TEST_SUITE(SmallFloat, Formats);

TYPED_TEST(SmallFloat, EveryPatternSurvives) {
  for (std::uint32_t bits = 0; bits < pattern_count<TypeParam>; ++bits) {
    const double value = value_of<TypeParam>(bits);
    const TypeParam again(value);
    if (std::isnan(value)) {
      ASSERT_TRUE(std::isnan(static_cast<float>(again))) << bits;
    } else {
      ASSERT_EQ(again.bits, bits) << value;
    }
  }
}

TYPED_TEST(SmallFloat, RoundsToNearestTiesToEven) {
  const std::uint32_t sign = pattern_count<TypeParam> / 2;
  for (std::uint32_t bits = 0; bits + 1 < sign; ++bits) {
    const double low = value_of<TypeParam>(bits);
    const double high = value_of<TypeParam>(bits + 1);
    if (!std::isfinite(low) || !std::isfinite(high)) break;
    ASSERT_LT(low, high);
    const double middle = low + (high - low) / 2;
    const double below = std::nextafter(middle, low);
    const double above = std::nextafter(middle, high);
    ASSERT_EQ(TypeParam(middle).bits, bits % 2 == 0 ? bits : bits + 1) << middle;
    ASSERT_EQ(TypeParam(below).bits, bits) << below;
    ASSERT_EQ(TypeParam(above).bits, bits + 1) << above;
    ASSERT_EQ(TypeParam(-above).bits, sign | (bits + 1)) << above;
  }
}

TEST(Float16, KnownValues) {
  const auto half = [](double value) { return Half(value).bits; };
  EXPECT_EQ(half(1), 0x3c00);
  EXPECT_EQ(half(-2), 0xc000);
  EXPECT_EQ(half(65504), 0x7bff);
  EXPECT_EQ(half(65519.99), 0x7bff);
  EXPECT_EQ(half(65520), 0x7c00);
  EXPECT_EQ(half(1e300), 0x7c00);
  EXPECT_EQ(half(-INFINITY), 0xfc00);
  EXPECT_EQ(half(5.960464477539063e-08), 0x0001);
  EXPECT_EQ(half(std::ldexp(1.0, -25)), 0x0000);
  EXPECT_EQ(half(std::nextafter(std::ldexp(1.0, -25), 1.0)), 0x0001);
  EXPECT_EQ(half(6.103515625e-05), 0x0400);
  EXPECT_EQ(half(-0.0), 0x8000);
  EXPECT_EQ(half(std::numeric_limits<double>::denorm_min()), 0x0000);
  EXPECT_TRUE(std::isnan(static_cast<float>(Half(NAN))));
  EXPECT_EQ(BFloat16(1.00390625).bits, 0x3f80);  // a tie goes to even
  EXPECT_EQ(BFloat16(1.01171875).bits, 0x3f82);
  EXPECT_EQ(BFloat16(3.3895313892515355e38).bits, 0x7f7f);
  EXPECT_EQ(BFloat16(3.4e38).bits, 0x7f80);
  EXPECT_EQ(Float8E4M3(448).bits, 0x7e);
  EXPECT_TRUE(std::isnan(static_cast<float>(Float8E4M3(1000))));
  EXPECT_EQ(Float8E5M2(57344).bits, 0x7b);
  EXPECT_TRUE(std::isinf(static_cast<float>(Float8E5M2(70000))));
}

// binary64 → binary32 → binary16 would round twice: this value lies just above a tie that binary32 cannot see.
TEST(Float16, RoundsOnceFromDouble) {
  const double value = 1.0 + 1.0 / 2048 + 1e-12;
  EXPECT_EQ(Half(value).bits, 0x3c01);
  EXPECT_EQ(Half(static_cast<double>(static_cast<float>(value))).bits, 0x3c00);
}

}  // namespace
}  // namespace polyphase
