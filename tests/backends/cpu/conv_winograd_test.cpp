// conv_winograd's own blocks, and its rounding errors.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "backends/cpu/conv_case.h"
#include "backends/cpu/conv_expect.h"
#include "backends/cpu/conv_run.h"
#include "backends/cpu/kernels/conv_winograd.h"
#include "suite_size.h"

namespace polyphase::cpu::testing {
namespace {

// Volumes whose planes conv_winograd transforms once for several depths, the last of which may be missing.
TEST(ConvWinograd, DepthsThatSharePlanesAreExact) {
  for (const char* line : {
           "planes conv n2 g1 c8:9 in7x12x8 k3x3x3 s1x1x1 d1x1x1 pre1x1x1 post1x1x1 bias",
           "planes conv n1 g2 c4:20 in9x16x12 k2x3x3 s1x1x1 d1x1x1 pre0x1x2 post2x1x0",
           "planes conv_transpose n1 g1 c7:17 in5x12x8 k4x4x4 s2x2x2 d1x1x1 pre1x1x1 post1x1x1",
           "planes conv_transpose n1 g1 c6:5 in4x12x8 k5x3x3 s2x1x1 d1x1x1 pre2x1x1 post2x1x1 bias",
       }) {
    const ConvCase c = *parse_conv_case(line);
    for (const int width : {4, 8, 16}) {
      const ConvWinogradPlan plan = plan_conv_winograd(c.shape, {}, {}, {}, c.bias, width);
      EXPECT_GT(plan.depths, 1) << line;
    }
    for (const bool planar : {false, true}) {
      expect_exact(c, {"winograd", "winograd_pairs"}, 1,
                   {.in_planar = planar, .out_planar = planar, .types = {}, .extra = 0, .narrow_past = 1});
    }
  }
}

// Large images in parts: groups, a batch, strides, dilation and crops, lines, planes and volumes, the last parts of
// which are shorter; narrow images; and an ending that reads another image.
TEST(ConvWinograd, PartsAreExact) {
  int number = 0;
  for (const char* line : {
           "parts conv_transpose n1 g2 c4:4 in350000 k5 s2 d1 pre3 post-40 bias",
           "parts conv n2 g1 c3:2 in600x700 k3x4 s1x1 d1x2 pre1x4 post2x1",
           "parts conv_transpose n1 g1 c2:3 in450x500 k3x3 s2x2 d1x1 pre0x-3 post1x1 bias",
           "parts conv n1 g1 c5:2 in900x700 k3x5 s1x2 d1x1 pre0x2 post0x1",
           "parts conv_transpose n1 g1 c2:2 in60x70x60 k2x4x3 s2x2x2 d1x1x1 pre0x1x1 post0x1x0 bias",
           "parts conv n1 g1 c2:2 in80x110x120 k3x3x3 s1x1x1 d1x1x1 pre1x1x1 post1x1x1",
       }) {
    if (number++ % 2 != 0 && test::sliced()) continue;
    const ConvCase c = *parse_conv_case(line);
    for (const int width : {4, 8, 16}) {
      const ConvWinogradPlan plan = plan_conv_winograd(c.shape, {}, {}, {}, c.bias, width);
      EXPECT_TRUE(plan.parted) << line;
      EXPECT_EQ(plan.shared_bytes, 0) << line;
      EXPECT_LE(plan.images_bytes, 8 << 20) << line;
    }
    expect_exact(c, {"winograd", "winograd_pairs"}, 1, {.in_planar = true, .out_planar = true});
    expect_exact(c, {"winograd"}, 1, {.in_planar = true, .out_planar = true, .types = {DType::f16, DType::bf16}});
    ConvData data = make_data(c, 1, true);
    data.added.resize(result_elements(c.shape));
    for (std::size_t i = 0; i < data.added.size(); ++i) data.added[i] = static_cast<float>(i % 31) - 15;
    data.activation = EndingKind::relu;
    const std::vector<double> want = reference(c, data);
    for (const std::string& cluster : runnable_clusters()) {
      expect_stored("winograd", c, data, {.in_planar = true, .out_planar = true}, cluster, want);
    }
    if (::testing::Test::HasFatalFailure()) return;
  }
}

TEST(ConvWinograd, NoOutputsHaveNoParts) {
  const ConvCase c = *parse_conv_case("none conv n1 g1 c2:2 in2000000 k3 s1 d1 pre-1000000 post-999998");
  ASSERT_EQ(c.shape.out_points(), 0);
  const ConvWinogradPlan plan = plan_conv_winograd(c.shape, {}, {}, {}, c.bias, 8);
  EXPECT_FALSE(plan.parted);
  for (int phase = 0; phase < conv_winograd_phases(plan); ++phase) EXPECT_EQ(conv_winograd_tiles(plan, phase), 0);
}

// Layers of so few blocks that columns are divided among more of them: a batch, groups, strides, dilation, several
// families, phases of a tap each way, depths that share planes, last pieces and panels that are shorter.
TEST(ConvWinograd, BlocksThatShareInputsAreExact) {
  for (const char* line : {
           "shared conv n2 g1 c128:100 in12x10 k3x3 s1x1 d1x1 pre1x1 post1x1 bias",
           "shared conv n1 g2 c260:280 in9x14 k3x4 s2x1 d1x2 pre1x3 post1x1",
           "shared conv_transpose n1 g1 c96:170 in14x9 k5x4 s2x2 d1x1 pre1x1 post1x0 bias",
           "shared conv_transpose n1 g1 c200:64 in60 k7 s3 d1 pre2 post-5",
           "shared conv n1 g1 c64:72 in3x9x10 k3x3x3 s1x1x1 d1x1x1 pre1x1x1 post1x1x1",
       }) {
    const ConvCase c = *parse_conv_case(line);
    for (const int width : {8, 16}) {
      const ConvWinogradPlan plan = plan_conv_winograd(c.shape, {}, {}, {}, c.bias, width);
      EXPECT_GT(plan.input_pieces, 1) << line;
      EXPECT_GT(plan.n_blocks, 1) << line;
    }
    for (const bool planar : {false, true}) {
      expect_exact(c, {"winograd", "winograd_pairs"}, 1, {.in_planar = planar, .out_planar = planar});
    }
    if (::testing::Test::HasFatalFailure()) return;
  }
}

// Of many input channels, whose transformed inputs the caches do not hold: panels that are multiplied with a point's
// inputs before the next point's, the last of them fewer or of another width, several families, depths and blocks.
TEST(ConvWinograd, PanelsThatShareInputsAreExact) {
  for (const char* line : {
           "deep conv n1 g1 c500:310 in9x6 k3x3 s1x1 d1x1 pre1x1 post1x1 bias",
           "deep conv n1 g2 c860:76 in7x6 k5x4 s1x1 d1x1 pre2x1 post2x2",
           "deep conv_transpose n2 g1 c900:83 in5x4 k5x4 s2x2 d1x1 pre1x1 post2x1 bias",
           "deep conv n1 g1 c300:70 in4x5x4 k3x3x3 s1x1x1 d1x1x1 pre1x1x1 post1x1x1 bias",
           "deep conv n1 g1 c1000:150 in50 k7 s1 d3 pre9 post9 bias",
       }) {
    const ConvCase c = *parse_conv_case(line);
    for (const int width : {4, 8, 16}) {
      const ConvWinogradPlan plan = plan_conv_winograd(c.shape, {}, {}, {}, c.bias, width);
      EXPECT_GT(plan.together, 1) << line << ", width " << width;
    }
    for (const bool planar : {false, true})
      expect_exact(c, {"winograd", "winograd_pairs"}, 1, {.in_planar = planar, .out_planar = planar});
  }
}

// Taps along one axis, filtered twice: all numbers of taps up to fourteen, both axes, dilation, several planes of taps
// and phases, outputs that fill their tiles in part, kernels of which only some phases have enough taps.
TEST(ConvWinograd, LinesAreFilteredTwice) {
  std::vector<std::string> lines = {
      "twice conv n2 g2 c36:18 in3x40 k1x9 s1x1 d1x3 pre0x12 post0x11 bias",
      "twice conv n1 g1 c7:9 in33x5 k7x1 s1x1 d2x1 pre6x0 post6x0",
      "twice conv n1 g1 c6:5 in4x3x30 k3x1x6 s1x1x1 d1x1x1 pre1x0x2 post1x0x3",
      "twice conv n1 g1 c5:3 in6x31 k2x7 s3x1 d1x1 pre1x3 post0x3",  // several taps along the other axis
      "twice conv_transpose n1 g1 c9:20 in40x3 k16x2 s4x2 d1x1 pre3x0 post2x1 bias",
      "twice conv_transpose n1 g1 c9:20 in21 k11 s2 d1 pre4 post5",  // six taps and five
      "twice conv_transpose n1 g1 c9:2 in21 k23 s5 d1 pre4 post-5",  // five and four
      "twice conv_transpose n1 g1 c8:8 in17 k9 s1 d2 pre4 post5 bias",
      "twice conv n1 g1 c8:8 in3 k7 s1 d1 pre3 post3",  // three outputs
      "twice conv n1 g1 c8:8 in11 k8 s1 d4 pre0 post17",
  };
  for (int taps = 4; taps <= 14; ++taps)
    lines.push_back("twice conv n1 g1 c10:17 in50 k" + std::to_string(taps) + " s1 d1 pre3 post4 bias");
  for (const std::string& line : lines) {
    const ConvCase c = *parse_conv_case(line);
    const bool along_height = c.shape.kernel[1] > 3;
    const FilterAxis axis(c.shape, along_height ? 1 : 2, 0);
    EXPECT_EQ(axis.nested(), c.shape.kernel[1] != 2 || c.shape.transposed) << line;
    for (const bool planar : {false, true})
      expect_exact(c, {"winograd", "winograd_pairs"}, 1, {.in_planar = planar, .out_planar = planar});
    if (::testing::Test::HasFatalFailure()) return;
  }
}

ConvCase case_of_any_kind(std::mt19937_64& random) { return random_case(random, 2'000'000); }

// 1-D, whose four to fourteen taps are filtered twice.
ConvCase case_filtered_twice(std::mt19937_64& random) {
  const auto pick = [&](int least, int most) { return std::uniform_int_distribution<int>(least, most)(random); };
  const int stride = pick(0, 1) == 0 ? 1 : pick(2, 4);
  const int kernel = stride * pick(4, 14);
  return *parse_conv_case("line " + std::string(stride > 1 || pick(0, 1) == 0 ? "conv_transpose" : "conv") +
                          " n1 g1 c" + std::to_string(pick(32, 80)) + ":" + std::to_string(pick(8, 24)) + " in" +
                          std::to_string(pick(120, 240)) + " k" + std::to_string(kernel) + " s" +
                          std::to_string(stride) + " d1 pre" + std::to_string(pick(0, 3)) + " post0");
}

// Hardly as many terms as there must be: few channels of many taps, or many of few.
ConvCase case_of_few_terms(std::mt19937_64& random) {
  const auto pick = [&](int least, int most) { return std::uniform_int_distribution<int>(least, most)(random); };
  const auto number = [](int value) { return std::to_string(value); };
  const int rank = pick(1, 3);
  const int stride = pick(0, 2) == 0 ? 2 : 1;
  std::string size;
  std::string kernel;
  std::string strides;
  std::string ones;
  for (int a = 0; a < rank; ++a) {
    const std::string between = a > 0 ? "x" : "";
    size += between + number(rank == 1 ? pick(30, 90) : pick(4, 11));
    kernel += between + number(stride * pick(1, rank == 1 ? 8 : 3) + (stride == 2 && rank > 1 ? pick(0, 1) : 0));
    strides += between + number(stride);
    ones += between + "1";
  }
  const std::string kind = stride > 1 || pick(0, 1) == 0 ? "conv_transpose" : "conv";
  ConvCase c;
  for (int channels = 4; channels < 80; ++channels) {
    c = *parse_conv_case("few " + kind + " n1 g1 c" + number(channels) + ":" + number(pick(4, 20)) + " in" + size +
                         " k" + kernel + " s" + strides + " d" + ones + " pre" + ones + " post" + ones + " bias");
    if (conv_winograd_takes(c.shape) && winograd_keeps_bound(c.shape)) break;
  }
  return c;
}

// f(case, number, random) for as many that the kernel takes.
template <class F>
void each_drawn(ConvCase (*draw)(std::mt19937_64&), int count, uint64_t seed, F f) {
  for (uint64_t i = 0; count > 0 && !::testing::Test::HasFatalFailure(); ++i) {
    std::mt19937_64 random(seed + i);
    const ConvCase c = draw(random);
    if (!conv_winograd_takes(c.shape) || !winograd_keeps_bound(c.shape)) continue;
    --count;
    f(c, i, random);
  }
}

// What a network's activations look like: as drawn, half of them 0 as behind a ReLU, of very different sizes.
void reshape_values(std::vector<float>& values, int kind, std::mt19937_64& random) {
  std::normal_distribution<float> normal;
  for (float& x : values) {
    if (kind == 1) x = std::max(0.0F, x);
    if (kind == 2) x *= std::exp(2 * normal(random));
  }
}

// |error| <= 2 gamma_K sum |x||w| on every element (Higham, Accuracy and Stability of Numerical Algorithms, 3.5), where
// a transform rounds otherwise than direct sums do.
TEST(ConvWinograd, KeepsTheBoundOfDirectSums) {
  const auto check = [](const ConvCase& c, uint64_t i, std::mt19937_64& random) {
    const ConvShape& s = c.shape;
    ConvData data = make_data(c, i, false);
    reshape_values(data.in, static_cast<int>(i % 3), random);
    ConvData sizes = data;
    for (std::vector<float>* values : {&sizes.in, &sizes.weights, &sizes.bias}) {
      for (float& x : *values) x = std::abs(x);
    }
    const std::vector<double> want = reference(c, data);
    const std::vector<double> terms = reference(c, sizes);
    double k = static_cast<double>(s.in_channels);
    for (int a = 0; a < 3; ++a)
      k *= static_cast<double>(s.transposed ? ceil_div(s.kernel[a], s.stride[a]) : s.kernel[a]);
    const double rounding = std::ldexp(k + 1, -24);
    for (const std::string& cluster : runnable_clusters()) {
      const std::vector<float> got = run_kernel("winograd", c, data, {}, cluster);
      for (std::size_t j = 0; j < got.size(); ++j) {
        ASSERT_LE(std::abs(static_cast<double>(got[j]) - want[j]), 2 * rounding / (1 - rounding) * terms[j])
            << "on " << cluster << ", element " << j << ", data " << i % 3 << "\n"
            << c.text();
      }
    }
  };
  each_drawn(case_of_any_kind, 120, 7'000'003, check);
  each_drawn(case_filtered_twice, 60, 7'000'003, check);
  each_drawn(case_of_few_terms, 40, 7'000'003, check);
}

double norm_of(const std::vector<double>& values) {
  double squares = 0;
  for (const double x : values) squares += x * x;
  return std::sqrt(squares);
}

// Transformed operands rounded to bf16: the error in the L2 norm, of what docs/semantics.md says. Many sums have
// 4.5e-3, from which results of few stray.
TEST(ConvWinograd, PairsKeepTheirError) {
  const auto check = [&](double most, const ConvCase& c, uint64_t i, std::mt19937_64& random) {
    ConvData data = make_data(c, i, false);
    reshape_values(data.in, static_cast<int>(i % 3), random);
    const std::vector<double> want = reference(c, data);
    for (const std::string& cluster : runnable_clusters()) {
      if (!runs_pairs("winograd_pairs", c, cluster)) continue;
      const std::vector<float> got = run_kernel("winograd_pairs", c, data, {}, cluster);
      std::vector<double> off = want;
      for (std::size_t j = 0; j < got.size(); ++j) off[j] -= static_cast<double>(got[j]);
      ASSERT_LE(norm_of(off), most * norm_of(want)) << "on " << cluster << ", data " << i % 3 << "\n" << c.text();
    }
  };
  each_drawn(case_of_any_kind, 120, 9'000'011,
             [&](const ConvCase& c, uint64_t i, std::mt19937_64& random) { check(5e-3, c, i, random); });
  each_drawn(case_filtered_twice, 60, 9'000'011,
             [&](const ConvCase& c, uint64_t i, std::mt19937_64& random) { check(6e-3, c, i, random); });
}

// max |x| max |w| for each of a sum's terms: what it may come to.
double greatest_sum(const ConvCase& c, const ConvData& data) {
  const ConvShape& s = c.shape;
  double input = 0;
  for (const float x : data.in) input = std::max(input, std::abs(static_cast<double>(x)));
  double weights = 0;
  for (const float w : data.weights) weights = std::max(weights, std::abs(static_cast<double>(w)));
  return input * weights * static_cast<double>(s.in_channels * s.kernel_points());
}

// Four outputs at once: what docs/semantics.md says of the error in the L2 norm, and of single elements.
void expect_near_in_fours(const ConvCase& c, const ConvData& data, const Layouts& layouts) {
  const std::vector<double> want = reference(c, data);
  const bool is_narrow = layouts.types.out != DType::f32;
  const double most = std::ldexp(greatest_sum(c, data), -21);
  for (const std::string& cluster : runnable_clusters()) {
    const std::vector<float> got = run_kernel("winograd_fours", c, data, layouts, cluster);
    ASSERT_EQ(got.size(), want.size());
    std::vector<double> off = want;
    for (std::size_t j = 0; j < got.size(); ++j) {
      off[j] -= static_cast<double>(got[j]);
      const double stored = is_narrow ? std::ldexp(std::abs(want[j]), -8) : 0;
      ASSERT_LE(std::abs(off[j]), stored + most) << "on " << cluster << ", element " << j << "\n" << c.text();
    }
    // Outputs that read nothing but padding are off by what their tiles read.
    if (!is_narrow) {
      ASSERT_LE(norm_of(off), 3e-6 * norm_of(want) + most) << "on " << cluster << "\n" << c.text();
    }
  }
}

// Every combination of lengths along two axes; batches, groups, strides, dilations, crops, phases without taps, depths
// that share planes, and large images in parts.
TEST(ConvWinograd, FoursFillEveryPlace) {
  for (const char* line : {
           "fours conv n2 g1 c36:18 in13x14 k3x3 s1x1 d1x1 pre1x1 post1x1 bias",
           "fours conv n1 g2 c34:18 in12x21 k2x5 s1x1 d1x2 pre0x4 post1x4",
           "fours conv n1 g1 c9:33 in30x17 k7x4 s2x3 d1x1 pre3x1 post3x2 bias",
           "fours conv_transpose n2 g1 c12:20 in11x9 k4x4 s2x2 d1x1 pre1x1 post1x1 bias",
           "fours conv_transpose n1 g2 c20:12 in9x14 k5x3 s2x2 d1x1 pre2x1 post1x0",
           "fours conv_transpose n1 g1 c8:8 in17x6 k9x5 s1x3 d2x1 pre4x-2 post5x0 bias",
           "fours conv n1 g1 c5:7 in9x40 k2x9 s1x1 d1x3 pre0x12 post0x11",
           "fours conv_transpose n1 g1 c9:2 in21x7 k23x3 s5x2 d1x1 pre4x0 post-5x0",
           "fours conv n1 g1 c8:9 in7x12x8 k3x3x3 s1x1x1 d1x1x1 pre1x1x1 post1x1x1 bias",
           "fours conv_transpose n1 g1 c7:17 in5x12x8 k4x4x4 s2x2x2 d1x1x1 pre1x1x1 post1x1x1",
           "fours conv n2 g1 c3:2 in600x700 k3x4 s1x1 d1x2 pre1x4 post2x1",
           "fours conv_transpose n1 g1 c2:3 in450x500 k3x3 s2x2 d1x1 pre0x-3 post1x1 bias",
       }) {
    const ConvCase c = *parse_conv_case(line);
    ASSERT_TRUE(runs_in_fours(c)) << line;
    const ConvData data = make_data(c, 1, false);
    for (const bool planar : {false, true}) {
      expect_near_in_fours(c, data,
                           {.in_planar = planar, .out_planar = planar, .types = {}, .extra = 0, .narrow_past = 1});
    }
    expect_near_in_fours(c, make_data(c, 2, true),
                         {.in_planar = true, .out_planar = true, .types = {DType::bf16, DType::bf16}});
    if (::testing::Test::HasFatalFailure()) return;
  }
}

TEST(ConvWinograd, FoursKeepTheirError) {
  int count = 120;
  for (uint64_t i = 0; count > 0 && !::testing::Test::HasFatalFailure(); ++i) {
    std::mt19937_64 random(11'000'027 + i);
    const ConvCase c = case_of_any_kind(random);
    if (!runs_in_fours(c) || !winograd_keeps_bound(c.shape)) continue;
    --count;
    ConvData data = make_data(c, i, false);
    reshape_values(data.in, static_cast<int>(i % 2), random);
    expect_near_in_fours(c, data, {});
  }
}

}  // namespace
}  // namespace polyphase::cpu::testing
