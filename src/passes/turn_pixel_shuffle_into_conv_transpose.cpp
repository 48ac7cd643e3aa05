// turn_pixel_shuffle_into_conv_transpose: a convolution whose channels are then spread over r × r places is a
// transposed convolution of stride r with kernel r*k, which stores to those places at once.
//
//   %c = conv(%x, %w) pre=[p, p]
//   %y = depth_to_space(%c) block=r         →   %y = conv_transpose(%x, w') stride=[r, r] pre=[r*(k-1-p), …]
//
//   w'[cin, c, r*m + i, r*n + j] = w[channel of (c, i, j), cin, k-1-m, k-1-n]
//
// Condition: stride, dilation and groups 1, constant weights, nobody else reads the convolution, and no bias, or one
// that is the same at all r × r places of a channel (a transposed convolution has one per channel).
#include <algorithm>

#include "passes/passes.h"
#include "passes/weights.h"

namespace polyphase {
namespace {

// The bias per result channel; null where the places of a channel differ.
Value* bias_per_channel(Rewrite& rewrite, Value* bias, std::int64_t area, bool channel_first) {
  const Tensor* tensor = constant_of(bias);
  if (tensor == nullptr) return nullptr;
  const std::vector<double> values = elements_of(*tensor);
  const auto channels = static_cast<std::int64_t>(values.size()) / area;
  for (std::int64_t c = 0; c < channels; ++c) {
    for (std::int64_t place = 1; place < area; ++place) {
      const std::int64_t at = channel_first ? c * area + place : place * channels + c;
      const std::int64_t first = channel_first ? c * area : c;
      if (values[static_cast<std::size_t>(at)] != values[static_cast<std::size_t>(first)]) return nullptr;
    }
  }
  const std::vector<Dim> start{0};
  const std::vector<Dim> size{channels};
  const std::vector<std::int64_t> step{channel_first ? area : 1};
  return rewrite.add("slice", Attributes({{"start", start}, {"size", size}, {"step", step}}), {bias});
}

bool turn_pixel_shuffle(Graph& graph, Node* shuffle) {
  const Node* convolution = produced_for_one(graph, shuffle->input(0), "conv");
  if (convolution == nullptr || !is_constant(convolution->input(1))) return false;
  ConvolutionWindow window(*convolution);
  const auto is_one = [](std::int64_t value) { return value == 1; };
  if (!window.has_stride_one() || window.groups != 1 ||
      !std::all_of(window.dilation.begin(), window.dilation.end(), is_one)) {
    return false;
  }
  const std::int64_t block = shuffle->attributes().get<std::int64_t>("block");
  const bool channel_first = shuffle->attributes().get<std::string>("mode") == "crd";
  Rewrite rewrite(graph, shuffle, convolution->name());
  std::vector<Value*> inputs{convolution->input(0)};

  Value* weights = convolution->input(1);
  const Shape shape = weights->type.shape;  // (C*r*r, Cin, k, k)
  const Dim channels = floor_div(shape[0], Dim(block * block));
  Shape split = channel_first ? Shape{channels, block, block} : Shape{block, block, channels};
  for (int axis = 1; axis < 4; ++axis) split.push_back(shape[axis]);
  const std::vector<std::int64_t> order =
      channel_first ? std::vector<std::int64_t>{3, 0, 4, 1, 5, 2} : std::vector<std::int64_t>{3, 2, 4, 0, 5, 1};
  Value* parts = rewrite.reshape(flip_taps(rewrite, weights, 2), split);
  Value* turned = rewrite.add("transpose", Attributes({{"order", order}}), {parts});
  inputs.push_back(rewrite.reshape(turned, Shape{shape[1], channels, shape[2] * Dim(block), shape[3] * Dim(block)}));
  if (convolution->input(2) != nullptr) {
    inputs.push_back(bias_per_channel(rewrite, convolution->input(2), block * block, channel_first));
    if (inputs.back() == nullptr) return false;
  }
  for (std::size_t i = 0; i < 2; ++i) {
    const Dim reach = shape[static_cast<int>(i) + 2] - 1;
    window.stride[i] = block;
    window.pre[i] = Dim(block) * (reach - window.pre[i]);
    window.post[i] = Dim(block) * (reach - window.post[i]);
  }
  if (!rewrite.ok()) return false;
  return rewrite.commit(shuffle->output(), rewrite.add("conv_transpose", window.attributes(), std::move(inputs)));
}

}  // namespace

bool turn_pixel_shuffle_into_conv_transpose(Graph& graph, const Target&) {
  return at_every_node(
      graph, [](Graph& each, Node* node) { return node->is("depth_to_space") && turn_pixel_shuffle(each, node); });
}

}  // namespace polyphase
