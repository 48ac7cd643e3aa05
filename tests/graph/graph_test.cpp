// The IR's text form reads back exactly; the verifier, the interpreter and the edits keep what they promise.
#include "graph/graph.h"

#include <gtest/gtest.h>

namespace polyphase {
namespace {

const Registry& registry() {
  static const Registry built_in = Registry::built_in();
  return built_in;
}

std::unique_ptr<Graph> parsed(std::string_view text) {
  auto graph = parse_graph(text, registry());
  EXPECT_TRUE(graph.ok()) << (graph.ok() ? "" : graph.error().message);
  return graph.ok() ? std::move(graph).value() : nullptr;
}

constexpr std::string_view small = R"(symbol H = 1..64
graph "small" (%x: i64[2]) {
  %c = constant() value=i64[2]{1, -2} -> i64[2]
  %d = dims() values=[H, 2*H + 1] -> i64[2]
  return %c, %d as "other name", %x
}
)";

TEST(GraphText, PrintsWhatItParsed) {
  const auto graph = parsed(small);
  ASSERT_NE(graph, nullptr);
  EXPECT_EQ(print(*graph), small);
  EXPECT_TRUE(verify(*graph).ok());
  const auto copy = clone(*graph);
  EXPECT_EQ(print(*copy), small);
  EXPECT_TRUE(verify(*copy).ok());
}

TEST(GraphText, RefusesWithLineAndColumn) {
  const auto graph = parse_graph("graph \"g\" (%x: f32[2]) {\n  %y = nothing(%x)\n  return %y\n}", registry());
  ASSERT_FALSE(graph.ok());
  EXPECT_EQ(graph.error().message, "line 2, column 15: expected a known operator instead of 'nothing', found '(%x)'.");
}

TEST(GraphText, RefusesAWrongType) {
  const auto graph = parse_graph("graph \"g\" () { %y = dims() values=[3] -> i64[2]\n return %y }", registry());
  ASSERT_FALSE(graph.ok());
  EXPECT_NE(graph.error().message.find("expected the type i64[1] of '%y', which its operands give, not i64[2]"),
            std::string::npos)
      << graph.error().message;
}

TEST(Interpreter, BindsSymbolsAndChecksThem) {
  const auto graph = parsed(R"(graph "g" (%x: f32[H, W], %y: f32[W, 2*H]) {
  %d = dims() values=[H + W]
  return %d
})");
  ASSERT_NE(graph, nullptr);
  const auto tensor = [](std::int64_t a, std::int64_t b) {
    return Tensor::allocate(DType::f32, std::array{a, b}).value();
  };
  const auto sum = interpret(*graph, {tensor(3, 5), tensor(5, 6)});
  ASSERT_TRUE(sum.ok());
  EXPECT_EQ(*sum->front().view().as<std::int64_t>(), 8);
  const auto wrong = interpret(*graph, {tensor(3, 5), tensor(5, 7)});
  ASSERT_FALSE(wrong.ok());
  EXPECT_EQ(wrong.error().message,
            "input 'y' has the shape [5, 7]; expected [W, 2*H]: axis 1 must be 2*H = 6, found 7.");
  const auto twice = interpret(*graph, {tensor(3, 5), tensor(4, 6)});
  ASSERT_FALSE(twice.ok());
  EXPECT_EQ(twice.error().message,
            "input 'y' has the shape [4, 6]; expected [W, 2*H]: axis 0 is 4, but W is 5 elsewhere.");
}

TEST(Graph, EditsKeepUsersExact) {
  Graph graph(registry());
  Value* a =
      graph.add_constant(Tensor::from_values(DType::f32, std::array<std::int64_t, 1>{2}, std::array{1.0, 2.0}), "a");
  Value* b =
      graph.add_constant(Tensor::from_values(DType::f32, std::array<std::int64_t, 1>{2}, std::array{3.0, 4.0}), "b");
  graph.add_output(a, "out");
  EXPECT_TRUE(verify(graph).ok());
  graph.replace_uses(a, b);
  graph.erase(a->producer);
  EXPECT_TRUE(verify(graph).ok());
  EXPECT_EQ(graph.outputs().front(), b);
  EXPECT_EQ(graph.fresh_name("b"), "b.1");
}

}  // namespace
}  // namespace polyphase
