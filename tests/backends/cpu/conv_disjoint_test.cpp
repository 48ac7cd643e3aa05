// conv_disjoint's outputs that no tap reaches, its inputs that lead to no output, and kernels that it unfolds.
#include <gtest/gtest.h>

#include <string_view>

#include "backends/cpu/conv_case.h"
#include "backends/cpu/conv_expect.h"
#include "backends/cpu/kernels/conv_disjoint.h"

namespace polyphase::cpu::testing {
namespace {

// Most lines of the output are reached by no tap: tiles of some pixels fill those up to the next tile's first.
TEST(ConvDisjoint, LinesBetweenThoseThatTapsReachAreFilled) {
  for (const char* line : {
           "gaps conv_transpose n2 g2 c1100:26 in6x8x8 k1x1x1 s2x2x2 d1x1x1 pre0x0x0 post0x0x0 bias",
           "gaps conv_transpose n1 g1 c550:13 in7x9x8 k1x1x1 s2x3x2 d1x1x1 pre1x1x0 post-2x-3x-1 bias",
           "gaps conv_transpose n1 g1 c550:7 in6x8x8 k1x1x2 s3x2x2 d1x1x1 pre-2x-1x0 post5x3x1",
           "gaps conv_transpose n1 g1 c550:7 in30x8 k1x1 s2x4 d1x1 pre1x0 post-3x0 bias",
       }) {
    const ConvCase c = *parse_conv_case(line);
    const ImageStrides dense = planar_strides(c.shape.out, c.shape.groups * c.shape.out_channels);
    for (const int width : {4, 8, 16}) {
      const ConvDisjointPlan plan = plan_conv_disjoint(c.shape, {}, dense, {}, c.bias, width);
      EXPECT_TRUE(plan.fills && plan.pixel_tiles > 1) << line << ", width " << width;
    }
    expect_exact(c, {"disjoint"}, 1, {.in_planar = true, .out_planar = true});
    expect_exact(c, {"disjoint"}, 1, {.in_planar = true, .out_planar = true, .types = {DType::f32, DType::bf16}});
  }
}

// Crops that leave lines and pixels of the input unread, by conv_disjoint: all of them, those of a depth, of a height,
// of a width, in the midst of a pixel's outputs; and crops below zero, whose outputs in front and behind are the bias.
TEST(ConvDisjoint, PixelsThatLeadToNoOutputAreLeftOut) {
  for (const char* line : {
           "crop conv_transpose n2 g2 c6:10 in9x10x21 k2x2x2 s2x2x2 d1x1x1 pre5x4x9 post3x6x8 bias",
           "crop conv_transpose n1 g3 c3:6 in17x40 k2x3 s2x3 d1x1 pre7x12 post2x1 bias",
           "crop conv_transpose n2 g3 c3:3 in8x8 k3x3 s3x3 d1x1 pre2x1 post2x5 bias",
           "crop conv_transpose n1 g1 c20:7 in6x30 k1x1 s2x2 d1x1 pre3x4 post1x5",
           "crop conv_transpose n1 g1 c5:4 in3x8 k2x2 s2x2 d1x1 pre-9x20 post5x-9 bias",
           "crop conv n2 g1 c8:12 in7x9x20 k1x1x1 s1x1x1 d1x1x1 pre-2x-1x-4 post-1x-3x0 bias",
           "margins conv_transpose n2 g1 c6:10 in5x6x13 k2x2x2 s2x2x2 d1x1x1 pre-1x-2x-3 post-2x-1x-37 bias",
           "margins conv_transpose n1 g5 c5:5 in9x11 k2x2 s2x2 d1x1 pre1x-2 post-3x-1 bias",
           "margins conv_transpose n1 g1 c7:9 in8x20 k1x2 s3x3 d1x1 pre-2x-20 post-1x-3 bias",
       }) {
    const ConvCase c = *parse_conv_case(line);
    expect_exact(c, {"disjoint"}, 1, {.in_planar = true, .out_planar = true});
    expect_exact(c, {"disjoint"}, 1, {.in_planar = true, .out_planar = true, .types = {DType::bf16, DType::f16}});
    for (const int width : {8, 16}) {
      const ConvDisjointPlan plan = plan_conv_disjoint(c.shape, {}, {}, {}, c.bias, width);
      const bool is_smaller = plan.shape.in_points() < c.shape.in_points();
      EXPECT_EQ(is_smaller, std::string_view(line).starts_with("crop")) << line;
    }
  }
}

// Kernels of several strides: groups, a batch, axes that have one tap or gaps, crops on either side of zero, images
// that do not lie densely or in FP32.
TEST(ConvDisjoint, KernelsOfSeveralStridesAreUnfolded) {
  for (const char* line : {
           "unfold conv_transpose n2 g2 c6:10 in4x6 k8x32 s4x16 d1x1 pre0x0 post0x0 bias",
           "unfold conv_transpose n1 g1 c4:3 in3x5x4 k6x2x48 s3x2x16 d1x1x1 pre1x0x20 post2x1x9 bias",
           "unfold conv_transpose n1 g3 c6:12 in2x3x3 k4x4x34 s2x2x17 d1x1x1 pre-1x3x40 post2x-2x-5 bias",
           "unfold conv_transpose n2 g1 c1:1 in5x7 k40x40 s20x20 d1x1 pre10x10 post10x10",
           "unfold conv_transpose n1 g1 c9:2 in1x1 k6x64 s3x32 d1x1 pre0x0 post0x0 bias",
           "unfold conv_transpose n1 g1 c5:6 in2x8x9 k1x6x32 s3x2x16 d1x1x1 pre0x0x0 post0x0x0 bias",
       }) {
    const ConvCase c = *parse_conv_case(line);
    EXPECT_EQ(conv_disjoint_phases(plan_conv_disjoint(c.shape, {}, {}, {}, c.bias, 8)), 2) << line;
    expect_exact(c, {"disjoint", "disjoint_pairs"}, 1, {.in_planar = true, .out_planar = true});
    expect_exact(c, {"disjoint"}, 1, {.in_planar = true, .out_planar = true, .types = {DType::bf16, DType::f16}});
  }
  for (const char* line : {
           "dilated conv_transpose n1 g1 c4:4 in4x4 k32x32 s16x16 d1x2 pre0x0 post0x0",
           "part_of_a_stride conv_transpose n1 g1 c4:4 in4x4 k32x40 s16x16 d1x1 pre0x0 post0x0",
           "one_axis conv_transpose n1 g1 c4:4 in4x4 k16x32 s16x16 d1x1 pre0x0 post0x0",
           "a_short_line conv_transpose n1 g1 c4:4 in4x4 k32x16 s16x8 d1x1 pre0x0 post0x0",
           "too_often conv_transpose n1 g1 c4:4 in4x4 k64x64 s16x16 d1x1 pre0x0 post0x0",
       }) {
    const auto c = parse_conv_case(line);
    ASSERT_TRUE(c.has_value()) << line;
    EXPECT_FALSE(conv_disjoint_takes(c->shape)) << line;
  }
}

}  // namespace
}  // namespace polyphase::cpu::testing
