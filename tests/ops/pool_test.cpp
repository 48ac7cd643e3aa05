// max_pool, avg_pool: sizes, ceil mode, padding alone, integers, refusals.
#include <cmath>

#include "ops/infer.h"

namespace polyphase::test {
namespace {

TEST(Pool, SizesAndSymbols) {
  const std::string attributes = "kernel=[3, 3] stride=[2, 2] dilation=[1, 1] pre=[1, 1] post=[1, 1]";
  EXPECT_EQ(infer("max_pool", attributes, {f32({"1", "8", "7", "8"})}).result, "f32[1, 8, 4, 4]");
  EXPECT_EQ(infer("max_pool", "ceil=true " + attributes, {f32({"1", "8", "7", "8"})}).result, "f32[1, 8, 4, 5]");
  EXPECT_EQ(infer("avg_pool", attributes, {f32({"N", "8", "H", "8"})}).result, "f32[N, 8, (H + 1)//2, 4]");
  const Inferred ceil =
      infer("avg_pool", "ceil=true kernel=[2] stride=[2] dilation=[1] pre=[0] post=[0]", {f32({"1", "8", "L"})});
  EXPECT_EQ(ceil.result, "f32[1, 8, (L + 1)//2]");
  EXPECT_EQ(ceil.demands, (std::vector<std::string>{"2 <= L + 1"}));
}

TEST(Pool, AWindowOfPaddingAlone) {
  const std::string attributes = "kernel=[1] stride=[1] dilation=[1] pre=[1] post=[0]";
  EXPECT_EQ(evaluate("max_pool", attributes, {tensor({1, 1, 2}, {-3, -4})}), "f32[1, 1, 3]{-inf, -3, -4}");
  EXPECT_EQ(evaluate("avg_pool", attributes, {tensor({1, 1, 2}, {-3, -4})}), "f32[1, 1, 3]{0, -3, -4}");
  EXPECT_EQ(evaluate("max_pool", attributes, {tensor(DType::i8, {1, 1, 2}, {-3, -4})}), "i8[1, 1, 3]{-128, -3, -4}");
  EXPECT_EQ(evaluate("max_pool", attributes, {tensor(DType::u64, {1, 1, 1}, {1e19})}),
            "u64[1, 1, 2]{0, 10000000000000000000}");
}

TEST(Pool, NanWins) {
  EXPECT_EQ(
      evaluate("max_pool", "kernel=[2] stride=[1] dilation=[1] pre=[0] post=[0]", {tensor({1, 1, 4}, {1, 2, NAN, 3})}),
      "f32[1, 1, 3]{2, nan, nan}");
}

TEST(Pool, RefusesWithTheRule) {
  const std::string plain = "kernel=[3] stride=[1] dilation=[1] pre=[0] post=[0]";
  EXPECT_EQ(
      infer("max_pool", plain, {f32({"1", "8", "2"})}).result,
      "max_pool: the kernel must fit into the padded operand on axis 2, but it spans 3 and the padded size is 2.");
  EXPECT_EQ(infer("max_pool", plain, {f32({"1", "8"})}).result,
            "max_pool: the operand must be (N, C, one to three spatial axes), rank 3 to 5, found f32[1, 8].");
  EXPECT_EQ(infer("avg_pool", plain, {type_of(DType::i32, {"1", "8", "9"})}).result,
            "avg_pool: the operand must be of a float dtype, found i32[1, 8, 9].");
  EXPECT_EQ(infer("max_pool", plain, {type_of(DType::boolean, {"1", "8", "9"})}).result,
            "max_pool: the operand must be numeric, found bool[1, 8, 9].");
  EXPECT_EQ(infer("avg_pool", "kernel=[0] stride=[1] dilation=[1] pre=[0] post=[0]", {f32({"1", "8", "9"})}).result,
            "avg_pool: attribute 'kernel' must have one entry of at least 1 per spatial axis (1), found [0].");
}

}  // namespace
}  // namespace polyphase::test
