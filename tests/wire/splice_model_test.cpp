// splice_model: what is exchanged is there, and every other byte is where it was.
#include "wire/splice_model.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "onnx/onnx.pb.h"

namespace polyphase::wire {
namespace {

std::string node_bytes(const std::string& op_type, const std::string& output) {
  onnx::NodeProto node;
  node.set_op_type(op_type);
  node.add_input("x");
  node.add_output(output);
  return node.SerializeAsString();
}

std::string model_to_splice() {
  onnx::ModelProto model;
  model.set_ir_version(8);
  model.add_opset_import()->set_version(17);
  auto* graph = model.mutable_graph();
  graph->set_name("g");
  for (const char* name : {"a", "b", "c"}) graph->add_node()->ParseFromString(node_bytes("Relu", name));
  for (const char* name : {"w", "v"}) {
    auto* tensor = graph->add_initializer();
    tensor->set_name(name);
    tensor->set_data_type(onnx::TensorProto::FLOAT);
    tensor->add_float_data(1.5F);
  }
  model.set_producer_name("somebody");
  return model.SerializeAsString();
}

Result<std::string> spliced(const std::string& model, const ModelSplice& splice) {
  return splice_model(std::as_bytes(std::span(model)), splice);
}

TEST(SpliceModel, NothingExchangedGivesTheSameBytes) {
  // Fields that nobody knows, out of order, with a length written longer than it needs to be.
  std::string model = model_to_splice();
  model += std::string("\xfa\x3f\x83\x80\x00", 5) + "abc";
  EXPECT_EQ(spliced(model, {}).value(), model);
}

TEST(SpliceModel, ExchangesNodesInTheirPlace) {
  ModelSplice splice;
  splice.nodes[1] = {node_bytes("Pad", "p"), node_bytes("Slice", "b")};
  const std::string made = spliced(model_to_splice(), splice).value();
  onnx::ModelProto parsed;
  ASSERT_TRUE(parsed.ParseFromString(made));
  ASSERT_EQ(parsed.graph().node_size(), 4);
  EXPECT_EQ(parsed.graph().node(0).SerializeAsString(), node_bytes("Relu", "a"));
  EXPECT_EQ(parsed.graph().node(1).SerializeAsString(), node_bytes("Pad", "p"));
  EXPECT_EQ(parsed.graph().node(2).SerializeAsString(), node_bytes("Slice", "b"));
  EXPECT_EQ(parsed.graph().node(3).SerializeAsString(), node_bytes("Relu", "c"));
  EXPECT_EQ(parsed.producer_name(), "somebody");
}

TEST(SpliceModel, AddsAndDropsInitializersAndExchangesOpsets) {
  onnx::TensorProto tensor;
  tensor.set_name("new");
  onnx::OperatorSetIdProto opset;
  opset.set_version(21);
  ModelSplice splice;
  splice.new_initializers = {tensor.SerializeAsString()};
  splice.dropped_initializers = {0};
  splice.opset_imports = std::vector<std::string>{opset.SerializeAsString()};
  onnx::ModelProto parsed;
  ASSERT_TRUE(parsed.ParseFromString(spliced(model_to_splice(), splice).value()));
  ASSERT_EQ(parsed.graph().initializer_size(), 2);
  EXPECT_EQ(parsed.graph().initializer(0).name(), "v");
  EXPECT_EQ(parsed.graph().initializer(1).name(), "new");
  ASSERT_EQ(parsed.opset_import_size(), 1);
  EXPECT_EQ(parsed.opset_import(0).version(), 21);
}

TEST(SpliceModel, DropsFunctionsByTheirPlace) {
  onnx::ModelProto model;
  ASSERT_TRUE(model.ParseFromString(model_to_splice()));
  for (const char* name : {"f", "g", "h"}) model.add_functions()->set_name(name);
  const std::string before = model.SerializeAsString();
  ModelSplice splice;
  splice.dropped_functions = {0, 2};
  model.clear_functions();
  model.add_functions()->set_name("g");
  EXPECT_EQ(spliced(before, splice).value(), model.SerializeAsString());
}

TEST(SpliceModel, RefusesAGraphInPieces) {
  const std::string twice = model_to_splice() + model_to_splice();
  const auto refused = spliced(twice, {});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(
      refused.error().text(),
      "the model's graph does not lie in the file in one piece. Write it again: onnx.save(onnx.load(FILE), FILE).");
}

TEST(SpliceModel, RefusesEveryCut) {
  const std::string model = model_to_splice();
  ModelSplice splice;
  splice.nodes[0] = {};
  for (std::size_t length = 0; length < model.size(); ++length) {
    const auto made = spliced(model.substr(0, length), splice);
    if (made.ok()) {  // whole fields are left
      EXPECT_LE(made->size(), length);
    }
  }
}

}  // namespace
}  // namespace polyphase::wire
