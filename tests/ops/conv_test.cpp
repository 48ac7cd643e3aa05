// conv: sizes, symbolic sizes, refusals.
#include "ops/infer.h"

namespace polyphase::test {
namespace {

constexpr const char* plain = "stride=[1, 1] dilation=[1, 1] pre=[0, 0] post=[0, 0]";

TEST(Conv, Sizes) {
  EXPECT_EQ(infer("conv", "stride=[2, 1] dilation=[1, 2] pre=[1, 0] post=[1, 2]",
                  {f32({"2", "3", "9", "8"}), f32({"4", "3", "3", "3"})})
                .result,
            "f32[2, 4, 5, 6]");
  EXPECT_EQ(infer("conv", "groups=3 stride=[1] dilation=[1] pre=[-1] post=[0]",
                  {f32({"2", "3", "9"}), f32({"6", "1", "3"}), f32({"6"})})
                .result,
            "f32[2, 6, 6]");
}

TEST(Conv, SymbolicSizesAndWhatCannotBeProved) {
  const Inferred found = infer("conv", "stride=[2, 2] dilation=[1, 1] pre=[1, 1] post=[1, 1]",
                               {f32({"N", "C", "H", "W"}), f32({"8", "3", "3", "3"})});
  EXPECT_EQ(found.result, "f32[N, 8, (H + 1)//2, (W + 1)//2]");
  EXPECT_EQ(found.demands, (std::vector<std::string>{"3 == C", "3 <= H + 2", "3 <= W + 2"}));
}

TEST(Conv, RefusesWithTheRule) {
  const Type image = f32({"1", "4", "5", "5"});
  EXPECT_EQ(infer("conv", plain, {image, f32({"2", "3", "3", "3"})}).result,
            "conv: dimension 1 of the weight times groups must equal the operand's channels, found operand f32[1, 4, "
            "5, 5], weight [2, 3, 3, 3], "
            "groups=1.");
  EXPECT_EQ(infer("conv", std::string("groups=2 ") + plain, {image, f32({"3", "2", "3", "3"})}).result,
            "conv: groups must divide dimension 0 of the weight, the output channels, found operand f32[1, 4, 5, 5], "
            "weight [3, 2, 3, 3], "
            "groups=2.");
  EXPECT_EQ(infer("conv", plain, {image, f32({"2", "4", "6", "3"})}).result,
            "conv: the kernel must fit into the padded operand on axis 2, but it spans 6 and the padded size is 5.");
  EXPECT_EQ(infer("conv", plain, {image, f32({"2", "4", "3", "3"}), f32({"3"})}).result,
            "conv: the bias must be f32[2], one entry per output channel, found f32[3].");
  EXPECT_EQ(
      infer("conv", plain, {image, type_of(DType::f16, {"2", "4", "3", "3"})}).result,
      "conv: operand and weight must have the same numeric dtype, found f32[1, 4, 5, 5] and weight f16[2, 4, 3, 3].");
  EXPECT_EQ(infer("conv", plain, {f32({"4", "5"}), f32({"2", "4", "3", "3"})}).result,
            "conv: the operand must be (N, C, one to three spatial axes), rank 3 to 5, found f32[4, 5].");
  EXPECT_EQ(infer("conv", plain, {image, f32({"2", "4", "3"})}).result,
            "conv: operand and weight must have the same rank, found f32[1, 4, 5, 5] and weight f32[2, 4, 3].");
  EXPECT_EQ(infer("conv", plain, {image, f32({"2", "4", "0", "3"})}).result,
            "conv: every kernel size must be at least 1, found weight f32[2, 4, 0, 3].");
  EXPECT_EQ(
      infer("conv", "stride=[1] dilation=[1, 1] pre=[0, 0] post=[0, 0]", {image, f32({"2", "4", "3", "3"})}).result,
      "conv: attribute 'stride' must have one entry per spatial axis (2), found [1].");
  EXPECT_EQ(
      infer("conv", "stride=[1, 1] dilation=[1, 0] pre=[0, 0] post=[0, 0]", {image, f32({"2", "4", "3", "3"})}).result,
      "conv: every entry of attribute 'dilation' must be at least 1, found [1, 0].");
  EXPECT_EQ(infer("conv", std::string("groups=0 ") + plain, {image, f32({"2", "4", "3", "3"})}).result,
            "conv: attribute 'groups' must be at least 1, found 0.");
}

}  // namespace
}  // namespace polyphase::test
