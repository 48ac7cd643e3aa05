// What the importer makes of whole models: sizes, options, functions, branches.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "graph/graph.h"
#include "import/model_builder.h"

namespace polyphase {
namespace {

using Sizes = std::vector<std::int64_t>;
using Doubles = std::vector<double>;

Tensor ramp(const Sizes& sizes, DType dtype = DType::f32) {
  std::int64_t count = 1;
  for (const std::int64_t size : sizes) count *= size;
  Doubles values(static_cast<std::size_t>(count));
  std::iota(values.begin(), values.end(), 0.0);
  return Tensor::from_values(dtype, sizes, values);
}

Doubles values_of(const Tensor& tensor) {
  Doubles out;
  for (std::int64_t i = 0; i < tensor.view().element_count(); ++i) {
    out.push_back(
        load_double(tensor.view().data + static_cast<std::size_t>(i) * size_bytes(tensor.dtype()), tensor.dtype()));
  }
  return out;
}

Tensor run(const Graph& graph, const std::vector<Tensor>& inputs) {
  const auto sound = verify(graph);
  EXPECT_TRUE(sound.ok()) << sound.error().text();
  auto outputs = interpret(graph, inputs);
  EXPECT_TRUE(outputs.ok()) << outputs.error().text();
  return outputs.ok() ? outputs->front() : Tensor();
}

std::unique_ptr<Graph> imported(const ModelBuilder& builder, const ImportOptions& options = {}) {
  auto model = builder.import(options);
  EXPECT_TRUE(model.ok()) << model.error().text();
  return model.ok() ? std::move(model->graph) : nullptr;
}

std::string refusal(const ModelBuilder& builder, const ImportOptions& options = {}) {
  auto model = builder.import(options);
  return model.ok() ? "imported" : model.error().text();
}

bool has_node(const Graph& graph, std::string_view op) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(), [&](const auto& node) { return node->is(op); });
}

// ---- sizes

TEST(Sizes, ShapeArithmeticBecomesExpressions) {
  ModelBuilder m;
  m.input("x", {"N", 4, "H", "W"});
  m.integers("two", {2});
  m.integer("at0", 0);
  m.integers("zero", {0});
  m.integers("at2", {2});
  m.integers("at4", {4});
  m.node("Shape", {"x"}, {"s"});
  m.node("Gather", {"s", "at0"}, {"n"});
  m.node("Unsqueeze", {"n", "zero"}, {"n1"});
  m.node("Slice", {"s", "at2", "at4", "zero"}, {"hw"});
  m.node("Mul", {"hw", "two"}, {"hw2"});
  m.integers("one", {1});
  m.node("Concat", {"n1", "one", "hw2"}, {"shape"}, {{"axis", 0}});
  m.node("Reshape", {"x", "shape"}, {"y"});
  m.output("y");
  const auto graph = imported(m);
  EXPECT_EQ(graph->outputs()[0]->type.shape.text(), "[N, 1, 2*H, 2*W]");
  EXPECT_EQ(run(*graph, {ramp({2, 4, 3, 5})}).sizes(), (Sizes{2, 1, 6, 10}));
}

TEST(Sizes, TheOpenSizeOfReshapeCancels) {
  ModelBuilder m;
  m.input("x", {"N", 6, "H", "W"});
  m.integers("shape", {0, 2, 3, -1});
  m.node("Reshape", {"x", "shape"}, {"y"});
  m.output("y");
  EXPECT_EQ(imported(m)->outputs()[0]->type.shape.text(), "[N, 2, 3, H*W]");
}

TEST(Sizes, BornAtRunTimeAreBound) {
  ModelBuilder m;
  m.input("x", {5, 7});
  m.input("end", {1}, onnx::TensorProto::INT64);
  m.integers("zero", {0});
  m.node("Slice", {"x", "zero", "end", "zero"}, {"y"});
  m.output("y");
  const auto graph = imported(m);
  EXPECT_TRUE(has_node(*graph, "bind"));
  for (const std::int64_t end : {0, 1, 3, 5, 9, -1, -9}) {
    const std::int64_t rows = std::clamp<std::int64_t>(end < 0 ? end + 5 : end, 0, 5);
    EXPECT_EQ(run(*graph, {ramp({5, 7}), Tensor::from_integers(DType::i64, Sizes{1}, Sizes{end})}).sizes(),
              (Sizes{rows, 7}))
        << end;
  }
}

TEST(Sizes, ReshapeReadsZeroAndMinusOneFromData) {
  for (const std::int64_t allow_zero : {0, 1}) {
    ModelBuilder m;
    m.input("x", {4, "H", 6});
    m.input("shape", {3}, onnx::TensorProto::INT64);
    m.node("Reshape", {"x", "shape"}, {"y"}, {{"allowzero", allow_zero}});
    m.output("y");
    const auto graph = imported(m);
    const auto sizes = [&](const Sizes& shape) {
      return run(*graph, {ramp({4, 5, 6}), Tensor::from_integers(DType::i64, Sizes{3}, shape)}).sizes();
    };
    EXPECT_EQ(sizes({2, 30, 2}), (Sizes{2, 30, 2}));
    EXPECT_EQ(sizes({-1, 4, 3}), (Sizes{10, 4, 3}));
    EXPECT_EQ(sizes({1, 1, -1}), (Sizes{1, 1, 120}));
    if (allow_zero == 0) {
      EXPECT_EQ(sizes({0, -1, 2}), (Sizes{4, 15, 2}));
      EXPECT_EQ(sizes({-1, 0, 0}), (Sizes{4, 5, 6}));
    }
    for (const Sizes& wrong : {Sizes{-1, -1, 6}, Sizes{-2, 30, 2}, Sizes{7, -1, 2}, Sizes{2, 30, 3}}) {
      const auto answer = interpret(*graph, {ramp({4, 5, 6}), Tensor::from_integers(DType::i64, Sizes{3}, wrong)});
      EXPECT_FALSE(answer.ok()) << wrong[0] << " " << wrong[1] << " " << wrong[2];
    }
  }
}

// Sizes that may be below 0 before their ranges are known divide as C's do.
TEST(Sizes, QuotientsTruncate) {
  ModelBuilder m;
  m.input("x", {"N", "H"});
  m.integers("three", {3});
  m.integers("two", {2});
  m.integers("ones", {1, 1});
  m.node("Shape", {"x"}, {"h"}, {{"start", 1}});
  m.node("Sub", {"h", "three"}, {"less"});
  m.node("Div", {"less", "two"}, {"half"});
  m.node("Abs", {"half"}, {"size"});
  m.node("Reshape", {"size", "ones"}, {"y"});
  m.output("y");
  const auto graph = imported(m);
  EXPECT_FALSE(has_node(*graph, "bind"));
  for (const std::int64_t h : {0, 1, 2, 3, 4, 7}) {
    EXPECT_EQ(values_of(run(*graph, {ramp({1, h})})), (Doubles{std::floor(std::abs(static_cast<double>(h) - 3) / 2)}));
  }
}

// Python's x[start:end:step] for every small case, against one graph with an open size each.
TEST(Sizes, SliceClampsLikePythonOverOpenSizes) {
  constexpr std::int64_t far = INT64_MAX;
  for (const std::int64_t step : {1, 2, 3, -1, -2}) {
    for (const std::int64_t start : {std::int64_t{0}, std::int64_t{1}, std::int64_t{3}, std::int64_t{-1},
                                     std::int64_t{-2}, std::int64_t{-4}, far, -far}) {
      for (const std::int64_t end :
           {std::int64_t{0}, std::int64_t{2}, std::int64_t{4}, std::int64_t{-1}, std::int64_t{-3}, far, -far}) {
        ModelBuilder m;
        m.input("x", {"D"});
        m.integers("start", {start});
        m.integers("end", {end});
        m.integers("axis", {0});
        m.integers("step", {step});
        m.node("Slice", {"x", "start", "end", "axis", "step"}, {"y"});
        m.output("y");
        const auto graph = imported(m);
        for (std::int64_t d = 4; d < 8; ++d) {
          const auto clamp = [&](std::int64_t at, std::int64_t low, std::int64_t high) {
            return std::clamp(at < 0 ? (at <= -far ? low : at + d) : at, low, high);
          };
          Doubles expected;
          if (step > 0) {
            for (std::int64_t i = clamp(start, 0, d); i < clamp(end, 0, d); i += step)
              expected.push_back(static_cast<double>(i));
          } else {
            for (std::int64_t i = clamp(start, 0, d - 1); i > clamp(end, -1, d - 1); i += step)
              expected.push_back(static_cast<double>(i));
          }
          EXPECT_EQ(values_of(run(*graph, {ramp({d})})), expected) << start << ":" << end << ":" << step << " of " << d;
        }
      }
    }
  }
}

TEST(Sizes, SplitAndResizeOverOpenSizes) {
  ModelBuilder m;
  m.input("x", {1, 1, "H", 4});
  m.node("Split", {"x"}, {"a", "b", "c"}, {{"axis", 2}, {"num_outputs", 3}});
  m.reals("scales", {4}, {1, 1, 1.5F, 1});
  m.node("Resize", {"c", "", "scales"}, {"y"}, {{"mode", std::string("nearest")}});
  m.output("y");
  m.output("a");
  const auto graph = imported(m);
  EXPECT_EQ(run(*graph, {ramp({1, 1, 8, 4})}).sizes(), (Sizes{1, 1, 3, 4}));   // 3 + 3 + 2 rows
  EXPECT_EQ(run(*graph, {ramp({1, 1, 12, 4})}).sizes(), (Sizes{1, 1, 6, 4}));  // 4 + 4 + 4 rows
}

// ---- the caller's options

ModelBuilder relu_model() {
  ModelBuilder m;
  m.input("x", {"batch", 3, "height", ""});
  m.node("Relu", {"x"}, {"y"});
  m.output("y");
  return m;
}

TEST(Options, NamesAreKeptAndMade) {
  EXPECT_EQ(imported(relu_model())->inputs()[0]->type.shape.text(), "[batch, 3, height, x_3]");
}

TEST(Options, DimsFixAndBound) {
  const auto graph = imported(relu_model(), {.dims = {{"batch", {2, 2}}, {"height", {64, 1024}}}});
  const Shape& shape = graph->inputs()[0]->type.shape;
  EXPECT_EQ(shape.text(), "[2, 3, height, x_3]");
  EXPECT_EQ(shape[2].range(), (DimRange{64, 1024}));
  EXPECT_EQ(refusal(relu_model(), {.dims = {{"H", {1, 2}}}}),
            "no input of the model has a size named 'H'. Its open sizes are: batch, height, x_3.");
  EXPECT_EQ(refusal(relu_model(), {.dims = {{"batch", {3, 2}}}}),
            "the range 3..2 for the size 'batch' is empty or negative. Write it as NAME=LOW..HIGH or NAME=NUMBER.");
}

TEST(Options, ShapesReplace) {
  const ImportOptions options{.dims = {{"H", {8, 16}}},
                              .shapes = {{"x", {Dim(1), Dim(3), Dim::symbol("H"), Dim::symbol("H") * 2}}}};
  const auto graph = imported(relu_model(), options);
  EXPECT_EQ(graph->inputs()[0]->type.shape.text(), "[1, 3, H, 2*H]");
  EXPECT_EQ(graph->inputs()[0]->type.shape[2].range(), (DimRange{8, 16}));
  EXPECT_EQ(refusal(relu_model(), {.shapes = {{"x", {Dim(1), Dim(4), Dim(5), Dim(6)}}}}),
            "the shape given for input 'x' has 4 on axis 1, but the model fixes it at 3. Export the model with this "
            "axis dynamic (dynamic_axes or "
            "dynamic_shapes), or give 3.");
  EXPECT_EQ(refusal(relu_model(), {.shapes = {{"x", {Dim(1)}}}}),
            "the shape given for input 'x' has 1 sizes, but the model's has 4. Give one size per axis: numbers, or "
            "names for sizes that stay open.");
  EXPECT_EQ(refusal(relu_model(), {.shapes = {{"z", {Dim(1)}}}}),
            "the model has no input 'z' to give a shape to. Its inputs are: 'x'.");
}

TEST(Options, OneNameIsOneSize) {
  ModelBuilder m;
  m.input("a", {"N", "2*N", "in put"});
  m.input("b", {"N", "N"});
  m.node("Relu", {"a"}, {"y"});
  m.output("y");
  EXPECT_EQ(imported(m)->inputs()[0]->type.shape.text(), "[N, 2*N, in_put]");
  const auto graph = imported(m, {.shapes = {{"b", {Dim(5), Dim(5)}}}});
  EXPECT_EQ(graph->inputs()[0]->type.shape.text(), "[5, 10, in_put]");
  EXPECT_EQ(refusal(m, {.shapes = {{"b", {Dim(5), Dim(6)}}}}),
            "the model's size 'N' is given as 5 and as 6. It is one size: give one value for it.");
}

// ---- functions

TEST(Functions, AreInlinedWithTheirAttributesAndOpset) {
  ModelBuilder m(18);
  m.import_domain("local", 1);
  auto* function = m.model().add_functions();
  function->set_domain("local");
  function->set_name("Scale");
  function->add_input("a");
  function->add_input("absent");
  function->add_output("r");
  function->add_attribute("slope");
  auto* import = function->add_opset_import();
  import->set_domain("");
  import->set_version(12);  // Softmax of opset 12 flattens; here: Unsqueeze with an attribute
  auto* leaky = add_node(function, "LeakyRelu", {"a"}, {"t"});
  auto* slope = leaky->add_attribute();
  slope->set_name("alpha");
  slope->set_type(onnx::AttributeProto::FLOAT);
  slope->set_ref_attr_name("slope");
  add_node(function, "Unsqueeze", {"t"}, {"r"}, {{"axes", Sizes{0}}});
  m.input("x", {2});
  m.node("Scale", {"x"}, {"y"}, {{"slope", 0.5F}}, "local");
  m.node("Scale", {"y"}, {"z"}, {{"slope", 0.25F}}, "local");
  m.output("z");
  const auto graph = imported(m);
  const Tensor z = run(*graph, {Tensor::from_values(DType::f32, Sizes{2}, Doubles{-8, 3})});
  EXPECT_EQ(z.sizes(), (Sizes{1, 1, 2}));
  EXPECT_EQ(values_of(z), (Doubles{-1, 3}));
}

TEST(Functions, ErrorsNameTheWay) {
  ModelBuilder m(18);
  m.import_domain("local", 1);
  auto* function = m.model().add_functions();
  function->set_domain("local");
  function->set_name("F");
  function->add_input("a");
  function->add_output("r");
  add_node(function, "Reshape", {"a", "a"}, {"r"});
  m.input("x", {2});
  m.node("F", {"x"}, {"y"}, {}, "local");
  m.output("y");
  EXPECT_EQ(
      refusal(m),
      "node 'F_1/Reshape_1': operand 1 ('x', f32[2]) must hold integers. The model breaks ONNX's rules: check it with "
      "onnx.checker.check_model(model, full_check=True) and export it again. (operator Reshape, version 14; in "
      "function 'F', called by 'F_1')");
}

// ---- If

onnx::GraphProto branch(const std::string& op, const std::vector<std::string>& inputs) {
  onnx::GraphProto graph;
  add_node(&graph, op, inputs, {"r"});
  graph.add_output()->set_name("r");
  return graph;
}

TEST(If, FixedConditionsAreInlined) {
  for (const bool condition : {true, false}) {
    ModelBuilder m;
    m.input("x", {2});
    auto* tensor = m.graph()->add_initializer();
    tensor->set_name("c");
    tensor->set_data_type(onnx::TensorProto::BOOL);
    tensor->add_int32_data(condition ? 1 : 0);
    m.node("If", {"c"}, {"y"}, {{"then_branch", branch("Neg", {"x"})}, {"else_branch", branch("Abs", {"x"})}});
    m.output("y");
    const auto graph = imported(m);
    EXPECT_FALSE(has_node(*graph, "if"));
    EXPECT_EQ(values_of(run(*graph, {Tensor::from_values(DType::f32, Sizes{2}, Doubles{-1, 2})})),
              (condition ? Doubles{1, -2} : Doubles{1, 2}));
  }
}

TEST(If, ComputedConditionsBecomeRegions) {
  ModelBuilder m;
  m.input("x", {"N"});
  m.input("c", {}, onnx::TensorProto::BOOL);
  m.reals("three", {}, {3});
  m.node("Shape", {"x"}, {"size"});
  m.node("Cast", {"size"}, {"n"}, {{"to", std::int64_t{onnx::TensorProto::FLOAT}}});
  onnx::GraphProto then_graph;
  add_node(&then_graph, "Mul", {"x", "three"}, {"t"});
  add_node(&then_graph, "Add", {"t", "n"}, {"r"});
  then_graph.add_output()->set_name("r");
  m.node("If", {"c"}, {"y"}, {{"then_branch", then_graph}, {"else_branch", branch("Neg", {"x"})}});
  m.output("y");
  const auto graph = imported(m);
  ASSERT_TRUE(has_node(*graph, "if"));
  const Tensor x = Tensor::from_values(DType::f32, Sizes{2}, Doubles{1, 2});
  const auto flag = [](std::int64_t value) { return Tensor::from_integers(DType::boolean, Sizes{}, Sizes{value}); };
  EXPECT_EQ(values_of(run(*graph, {x, flag(1)})), (Doubles{5, 8}));
  EXPECT_EQ(values_of(run(*graph, {x, flag(0)})), (Doubles{-1, -2}));
}

// ---- transposed convolution

TEST(ConvTranspose, DynamicPadsCropWhatIsAsked) {
  ModelBuilder m;
  m.import_domain("com.microsoft", 1);
  m.input("x", {1, 1, "L"});
  m.input("pads", {2}, onnx::TensorProto::INT64);
  m.reals("w", {1, 1, 3}, {1, 1, 1});
  m.node("ConvTransposeWithDynamicPads", {"x", "w", "pads"}, {"y"}, {{"strides", Sizes{2}}}, "com.microsoft");
  m.output("y");
  const auto graph = imported(m);
  const Tensor x = Tensor::from_values(DType::f32, Sizes{1, 1, 3}, Doubles{1, 2, 3});
  EXPECT_EQ(values_of(run(*graph, {x, Tensor::from_integers(DType::i64, Sizes{2}, Sizes{0, 0})})),
            (Doubles{1, 1, 3, 2, 5, 3, 3}));
  EXPECT_EQ(values_of(run(*graph, {x, Tensor::from_integers(DType::i64, Sizes{2}, Sizes{1, 2})})),
            (Doubles{1, 3, 2, 5}));
}

TEST(ConvTranspose, PaddingAndOutputPadding) {
  const auto made = [](const AttributeList& attributes) {
    ModelBuilder m;
    m.input("x", {1, 1, "L"});
    m.reals("w", {1, 1, 2}, {1, 1});
    m.node("ConvTranspose", {"x", "w"}, {"y"}, attributes);
    m.output("y");
    return values_of(run(*imported(m), {Tensor::from_values(DType::f32, Sizes{1, 1, 3}, Doubles{1, 2, 3})}));
  };
  EXPECT_EQ(made({{"strides", Sizes{2}}, {"pads", Sizes{1, 1}}}), (Doubles{1, 2, 2, 3}));
  EXPECT_EQ(made({{"strides", Sizes{2}}, {"pads", Sizes{1, 1}}, {"output_padding", Sizes{1}}}),
            (Doubles{1, 2, 2, 3, 3}));
  EXPECT_EQ(made({{"strides", Sizes{2}}, {"output_shape", Sizes{5}}}), (Doubles{1, 2, 2, 3, 3}));
  EXPECT_EQ(made({{"strides", Sizes{2}}, {"output_shape", Sizes{5}}, {"auto_pad", std::string("SAME_UPPER")}}),
            (Doubles{1, 1, 2, 2, 3}));
  EXPECT_EQ(made({{"strides", Sizes{2}}, {"output_shape", Sizes{8}}}), (Doubles{1, 1, 2, 2, 3, 3, 0, 0}));
}

// ---- what stays out

TEST(Values, UnusedResultsMayBeNamed) {
  ModelBuilder m;
  m.input("x", {1, 1, 4, 4});
  for (const char* name : {"s", "b", "m", "v"}) m.reals(name, {1}, {1.0F});
  m.node("BatchNormalization", {"x", "s", "b", "m", "v"}, {"y", "mean"});
  m.output("y");
  imported(m);
  m.output("mean");
  EXPECT_EQ(
      refusal(m),
      "node 'BatchNormalization_1': result 1 ('mean') of this operator is not computed, but something uses it. Export "
      "the model so that only result 0 is "
      "used. (as output of the model)");
}

TEST(Values, WeightsShareTheirBytes) {
  ModelBuilder m;
  m.input("x", {4096});
  m.reals("w", {4096}, std::vector<float>(4096, 1.0F));
  m.node("Add", {"x", "w"}, {"t"});
  m.node("Mul", {"t", "w"}, {"y"});
  m.output("y");
  const auto graph = imported(m);
  EXPECT_EQ(std::count_if(graph->nodes().begin(), graph->nodes().end(),
                          [](const auto& node) { return node->constant() != nullptr; }),
            1);
}

}  // namespace
}  // namespace polyphase
