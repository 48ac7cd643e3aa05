// Normalisations and softmax: shape rules, half-precision operands with f32 parameters, refusals.
#include "ops/infer.h"

namespace polyphase::test {
namespace {

TEST(Norm, ParametersMayHaveAnotherFloatDtype) {
  const Type half = type_of(DType::f16, {"N", "4", "H"});
  EXPECT_EQ(infer("batch_norm", "", {half, f32({"4"}), f32({"4"}), f32({"4"}), f32({"4"})}).result, "f16[N, 4, H]");
  EXPECT_EQ(infer("layer_norm", "axis=1", {half, f32({"4", "1"})}).result, "f16[N, 4, H]");
}

TEST(Norm, WhatCannotBeProvedIsDemanded) {
  EXPECT_EQ(infer("batch_norm", "", {f32({"N", "C", "H"}), f32({"4"}), f32({"4"}), f32({"4"}), f32({"4"})}).demands,
            (std::vector<std::string>{"4 == C", "4 == C", "4 == C", "4 == C"}));
  EXPECT_EQ(infer("group_norm", "groups=2", {f32({"N", "C", "H"})}).demands,
            (std::vector<std::string>{"C - 2*(C//2) == 0"}));
  EXPECT_EQ(infer("layer_norm", "axis=2", {f32({"N", "C", "H"}), f32({"8"})}).demands,
            (std::vector<std::string>{"8 == H"}));
}

TEST(Norm, RefusesWithTheRule) {
  const Type x = f32({"1", "4", "6"});
  EXPECT_EQ(infer("instance_norm", "", {f32({"1", "4"})}).result,
            "instance_norm: the operand must be of a float dtype and of rank 3 or more, found f32[1, 4].");
  EXPECT_EQ(infer("batch_norm", "", {x, f32({"4"}), f32({"4"}), f32({"5"}), f32({"4"})}).result,
            "batch_norm: operand 'mean' must be a float vector with one entry per channel (axis 1 of f32[1, 4, 6]), "
            "found f32[5].");
  EXPECT_EQ(infer("group_norm", "groups=3", {x}).result,
            "group_norm: groups must be at least 1 and divide the channels, found f32[1, 4, 6], groups=3.");
  EXPECT_EQ(infer("layer_norm", "axis=2", {x, f32({"4", "6"})}).result,
            "layer_norm: operand 'scale' must be float and broadcast to the normalised axes 2 and after of f32[1, 4, "
            "6], found f32[4, 6].");
  EXPECT_EQ(infer("layer_norm", "axis=3", {x}).result,
            "layer_norm: attribute 'axis' must name an axis of the operand f32[1, 4, 6], found 3.");
  EXPECT_EQ(infer("softmax", "axis=-1", {x}).result,
            "softmax: attribute 'axis' must name an axis of the operand f32[1, 4, 6], found -1.");
  EXPECT_EQ(infer("log_softmax", "axis=0", {type_of(DType::i32, {"4"})}).result,
            "log_softmax: the operand must be of a float dtype, found i32[4].");
}

TEST(Norm, SoftmaxOfLargeValuesStaysFinite) {
  EXPECT_EQ(evaluate("softmax", "axis=0", {tensor({2}, {1e30, 1e30})}), "f32[2]{0.5, 0.5}");
  EXPECT_EQ(evaluate("softmax", "axis=0", {tensor({0}, {})}), "f32[0]{}");
}

}  // namespace
}  // namespace polyphase::test
