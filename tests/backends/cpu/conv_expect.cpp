// Random geometries and layouts, and the comparison of a kernel with the exact sums.
#include "backends/cpu/conv_expect.h"

#include <gtest/gtest.h>

#include <optional>
#include <string_view>

namespace polyphase::cpu::testing {

ConvCase random_case(std::mt19937_64& random, int64_t work) {
  const auto pick = [&](int64_t lo, int64_t hi) {
    return lo + static_cast<int64_t>(random() % static_cast<uint64_t>(hi - lo + 1));
  };
  for (;;) {
    ConvCase c;
    ConvShape& s = c.shape;
    c.name = "random";
    c.rank = static_cast<int>(pick(1, 3));
    s.transposed = pick(0, 2) != 0;
    s.batch = pick(0, 30) == 0 ? 0 : pick(1, 3);
    const int64_t style = pick(0, 5);
    s.groups = style == 0 ? pick(2, 40) : style == 1 ? pick(2, 4) : 1;
    s.in_channels = style == 0 ? 1 : pick(0, 1) != 0 ? pick(1, 14) : pick(1, 70);
    s.out_channels = style == 0 ? pick(1, 3) : pick(0, 1) != 0 ? pick(1, 9) : pick(1, 100);
    c.bias = pick(0, 1) != 0;
    bool ok = true;
    for (int a = 0; a < 3; ++a) {
      const bool used = a >= 3 - c.rank;
      s.in[a] = !used ? 1 : pick(0, 40) == 0 ? 0 : pick(1, c.rank == 1 ? 60 : 12);
      s.kernel[a] = !used ? 1 : pick(1, c.rank == 1 ? 12 : 5);
      s.stride[a] = !used ? 1 : pick(1, c.rank == 1 ? 9 : 4);
      s.dilation[a] = !used || pick(0, 2) != 0 ? 1 : pick(1, 4);
      s.pre[a] = !used ? 0 : pick(-3, 4);
      const int64_t post = !used ? 0 : pick(-4, 4);
      s.out[a] = s.in[a] == 0 && s.transposed ? 0 : output_extent(s, a, post);
      ok = ok && s.out[a] >= 0 && (s.out[a] > 0 || pick(0, 3) == 0);
    }
    const int64_t macs = s.batch * s.groups * s.in_channels * s.out_channels * s.kernel_points() *
                         (s.transposed ? s.in_points() : s.out_points());
    if (ok && macs <= work && s.out_points() * s.groups * s.out_channels <= 400'000) return c;
  }
}

Layouts random_layouts(std::mt19937_64& random) {
  return {
      .in_planar = random() % 2 == 0, .out_planar = random() % 2 == 0, .types = {}, .extra = random() % 3 == 0 ? 5 : 0};
}

void expect_stored(const std::string& kernel, const ConvCase& c, const ConvData& data, const Layouts& layouts,
                   const std::string& cluster, const std::vector<double>& want) {
  const std::vector<float> got = run_kernel(kernel, c, data, layouts, cluster);
  ASSERT_EQ(got.size(), want.size());
  const std::optional<size_t> at = first_difference(got, want, layouts.types.out);
  ASSERT_FALSE(at.has_value()) << kernel << " on " << cluster << ", element " << *at << " of " << got.size() << " is "
                               << got[*at] << ", not " << rounded(want[*at], layouts.types.out) << ", "
                               << layouts.text() << "\n"
                               << c.text();
}

void expect_exact(const ConvCase& c, const std::vector<std::string>& kernels, uint64_t seed, const Layouts& layouts) {
  const ConvData data = make_data(c, seed, true);
  const std::vector<double> want = reference(c, data);
  for (const std::string& cluster : runnable_clusters()) {
    for (const std::string& kernel : kernels) {
      if (std::string_view(kernel).ends_with("_pairs") && !runs_pairs(kernel, c, cluster)) continue;
      expect_stored(kernel, c, data, layouts, cluster, want);
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

std::vector<std::string> clusters_and_matrix_unit() {
  std::vector<std::string> clusters = runnable_clusters();
  clusters.emplace_back(emulated_matrix_unit);
  return clusters;
}

void draw_added(const ConvShape& s, std::mt19937_64& random, ConvData& data) {
  data.added.resize(result_elements(s));
  for (float& x : data.added) x = static_cast<float>(random() % 31) - 15;
}

void draw_slopes(const ConvShape& s, std::mt19937_64& random, ConvData& data) {
  data.slopes.resize(static_cast<size_t>(s.groups * s.out_channels));
  for (float& x : data.slopes) x = static_cast<float>(random() % 7) * 0.5F - 1;
}

}  // namespace polyphase::cpu::testing
