// Modules of polyphase/nn.h as C++ objects: handles, names, what constructors refuse, one engine for all sizes. What
// layers compute and write is compared with PyTorch and Python in tests/python/nn.
#include "polyphase/nn.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

namespace polyphase::api::nn {
namespace {

namespace F = functional;

template <typename T>
std::string refusal(const Result<T>& result) {
  return result.ok() ? "it was taken" : result.error().text();
}

std::string shape_text(const Result<NetworkTensor>& tensor) {
  if (!tensor.ok()) return tensor.error().text();
  std::string out;
  for (const Size& size : tensor->shape()) out += (out.empty() ? "" : " ") + size.text();
  return out;
}

Tensor filled(const std::vector<std::int64_t>& sizes, float first, float step = 0) {
  auto made = Tensor::allocate(DType::f32, sizes);
  EXPECT_TRUE(made.ok());
  for (std::int64_t i = 0; i < made->element_count(); ++i) made->as<float>()[i] = first + step * static_cast<float>(i);
  return *made;
}

std::vector<float> elements(const Result<Tensor>& tensor) {
  EXPECT_TRUE(tensor.ok()) << tensor.error().text();
  if (!tensor.ok()) return {};
  return {tensor->as<float>(), tensor->as<float>() + tensor->element_count()};
}

struct Block : Module {
  ConvTranspose1d up = add("up", ConvTranspose1d(1, 1, 3, {.stride = 2, .padding = 1}));
  LayerNorm norm = add("norm", LayerNorm(1, {.elementwise_affine = false}));
  Block() : Module("Block") {}
  Result<NetworkTensor> operator()(const Operand& x, const Operand& skip) const {
    return F::relu(F::add(up(x, skip), skip));
  }
};

void fill(Module& module, float value) {
  for (Parameter& parameter : module.parameters())
    EXPECT_TRUE(parameter.set_value(filled(parameter.shape(), value)).ok());
}

TEST(Nn, TheWorkedExampleOfOutputSize) {
  Network network;
  const auto x = network.add_input("x", DType::f32, {1, 1, 4});
  const auto seven = network.add_input("seven", DType::f32, {1, 1, 7});
  Conv1d down(1, 1, 3, {.stride = 2, .padding = 1});
  ConvTranspose1d up(1, 1, 3, {.stride = 2, .padding = 1});
  ConvTranspose1d longer(1, 1, 3, {.stride = 2, .padding = 1, .output_padding = 1});
  fill(down, 1);
  fill(up, 1);
  fill(longer, 1);
  EXPECT_EQ(shape_text(down(seven)), "1 1 4");
  EXPECT_EQ(shape_text(up(x)), "1 1 7");
  EXPECT_EQ(shape_text(longer(x)), "1 1 8");
  EXPECT_EQ(shape_text(up(x, 8)), "1 1 8");
  EXPECT_EQ(shape_text(up(x, {1, 1, 8})), "1 1 8");
  EXPECT_NE(refusal(up(x, {1, 8})).find("for 3D input, output_size must have 1 or 3 elements (got 2)"),
            std::string::npos);
  EXPECT_EQ(shape_text(up(x, seven)), "1 1 7");
  EXPECT_EQ(shape_text(up(x, seven->shape())), "1 1 7");
  EXPECT_NE(refusal(up(x, 9)).find("requested an output size of (9,), but valid sizes range from [7] to [8]"),
            std::string::npos)
      << refusal(up(x, 9));
}

TEST(Nn, OneEngineIsAsLargeAsItsSkipConnectionAtAnySize) {
  Block block;
  fill(block, 1);
  Network network;
  const auto x = network.add_input("x", DType::f32, {1, 1, "W"});
  const auto skip = network.add_input("skip", DType::f32, {1, 1, "V"});
  ASSERT_TRUE(network.mark_output(block(x, skip), "y").ok());
  const auto engine = compile(network);
  ASSERT_TRUE(engine.ok()) << engine.error().text();
  const auto session = Session::create(*engine);
  ASSERT_TRUE(session.ok());
  const Tensor four = filled({1, 1, 4}, 1);
  for (const std::int64_t size : {7, 8}) {
    const auto found = session->run({four.view(), filled({1, 1, size}, 0).view()});
    ASSERT_TRUE(found.ok()) << found.error().text();
    std::vector<float> expected = {2, 3, 2, 3, 2, 3, 2, 2};
    expected.resize(static_cast<std::size_t>(size));
    EXPECT_EQ(elements(found->front()), expected);
  }
  EXPECT_FALSE(session->run({four.view(), filled({1, 1, 9}, 0).view()}).ok());
  const auto at_once_too =
      at_once([&](const auto& in) { return block(in[0], in[1]); }, {four.view(), filled({1, 1, 7}, 0).view()});
  EXPECT_EQ(elements(at_once_too), (std::vector<float>{2, 3, 2, 3, 2, 3, 2}));
}

TEST(Nn, HandlesAreTheSameModule) {
  Sequential inner(Conv1d(2, 3, 1), Mish());
  Sequential outer;
  outer.append(inner);
  outer.append(GroupNorm(1, 3));
  inner.append(Conv1d(3, 1, 1, {.bias = false}));  // after it was put into the other
  std::vector<std::string> names;
  for (const auto& [name, parameter] : outer.named_parameters()) {
    names.push_back(name);
    EXPECT_EQ(parameter.name(), name);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"0.0.weight", "0.0.bias", "0.2.weight", "1.weight", "1.bias"}));
  EXPECT_EQ(outer.state_dict().size(), 2U);  // a norm's ones and zeros
  Sequential copy = outer;
  fill(copy, 0.5F);
  EXPECT_EQ(outer.state_dict().size(), 5U);
  ModuleList<Conv1d> list({Conv1d(1, 1, 1)});
  list.append(Conv1d(1, 1, 1));
  EXPECT_EQ(list.named_modules().back().first, "1");
  EXPECT_EQ(list[1].weight.name(), "1.weight");
  EXPECT_EQ(list.size(), 2U);
}

TEST(Nn, AModuleMayBeDestroyedBeforeItsNetworkIsCompiled) {
  Network network;
  const auto x = network.add_input("x", DType::f32, {2, 2});
  {
    Linear linear(2, 1);
    ASSERT_TRUE(linear.load_state_dict({{"weight", filled({1, 2}, 1, 1)}, {"bias", filled({1}, 10)}}).ok());
    const auto y = linear(x);
    ASSERT_TRUE(network.mark_output(y, "y").ok());
    ASSERT_TRUE(linear.weight.set_value(filled({1, 2}, 100)).ok());  // another constant from here on
    ASSERT_TRUE(network.mark_output(linear(x), "z").ok());
  }
  const auto engine = compile(network);
  ASSERT_TRUE(engine.ok()) << engine.error().text();
  const auto found = Session::create(*engine)->run({filled({2, 2}, 1, 1).view()});
  ASSERT_TRUE(found.ok()) << found.error().text();
  EXPECT_EQ(elements((*found)[0]), (std::vector<float>{15, 21}));
  EXPECT_EQ(elements((*found)[1]), (std::vector<float>{310, 710}));
}

TEST(Nn, AParameterIsOneConstantOfANetwork) {
  Linear linear(2, 2, {.dtype = DType::f16});
  fill(linear, 1);
  Network network;
  const auto x = network.add_input("x", DType::f16, {2, 2});
  const auto y = linear(linear(x));
  ASSERT_TRUE(y.ok()) << y.error().text();
  const std::string text = network.text();
  std::size_t constants = 0;
  for (std::size_t at = text.find("= constant("); at != std::string::npos; at = text.find("= constant(", at + 1))
    ++constants;
  EXPECT_EQ(constants, 2U) << text;
  EXPECT_EQ(y->dtype(), DType::f16);
}

TEST(Nn, ElementsWithStridesAreTaken) {
  Linear linear(2, 3, {.bias = false});
  const std::vector<float> columns = {1, 2, 3, 4, 5, 6};
  TensorView turned = view(columns.data(), {3, 2});
  turned.strides = {1, 3};
  const auto borrowed = Tensor::borrow(turned);
  ASSERT_TRUE(borrowed.ok());
  ASSERT_TRUE(linear.weight.set_value(*borrowed).ok());
  const auto y = at_once([&](const auto& in) { return linear(in[0]); }, {filled({2}, 1, 9).view()});
  EXPECT_EQ(elements(y), (std::vector<float>{41, 52, 63}));
}

TEST(Nn, WeightNormOfStridesAndHalves) {
  // g = (2, 3), v = ((3, 4), (0, 1)): rows of norm 5 and 1.
  Linear linear(2, 2, {.bias = false});
  const std::vector<float> v = {3, 0, 4, 1};
  TensorView turned = view(v.data(), {2, 2});
  turned.strides = {1, 2};
  ASSERT_TRUE(linear.load_state_dict({{"weight_g", filled({2, 1}, 2, 1)}, {"weight_v", *Tensor::borrow(turned)}}).ok());
  const float* weight = linear.weight.value()->as<float>();
  EXPECT_EQ((std::vector<float>{weight, weight + 4}), (std::vector<float>{1.2F, 1.6F, 0, 3}));
  // What does not belong together is named, not multiplied.
  EXPECT_EQ(refusal(linear.load_state_dict({{"weight_g", filled({3, 1}, 1)}, {"weight_v", filled({2, 2}, 1)}})),
            "Error(s) in loading state_dict for Linear: Unexpected key(s) in state_dict: \"weight_g\", \"weight_v\". "
            "Missing key(s) in state_dict: \"weight\". Give the checkpoint of this architecture.");
}

TEST(Nn, WhatAConstructorRefusesComesOutOfEveryCall) {
  const ConvTranspose2d wrong(3, 4, 3, {.padding_mode = "reflect"});
  const std::string words =
      "Only \"zeros\" padding mode is supported for ConvTranspose2d A transposed convolution crops; pad its input.";
  EXPECT_EQ(refusal(wrong.checked()), words);
  Network network;
  const auto x = network.add_input("x", DType::f32, {1, 3, 5, 5});
  EXPECT_EQ(refusal(wrong(x)), words);
  Sequential around(wrong, Mish());
  EXPECT_EQ(refusal(around(x)), words);
  EXPECT_EQ(refusal(around.load_state_dict(StateDict())), words);
  EXPECT_EQ(refusal(network.mark_output(F::relu(around(x)))), words);
}

struct Loose : Module {
  explicit Loose(const std::string& kind) : Module(kind) {}
  using Module::add;
  Result<NetworkTensor> operator()(const Operand& x) const { return F::relu(x); }
};

TEST(Nn, ModulesAreATree) {
  Loose one("One");
  one.add("self", one);
  EXPECT_EQ(refusal(one.checked()), "module 'self' of One holds that module itself. Add modules from the inside out.");
  Loose two("Two");
  Loose inner("Inner");
  two.add("a", inner);
  inner.add("b", two);
  EXPECT_EQ(refusal(two.checked()), "module 'b' of Inner holds that module itself. Add modules from the inside out.");
  Loose three("Three");
  three.add("a", Mish());
  three.add("a", Mish());
  EXPECT_EQ(refusal(three.checked()), "two modules of Three are named 'a'. Give each module a name of its own.");
}

TEST(Nn, ErrorsOfParametersAndOperands) {
  Network network;
  Network other({.name = "other"});
  const auto x = network.add_input("x", DType::f32, {2, 3});
  const auto z = other.add_input("z", DType::f32, {2, 3});
  Linear linear(3, 4, {.bias = false});
  EXPECT_EQ(refusal(linear(x)),
            "parameter 'weight' of shape (4, 3) has no elements yet. Use load_state_dict, or set its value.");
  EXPECT_EQ(refusal(linear.weight.set_value(filled({4}, 1))),
            "parameter 'weight' is given the shape (4,); expected (4, 3). Give a weight of this layer's sizes.");
  EXPECT_EQ(refusal(linear.bias.set_value(filled({4}, 1))),
            "this layer has no such parameter. Give the layer a bias or a weight.");
  EXPECT_EQ(refusal(F::concat({x, z})),
            "tensors of two networks are given, 'network' and 'other'. Give tensors of one.");
  EXPECT_EQ(refusal(F::add(1, 2)),
            "none of the operands is a tensor of a network, so they name none. Give a tensor that add_input, "
            "add_constant or a layer gave.");
  EXPECT_EQ(refusal(F::softmax(NetworkTensor())), refusal(F::add(1, 2)));
  EXPECT_EQ(refusal(F::linear(x, {})), "weight is not there. Give a tensor or a number.");
  const auto wrong = F::softmax(x, 2);
  EXPECT_EQ(refusal(F::view(x, F::relu(wrong))), refusal(wrong));
  EXPECT_EQ(refusal(F::layer_norm(x, 3, {.weight = wrong})), refusal(wrong));
  EXPECT_EQ(refusal(F::interpolate(x, {.scale_factor = std::nan("")})),
            "Got 2D input, but nearest mode needs 4D input Give (N, C, spatial...).");
  const auto image = network.add_input("image", DType::f32, {1, 1, 4});
  for (const double factor : {std::nan(""), 0.0, -2.0})
    EXPECT_NE(refusal(F::interpolate(image, {.scale_factor = factor})).find("scale_factor is "), std::string::npos);
  EXPECT_NE(refusal(F::interpolate(image, {.scale_factor = INFINITY})).find("beyond 64-bit"), std::string::npos);
  EXPECT_EQ(refusal(at_once({}, {})), "at_once is given no function. Give a module, or a function of layers.");
}

}  // namespace
}  // namespace polyphase::api::nn
