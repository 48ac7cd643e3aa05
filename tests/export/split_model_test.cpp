// split_model: parts that follow one another, each of one kind, which together compute what the model computes.
#include "export/split_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <random>

#include "onnx/onnx.pb.h"

namespace polyphase::legal {
namespace {

using Strings = std::vector<std::string>;

onnx::ModelProto empty_model(const Strings& inputs, const Strings& outputs) {
  onnx::ModelProto model;
  model.set_ir_version(8);
  model.add_opset_import()->set_version(17);
  model.mutable_graph()->set_name("g");
  for (const auto& name : inputs) {
    auto* input = model.mutable_graph()->add_input();
    input->set_name(name);
    auto* type = input->mutable_type()->mutable_tensor_type();
    type->set_elem_type(onnx::TensorProto::FLOAT);
    type->mutable_shape()->add_dim()->set_dim_value(4);
  }
  for (const auto& name : outputs) model.mutable_graph()->add_output()->set_name(name);
  return model;
}

onnx::NodeProto node_of(const std::string& op_type, const Strings& reads, const Strings& gives,
                        const std::string& name = "") {
  onnx::NodeProto node;
  node.set_op_type(op_type);
  if (op_type.starts_with("Their")) node.set_domain("theirs");
  node.set_name(name);
  for (const auto& read : reads) node.add_input(read);
  for (const auto& output : gives) node.add_output(output);
  return node;
}

void add_weight(onnx::ModelProto& model, const std::string& name) {
  auto* tensor = model.mutable_graph()->add_initializer();
  tensor->set_name(name);
  tensor->set_data_type(onnx::TensorProto::FLOAT);
  tensor->add_float_data(1.5F);
}

ModelChain chain_of(Result<ModelChain> made) {
  if (made.ok()) return *std::move(made);
  ADD_FAILURE() << made.error().message;
  return {};
}

bool is_theirs(const onnx::NodeProto& node) { return node.domain() == "theirs"; }

// An import as split_model needs it: it lacks one domain, refuses nodes by name, and knows the type of every tensor.
class Importer {
 public:
  std::set<std::string> refuses;
  std::set<std::string> untyped;
  int looks = 0;

  LookInto look() {
    return [this](const std::string& bytes) -> Result<PieceFindings> {
      ++looks;
      onnx::ModelProto model;
      EXPECT_TRUE(model.ParseFromString(bytes));
      PieceFindings found;
      for (const auto& node : model.graph().node()) see(node, found);
      for (const auto& function : model.functions()) {
        for (const auto& node : function.node()) see(node, found);
      }
      return found;
    };
  }

 private:
  void see(const onnx::NodeProto& node, PieceFindings& found) const {
    if (is_theirs(node)) found.missing.insert({node.domain(), node.op_type()});
    if (refuses.count(node.name()) != 0) found.refused.insert(node.name());
    found.complete = found.missing.empty() && found.refused.empty();
    for (const std::string& output : node.output()) {
      if (untyped.count(output) == 0) found.types[output] = {output, DType::f32, {"4"}};
    }
  }
};

Result<ModelChain> split(const onnx::ModelProto& model, Importer& importer) {
  const std::string bytes = model.SerializeAsString();
  return split_model(std::as_bytes(std::span(bytes)), ".", importer.look());
}

// What a graph computes, as words: each tensor is its node's operator and operands.
void compute(const onnx::GraphProto& graph, std::map<std::string, std::size_t>& words) {
  const std::hash<std::string> hash;
  for (const auto& tensor : graph.initializer()) words[tensor.name()] = hash("weight " + tensor.name());
  for (const auto& node : graph.node()) {
    std::string said = node.op_type() + " " + node.name();
    for (const std::string& read : node.input()) {
      ASSERT_TRUE(read.empty() || words.count(read) != 0) << node.op_type() << " reads '" << read << "'";
      said += " " + (read.empty() ? "none" : std::to_string(words.at(read)));
    }
    for (int i = 0; i < node.output_size(); ++i) words[node.output(i)] = hash(said + " " + std::to_string(i));
  }
}

Strings names_of(const google::protobuf::RepeatedPtrField<onnx::ValueInfoProto>& values) {
  Strings out;
  for (const auto& value : values) out.push_back(value.name());
  return out;
}

// Runs the chain as its caller would: a piece sees what it declares and nothing else.
void expect_same(const onnx::ModelProto& model, const ModelChain& chain, const Importer& importer) {
  std::map<std::string, std::size_t> whole;
  for (const auto& input : model.graph().input()) whole[input.name()] = std::hash<std::string>()(input.name());
  std::map<std::string, std::size_t> known = whole;
  ASSERT_NO_FATAL_FAILURE(compute(model.graph(), whole));
  for (const ModelPiece& piece : chain.pieces) {
    onnx::ModelProto part;
    ASSERT_TRUE(part.ParseFromString(piece.model));
    EXPECT_EQ(names_of(part.graph().input()), piece.inputs);
    EXPECT_EQ(names_of(part.graph().output()), piece.outputs);
    std::map<std::string, std::size_t> inside;
    for (const std::string& input : piece.inputs) {
      ASSERT_EQ(known.count(input), 1U) << input << " is not there yet";
      inside[input] = known.at(input);
    }
    ASSERT_NO_FATAL_FAILURE(compute(part.graph(), inside));
    for (const std::string& output : piece.outputs) known[output] = inside.at(output);
    for (const auto& node : part.graph().node()) {
      if (node.op_type() == "Constant") continue;
      EXPECT_EQ(piece.ours, !is_theirs(node) && importer.refuses.count(node.name()) == 0) << node.name();
    }
  }
  EXPECT_EQ(chain.outputs, names_of(model.graph().output()));
  for (const std::string& output : chain.outputs) {
    ASSERT_EQ(known.count(output), 1U) << output;
    EXPECT_EQ(known.at(output), whole.at(output)) << output;
  }
}

std::vector<bool> kinds_of(const ModelChain& chain) {
  std::vector<bool> out;
  for (const ModelPiece& piece : chain.pieces) out.push_back(piece.ours);
  return out;
}

TEST(SplitModel, NothingToCutIsOnePieceOfOurs) {
  onnx::ModelProto model = empty_model({"x"}, {"y"});
  add_weight(model, "w");
  *model.mutable_graph()->add_node() = node_of("Mul", {"x", "w"}, {"a"});
  *model.mutable_graph()->add_node() = node_of("Relu", {"a"}, {"y"});
  Importer importer;
  const ModelChain chain = chain_of(split(model, importer));
  ASSERT_EQ(kinds_of(chain), std::vector<bool>{true});
  EXPECT_EQ(chain.pieces.front().nodes, 2);
  expect_same(model, chain, importer);
}

TEST(SplitModel, ForeignNodesOfTwoBranchesShareAPiece) {
  onnx::ModelProto model = empty_model({"x"}, {"y", "x"});
  add_weight(model, "w");
  for (const auto& node : {node_of("Mul", {"x", "w"}, {"b0"}), node_of("Theirs", {"x"}, {"a1"}),
                           node_of("TheirOther", {"b0"}, {"b1", "unread"}), node_of("Add", {"a1", "b1"}, {"c"}),
                           node_of("Mul", {"c", "w"}, {"y"})})
    *model.mutable_graph()->add_node() = node;
  Importer importer;
  const ModelChain chain = chain_of(split(model, importer));
  ASSERT_EQ(kinds_of(chain), (std::vector<bool>{true, false, true}));
  EXPECT_EQ(chain.pieces[1].outputs, (Strings{"a1", "b1"}));
  EXPECT_EQ(chain.pieces[2].inputs.size(), 2U);
  expect_same(model, chain, importer);
}

TEST(SplitModel, AConstantGoesIntoEveryPieceThatReadsItAndIsNoBorder) {
  onnx::ModelProto model = empty_model({"x"}, {"y"});
  for (const auto& node : {node_of("Constant", {}, {"k"}), node_of("Add", {"x", "k"}, {"a"}),
                           node_of("Theirs", {"a", "k"}, {"b"}), node_of("Add", {"b", "k"}, {"y"})})
    *model.mutable_graph()->add_node() = node;
  Importer importer;
  const ModelChain chain = chain_of(split(model, importer));
  ASSERT_EQ(kinds_of(chain), (std::vector<bool>{true, false, true}));
  for (const ModelPiece& piece : chain.pieces) EXPECT_EQ(std::ranges::count(piece.inputs, "k"), 0);
  expect_same(model, chain, importer);
}

TEST(SplitModel, ANodeRefusedByNameIsTheirsAndNotTheOneWhoseNameBeginsTheSame) {
  onnx::ModelProto model = empty_model({"x"}, {"y"});
  for (const auto& node : {node_of("Relu", {"x"}, {"a"}, "up"), node_of("Relu", {"a"}, {"b"}, "up2"),
                           node_of("Relu", {"b"}, {"y"}, "up/3")})
    *model.mutable_graph()->add_node() = node;
  Importer importer;
  importer.refuses = {"up2"};
  const ModelChain chain = chain_of(split(model, importer));
  ASSERT_EQ(kinds_of(chain), (std::vector<bool>{true, false, true}));
  expect_same(model, chain, importer);
}

TEST(SplitModel, AForeignNodeInsideAFunctionMakesItsCallsTheirs) {
  onnx::ModelProto model = empty_model({"x"}, {"y"});
  for (const char* name : {"outer", "inner"}) {
    auto* function = model.add_functions();
    function->set_domain("mine");
    function->set_name(name);
    function->add_input("p");
    function->add_output("q");
    function->add_opset_import()->set_version(17);
    *function->add_node() = node_of(std::string(name) == "outer" ? "inner" : "Theirs", {"p"}, {"q"});
  }
  model.mutable_functions(0)->mutable_node(0)->set_domain("mine");
  *model.mutable_graph()->add_node() = node_of("Relu", {"x"}, {"a"});
  auto call = node_of("outer", {"a"}, {"y"});
  call.set_domain("mine");
  *model.mutable_graph()->add_node() = call;
  Importer importer;
  const ModelChain chain = chain_of(split(model, importer));
  ASSERT_EQ(kinds_of(chain), (std::vector<bool>{true, false}));
  onnx::ModelProto part;
  for (std::size_t i = 0; i < 2; ++i) {  // a part has the functions that it calls
    ASSERT_TRUE(part.ParseFromString(chain.pieces[i].model));
    EXPECT_EQ(part.functions_size(), i == 0 ? 0 : 2);
  }
}

TEST(SplitModel, WeightsOfAFunctionThatLieInAFileComeIntoThePart) {
  const std::string folder = testing::TempDir();
  std::ofstream(folder + "/split_model_weight.bin", std::ios::binary) << "\x01\x02\x03\x04";
  onnx::ModelProto model = empty_model({"x"}, {"y"});
  auto* function = model.add_functions();
  function->set_domain("mine");
  function->set_name("f");
  function->add_output("q");
  *function->add_node() = node_of("Constant", {}, {"q"});
  auto* attribute = function->mutable_node(0)->add_attribute();
  attribute->set_name("value");
  attribute->set_type(onnx::AttributeProto::TENSOR);
  auto* tensor = attribute->mutable_t();
  tensor->set_data_type(onnx::TensorProto::FLOAT);
  tensor->set_data_location(onnx::TensorProto::EXTERNAL);
  tensor->add_external_data()->set_key("location");
  tensor->mutable_external_data(0)->set_value("split_model_weight.bin");
  auto call = node_of("f", {}, {"k"});
  call.set_domain("mine");
  *model.mutable_graph()->add_node() = call;
  *model.mutable_graph()->add_node() = node_of("Add", {"x", "k"}, {"y"});
  Importer importer;
  const std::string bytes = model.SerializeAsString();
  const ModelChain chain = chain_of(split_model(std::as_bytes(std::span(bytes)), folder, importer.look()));
  ASSERT_EQ(chain.pieces.size(), 1U);
  onnx::ModelProto part;
  ASSERT_TRUE(part.ParseFromString(chain.pieces[0].model));
  const auto& inside = part.functions(0).node(0).attribute(0).t();
  EXPECT_EQ(inside.raw_data(), "\x01\x02\x03\x04");
  EXPECT_FALSE(inside.has_data_location());
}

// Each of 90 functions calls the next one twice: 2^90 calls, and the last one calls the first.
TEST(SplitModel, FunctionsThatCallOneAnotherTwiceCostNoTime) {
  onnx::ModelProto model = empty_model({"x"}, {"y"});
  for (int i = 0; i < 90; ++i) {
    auto* function = model.add_functions();
    function->set_domain("mine");
    function->set_name("f" + std::to_string(i));
    function->add_input("p");
    function->add_output("q");
    for (const char* output : {"r", "q"}) {
      *function->add_node() = node_of("f" + std::to_string((i + 1) % 90), {"p"}, {output});
      function->mutable_node(function->node_size() - 1)->set_domain("mine");
    }
  }
  auto call = node_of("f0", {"x"}, {"y"});
  call.set_domain("mine");
  *model.mutable_graph()->add_node() = call;
  Importer importer;
  EXPECT_EQ(kinds_of(chain_of(split(model, importer))), std::vector<bool>{true});
}

TEST(SplitModel, WhatCannotBeCutIsSaid) {
  Importer importer;
  onnx::ModelProto model = empty_model({"x"}, {"y"});
  *model.mutable_graph()->add_node() = node_of("Theirs", {"x"}, {"a"});
  *model.mutable_graph()->add_node() = node_of("Relu", {"a"}, {"y"});
  importer.untyped = {"a"};
  EXPECT_EQ(split(model, importer).error().message,
            "the tensor 'a' goes from one piece to another, and its type and rank are not known.");

  onnx::ModelProto weight = empty_model({"x"}, {"w"});
  add_weight(weight, "w");
  EXPECT_EQ(split(weight, importer).error().message, "the output 'w' is a weight, which no piece gives.");

  // Two nodes that wait for each other, and one that reads what nobody gives.
  for (const auto& [read, other] : {std::pair{"z", "y"}, std::pair{"ghost", "x"}}) {
    onnx::ModelProto stuck = empty_model({"x"}, {"y"});
    *stuck.mutable_graph()->add_node() = node_of("Relu", {read}, {"y"});
    *stuck.mutable_graph()->add_node() = node_of("Theirs", {other}, {"z"});
    EXPECT_EQ(split(stuck, importer).error().message,
              "the output 'y' is given by no node whose operands can all be computed.");
  }

  const std::string noise = "\x0a\x05 not a model";
  EXPECT_FALSE(split_model(std::as_bytes(std::span(noise)), ".", importer.look()).ok());
}

TEST(SplitModel, RandomGraphsComputeTheSame) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    std::mt19937 numbers(seed);
    const auto below = [&](std::size_t end) { return numbers() % end; };
    Importer importer;
    Strings tensors = {"x", "z"};
    std::vector<onnx::NodeProto> nodes;
    for (std::size_t i = 0, count = 2 + below(18); i < count; ++i) {
      const std::string id = std::to_string(i);
      const std::string op = std::array{"Relu", "Add", "Theirs", "TheirOther", "Constant", "Mul"}[below(6)];
      Strings reads;
      for (std::size_t k = 0; op != "Constant" && k < 1 + below(3); ++k)
        reads.push_back(below(9) == 0 ? "w" : tensors[below(tensors.size())]);
      Strings gives = {"t" + id};
      if (below(4) == 0) gives.push_back(below(2) == 0 ? "" : "u" + id);
      nodes.push_back(node_of(op, reads, gives, "n" + id));
      if (op == "Relu" && below(3) == 0) importer.refuses.insert("n" + id);
      tensors.push_back("t" + id);
    }
    Strings outputs = {tensors.back()};
    for (const std::string& tensor : tensors) {
      if (tensor != outputs.front() && below(4) == 0) outputs.push_back(tensor);
    }
    onnx::ModelProto model = empty_model({"x", "z"}, outputs);
    add_weight(model, "w");
    for (const auto& node : nodes) *model.mutable_graph()->add_node() = node;
    const auto chain = split(model, importer);
    ASSERT_TRUE(chain.ok()) << seed << ": " << chain.error().message;
    expect_same(model, *chain, importer);
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
}

}  // namespace
}  // namespace polyphase::legal
