// Sizes as data: the operators of shape arithmetic give their results' elements as sizes, symbols included.
#include <gtest/gtest.h>

#include "ops/infer.h"

namespace polyphase::test {
namespace {

struct Known {
  Type type;
  std::vector<Dim> elements;
};

Known sizes(const std::vector<std::string>& elements, DType dtype = DType::i64) {
  Known out{type_of(dtype, {std::to_string(elements.size())}), {}};
  for (const std::string& element : elements) out.elements.push_back(parse_dim(element).value());
  return out;
}
Known scalar(const std::string& element, DType dtype = DType::i64) {
  return {{dtype, {}}, {parse_dim(element).value()}};
}

// "[2*H, 3]", "unknown", or the refusal.
std::string contents(const std::string& op_name, const std::string& attributes, const std::vector<Known>& operands) {
  const OpDef& op = registry().at(op_name);
  auto parsed = parse_attributes(attributes, op.attributes);
  if (!parsed.ok()) return parsed.error().message;
  const Attributes complete = op.complete(*parsed).value();
  std::vector<OperandInfo> infos;
  for (const Known& operand : operands) infos.push_back({&operand.type, &operand.elements});
  std::vector<DimCheck> checks;
  const auto types = infer_types(op, complete, infos, checks);
  if (!types.ok()) return types.error().message;
  const Contents found = infer_contents(op, complete, infos, types->front());
  return found.has_value() ? Shape(*found).text() : "unknown";
}

TEST(Contents, ShapeArithmetic) {
  EXPECT_EQ(contents("add", "", {sizes({"H", "3"}), scalar("1")}), "[H + 1, 4]");
  EXPECT_EQ(contents("sub", "", {sizes({"H"}), sizes({"W"})}), "[H - W]");
  EXPECT_EQ(contents("mul", "", {sizes({"H", "W"}), scalar("2")}), "[2*H, 2*W]");
  EXPECT_EQ(contents("div", "", {sizes({"H", "7"}), scalar("2")}), "[H//2, 3]");
  EXPECT_EQ(contents("div", "", {sizes({"H - 1"}), scalar("2")}), "[(max(0, H - 1))//2]");
  EXPECT_EQ(contents("div", "", {sizes({"H - 5"}), scalar("2")}), "[-((max(-H + 5, 0))//2) + ((max(0, H - 5))//2)]");
  EXPECT_EQ(contents("div", "", {sizes({"-7"}), scalar("2")}), "[-3]");
  EXPECT_EQ(contents("div", "", {sizes({"H"}), sizes({"W"})}), "unknown");
  EXPECT_EQ(contents("mod", "", {sizes({"H"}), scalar("4")}), "[H - 4*(H//4)]");
  EXPECT_EQ(contents("mod", "fmod=true", {sizes({"H - 1"}), scalar("4")}),
            "[-4*((max(0, H - 1))//4) - max(-H + 1, 0) + max(0, H - 1)]");
  EXPECT_EQ(contents("min", "", {sizes({"H"}), scalar("4")}), "[min(4, H)]");
  EXPECT_EQ(contents("max", "", {sizes({"H + 1"}), scalar("1")}), "[H + 1]");
  EXPECT_EQ(contents("neg", "", {sizes({"H"})}), "[-H]");
  EXPECT_EQ(contents("abs", "", {sizes({"-H", "H", "-3"})}), "[H, H, 3]");
  EXPECT_EQ(contents("mul", "", {sizes({"H"}), scalar("9223372036854775807")}), "[9223372036854775807*H]");
  EXPECT_EQ(contents("add", "", {sizes({"9223372036854775807"}), scalar("1")}), "unknown");
  EXPECT_EQ(contents("add", "", {sizes({"2147483647"}, DType::i32), scalar("1", DType::i32)}), "unknown");
}

TEST(Contents, ComparisonsWhereDecidable) {
  EXPECT_EQ(contents("equal", "", {sizes({"H", "3", "H"}), sizes({"H", "4", "H + 1"})}), "[1, 0, 0]");
  EXPECT_EQ(contents("equal", "", {sizes({"H"}), sizes({"1"})}), "unknown");
  EXPECT_EQ(contents("less", "", {sizes({"H"}), sizes({"H + 1"})}), "[1]");
  EXPECT_EQ(contents("greater_equal", "", {sizes({"H"}), sizes({"0"})}), "[1]");
  EXPECT_EQ(contents("not", "", {sizes({"1", "0"}, DType::boolean)}), "[0, 1]");
  EXPECT_EQ(contents("and", "", {sizes({"1", "0"}, DType::boolean), sizes({"1", "1"}, DType::boolean)}), "[1, 0]");
  EXPECT_EQ(contents("where", "", {sizes({"1", "0"}, DType::boolean), sizes({"H", "H"}), sizes({"W", "W"})}), "[H, W]");
  EXPECT_EQ(contents("where", "", {sizes({"B"}, DType::boolean), sizes({"H"}), sizes({"H"})}), "[H]");
  EXPECT_EQ(contents("where", "", {sizes({"B"}, DType::boolean), sizes({"H"}), sizes({"W"})}), "unknown");
}

TEST(Contents, MovementCarriesSizes) {
  const Known shape = sizes({"N", "C", "H", "W"});
  EXPECT_EQ(contents("gather", "axis=0", {shape, scalar("-2")}), "[H]");
  EXPECT_EQ(contents("gather", "axis=0", {shape, sizes({"3", "0"})}), "[W, N]");
  EXPECT_EQ(contents("slice", "start=[2] size=[2] step=[1]", {shape}), "[H, W]");
  EXPECT_EQ(contents("slice", "start=[3] size=[4] step=[-1]", {shape}), "[W, H, C, N]");
  EXPECT_EQ(contents("concat", "axis=0", {sizes({"N"}), sizes({"3", "H"}), sizes({"W"})}), "[N, 3, H, W]");
  EXPECT_EQ(contents("reshape", "shape=[]", {sizes({"H"})}), "[H]");
  EXPECT_EQ(contents("reshape", "shape=[2, 2]", {shape}), "[N, C, H, W]");
  EXPECT_EQ(contents("expand", "shape=[3]", {scalar("H")}), "[H, H, H]");
  EXPECT_EQ(contents("tile", "repeats=[2]", {sizes({"H", "W"})}), "[H, W, H, W]");
  EXPECT_EQ(contents("transpose", "order=[0]", {shape}), "[N, C, H, W]");
  EXPECT_EQ(contents("identity", "", {shape}), "[N, C, H, W]");
  EXPECT_EQ(contents("cast", "to=i32", {shape}), "[N, C, H, W]");
  EXPECT_EQ(contents("cast", "to=i8", {sizes({"300"})}), "[44]");
  EXPECT_EQ(contents("cast", "to=bool", {sizes({"H + 1", "0"})}), "[1, 0]");
  // A place that depends on a size is not known.
  EXPECT_EQ(contents("slice", "start=[K] size=[1] step=[1]", {shape}), "unknown");
  EXPECT_EQ(contents("gather", "axis=0", {shape, scalar("K")}), "unknown");
}

TEST(Contents, FoldsAndSources) {
  EXPECT_EQ(contents("reduce_prod", "axes=[0]", {sizes({"C", "H", "W"})}), "[C*H*W]");
  EXPECT_EQ(contents("reduce_sum", "axes=[0] keep=false", {sizes({"H", "H", "1"})}), "[2*H + 1]");
  EXPECT_EQ(contents("reduce_max", "axes=[0]", {sizes({"H", "2"})}), "[max(2, H)]");
  EXPECT_EQ(contents("range", "start=H count=3 step=2", {}), "[H, H + 2, H + 4]");
  EXPECT_EQ(contents("dims", "values=[H, W]", {}), "[H, W]");
  EXPECT_EQ(contents("constant", "value=i64[2]{3, -4}", {}), "[3, -4]");
  EXPECT_EQ(contents("bind", "symbols=[A, B]", {sizes({"H", "W"})}), "[A, B]");
}

}  // namespace
}  // namespace polyphase::test
