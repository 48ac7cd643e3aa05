// Damaged models: every truncation and bit flips all over small models end in an Error or a sound graph, never in a
// crash.
#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>

#include "graph/graph.h"
#include "import/model_builder.h"
#include "suite_size.h"

namespace polyphase {
namespace {

using Sizes = std::vector<std::int64_t>;

// A bit of everything: shape arithmetic, convolutions, a function, a branch, sparse and typed data.
std::string varied_model() {
  ModelBuilder m(18);
  m.import_domain("local", 1);
  auto* function = m.model().add_functions();
  function->set_domain("local");
  function->set_name("F");
  function->add_input("a");
  function->add_output("r");
  function->add_opset_import()->set_version(18);
  add_node(function, "LeakyRelu", {"a"}, {"r"}, {{"alpha", 0.5F}});
  m.input("x", {"N", 2, "H", 8});
  m.input("c", {}, onnx::TensorProto::BOOL);
  m.reals("w", {2, 2, 3, 3}, std::vector<float>(36, 0.5F));
  m.reals("v", {2, 3, 2, 2}, std::vector<float>(24, 0.25F));
  m.reals("scales", {4}, {1, 1, 2, 2});
  m.integers("two", {2});
  m.integers("shape", {0, -1, 4});
  m.integers("pads", {0, 0, 1, 1, 0, 0, 1, 1});
  m.node("Conv", {"x", "w"}, {"t1"}, {{"pads", Sizes{1, 1, 1, 1}}, {"strides", Sizes{2, 2}}});
  m.node("F", {"t1"}, {"t2"}, {}, "local");
  m.node("ConvTranspose", {"t2", "v"}, {"t3"}, {{"strides", Sizes{2, 2}}, {"output_padding", Sizes{1, 0}}});
  m.node("Pad", {"t3", "pads"}, {"t4"}, {{"mode", std::string("reflect")}});
  m.node("Resize", {"t4", "", "scales"}, {"t5"}, {{"mode", std::string("linear")}});
  m.node("MaxPool", {"t5"}, {"t6"}, {{"kernel_shape", Sizes{2, 2}}, {"auto_pad", std::string("SAME_UPPER")}});
  m.node("Reshape", {"t6", "shape"}, {"t7"});
  m.node("ReduceMean", {"t7", "two"}, {"t8"}, {{"keepdims", std::int64_t{0}}});
  m.integers("one", {1});
  m.node("Slice", {"t7", "one", "two", "one"}, {"t9"});
  onnx::GraphProto then_graph;
  add_node(&then_graph, "Neg", {"t8"}, {"r"});
  then_graph.add_output()->set_name("r");
  onnx::GraphProto else_graph;
  add_node(&else_graph, "Exp", {"t8"}, {"r"});
  else_graph.add_output()->set_name("r");
  m.node("If", {"c"}, {"y"}, {{"then_branch", then_graph}, {"else_branch", else_graph}});
  m.output("y");
  return m.model().SerializeAsString();
}

void import_bytes(const std::string& bytes, const Registry& registry) {
  const auto model = import_onnx(std::span(reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()), registry);
  if (model.ok()) {
    const auto sound = verify(*model->graph);
    EXPECT_TRUE(sound.ok()) << sound.error().text();
  } else {
    EXPECT_FALSE(model.error().message.empty());
  }
}

TEST(DamagedModels, EveryTruncation) {
  const Registry registry = Registry::built_in();
  const std::string whole = varied_model();
  for (std::size_t length = 0; length < whole.size(); ++length) import_bytes(whole.substr(0, length), registry);
}

// Every bit; of a slice, one bit of each byte.
TEST(DamagedModels, EveryBitFlipped) {
  const Registry registry = Registry::built_in();
  std::string bytes = varied_model();
  std::mt19937 random(11);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const unsigned drawn = random() % 8;
    for (unsigned bit = 0; bit < 8; ++bit) {
      if (test::sliced() && bit != drawn) continue;
      const char before = bytes[i];
      bytes[i] = static_cast<char>(static_cast<unsigned char>(bytes[i]) ^ (1U << bit));
      import_bytes(bytes, registry);
      bytes[i] = before;
    }
  }
}

TEST(DamagedModels, RandomBytesInManyPlaces) {
  const Registry registry = Registry::built_in();
  const std::string whole = varied_model();
  std::mt19937 random(7);
  for (int round = 0; round < (test::sliced() ? 1500 : 5000); ++round) {
    std::string bytes = whole;
    for (unsigned n = 1 + random() % 4; n > 0; --n) bytes[random() % bytes.size()] = static_cast<char>(random());
    import_bytes(bytes, registry);
  }
}

TEST(DamagedModels, TheModelItselfIsSound) {
  const Registry registry = Registry::built_in();
  const std::string whole = varied_model();
  const auto model = import_onnx(std::span(reinterpret_cast<const std::byte*>(whole.data()), whole.size()), registry);
  EXPECT_TRUE(model.ok()) << model.error().text();
}

}  // namespace
}  // namespace polyphase
