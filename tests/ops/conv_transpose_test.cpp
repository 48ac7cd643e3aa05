// conv_transpose: sizes, crops of any sign, holes, empty tensors, refusals, and the speed that a reference must have.
#include <ctime>

#include "ops/infer.h"

namespace polyphase::test {
namespace {

std::string one_axis(const std::string& attributes, const std::vector<double>& x, const std::vector<double>& w,
                     double bias = 0) {
  const auto length = [](const std::vector<double>& values) { return static_cast<std::int64_t>(values.size()); };
  return evaluate("conv_transpose", attributes,
                  {tensor({1, 1, length(x)}, x), tensor({1, 1, length(w)}, w), tensor({1}, {bias})});
}

TEST(ConvTranspose, OneAxisByHand) {
  EXPECT_EQ(one_axis("stride=[2] dilation=[1] pre=[1] post=[1]", {1, 2, 3}, {1, 1}), "f32[1, 1, 4]{1, 2, 2, 3}");
  EXPECT_EQ(one_axis("stride=[2] dilation=[1] pre=[1] post=[0]", {1, 2, 3}, {1, 1}), "f32[1, 1, 5]{1, 2, 2, 3, 3}");
}

TEST(ConvTranspose, NegativeCropAndHolesHoldTheBias) {
  EXPECT_EQ(one_axis("stride=[1] dilation=[1] pre=[-2] post=[-1]", {1, 2}, {10}, 7), "f32[1, 1, 5]{7, 7, 17, 27, 7}");
  EXPECT_EQ(one_axis("stride=[3] dilation=[1] pre=[0] post=[0]", {1, 2}, {1, 1}, 5), "f32[1, 1, 5]{6, 6, 5, 7, 7}");
}

TEST(ConvTranspose, CropBeyondTheKernelDropsInputs) {
  EXPECT_EQ(one_axis("stride=[1] dilation=[1] pre=[1] post=[2]", {1, 2, 3, 4, 5}, {1}), "f32[1, 1, 2]{2, 3}");
  EXPECT_EQ(one_axis("stride=[1] dilation=[1] pre=[1000000000000] post=[-1000000000000]", {1, 2}, {1}, 3),
            "f32[1, 1, 2]{3, 3}");
}

TEST(ConvTranspose, EmptyOperands) {
  const std::string attributes = "stride=[2] dilation=[1] pre=[0] post=[0]";
  EXPECT_EQ(evaluate("conv_transpose", attributes, {tensor({0, 1, 3}, {}), tensor({1, 2, 2}, {1, 2, 3, 4})}),
            "f32[0, 2, 6]{}");
  EXPECT_EQ(evaluate("conv_transpose", attributes, {tensor({1, 0, 2}, {}), tensor({0, 1, 2}, {}), tensor({1}, {9})}),
            "f32[1, 1, 4]{9, 9, 9, 9}");
  EXPECT_EQ(evaluate("conv_transpose", attributes, {tensor({1, 1, 0}, {}), tensor({1, 1, 2}, {1, 2})}),
            "f32[1, 1, 0]{}");
}

TEST(ConvTranspose, IntegersAreExactBeyondDoubles) {
  const Tensor x = Tensor::from_integers(DType::i64, std::vector<std::int64_t>{1, 1, 1},
                                         std::vector<std::int64_t>{(std::int64_t{1} << 53) + 1});
  const Tensor w =
      Tensor::from_integers(DType::i64, std::vector<std::int64_t>{1, 1, 2}, std::vector<std::int64_t>{1, 3});
  EXPECT_EQ(evaluate("conv_transpose", "stride=[1] dilation=[1] pre=[0] post=[0]", {x, w}),
            "i64[1, 1, 2]{9007199254740993, 27021597764222979}");
}

TEST(ConvTranspose, SymbolicSizesAndCrops) {
  const Inferred plain = infer("conv_transpose", "stride=[2, 2] dilation=[1, 1] pre=[1, 1] post=[1, 0]",
                               {f32({"N", "C", "H", "W"}), f32({"8", "4", "4", "3"})});
  EXPECT_EQ(plain.result, "f32[N, 4, 2*H, 2*W]");
  EXPECT_EQ(plain.demands, (std::vector<std::string>{"8 == C"}));
  const Inferred crop = infer("conv_transpose", "groups=2 stride=[3] dilation=[2] pre=[P] post=[0]",
                              {f32({"1", "4", "L"}), f32({"4", "5", "K"})});
  EXPECT_EQ(crop.result, "f32[1, 10, 2*K + 3*L - P - 4]");
  EXPECT_EQ(crop.demands, (std::vector<std::string>{"1 <= K", "0 <= 2*K + 3*L - P - 4"}));
}

TEST(ConvTranspose, RefusesWithTheRule) {
  const std::string plain = "stride=[2, 2] dilation=[1, 1] pre=[0, 0] post=[0, 0]";
  const Type image = f32({"1", "4", "5", "5"});
  EXPECT_EQ(infer("conv_transpose", plain, {image, f32({"3", "2", "3", "3"})}).result,
            "conv_transpose: dimension 0 of the weight must equal the operand's channels, found operand f32[1, 4, 5, "
            "5], weight [3, 2, 3, 3].");
  EXPECT_EQ(infer("conv_transpose", "groups=3 " + plain, {image, f32({"4", "2", "3", "3"})}).result,
            "conv_transpose: groups must divide the operand's channels, found operand f32[1, 4, 5, 5], groups=3.");
  EXPECT_EQ(infer("conv_transpose", "groups=2 " + plain, {image, f32({"4", "2", "3", "3"}), f32({"2"})}).result,
            "conv_transpose: the bias must be f32[4], one entry per output channel, found f32[2].");
  EXPECT_EQ(infer("conv_transpose", "stride=[2, 2] dilation=[1, 1] pre=[0, 9] post=[0, 9]",
                  {image, f32({"4", "2", "3", "3"})})
                .result,
            "conv_transpose: the output size (I-1)*stride + (k-1)*dilation + 1 - pre - post must not be negative, but "
            "on axis 3 it is -7.");
  EXPECT_EQ(infer("conv_transpose", "stride=[0, 2] dilation=[1, 1] pre=[0, 0] post=[0, 0]",
                  {image, f32({"4", "2", "3", "3"})})
                .result,
            "conv_transpose: every entry of attribute 'stride' must be at least 1, found [0, 2].");
  EXPECT_EQ(infer("conv_transpose", "stride=[9223372036854775807, 2] dilation=[1, 1] pre=[0, 0] post=[0, 0]",
                  {image, f32({"4", "2", "3", "3"})})
                .result,
            "conv_transpose: the output size (I-1)*stride + (k-1)*dilation + 1 - pre - post must not be negative, but "
            "on axis 2 it is overflow.");
}

TEST(ConvTranspose, TheReferenceDoesAHundredMillionProductsPerSecond) {
  const OpDef& op = registry().at("conv_transpose");
  const auto attributes =
      op.complete(parse_attributes("stride=[2, 2] dilation=[1, 1] pre=[1, 1] post=[1, 1]", op.attributes).value())
          .value();
  const Tensor x = Tensor::allocate(DType::f32, std::vector<std::int64_t>{1, 64, 16, 16}).value();
  const Tensor w = Tensor::allocate(DType::f32, std::vector<std::int64_t>{64, 64, 4, 4}).value();
  double best = 0;
  for (int repeat = 0; repeat < 5 && best < 100e6; ++repeat) {
    const std::clock_t begin = std::clock();  // processor time: what else the machine does is no fact about the loops
    ASSERT_TRUE(evaluate_reference(op, attributes, std::vector<Tensor>{x, w}).ok());
    const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    best = std::max(best, 64.0 * 64 * 16 * 16 * 16 / seconds);
  }
  RecordProperty("products_per_second", std::to_string(best));
  if (!POLYPHASE_SANITIZED) {
    EXPECT_GE(best, 100e6);
  }
}

}  // namespace
}  // namespace polyphase::test
