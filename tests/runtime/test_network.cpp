// From text to a session.
#include "runtime/test_network.h"

#include <gtest/gtest.h>

#include "lower/lower.h"
#include "runtime/test_rows.h"

namespace polyphase {

const Registry& registry() {
  static const Registry built_in = Registry::built_in();
  return built_in;
}

const Catalogue& kernels() {
  static const Catalogue catalogue(test_rows(), registry());
  return catalogue;
}

Network make(std::string_view text, Session::Options options, bool portable) {
  Network out;
  auto graph = parse_graph(text, registry());
  EXPECT_TRUE(graph.ok()) << (graph.ok() ? "" : graph.error().text());
  out.graph = clone(**graph);
  const auto verified = verify(*out.graph);
  EXPECT_TRUE(verified.ok()) << (verified.ok() ? "" : verified.error().text());
  EXPECT_EQ(print(*parse_graph(print(*out.graph), registry()).value()), print(*out.graph));
  Target target;
  target.catalogue = &kernels();
  target.portable = portable;
  auto engine = lower(*out.graph, target);
  EXPECT_TRUE(engine.ok()) << (engine.ok() ? "" : engine.error().text());
  auto program = make_program(std::make_shared<const Engine>(std::move(engine).value()), target);
  EXPECT_TRUE(program.ok()) << (program.ok() ? "" : program.error().text());
  out.session = std::make_unique<Session>(std::move(program).value(), options);
  return out;
}

RunRequest request_of(const std::vector<Tensor>& inputs) {
  RunRequest request;
  for (const Tensor& input : inputs) request.inputs.push_back(input.view());
  return request;
}

}  // namespace polyphase
