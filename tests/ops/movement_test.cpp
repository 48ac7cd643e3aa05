// Shape rules of the operators that move, select and fold elements: symbolic sizes, what is proved, what is left to
// check, and every refusal's whole message.
#include "ops/infer.h"

namespace polyphase::test {
namespace {

using Demands = std::vector<std::string>;

TEST(Elementwise, BroadcastsSymbolically) {
  EXPECT_EQ(infer("add", "", {f32({"N", "C", "H", "W"}), f32({"C", "1", "1"})}).result, "f32[N, C, H, W]");
  EXPECT_EQ(infer("add", "", {f32({"N", "1"}), f32({"3"})}).result, "f32[N, 3]");
  EXPECT_EQ(infer("add", "", {f32({"2*H + 2"}), f32({"2*(H + 1)"})}).demands, Demands{});
  const Inferred open = infer("mul", "", {f32({"H"}), f32({"W"})});
  EXPECT_EQ(open.result, "f32[max(H, W)]");
  EXPECT_EQ(open.demands, Demands{"H broadcasts with W"});
  const Inferred half_open = infer("mul", "", {f32({"H"}), f32({"5"})});
  EXPECT_EQ(half_open.result, "f32[5]");
  EXPECT_EQ(half_open.demands, Demands{"H broadcasts with 5"});
  EXPECT_EQ(infer("less", "", {f32({"N"}), f32({"1"})}).result, "bool[N]");
}

TEST(Elementwise, Refuses) {
  EXPECT_EQ(infer("add", "", {f32({"2", "3"}), f32({"4"})}).result,
            "add: axis 1 of 'x' (3) and axis 0 of 'y' (4) must be equal, or one of them 1 (numpy's broadcasting), "
            "found [2, 3] and "
            "[4].");
  EXPECT_EQ(infer("add", "", {f32({"2"}), type_of(DType::f16, {"2"})}).result,
            "add: operands 'x' and 'y' must have the same dtype, found f32 and f16.");
  EXPECT_EQ(infer("exp", "", {type_of(DType::i32, {"2"})}).result,
            "exp: operand 'x' must be a float (f64, f32, f16, bf16, f8e4m3, f8e5m2), found i32.");
  EXPECT_EQ(infer("and", "", {f32({"2"}), f32({"2"})}).result, "and: operand 'x' must be bool, found f32.");
  EXPECT_EQ(infer("relu", "", {type_of(DType::boolean, {"2"})}).result,
            "relu: operand 'x' must be a float or an integer, found bool.");
  EXPECT_EQ(infer("where", "", {f32({"2"}), f32({"2"}), f32({"2"})}).result,
            "where: operand 'condition' must be bool, found f32.");
  EXPECT_EQ(infer("add", "", {f32({"2"})}).result, "operator add lacks its operand 'y'.");
}

TEST(Concat, AddsSizes) {
  EXPECT_EQ(infer("concat", "axis=1", {f32({"N", "C", "H"}), f32({"N", "3", "H"}), f32({"N", "C", "H"})}).result,
            "f32[N, 2*C + 3, H]");
  EXPECT_EQ(infer("concat", "axis=1", {f32({"N", "2"}), f32({"4", "2"})}).demands, Demands{"N == 4"});
  EXPECT_EQ(infer("concat", "axis=1", {f32({"3", "2"}), f32({"4", "2"})}).result,
            "concat: axis 0 of 'x' 0 (3) must equal axis 0 of 'x' 1 (4).");
  EXPECT_EQ(infer("concat", "axis=2", {f32({"3", "2"})}).result,
            "concat: attribute 'axis' must name an axis from 0 to rank - 1 of a tensor of rank 2, found 2.");
  EXPECT_EQ(infer("concat", "axis=0", {f32({"3", "2"}), f32({"3"})}).result,
            "concat: all operands must have the same rank, found [3, 2] and [3].");
}

TEST(Slice, ProvesOrDemandsThatItIsInside) {
  const Inferred crop = infer("slice", "start=[0, 1] size=[H, W - 2] step=[1, 1]", {f32({"H", "W"})});
  EXPECT_EQ(crop.result, "f32[H, W - 2]");
  EXPECT_EQ(crop.demands, Demands{"0 <= W - 2"});
  const Inferred every_other = infer("slice", "start=[0] size=[(H + 1)//2] step=[2]", {f32({"H"})});
  EXPECT_EQ(every_other.result, "f32[(H + 1)//2]");
  EXPECT_EQ(infer("slice", "start=[H - 1] size=[H] step=[-1]", {f32({"H"})}).demands, Demands{});
  EXPECT_EQ(infer("slice", "start=[2] size=[3] step=[1]", {f32({"4"})}).result,
            "slice: reaches past the end of axis 0 (size 4, start 2, 3 elements, step 1).");
  EXPECT_EQ(infer("slice", "start=[1] size=[3] step=[-1]", {f32({"4"})}).result,
            "slice: begins before element 0 of axis 0 (size 4, start 1, 3 elements, step -1).");
  EXPECT_EQ(infer("slice", "start=[0] size=[1] step=[0]", {f32({"4"})}).result,
            "slice: the step must not be 0, as it is on axis 0.");
  EXPECT_EQ(infer("slice", "start=[0] size=[-1] step=[1]", {f32({"4"})}).result,
            "slice: the size must not be negative on axis 0 (size 4, start 0, -1 elements, step 1).");
  EXPECT_EQ(infer("slice", "start=[0] size=[1] step=[1]", {f32({"4", "4"})}).result,
            "slice: attribute 'start' must have one entry per axis, 2 in all, found 1.");
  // Hostile numbers must not overflow.
  EXPECT_NE(infer("slice", "start=[9223372036854775807] size=[2] step=[9223372036854775807]", {f32({"4"})}).result,
            "f32[2]");
}

TEST(Reshape, KeepsTheCount) {
  EXPECT_EQ(infer("reshape", "shape=[N, C*H]", {f32({"N", "C", "H"})}).demands, Demands{});
  EXPECT_EQ(infer("reshape", "shape=[N, 12]", {f32({"N", "C"})}).demands, Demands{"C*N == 12*N"});
  EXPECT_EQ(infer("reshape", "shape=[5]", {f32({"2", "3"})}).result,
            "reshape: the number of elements must stay: [2, 3] has 6, [5] has 5.");
  EXPECT_EQ(infer("reshape", "shape=[-1, -6]", {f32({"2", "3"})}).result,
            "reshape: attribute 'shape' must not be negative, found [-1, -6].");
}

TEST(Transpose, NamesEveryAxisOnce) {
  EXPECT_EQ(infer("transpose", "order=[0, 2, 1]", {f32({"N", "C", "H"})}).result, "f32[N, H, C]");
  EXPECT_EQ(infer("transpose", "order=[0, 0]", {f32({"2", "3"})}).result,
            "transpose: attribute 'order' must name every axis of f32[2, 3] once, found [0, 0].");
  EXPECT_EQ(infer("transpose", "order=[1, 2]", {f32({"2", "3"})}).result,
            "transpose: attribute 'order' must name every axis of f32[2, 3] once, found [1, 2].");
}

TEST(Expand, StretchesOnlyOnes) {
  EXPECT_EQ(infer("expand", "shape=[N, 3, H]", {f32({"3", "1"})}).result, "f32[N, 3, H]");
  EXPECT_EQ(infer("expand", "shape=[4]", {f32({"H"})}).demands, (Demands{"H <= 4", "H broadcasts with 4"}));
  EXPECT_EQ(infer("expand", "shape=[4]", {f32({"3"})}).result,
            "expand: axis 0 of 'x' (3) must be 1 or equal the new size (4), found [3] and [4].");
  EXPECT_EQ(infer("expand", "shape=[1]", {f32({"3"})}).result,
            "expand: axis 0 of 'x' (3) must be 1 or equal the new size (1), found [3] and [1].");
  EXPECT_EQ(infer("expand", "shape=[3]", {f32({"1", "3"})}).result,
            "expand: the shape must have at least the rank of 'x', found [3] for f32[1, 3].");
  EXPECT_EQ(infer("tile", "repeats=[2, N]", {f32({"3", "H"})}).result, "f32[6, H*N]");
}

TEST(Gather, ReplacesTheAxis) {
  const Type indices = type_of(DType::i64, {"K", "2"});
  EXPECT_EQ(infer("gather", "axis=1", {f32({"N", "C", "H"}), indices}).result, "f32[N, K, 2, H]");
  EXPECT_EQ(infer("gather_elements", "axis=1", {f32({"N", "C"}), type_of(DType::i32, {"N", "7"})}).result, "f32[N, 7]");
  EXPECT_EQ(infer("gather_nd", "", {f32({"N", "C", "H"}), indices}).result, "f32[K, H]");
  EXPECT_EQ(infer("gather_nd", "batch_dims=1", {f32({"K", "C", "H"}), type_of(DType::i64, {"K", "5", "1"})}).result,
            "f32[K, 5, H]");
  EXPECT_EQ(infer("gather", "axis=0", {f32({"N"}), f32({"2"})}).result,
            "gather: operand 'indices' must be i64 or i32, found f32.");
  EXPECT_EQ(evaluate("gather", "axis=0", {tensor({2}, {1, 2}), tensor(DType::i64, {1}, {2})}),
            "the index 2 lies outside an axis of size 2; indices run from -2 to 1.");
}

TEST(Reduce, DropsOrKeepsAxes) {
  EXPECT_EQ(infer("reduce_mean", "axes=[2, 3]", {f32({"N", "C", "H", "W"})}).result, "f32[N, C, 1, 1]");
  EXPECT_EQ(infer("reduce_sum", "axes=[0] keep=false", {f32({"N", "C"})}).result, "f32[C]");
  EXPECT_EQ(infer("reduce_sum", "axes=[]", {f32({"N", "C"})}).result, "f32[N, C]");
  EXPECT_EQ(infer("reduce_max", "axes=[0, 0]", {f32({"N", "C"})}).result,
            "reduce_max: attribute 'axes' must name axes of f32[N, C] from 0, each once, found [0, 0].");
  EXPECT_EQ(infer("arg_max", "axis=1 keep=false", {f32({"N", "C"})}).result, "i64[N]");
  EXPECT_EQ(infer("arg_max", "axis=0", {f32({"0"})}).result,
            "arg_max: axis 0 of f32[0] must have at least one element.");
}

TEST(Range, AndBind) {
  EXPECT_EQ(infer("range", "start=0 count=(H//2) step=1", {}).result, "i64[H//2]");
  EXPECT_EQ(infer("bind", "symbols=[A, B]", {type_of(DType::i32, {"2"})}).result, "i64[2]");
  EXPECT_EQ(infer("bind", "symbols=[A]", {type_of(DType::i64, {"2"})}).result,
            "bind: needs one symbol per element, found 1 symbols for i64[2].");
}

TEST(Limits, RankAndMemory) {
  EXPECT_EQ(infer("reshape", "shape=[1, 1, 1, 1, 1, 1, 1, 1, 1]", {f32({"1"})}).result,
            "operator reshape would give a tensor of rank 9; the highest rank is 8.");
  EXPECT_EQ(infer("expand", "shape=[1000000000, 1000000000]", {f32({"1"})}).result,
            "operator expand would give f32[1000000000, 1000000000], more than any memory holds.");
  EXPECT_EQ(infer("tile", "repeats=[9223372036854775807]", {f32({"3"})}).result,
            "operator tile would give a size beyond 64-bit arithmetic.");
}

}  // namespace
}  // namespace polyphase::test
