// Sealed clusters of the same sources live side by side in one program and compute the same.
#include <gtest/gtest.h>

#include <array>
#include <string>

#include "rows.h"

namespace polyphase::house {
namespace {

constexpr std::array<float, 5> values = {3, 1, 4, 1, 5};

void expect_right(const SampleRows& rows, const std::string& cluster) {
  EXPECT_EQ(rows.cluster, cluster);
  EXPECT_EQ(rows.dot(values.data(), values.data(), values.size()), 52.0F);
  EXPECT_EQ(rows.median(values.data(), values.size()), 3.0F);
}

TEST(IsaObjects, ScalarRunsEverywhere) { expect_right(house_rows_scalar, "scalar"); }

TEST(IsaObjects, Avx2RunsWhereTheCpuHasIt) {
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) GTEST_SKIP() << "this CPU has no AVX2";
  expect_right(house_rows_avx2, "avx2");
}

TEST(IsaObjects, Avx512RunsWhereTheCpuHasIt) {
  if (!__builtin_cpu_supports("avx512vl") || !__builtin_cpu_supports("avx512dq")) {
    GTEST_SKIP() << "this CPU has no AVX-512";
  }
  expect_right(house_rows_avx512, "avx512");
}

}  // namespace
}  // namespace polyphase::house
