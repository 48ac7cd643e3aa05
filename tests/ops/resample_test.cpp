// pad, resize, depth_to_space, space_to_depth and matmul: symbolic sizes, corner cases, refusals.
#include "ops/infer.h"

namespace polyphase::test {
namespace {

TEST(Pad, CropsAndReflectsAcrossTheCroppedEnd) {
  EXPECT_EQ(evaluate("pad", "pre=[3] post=[-2] mode=\"reflect\"", {tensor({4}, {1, 2, 3, 4})}),
            "f32[5]{4, 3, 2, 1, 2}");
  EXPECT_EQ(evaluate("pad", "pre=[-1] post=[3] mode=\"wrap\"", {tensor(DType::boolean, {2}, {1, 0})}),
            "bool[4]{0, 1, 0, 1}");
  EXPECT_EQ(evaluate("pad", "pre=[1, 0] post=[0, 1] value=-inf", {tensor({1, 1}, {5})}),
            "f32[2, 2]{-inf, -inf, 5, -inf}");
  EXPECT_EQ(evaluate("pad", "pre=[1] post=[1]", {tensor({0}, {})}), "f32[2]{0, 0}");
}

TEST(Pad, ShapeRule) {
  const Inferred found = infer("pad", "pre=[0, P] post=[0, -1] mode=\"edge\"", {f32({"N", "L"})});
  EXPECT_EQ(found.result, "f32[N, L + P - 1]");
  EXPECT_EQ(found.demands, (std::vector<std::string>{"0 <= L + P - 1", "1 <= L"}));
  EXPECT_EQ(infer("pad", "pre=[0] post=[0]", {f32({"N", "L"})}).result,
            "pad: attributes 'pre' and 'post' must have one entry per axis of f32[N, L], found [0] and [0].");
  EXPECT_EQ(infer("pad", "pre=[-3] post=[-3]", {f32({"5"})}).result,
            "pad: the size after padding must not be negative, but on axis 0 it is -1.");
  EXPECT_EQ(infer("pad", "pre=[1] post=[0] mode=\"reflect\"", {f32({"0"})}).result,
            "pad: mode reflect needs at least one element to take values from, but axis 0 has size 0.");
}

TEST(Resize, IntegersRoundTiesToEvenAndBoolsAreTaken) {
  EXPECT_EQ(
      evaluate("resize", "sizes=[5] mode=\"linear\" coordinate=\"align_corners\"", {tensor(DType::u8, {3}, {0, 1, 4})}),
      "u8[5]{0, 0, 1, 2, 4}");
  EXPECT_EQ(evaluate("resize", "sizes=[4] coordinate=\"asymmetric\" nearest=\"floor\"",
                     {tensor(DType::boolean, {2}, {1, 0})}),
            "bool[4]{1, 1, 0, 0}");
}

TEST(Resize, ExactRatiosDoNotDependOnRounding) {
  // Place 1 of 3 → 15 lies at (1.5 * 3 / 15) - 0.5; places 2, 7, 12 hit elements 0, 1, 2 exactly.
  EXPECT_EQ(evaluate("resize", "sizes=[15] mode=\"linear\" coordinate=\"asymmetric\"", {tensor({3}, {0, 5, 10})}),
            "f32[15]{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 10, 10, 10, 10}");
}

TEST(Resize, ShapeRule) {
  const Inferred found = infer("resize", "sizes=[N, C, 2*H, 7]", {f32({"N", "C", "H", "W"})});
  EXPECT_EQ(found.result, "f32[N, C, 2*H, 7]");
  EXPECT_EQ(found.demands, (std::vector<std::string>{"min(1, 2*H) <= H", "1 <= W"}));
  EXPECT_EQ(infer("resize", "sizes=[4]", {f32({"0"})}).result,
            "resize: axis 0 of f32[0] has no element to take values from.");
  EXPECT_EQ(infer("resize", "sizes=[4]", {f32({"3", "3"})}).result,
            "resize: attribute 'sizes' must have one entry per axis of f32[3, 3], found [4].");
  EXPECT_EQ(infer("resize", "sizes=[4] scales=[0.0]", {f32({"3"})}).result,
            "resize: attribute 'scales' must be empty or have one entry between 2^-31 and 2^31 per axis of f32[3], "
            "found [0].");
  EXPECT_EQ(infer("resize", "sizes=[4] roi=[0.0, 1.0]", {f32({"3"})}).result,
            "resize: attribute 'roi' must have a finite start for every axis and then an end for every axis with "
            "coordinate tf_crop_and_resize, and be "
            "empty otherwise, found [0, 1].");
  EXPECT_EQ(infer("resize", "sizes=[4] mode=\"cubic\"", {type_of(DType::boolean, {"3"})}).result,
            "resize: only mode nearest takes bool, found mode cubic.");
}

TEST(DepthSpace, ShapeRules) {
  EXPECT_EQ(infer("depth_to_space", "block=2", {f32({"N", "12", "H", "W"})}).result, "f32[N, 3, 2*H, 2*W]");
  EXPECT_EQ(infer("space_to_depth", "block=2", {f32({"N", "3", "2*H", "W"})}).result, "f32[N, 12, H, W//2]");
  EXPECT_EQ(infer("space_to_depth", "block=2", {f32({"N", "3", "2*H", "W"})}).demands,
            (std::vector<std::string>{"W - 2*(W//2) == 0"}));
  EXPECT_EQ(infer("depth_to_space", "block=2", {f32({"N", "6", "H", "W"})}).result,
            "depth_to_space: block*block must divide the channels, found f32[N, 6, H, W], block=2.");
  EXPECT_EQ(infer("space_to_depth", "block=2", {f32({"N", "6", "3", "W"})}).result,
            "space_to_depth: block must divide height and width, found f32[N, 6, 3, W], block=2.");
  EXPECT_EQ(infer("depth_to_space", "block=2", {f32({"4", "H", "W"})}).result,
            "depth_to_space: the operand must be (N, C, H, W), found f32[4, H, W].");
  EXPECT_EQ(infer("space_to_depth", "block=0", {f32({"N", "6", "3", "W"})}).result,
            "space_to_depth: attribute 'block' must be at least 1, found 0.");
}

TEST(Matmul, ShapeRule) {
  const Inferred found = infer("matmul", "", {f32({"N", "1", "I", "K"}), f32({"B", "8", "J"})});
  EXPECT_EQ(found.result, "f32[N, B, I, J]");
  EXPECT_EQ(found.demands, (std::vector<std::string>{"K == 8"}));
  EXPECT_EQ(infer("matmul", "", {f32({"2", "3"}), f32({"4", "5"})}).result,
            "matmul: the last axis of the first operand must equal the last but one of the second, found f32[2, 3] and "
            "f32[4, 5].");
  EXPECT_EQ(infer("matmul", "", {f32({"2", "4", "3"}), f32({"3", "3", "5"})}).result,
            "matmul: the batch axes must be equal or 1, found f32[2, 4, 3] and f32[3, 3, 5].");
  EXPECT_EQ(infer("matmul", "", {f32({}), f32({"4"})}).result,
            "matmul: the operands must have at least one axis, found f32[] and f32[4].");
  EXPECT_EQ(infer("matmul", "", {f32({"4"}), type_of(DType::f64, {"4"})}).result,
            "matmul: the operands must have the same numeric dtype, found f32[4] and f64[4].");
}

}  // namespace
}  // namespace polyphase::test
