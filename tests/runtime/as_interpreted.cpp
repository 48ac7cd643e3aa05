// Running an engine beside the interpreter.
#include "runtime/as_interpreted.h"

#include <gtest/gtest.h>

#include "runtime/session.h"

namespace polyphase {

void expect_as_interpreted(const Graph& graph, Engine engine, const Target& target, Random& random) {
  auto program = make_program(std::make_shared<const Engine>(std::move(engine)), target);
  ASSERT_TRUE(program.ok()) << program.error().text();
  Session session(std::move(program).value(), {});
  const std::vector<Tensor> inputs = random_inputs(graph, {}, random);
  RunRequest request;
  for (const Tensor& input : inputs) request.inputs.push_back(input.view());
  const auto found = session.run(request);
  ASSERT_TRUE(found.ok()) << found.error().text();
  const auto expected = interpret(graph, inputs);
  ASSERT_TRUE(expected.ok()) << expected.error().text();
  EXPECT_EQ(difference(*expected, *found, 0), "");
}

}  // namespace polyphase
