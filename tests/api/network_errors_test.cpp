// What networks written layer by layer refuse, and what they say to it.
#include "api/network_calls.h"
#include "polyphase/network.h"

namespace polyphase::api {
namespace {

TEST(Network, AnErrorComesFromItsCallAndGoesThroughTheRest) {
  Network network;
  const auto x = network.add_input("x", DType::f32, {1, 2, 4});
  const auto w = network.add_constant(view(three_taps.data(), {1, 1, 3}), "w");
  const auto up = network.add_deconvolution_nd(x, w, {}, {}, "up1");
  const std::string expected =
      "node 'up1': Given transposed=1, weight of size [1, 1, 3], expected input[1, 2, 4] to have 1 channels, but got 2 "
      "channels instead (docs/operators.md says what operator conv_transpose takes.)";
  EXPECT_EQ(refusal(up), expected);
  const auto y = network.add(network.relu(up, "act"), 1, "more");
  EXPECT_EQ(refusal(y), expected);
  EXPECT_EQ(refusal(network.mark_output(y)), expected);
  // The names of refused layers are free, and nothing is left of them.
  const auto again = network.relu(x, "up1");
  EXPECT_EQ(shape_of(again), "1 2 4");
  ASSERT_TRUE(network.mark_output(again).ok());
  EXPECT_EQ(network.text().find("conv_transpose"), std::string::npos) << network.text();
}

TEST(Network, RefusesWrongSettings) {
  Network network;
  const auto x = network.add_input("x", DType::f32, {1, 1, "W"});
  const auto w = network.add_constant(view(three_taps.data(), {1, 1, 3}), "w");
  EXPECT_EQ(refusal(network.add_deconvolution_nd(x, w, {}, {.output_padding = {1}}, "up")),
            "node 'up': output padding must be smaller than either stride or dilation, but got output_padding_width: 1 "
            "stride_width: 1 dilation_width: 1 (docs/operators.md says what operator conv_transpose takes.)");
  EXPECT_EQ(
      refusal(network.add_deconvolution_nd(x, w, {}, {.stride = {2}, .output_padding = {1}, .output_size = {7}}, "up")),
      "node 'up': output_padding and output_size are both given. Give one of them: each tells the other.");
  EXPECT_EQ(refusal(network.add_deconvolution_nd(x, w, {}, {.stride = {2, 2}}, "up")),
            "node 'up': expected stride to be a single integer value or a list of 1 values to match the convolution "
            "dimensions, but got stride=[2, 2] (PyTorch refuses the same: change the call of conv_transpose.)");
  EXPECT_EQ(
      refusal(network.add_convolution_nd(x, w, {}, {.stride = {2, 2}}, "down")),
      "node 'down': stride is [2, 2]; expected one value, or one for each of the 1 spatial axes. The weight's rank "
      "less two is the number of spatial axes.");
  EXPECT_EQ(refusal(network.add_convolution_nd(x, w, {}, {.kernel = {5}}, "down")),
            "node 'down': kernel is [5], but the weight is f32[1, 1, 3]. Leave kernel out: the weight tells it.");
  EXPECT_EQ(
      refusal(network.add_convolution_nd(x, w, {}, {.pre_padding = {1}, .padding_mode = PaddingMode::valid}, "down")),
      "node 'down': pre_padding or post_padding is given beside padding mode VALID, which works them out itself. "
      "Give paddings with mode explicit, or none.");
  EXPECT_EQ(refusal(network.add_convolution_nd(x, {}, {}, {}, "down")),
            "node 'down': operand 'weight' of a convolution is not there. Give a tensor: an input, a layer's result, "
            "or add_constant.");
  EXPECT_EQ(
      refusal(network.add_convolution_nd(x, x, {}, {.pre_padding = {"Q"}}, "down")),
      "node 'down': the size 'Q' is written with 'Q', which is no size of this network. Its symbolic sizes are: W.");
  EXPECT_EQ(
      refusal(network.add_input("z", DType::f32, {"3x"})),
      "node 'z': the size '3x' is no number, no name and no expression over names. Write sizes as 3, H or 2*H + 1.");
  EXPECT_EQ(refusal(network.add_input("z", DType::f32, {-1})), "input 'z' has the size -1. Sizes are 0 or more.");
  EXPECT_EQ(refusal(network.add_input("z", DType::f32, {INT64_MAX, 2})),
            "input 'z' has the shape [9223372036854775807, 2], beyond 64-bit arithmetic. Use smaller sizes.");
  EXPECT_EQ(refusal(network.add_input("z", DType::f32, std::vector<Size>(9, 1))),
            "input 'z' has rank 9; the highest rank is 8. Use fewer axes.");
}

TEST(Network, RefusesWrongAttributes) {
  Network network;
  const auto x = network.add_input("x", DType::f32, {1, 3});
  EXPECT_EQ(
      refusal(network.add_layer("softmax", {x}, {{"axis", std::string("1")}}, "s")),
      "node 's': attribute 'axis' of operator softmax is a word; expected an integer. docs/operators.md lists the "
      "attributes of each operator.");
  EXPECT_EQ(refusal(network.add_layer("softmax", {x}, {{"dim", std::int64_t{1}}}, "s")),
            "node 's': operator softmax has no attribute 'dim'. It has: axis.");
  EXPECT_EQ(refusal(network.add_layer("softmax", {x}, {}, "s")),
            "node 's': operator softmax needs the attribute 'axis'. docs/operators.md lists the attributes of each "
            "operator.");
  EXPECT_EQ(refusal(network.add_layer("sofmax", {x}, {}, "s")),
            "there is no operator 'sofmax'. docs/operators.md lists the operators.");
  EXPECT_EQ(refusal(network.add_layer("constant", {}, {}, "s")),
            "operator constant is not added as a plain layer. Use add_constant, add_if and add_loop.");
  EXPECT_EQ(refusal(network.add_layer("softmax", {x, x}, {{"axis", std::int64_t{1}}}, "s")),
            "node 's': operator softmax takes at most 1 operands, found 2. docs/operators.md says what softmax takes; "
            "export the model again if a tool wrote it.");
  EXPECT_EQ(refusal(network.dims({.values = {1, 2}, .scalar = true}, "d")),
            "node 'd': dims: a scalar has one value, found [1, 2]. Give one value, or leave scalar out.");
  EXPECT_TRUE(network.add_layer("clip", {x}, {{"low", std::int64_t{0}}}, "s").ok());
}

TEST(Network, KeepsItsTensorsApartFromThoseOfOthers) {
  Network one({.name = "one"});
  Network two({.name = "two"});
  const auto x = one.add_input("x", DType::f32, {1});
  EXPECT_EQ(refusal(two.relu(x, "act")),
            "node 'act': the operand is tensor 'x' of another network, 'one'. Use tensors that add_input, add_constant "
            "and layers of this network gave.");
  EXPECT_EQ(refusal(two.relu(NetworkTensor(), "act")),
            "node 'act': an operand is a NetworkTensor that no network gave. Use tensors that add_input, add_constant "
            "and layers of this network gave.");
  EXPECT_EQ(refusal(two.mark_output(1.0)),
            "a number, or nothing, is given where a tensor is needed. Give a tensor that add_input, add_constant or a "
            "layer of this network gave.");
  EXPECT_EQ(refusal(compile(two)), "the network has no output. Mark the tensors that it gives: mark_output.");
}

TEST(Network, NamesAreGivenOnce) {
  Network network;
  const auto x = network.add_input("x", DType::f32, {2});
  EXPECT_EQ(
      refusal(network.add_input("x", DType::f32, {2})),
      "two tensors are named 'x': one of input 'x', which is there, and this one. Give each tensor a name of its own.");
  const auto a = network.relu(x, "act");
  EXPECT_EQ(refusal(network.exp(x, "act")),
            "two layers are named 'act': one of operator relu that is there, and this one of operator exp. Give each "
            "layer a name of its own, or none.");
  EXPECT_EQ(network.exp(x)->name(), "exp_1");
  EXPECT_EQ(network.exp(x)->name(), "exp_2");
  EXPECT_EQ(
      refusal(network.set_name(a, "x")),
      "two tensors are named 'x': one of input 'x', which is there, and this one. Give each tensor a name of its own.");
  ASSERT_TRUE(network.set_name(a, "features").ok());
  EXPECT_EQ(a->name(), "features");
  ASSERT_TRUE(network.set_name(x, "image").ok());
  ASSERT_TRUE(network.mark_output(a).ok());
  EXPECT_EQ(refusal(network.mark_output(x, "features")),
            "two outputs are named 'features': tensor 'features' of layer 'act', and tensor 'image' of input 'x'. Give "
            "each output a name of its own.");
  const auto engine = compile(network);
  ASSERT_TRUE(engine.ok()) << engine.error().text();
  EXPECT_EQ(engine->inputs()[0].name, "image");
  EXPECT_EQ(engine->outputs()[0].name, "features");
}

TEST(Network, KeepsToTheLimitsOfOthers) {
  Network network({.name = "for_tensorrt", .limits = "tensorrt"});
  const auto x = network.add_input("x", DType::f32, {1, 1, 4});
  const auto w = network.add_constant(view(three_taps.data(), {1, 1, 3}), "w");
  EXPECT_EQ(
      refusal(network.add_deconvolution_nd(x, w, {}, {.stride = {2}}, "up")),
      "node 'up': TensorRT refuses this (deconvolution-1d): a deconvolution has 2 or 3 spatial axes, and x is f32[1, "
      "1, 4]. Reshape x to (N, C, 1, W) and the weight to (.., .., 1, k), with stride 1, dilation 1 and no padding on "
      "the new axis; reshape the result back.");
  const auto wide = network.reshape(x, {.shape = {1, 1, 1, 4}});
  const auto tall = network.reshape(w, {.shape = {1, 1, 1, 3}});
  const auto up = network.add_deconvolution_nd(wide, tall, {}, {.stride = {1, 2}}, "up");
  ASSERT_TRUE(network.mark_output(network.reshape(up, {.shape = {1, 1, 9}})).ok());
  EXPECT_EQ(run(network, {view(ramp.data(), {1, 1, 4})}), (std::vector<float>{1, 10, 102, 20, 203, 30, 304, 40, 400}));
  Network nobodys({.name = "for_nobody", .limits = "tensorflow"});
  EXPECT_EQ(refusal(nobodys.add_input("x", DType::f32, {1})),
            "limits is 'tensorflow'; there are none of that name. Limits are known of: tensorrt.");
}

}  // namespace
}  // namespace polyphase::api
