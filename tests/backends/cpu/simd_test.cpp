// Checks the vector vocabulary of one cluster against scalar arithmetic; compiled once per cluster.
#include <gtest/gtest.h>

#include <algorithm>
#include <cfenv>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>
#include <vector>

#include "backends/cpu/kernels/apply_endings.h"
#include "backends/cpu/simd/math.h"
#include "backends/cpu/simd/transpose.h"
#include "backends/cpu/simd/vec.h"

namespace polyphase::cpu::POLYPHASE_CLUSTER {
namespace {

#define POLYPHASE_TEST_NAME_2(name, cluster) name##_##cluster
#define POLYPHASE_TEST_NAME_1(name, cluster) POLYPHASE_TEST_NAME_2(name, cluster)
#define SUITE POLYPHASE_TEST_NAME_1(Simd, POLYPHASE_CLUSTER)
#define SIMD_TEST_2(suite, name) TEST(suite, name)
#define SIMD_TEST(name) SIMD_TEST_2(SUITE, name)

constexpr float inf = std::numeric_limits<float>::infinity();

// The distance of `got` from `want` in units of the last place of `want`.
double ulps(float got, double want) {
  const float nearest = static_cast<float>(want);
  if (std::isnan(want)) return std::isnan(got) ? 0 : 1e9;
  if (std::isinf(nearest) || std::isinf(got)) return got == nearest ? 0 : 1e9;
  const float next = std::nextafter(std::fabs(nearest), inf);
  return std::fabs(static_cast<double>(got) - want) / (static_cast<double>(next) - std::fabs(nearest));
}

template <class Ours, class Theirs>
double worst(Ours ours, Theirs theirs, double from, double to, int steps = 200003) {
  double most = 0;
  float x[vec_width];
  float y[vec_width];
  for (int i = 0; i < steps; i += vec_width) {
    for (int j = 0; j < vec_width; ++j) x[j] = static_cast<float>(from + (to - from) * (i + j) / steps);
    store(y, ours(load(x)));
    for (int j = 0; j < vec_width; ++j) most = std::max(most, ulps(y[j], theirs(static_cast<double>(x[j]))));
  }
  return most;
}

SIMD_TEST(FunctionsAreAccurate) {
  const auto d = [](auto f) { return f; };
  EXPECT_LE(worst([](VecF v) { return exp(v); }, d([](double v) { return std::exp(v); }), -103, 89), 2.0);
  EXPECT_LE(worst([](VecF v) { return exp(v); }, d([](double v) { return std::exp(v); }), -1, 1), 1.5);
  EXPECT_LE(worst([](VecF v) { return log(v); }, d([](double v) { return std::log(v); }), 0, 4), 2.0);
  EXPECT_LE(worst([](VecF v) { return log(v); }, d([](double v) { return std::log(v); }), 0, 1e30), 2.0);
  EXPECT_LE(worst([](VecF v) { return log(v); }, d([](double v) { return std::log(v); }), 0, 1e-38), 2.0);
  EXPECT_LE(worst([](VecF v) { return tanh(v); }, d([](double v) { return std::tanh(v); }), -12, 12), 3.0);
  EXPECT_LE(worst([](VecF v) { return sigmoid(v); }, d([](double v) { return 1 / (1 + std::exp(-v)); }), -80, 80), 3.0);
  EXPECT_LE(worst([](VecF v) { return erf(v); }, d([](double v) { return std::erf(v); }), -5, 5), 3.0);
  const auto arcsine = [](VecF v) { return asin(v); };
  const auto arccosine = [](VecF v) { return acos(v); };
  const auto arctangent = [](VecF v) { return atan(v); };
  for (const double range : {1.0, 1e-3, 1e-30}) {
    EXPECT_LE(worst(arcsine, d([](double v) { return std::asin(v); }), -range, range), 2.0);
    EXPECT_LE(worst(arccosine, d([](double v) { return std::acos(v); }), -range, range), 2.0);
  }
  for (const double range : {1e-30, 1.0, 10.0, 1e30})
    EXPECT_LE(worst(arctangent, d([](double v) { return std::atan(v); }), -range, range), 2.0);
}

// All bases by all exponents of a few ranges, results from subnormal to infinite.
SIMD_TEST(PowersAreAccurate) {
  const float exponents[] = {0.5F,  -0.5F,  1.0F / 3, 2.0F,  3.0F, -1.0F, 1.7F, -2.25F, 7.0F,
                             12.5F, 100.3F, -31.0F,   1e-3F, 1e4F, -1e6F, 3e7F, 1e-30F};
  for (const float y : exponents) {
    const auto ours = [y](VecF v) { return power(v, broadcast(y)); };
    const auto theirs = [y](double v) { return std::pow(v, static_cast<double>(y)); };
    EXPECT_LE(worst(ours, theirs, 0, 4, 20003), 2.0) << y;
    EXPECT_LE(worst(ours, theirs, -4, 0, 20003), 2.0) << y;
    EXPECT_LE(worst(ours, theirs, 0.999, 1.001, 20003), 2.0) << y;
    EXPECT_LE(worst(ours, theirs, 0, 1e30, 20003), 2.0) << y;
    EXPECT_LE(worst(ours, theirs, 0, 1e-38, 20003), 2.0) << y;
  }
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float special[] = {0.0F,  -0.0F, 1.0F,   -1.0F,  2.0F, -2.0F, 3.0F, 0.5F,
                           -0.5F, 1e9F,  -1e-9F, 1e-42F, inf,  -inf,  nan};
  for (const float x : special) {
    for (const float y : special) {
      float lanes[vec_width];
      store(lanes, power(broadcast(x), broadcast(y)));
      const double want = std::pow(static_cast<double>(x), static_cast<double>(y));
      EXPECT_LE(ulps(lanes[0], want), 1.0) << x << " to the " << y << " is " << lanes[0];
      EXPECT_TRUE(std::isnan(want) || std::signbit(lanes[0]) == std::signbit(want)) << x << " to the " << y;
    }
  }
}

// What nears 0 below gives no subnormal numbers, which all arithmetic behind it would wait for, and makes none on its
// way: the processor's flag of underflow stays down, where a multiply-add is one instruction.
SIMD_TEST(ActivationsMakeNoSubnormals) {
  const auto below = [](VecF v) { return exp_or_zero(v); };
  const auto minus_one = [](VecF v) { return exp_minus_one(min(v, broadcast(0.0F))); };
  VecF (*const functions[])(VecF) = {below, sigmoid, silu, gelu_erf, gelu_tanh, mish, softplus, minus_one};
  float x[vec_width];
  float y[vec_width];
  for (std::size_t f = 0; f < std::size(functions); ++f) {
    std::feclearexcept(FE_ALL_EXCEPT);
    for (int i = 0; i < 40000; i += vec_width) {
      for (int j = 0; j < vec_width; ++j) x[j] = static_cast<float>(i + j) * -0.005F - 0.001F;
      store(y, functions[f](load(x)));
      for (int j = 0; j < vec_width; ++j)
        ASSERT_NE(std::fpclassify(y[j]), FP_SUBNORMAL) << "function " << f << " of " << x[j];
    }
    EXPECT_FALSE(POLYPHASE_SIMD_ID > 0 && std::fetestexcept(FE_UNDERFLOW) != 0) << "function " << f;
  }
  EXPECT_LE(worst(
                below, [](double v) { return std::exp(v); }, -87.3365, 89),
            2.0);
}

SIMD_TEST(SineIsAccurate) {
  // Near the zeros of sine the error is absolute.
  float x[vec_width];
  float s[vec_width];
  float c[vec_width];
  for (int i = 0; i < 200000; ++i) {
    for (int j = 0; j < vec_width; ++j) x[j] = static_cast<float>((i * vec_width + j) * 0.0021 - 3000.0);
    store(s, sin(load(x)));
    store(c, cos(load(x)));
    for (int j = 0; j < vec_width; ++j) {
      ASSERT_NEAR(s[j], std::sin(static_cast<double>(x[j])), 4e-7) << x[j];
      ASSERT_NEAR(c[j], std::cos(static_cast<double>(x[j])), 4e-7) << x[j];
    }
  }
}

SIMD_TEST(SpecialValues) {
  const auto at = [](VecF (*f)(VecF), float x) {
    float lanes[vec_width];
    store(lanes, f(broadcast(x)));
    return lanes[vec_width - 1];
  };
  const float nan = std::numeric_limits<float>::quiet_NaN();
  VecF (*const functions[])(VecF) = {exp, exp_or_zero, log, tanh, sigmoid, erf, sin, cos, asin, acos, atan};
  for (auto* f : functions) EXPECT_TRUE(std::isnan(at(f, nan)));
  EXPECT_EQ(at(exp, inf), inf);
  EXPECT_EQ(at(exp, -inf), 0.0F);
  EXPECT_EQ(at(log, 0.0F), -inf);
  EXPECT_EQ(at(log, inf), inf);
  EXPECT_TRUE(std::isnan(at(log, -1.0F)));
  EXPECT_EQ(at(tanh, inf), 1.0F);
  EXPECT_EQ(at(tanh, -inf), -1.0F);
  EXPECT_EQ(at(sigmoid, -inf), 0.0F);
  EXPECT_EQ(at(sigmoid, inf), 1.0F);
  EXPECT_EQ(at(erf, inf), 1.0F);
  EXPECT_EQ(at(atan, -inf), -1.57079637F);
  for (const float beyond : {1.5F, -1.5F, inf, -inf}) {
    EXPECT_TRUE(std::isnan(at(asin, beyond)));
    EXPECT_TRUE(std::isnan(at(acos, beyond)));
  }
}

SIMD_TEST(PartialLoadsAndStoresTouchOnlyTheirLanes) {
  std::vector<float> from(vec_width);
  for (int i = 0; i < vec_width; ++i) from[static_cast<size_t>(i)] = static_cast<float>(i + 1);
  for (int lo = 0; lo <= vec_width; ++lo) {
    for (int hi = lo; hi <= vec_width; ++hi) {
      std::vector<float> to(vec_width, -7.0F);
      store_range(to.data(), load(from.data()), lo, hi);
      for (int i = 0; i < vec_width; ++i) {
        EXPECT_EQ(to[static_cast<size_t>(i)], i >= lo && i < hi ? static_cast<float>(i + 1) : -7.0F);
      }
    }
    float lanes[vec_width];
    store(lanes, load_first(std::vector<float>(from.begin(), from.begin() + lo).data(), lo));
    for (int i = 0; i < vec_width; ++i) EXPECT_EQ(lanes[i], i < lo ? static_cast<float>(i + 1) : 0.0F);
  }
}

SIMD_TEST(HalfPrecisionRoundTripsEveryBitPattern) {
  uint16_t in[vec_width];
  uint16_t out[vec_width];
  for (int base = 0; base < 65536; base += vec_width) {
    for (int j = 0; j < vec_width; ++j) in[j] = static_cast<uint16_t>(base + j);
    store_f16(out, load_f16(in));
    for (int j = 0; j < vec_width; ++j) {
      const bool nan = (in[j] & 0x7fffU) > 0x7c00U;
      EXPECT_EQ(out[j], nan ? in[j] | 0x200U : in[j]);
    }
    store_bf16(out, load_bf16(in));
    for (int j = 0; j < vec_width; ++j) {
      const bool nan = (in[j] & 0x7fffU) > 0x7f80U;
      EXPECT_EQ(out[j], nan ? in[j] | 0x40U : in[j]);
    }
    alignas(64) uint16_t streamed[2 * vec_width];
    stream_f16(streamed, load_f16(in));
    stream_bf16(streamed + vec_width, load_bf16(in));
    finish_streams();
    EXPECT_EQ(std::memcmp(streamed + vec_width, out, sizeof(out)), 0);
    store_f16(out, load_f16(in));
    EXPECT_EQ(std::memcmp(streamed, out, sizeof(out)), 0);
  }
}

SIMD_TEST(HalfPrecisionRoundsToNearestEven) {
  const struct {
    float x;
    uint16_t f16;
    uint16_t bf16;
  } cases[] = {{1.0F + 0x1p-11F, 0x3c00, 0x3f80}, {1.0F + 0x3p-11F, 0x3c02, 0x3f80}, {65519.0F, 0x7bff, 0x4780},
               {65520.0F, 0x7c00, 0x4780},        {0x1p-25F, 0x0000, 0x3300},        {0x1.8p-24F, 0x0002, 0x33c0},
               {1.0F + 0x1p-8F, 0x3c04, 0x3f80},  {1.0F + 0x3p-8F, 0x3c0c, 0x3f82},  {-0.0F, 0x8000, 0x8000}};
  for (const auto& c : cases) {
    uint16_t out[vec_width];
    store_f16_first(out, broadcast(c.x), 1);
    EXPECT_EQ(out[0], c.f16) << c.x;
    store_bf16_first(out, broadcast(c.x), 1);
    EXPECT_EQ(out[0], c.bf16) << c.x;
  }
}

SIMD_TEST(TransposesAnySize) {
  for (int rows : {1, 3, vec_width, vec_width + 1, 3 * vec_width + 5}) {
    for (int columns : {1, 2, vec_width - 1, vec_width, 2 * vec_width + 3}) {
      std::vector<float> from(static_cast<size_t>(rows * columns));
      for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<float>(i);
      std::vector<float> to(from.size(), -1.0F);
      transpose(from.data(), columns, to.data(), rows, rows, columns);
      for (int r = 0; r < rows; ++r) {
        for (int c = 0; c < columns; ++c) {
          ASSERT_EQ(to[static_cast<size_t>(c * rows + r)], static_cast<float>(r * columns + c));
        }
      }
    }
  }
}

SIMD_TEST(TransposesHalvesToTheBit) {
  for (int rows : {1, 2, 3, vec_width, 2 * vec_width - 1, 2 * vec_width, 5 * vec_width + 3}) {
    for (int columns : {vec_width, vec_width + 1, 3 * vec_width, 4 * vec_width - 1}) {
      const int pitch = rows + 1;  // what lies between the rows stays
      std::vector<uint16_t> from(static_cast<size_t>(rows * columns));
      for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<uint16_t>(i * 40503);  // also NaNs of all kinds
      std::vector<uint16_t> to(static_cast<size_t>(pitch * columns), 7);
      transpose_halves(from.data(), columns, to.data(), pitch, rows, columns);
      for (int c = 0; c < columns; ++c) {
        for (int r = 0; r < rows; ++r)
          ASSERT_EQ(to[static_cast<size_t>(c * pitch + r)], from[static_cast<size_t>(r * columns + c)]);
        ASSERT_EQ(to[static_cast<size_t>(c * pitch + rows)], 7);
      }
    }
  }
}

SIMD_TEST(PicksLanes) {
  float from[vec_width];
  int32_t lanes[vec_width];
  for (int i = 0; i < vec_width; ++i) {
    from[i] = static_cast<float>(i * i);
    lanes[i] = (3 * i + 1) % vec_width;
  }
  float to[vec_width];
  store(to, pick(load(from), load(lanes)));
  for (int i = 0; i < vec_width; ++i) EXPECT_EQ(to[i], from[lanes[i]]);
}

SIMD_TEST(InterleavesAnyRows) {
  for (int rows = 1; rows <= 6; ++rows) {
    for (int columns : {1, vec_width - 1, vec_width, 2 * vec_width + 3}) {
      std::vector<float> from(static_cast<size_t>(rows * columns));
      for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<float>(i);
      std::vector<float> to(from.size(), -1.0F);
      interleave(from.data(), columns, to.data(), rows, columns);
      for (int r = 0; r < rows; ++r) {
        for (int c = 0; c < columns; ++c)
          ASSERT_EQ(to[static_cast<size_t>(c * rows + r)], static_cast<float>(r * columns + c));
      }
    }
  }
}

SIMD_TEST(DeinterleaveParts) {
  for (int rows = 2; rows <= 4; ++rows) {
    for (const int columns : {1, 2, vec_width - 1, vec_width, vec_width + 1, 3 * vec_width + 5}) {
      std::vector<float> from(static_cast<size_t>(rows * columns));
      for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<float>(i);
      const int pitch = columns + 3;
      std::vector<float> to(static_cast<size_t>(rows * pitch), -1.0F);
      deinterleave(from.data(), to.data(), pitch, rows, columns);
      for (int r = 0; r < rows; ++r) {
        for (int c = 0; c < pitch; ++c)
          ASSERT_EQ(to[static_cast<size_t>(r * pitch + c)], c < columns ? static_cast<float>(c * rows + r) : -1.0F);
      }
    }
  }
}

SIMD_TEST(MaxKeepsTheSecondNan) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isnan(sum(max(broadcast(0.0F), broadcast(nan)))));
  EXPECT_EQ(max_lane(max(broadcast(nan), broadcast(0.0F))), 0.0F);
  EXPECT_EQ(sum(broadcast(2.0F)), 2.0F * vec_width);
}

}  // namespace
}  // namespace polyphase::cpu::POLYPHASE_CLUSTER
