// turn_conv_transpose_into_conv: a transposed convolution of stride 1 is a convolution with the taps reversed.
//
//   %y = conv_transpose(%x, %w) stride=[1] dilation=[d] pre=[c]
//                                       →  %y = conv(%x, flip(swap(%w))) dilation=[d] pre=[d*(k-1) - c]
//
// A crop beyond d*(k-1) becomes a negative padding, which crops the input. Conditions: constant weights, so that
// turning them round costs nothing at run time; an image of more than one pixel, since one pixel meets each tap once,
// and the convolution would have all others read padding.
#include "passes/passes.h"
#include "passes/weights.h"

namespace polyphase {
namespace {

bool turn_conv_transpose(Graph& graph, Node* node) {
  Value* weights = node->input(1);
  ConvolutionWindow window(*node);
  if (!window.has_stride_one() || !is_constant(weights) || is_one_pixel(node->input(0)->type.shape)) return false;
  const Shape& shape = weights->type.shape;
  for (std::size_t i = 0; i < window.pre.size(); ++i) {
    const Dim reach = Dim(window.dilation[i]) * (shape[static_cast<int>(i) + 2] - 1);
    window.pre[i] = reach - window.pre[i];
    window.post[i] = reach - window.post[i];
  }
  Rewrite rewrite(graph, node);
  std::vector<Value*> inputs = node->inputs();
  inputs[1] = flip_taps(rewrite, swap_channels(rewrite, weights, window.groups), 2);
  if (!rewrite.ok()) return false;
  return rewrite.commit(node->output(), rewrite.add("conv", window.attributes(), std::move(inputs)));
}

}  // namespace

bool turn_conv_transpose_into_conv(Graph& graph, const Target&) {
  return at_every_node(
      graph, [](Graph& each, Node* node) { return node->is("conv_transpose") && turn_conv_transpose(each, node); });
}

}  // namespace polyphase
