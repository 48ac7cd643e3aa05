// Random convolution geometries with integer data, bit for bit against the double reference, on every kernel and
// cluster.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <random>
#include <span>

#include "backends/cpu/conv_case.h"
#include "backends/cpu/conv_expect.h"
#include "backends/cpu/conv_run.h"
#include "backends/cpu/kernels/conv_pairs.h"
#include "base/float16.h"
#include "suite_size.h"

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

namespace polyphase::cpu::testing {
namespace {

// conv_pairs, on small integers, in each of these layouts.
void expect_pairs_exact(const ConvCase& c, uint64_t seed, const std::vector<Layouts>& all_layouts) {
  const ConvData data = make_data(c, seed, true);
  const std::vector<double> want = reference(c, data);
  for (const Layouts& layouts : all_layouts) {
    for (const std::string& cluster : clusters_and_matrix_unit()) {
      expect_stored("pairs", c, data, layouts, cluster, want);
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

TEST(ConvKernels, RandomGeometriesAreExact) {
  each_random_case(500, 1500, 1'000'003, 3'000'000, [](const ConvCase& c, uint64_t number, std::mt19937_64& random) {
    const Layouts layouts = random_layouts(random);
    expect_exact(c, kernels_for(c, layouts), number, layouts);
  });
}

#if defined(__SSE__)
// Whether a subnormal operand was met since this was asked last.
bool subnormal_met() {
  const unsigned int state = _mm_getcsr();
  _mm_setcsr(state & ~_MM_EXCEPT_DENORM);
  return (state & _MM_EXCEPT_DENORM) != 0;
}

// What is computed beside the results, in the lanes and rows that are left over, must not depend on what lay in the
// scratch before: products of subnormal numbers take a hundred times as long.
TEST(ConvKernels, WhatLiesInTheScratchIsNotMultiplied) {
  each_random_case(500, 1500, 2'000'003, 3'000'000, [](const ConvCase& c, uint64_t number, std::mt19937_64& random) {
    Layouts layouts = random_layouts(random);
    layouts.scratch = subnormal_word;
    const ConvData data = make_data(c, number, true);
    for (const std::string& cluster : runnable_clusters()) {
      for (const std::string& kernel : kernels_for(c, layouts)) {
        const auto bound = bind_kernel(kernel, c, data, layouts, cluster, 1);
        subnormal_met();
        run_tiles(*bound);
        EXPECT_FALSE(subnormal_met()) << kernel << " on " << cluster << ", " << layouts.text() << "\n" << c.text();
      }
    }
  });
}
#endif

// Those that read images padded by their own elements; few channels between which taps cannot be joined are gathered
// from a copy.
std::vector<std::string> padded_kernels_for(const ConvCase& c, const std::string& cluster, const Layouts& layouts) {
  const ConvShape& s = c.shape;
  std::vector<std::string> names;
  if (s.in_channels >= 12 || (s.groups == 1 && s.dilation[2] == 1)) names.emplace_back("gemm");
  for (const std::string& kernel : kernels_for(c, layouts)) {
    if (kernel == "pixels" || kernel == "winograd" || kernel == "overlap_last") names.push_back(kernel);
  }
  for (const std::string& kernel : pair_kernels_for(c, cluster)) {
    if (kernel == "pixels_pairs") names.push_back(kernel);
  }
  return names;
}

// Of channels-last images; a pad reaches as far as whole kernels lie in the image, like that of a network.
TEST(ConvKernels, RandomGeometriesPaddedByElementsAreExact) {
  const uint64_t cases = test::suite_size("POLYPHASE_FUZZ_CASES", 200, 700);
  const uint64_t seed = test::suite_size("POLYPHASE_FUZZ_SEED", 1, 1);
  uint64_t drawn = 0;
  for (uint64_t i = 0; drawn < cases; ++i) {
    std::mt19937_64 random(seed * 9'000'011 + i);
    ConvCase c = random_case(random, 1'000'000);
    ConvShape& s = c.shape;
    if (s.transposed || s.in_points() == 0 || s.out_points() == 0) continue;
    ++drawn;
    s.pad_mode = static_cast<PadMode>(1 + random() % 3);
    for (int a = 0; a < 3; ++a) {
      const int64_t behind = (s.out[a] - 1) * s.stride[a] + (s.kernel[a] - 1) * s.dilation[a] + 1 - s.in[a] - s.pre[a];
      s.pre[a] = std::max<int64_t>(0, s.pre[a]);
      s.out[a] = output_extent(s, a, std::max<int64_t>(0, behind));
    }
    const Layouts layouts = {.in_planar = s.groups * s.in_channels == 1 && random() % 2 == 0,
                             .out_planar = random() % 2 == 0,
                             .types = {},
                             .extra = random() % 3 == 0 ? 5 : 0,
                             .narrow_past = 1};
    SCOPED_TRACE("case " + std::to_string(i) + " seed " + std::to_string(seed));
    const ConvData data = make_data(c, seed + i, true);
    const std::vector<double> want = reference(c, data);
    for (const std::string& cluster : runnable_clusters()) {
      for (const std::string& kernel : padded_kernels_for(c, cluster, layouts)) {
        expect_stored(kernel, c, data, layouts, cluster, want);
        if (HasFatalFailure()) return;
      }
    }
    if (*conv_pairs_refuses(s) != '\0') continue;
    Layouts narrow = layouts;
    narrow.types = {random() % 2 == 0 ? DType::bf16 : DType::f32, random() % 2 == 0 ? DType::bf16 : DType::f32};
    for (const std::string& cluster : {runnable_clusters().back(), std::string(emulated_matrix_unit)}) {
      expect_stored("pairs", c, data, narrow, cluster, want);
      if (HasFatalFailure()) return;
    }
  }
}

// Dilated filters over small images, of whose products conv_gemm leaves out those of lines outside of the image: one
// channel at a time, several taps at a time, all taps of a line but one, all but the last.
TEST(ConvKernels, TapsOutsideOfSmallImagesAreExact) {
  for (const char* line : {
           "dilated conv n2 g1 c330:20 in16x17 k3x3 s1x1 d12x12 pre12x12 post12x12 bias",
           "dilated conv n1 g1 c70:33 in13x14 k3x5 s1x1 d6x5 pre6x10 post6x10",
           "dilated conv n1 g2 c700:40 in5x12x16 k3x3x3 s1x1x1 d4x9x2 pre4x9x2 post4x9x2 bias",
           "dilated conv n1 g1 c340:9 in14x40 k3x2 s1x2 d20x3 pre30x0 post20x3 bias",
       }) {
    for (const bool planar : {true, false})
      expect_exact(*parse_conv_case(line), {"gemm"}, 1, {.in_planar = planar, .out_planar = planar});
  }
}

// Overlap-add reads images where they lie: from memory some channels at a time, lines that are cut, channels that share
// sets of the caches, and lines apart or by halves, which it cannot read in place.
TEST(ConvKernels, TapsOfPixelsWhereTheyLieAreExact) {
  for (const char* line : {
           "far conv_transpose n1 g1 c72:1 in70x81 k3x3 s2x2 d1x1 pre1x1 post0x1 bias",
           "far conv_transpose n2 g1 c17:3 in131x129 k2x2 s2x2 d1x1 pre0x0 post0x0 bias",
           "sets conv_transpose n1 g2 c20:2 in64x64 k4x4 s2x2 d1x1 pre1x1 post0x0",
           "cut conv_transpose n1 g1 c40:2 in9000 k10 s5 d1 pre3 post2 bias",
           "cut conv_transpose n1 g1 c9:1 in3x9000 k5x6 s2x3 d1x1 pre2x1 post1x0 bias",
           "crop conv_transpose n1 g1 c24:2 in40x50 k3x4 s3x2 d2x1 pre9x11 post-6x-8 bias",
           "behind conv_transpose n1 g1 c24:1 in20x33 k5x5 s2x2 d1x1 pre-7x-9 post5x6 bias",
           "groups conv_transpose n3 g30 c240:30 in7x9 k3x3 s2x2 d1x1 pre1x1 post0x0",
       }) {
    const ConvCase c = *parse_conv_case(line);
    for (const int64_t extra : {0, 5}) {
      for (const bool planar : {true, false})
        expect_exact(c, {"overlap"}, 1, {.in_planar = planar, .out_planar = planar, .types = {}, .extra = extra});
      expect_exact(c, {"overlap_last"}, 1, {.in_planar = false, .out_planar = true, .types = {}, .extra = extra});
    }
    expect_exact(c, {"overlap"}, 1, {.in_planar = true, .out_planar = true, .types = {DType::f16, DType::bf16}});
  }
}

// What a kernel does otherwise in an image of few lines must not be seen: `out_lines` read nothing behind `in_lines`.
void check_first_lines(const std::string& kernel, const ConvCase& large, int64_t in_lines, int64_t out_lines) {
  ConvCase small = large;
  small.shape.in[1] = in_lines;
  small.shape.out[1] = out_lines;
  ConvData data = make_data(large, 3, false);
  const Layouts layouts = {.in_planar = true, .out_planar = true};
  for (const std::string& cluster : runnable_clusters()) {
    const std::vector<float> all = run_kernel(kernel, large, data, layouts, cluster);
    ConvData first = data;
    first.in.clear();
    for (int64_t c = 0; c < large.shape.in_channels; ++c)
      first.in.insert(first.in.end(), data.in.begin() + c * large.shape.in_points(),
                      data.in.begin() + c * large.shape.in_points() + small.shape.in_points());
    const std::vector<float> some = run_kernel(kernel, small, first, layouts, cluster);
    for (int64_t o = 0; o < large.shape.out_channels; ++o) {
      const auto at = some.begin() + o * small.shape.out_points();
      EXPECT_TRUE(std::equal(at, at + small.shape.out_points(), all.begin() + o * large.shape.out_points()))
          << large.name << ", channel " << o << " on " << cluster;
    }
  }
}

// How many channels are multiplied at a time, and whether lines are read where they lie.
TEST(ConvKernels, ChannelsMultipliedAtATimeGiveTheSameBits) {
  for (const std::string image : {"far_few n1 g1 c120:2 in60x64", "far_many n1 g1 c120:4 in60x64",
                                  "shared_sets_few n1 g1 c120:1 in64x64", "shared_sets_many n1 g1 c120:4 in64x64"}) {
    const size_t end = image.find(' ');
    const ConvCase large = *parse_conv_case(image.substr(0, end) + " conv_transpose" + image.substr(end) +
                                            " k3x3 s2x2 d1x1 pre1x1 post0x0 bias");
    check_first_lines("overlap", large, 8, 14);
  }
}

// The rows of small images are multiplied in another order, without the taps that lie outside, and taps that would be
// joined are apart.
TEST(ConvKernels, SortedRowsGiveTheSameBits) {
  const auto check = [](const std::string& text, int64_t out_lines) {
    check_first_lines("gemm", *parse_conv_case(text), 4, out_lines);
  };
  check("taps_apart conv n1 g1 c64:40 in100x7 k3x3 s1x1 d1x1 pre1x1 post1x1 bias", 3);
  check("taps_joined conv n1 g1 c120:40 in100x7 k3x3 s1x1 d1x1 pre1x1 post1x1 bias", 3);
  check("segments conv n1 g1 c200:32 in100x7 k3x3 s1x1 d1x1 pre1x1 post1x1 bias", 3);
  check("dilated conv n1 g1 c80:32 in100x9 k3x3 s1x1 d2x3 pre2x3 post2x3 bias", 2);
  check("stacked conv_transpose n1 g1 c100:24 in90x5 k6x6 s2x2 d1x1 pre2x2 post2x2 bias", 5);
  check("phases conv_transpose n1 g1 c100:64 in90x5 k6x6 s2x2 d1x1 pre2x2 post2x2 bias", 5);
}

// Of one channel per group. `joined`: transposed, of few channels, which leave the registers as lines that are joined
// to runs; otherwise of any kind.
ConvCase random_depthwise_case(std::mt19937_64& random, bool joined) {
  const auto pick = [&](int64_t lo, int64_t hi) {
    return lo + static_cast<int64_t>(random() % static_cast<uint64_t>(hi - lo + 1));
  };
  for (;;) {
    ConvCase c;
    ConvShape& s = c.shape;
    c.name = "depthwise";
    c.rank = static_cast<int>(pick(1, 3));
    c.bias = pick(0, 1) != 0;
    s.transposed = joined || pick(0, 2) == 0;
    s.batch = pick(1, 2);
    s.groups = joined ? pick(1, 9) : pick(2, 70);
    s.in_channels = 1;
    s.out_channels = 1;
    for (int a = 0; a < 3; ++a) {
      const bool used = a >= 3 - c.rank;
      s.in[a] = used ? pick(1, a < 2 ? (c.rank == 3 ? 6 : 20) : joined ? 130 : 40) : 1;
      s.kernel[a] = used ? pick(1, joined ? 7 : 9) : 1;
      s.stride[a] = used ? pick(joined && a == 2 ? 2 : 1, joined || s.transposed ? 4 : 2) : 1;
      s.dilation[a] = used && (a < 2 || !joined) && pick(0, 5) == 0 ? pick(2, 3) : 1;
      s.pre[a] = used ? pick(-3, 5) : 0;
      s.out[a] = output_extent(s, a, used ? pick(-4, 5) : 0);
    }
    if (std::min({s.out[0], s.out[1], s.out[2]}) > 0 && s.out_points() * s.groups <= 400'000) return c;
  }
}

TEST(ConvKernels, JoinedLinesOfDepthwiseGeometriesAreExact) {
  const uint64_t cases = test::suite_size("POLYPHASE_FUZZ_CASES", 300, 1000);
  const uint64_t seed = test::suite_size("POLYPHASE_FUZZ_SEED", 1, 1);
  for (uint64_t i = 0; i < cases && !HasFatalFailure(); ++i) {
    std::mt19937_64 random(seed * 5'000'011 + i);
    const ConvCase c = random_depthwise_case(random, true);
    constexpr DType types[] = {DType::f32, DType::f32, DType::f16, DType::bf16};
    const Layouts layouts = {.in_planar = random() % 4 != 0,
                             .out_planar = random() % 4 != 0,
                             .types = {types[random() % 4], types[random() % 4]},
                             .extra = random() % 3 == 0 ? 5 : 0};
    expect_exact(c, {"pixels"}, seed + i, layouts);
  }
  // Lines that are cut, by any crop in front of them.
  for (const std::string width : {"k3 s2", "k4 s2", "k1 s2", "k6 s3", "k7 s4"}) {
    for (int crop = -2; crop <= 5; ++crop) {
      const std::string text =
          "cut conv_transpose n1 g3 c3:3 in2001 " + width + " d1 pre" + std::to_string(crop) + " post1 bias";
      expect_exact(*parse_conv_case(text), {"pixels"}, seed,
                   {.in_planar = true, .out_planar = true, .types = {}, .extra = 0});
    }
  }
}

// Outputs whose taps read the same columns are computed together: some lie at the ends of lines, or are computed twice.
TEST(ConvKernels, SharedColumnsOfDepthwiseGeometriesAreExact) {
  const uint64_t cases = test::suite_size("POLYPHASE_FUZZ_CASES", 500, 2000);
  const uint64_t seed = test::suite_size("POLYPHASE_FUZZ_SEED", 1, 1);
  for (uint64_t i = 0; i < cases && !HasFatalFailure(); ++i) {
    std::mt19937_64 random(seed * 7'000'003 + i);
    const ConvCase c = random_depthwise_case(random, false);
    const Layouts layouts = {
        .in_planar = random() % 8 == 0, .out_planar = random() % 8 == 0, .extra = random() % 3 == 0 ? 5 : 0};
    expect_exact(c, {"depthwise"}, seed + i, layouts);
  }
  // Images that are fetched ahead of the products.
  for (const std::string taps : {"k3x3 s1x1 d1x1 pre1x1 post1x1", "k5x5 s1x1 d2x2 pre4x4 post4x4"}) {
    const Layouts channels_last = {.in_planar = false, .out_planar = false, .extra = 0};
    expect_exact(*parse_conv_case("fetched conv n1 g40 c40:40 in165x170 " + taps + " bias"), {"depthwise"}, seed,
                 channels_last);
  }
}

// An output that the caches cannot hold, of planes whose lines are shorter than what goes past them line by line.
TEST(ConvKernels, JoinedLinesGoPastTheCaches) {
  ConvCase c;
  ConvShape& s = c.shape;
  c.name = "past the caches";
  c.rank = 3;
  c.bias = true;
  s.transposed = true;
  s.batch = 1;
  s.groups = 36;
  s.in_channels = 1;
  s.out_channels = 1;
  for (int a = 0; a < 3; ++a) {
    s.in[a] = 25;
    s.kernel[a] = 3;
    s.stride[a] = 2;
    s.dilation[a] = 1;
    s.pre[a] = 1;
    s.out[a] = output_extent(s, a, 1);
  }
  ASSERT_TRUE(is_past_caches(s));
  expect_exact(c, {"pixels"}, 1, {});
}

// Small integers are exact in bf16 as well, and so are their products and sums; a result in bf16 is rounded once.
TEST(ConvKernels, PairsOfRandomGeometriesAreExact) {
  each_random_case(500, 1500, 3'000'017, 2'000'000, [](const ConvCase& c, uint64_t number, std::mt19937_64& random) {
    const ConvData data = make_data(c, number, true);
    const std::vector<double> want = reference(c, data);
    const Layouts layouts = {
        .in_planar = random() % 2 == 0,
        .out_planar = random() % 2 == 0,
        .types = {random() % 2 == 0 ? DType::bf16 : DType::f32, random() % 2 == 0 ? DType::bf16 : DType::f32},
        .extra = random() % 3 == 0 ? 5 : 0,
        .narrow_past = random() % 2 == 0 ? 1 : 0};
    for (const std::string& cluster : clusters_and_matrix_unit()) {
      for (const std::string& kernel : pair_kernels_for(c, cluster)) {
        expect_stored(kernel, c, data, layouts, cluster, want);
        if (::testing::Test::HasFatalFailure()) return;
      }
    }
  });
}

// Images of which no copy is made as a whole: strips of lines with what taps reach around them, some lines at a time
// where weights are large, pieces of lines, planes of volumes, phases as columns or one after the other. In a slice
// every second, in one of its two layouts.
TEST(ConvKernels, StripsOfLargeImagesAreExact) {
  const char* const lines[] = {
      "wide conv_transpose n1 g1 c62:5 in70x130 k3x3 s1x1 d1x1 pre1x1 post1x1 bias",
      "pieces conv n1 g1 c160:3 in12x1500 k3x3 s1x1 d1x1 pre1x1 post2x1",
      "phases conv_transpose n2 g1 c33:20 in80x105 k3x4 s2x2 d1x1 pre1x-1 post0x3 bias",
      "stacked conv_transpose n1 g2 c64:6 in90x120 k5x6 s2x3 d1x1 pre2x1 post1x3 bias",
      "stacked3 conv_transpose n1 g1 c32:2 in5x50x70 k3x4x3 s2x2x2 d1x1x1 pre1x1x0 post0x1x1 bias",
      "long conv_transpose n1 g1 c64:9 in9000 k5 s1 d1 pre7 post-3 bias",
      "step conv n1 g1 c48:4 in130x90 k3x2 s2x3 d1x1 pre1x0 post1x0 bias",
      "apart conv n1 g1 c96:4 in110x100 k3x3 s1x1 d2x3 pre2x3 post1x3",
      "padded conv n1 g1 c48:4 in130x100 k3x5 s1x1 d1x1 pre1x2 post1x2 bias",
      "padded conv n1 g1 c24:3 in6x70x80 k2x3x3 s1x1x1 d1x1x1 pre1x1x1 post0x1x1",
      "planes conv_transpose n1 g1 c20:3 in9x40x80 k2x3x3 s2x1x1 d1x1x1 pre0x1x1 post0x1x1",
      "lines conv_transpose n1 g1 c340:5 in60x48 k5x5 s1x1 d1x1 pre2x2 post2x2",
      "many conv_transpose n1 g1 c128:18 in80x105 k6x4 s6x1 d1x1 pre0x0 post0x0",
  };
  uint64_t seed = 0;
  for (const char* line : lines) {
    if (seed++ % 2 != 0 && test::sliced()) continue;
    ConvCase c = *parse_conv_case(line);
    const bool is_padded = c.name.starts_with("padded");
    if (is_padded) c.shape.pad_mode = PadMode::reflect;
    SCOPED_TRACE(line);
    EXPECT_TRUE(plan_conv_pairs(c.shape, {}, {}, {}, c.bias, nullptr).in_strips);
    const uint64_t turn = test::sliced() ? seed / 2 : seed;
    const DType of_planar = turn % 2 == 0 ? DType::bf16 : DType::f32;
    const DType of_last = turn % 2 == 0 ? DType::f32 : DType::bf16;
    std::vector<Layouts> layouts = {{.in_planar = !is_padded, .out_planar = true, .types = {of_planar, of_planar}},
                                    {.in_planar = false, .out_planar = false, .types = {of_last, of_last}}};
    if (test::sliced()) layouts.erase(layouts.begin() + static_cast<int>(turn / 2 % 2));
    expect_pairs_exact(c, seed, layouts);
    if (HasFatalFailure()) return;
  }
}

// Images in bf16 whose rows are read where they lie, as no tap leaves them: the last block of rows must not be read
// past the end, which is the end of the memory here.
TEST(ConvKernels, ImagesReadInPlaceAreExact) {
  const char* const lines[] = {
      "point conv n1 g1 c64:33 in13x11 k1x1 s1x1 d1x1 pre0x0 post0x0 bias",
      "points conv n3 g1 c34:20 in9x5 k1x1 s1x1 d1x1 pre0x0 post0x0",
      "step conv n1 g1 c32:40 in16x24 k1x1 s2x2 d1x1 pre0x0 post0x0 bias",
      "step conv n2 g1 c18:5 in15x23 k1x1 s2x3 d1x1 pre0x0 post0x0",
      "inside conv n1 g1 c16:24 in12x19 k3x3 s1x1 d1x1 pre0x0 post0x0 bias",
      "inside conv n2 g1 c6:3 in12x19 k3x4 s2x1 d1x2 pre0x0 post0x0",
      "inside conv n1 g1 c10:3 in5x8x9 k3x2x3 s1x1x1 d1x1x1 pre0x0x0 post0x0x0 bias",
      "cropped conv n1 g1 c10:3 in15x17 k3x3 s1x1 d1x1 pre-1x-2 post-1x-1",
      "stride conv_transpose n1 g1 c40:24 in7x9 k2x2 s2x2 d1x1 pre0x0 post0x0 bias",
      "stride conv_transpose n2 g1 c24:10 in31 k5 s5 d1 pre0 post0",
      "phases conv_transpose n1 g1 c24:70 in7x9 k2x3 s2x3 d1x1 pre0x0 post0x0 bias",
      "line conv n1 g1 c128:16 in1 k1 s1 d1 pre0 post0 bias",
      "lines conv n1 g1 c14:16 in700 k7 s1 d1 pre0 post0 bias",
  };
  uint64_t seed = 0;
  for (const char* line : lines) {
    const ConvCase c = *parse_conv_case(line);
    SCOPED_TRACE(line);
    EXPECT_TRUE(conv_pairs_stays_inside(plan_conv_pairs(c.shape, {}, {}, {}, c.bias, nullptr)));
    expect_pairs_exact(c, ++seed,
                       {{.in_planar = false, .out_planar = true, .types = {DType::bf16, DType::f32}},
                        {.in_planar = false, .out_planar = false, .types = {DType::bf16, DType::bf16}}});
    if (HasFatalFailure()) return;
  }
}

// Kernels that read and write images half as wide, which begin so many elements past a line of the caches, give the
// bits that casts around them would.
void expect_bits_of_casts(const ConvCase& c, ConvData data, const Layouts& layouts, const std::vector<int64_t>& pasts) {
  for (float& x : data.in) x = rounded(static_cast<double>(x), layouts.types.in);
  Layouts wide = layouts;
  wide.types = {};
  for (const std::string& cluster : runnable_clusters()) {
    for (const std::string& kernel : kernels_for(c, layouts)) {
      const std::vector<float> sums = run_kernel(kernel, c, data, wide, cluster);
      const std::vector<double> want(sums.begin(), sums.end());
      Layouts narrow = layouts;
      for (const int64_t past : pasts) {
        narrow.narrow_past = past;
        expect_stored(kernel, c, data, narrow, cluster, want);
        if (::testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

// So large that whole lines of the caches go past them; in a slice two geometries, each in one of the two types and at
// one place.
TEST(ConvKernels, LargeNarrowImagesGiveTheBitsOfCasts) {
  const std::vector<const char*> lines = {
      "large conv_transpose n1 g1 c4:4 in740x760 k2x2 s2x2 d1x1 pre0x0 post0x0 bias",
      "large conv_transpose n1 g2 c2:2 in1030x530 k3x4 s2x2 d1x1 pre1x1 post0x1",
      "large conv n1 g1 c3:5 in1330x1360 k3x3 s1x1 d1x1 pre1x1 post1x1 bias",
  };
  DType type = DType::f16;
  int64_t past = 0;
  for (const char* line : std::span(lines).first(test::sliced() ? 2 : lines.size())) {
    const ConvCase c = *parse_conv_case(line);
    const std::vector<int64_t> pasts = test::sliced() ? std::vector<int64_t>{past++} : std::vector<int64_t>{0, 1};
    for (int types = test::sliced() ? 1 : 2; types > 0 && !HasFatalFailure(); --types) {
      expect_bits_of_casts(c, make_data(c, 1, false),
                           {.in_planar = true, .out_planar = true, .types = {type, type}, .extra = 0}, pasts);
      if (types > 1) type = type == DType::f16 ? DType::bf16 : DType::f16;
    }
    type = type == DType::f16 ? DType::bf16 : DType::f16;
  }
}

TEST(ConvKernels, NarrowImagesGiveTheBitsOfCasts) {
  each_random_case(250, 1500, 5'000'011, 2'000'000, [](const ConvCase& c, uint64_t number, std::mt19937_64& random) {
    constexpr DType types[] = {DType::f32, DType::f16, DType::bf16};
    const Layouts layouts = {.in_planar = random() % 3 != 0,
                             .out_planar = random() % 3 != 0,
                             .types = {types[random() % 3], types[1 + random() % 2]},
                             .extra = random() % 3 == 0 ? 5 : 0};
    expect_bits_of_casts(c, make_data(c, number, false), layouts, {random() % 2 == 0 ? 1 : 0});
  });
}

}  // namespace
}  // namespace polyphase::cpu::testing
