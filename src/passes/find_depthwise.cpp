// find_depthwise: a convolution whose weights are 0 between different channels works channel by channel.
//
//   %y = conv_transpose(%x, %w)    w: (C, C, k, k), w[a, b] = 0 for a != b
//                                                   →   %y = conv_transpose(%x, diagonal of %w) groups=C
//
// Bilinear upsampling in FCN is written so. Reads the weights. (An infinite activation times such a 0 would be NaN; the
// result does without.)
#include <algorithm>

#include "passes/passes.h"
#include "passes/weights.h"

namespace polyphase {
namespace {

// The weights w[c, c], tap after tap; nothing if there are others. Most weights say so with their second element, so
// none is read ahead.
std::optional<std::vector<double>> diagonal_of(const TensorView& weights) {
  const std::int64_t channels = weights.sizes[0];
  std::vector<double> out;
  TensorView window = weights;  // of two channels
  window.sizes[0] = window.sizes[1] = 1;
  for (std::int64_t a = 0; a < channels; ++a) {
    for (std::int64_t b = 0; b < channels; ++b) {
      const std::int64_t offset = a * weights.strides[0] + b * weights.strides[1];
      window.data = weights.data + offset * static_cast<std::int64_t>(size_bytes(weights.dtype));
      const std::vector<double> taps = elements_of(window);
      if (a == b) {
        out.insert(out.end(), taps.begin(), taps.end());
      } else if (std::any_of(taps.begin(), taps.end(), [](double tap) { return tap != 0; })) {
        return std::nullopt;
      }
    }
  }
  return out;
}

bool split(Graph& graph, Node* node) {
  const Tensor* weights = constant_of(node->input(1));
  ConvolutionWindow window(*node);
  if (weights == nullptr || window.groups != 1) return false;
  const std::vector<std::int64_t> sizes = weights->sizes();
  const std::int64_t channels = sizes[0];
  if (channels < 2 || sizes[1] != channels || weights->view().empty()) return false;
  const auto diagonal = diagonal_of(weights->view());
  if (!diagonal.has_value()) return false;
  std::vector<std::int64_t> narrow = sizes;
  narrow[1] = 1;
  window.groups = channels;
  Rewrite rewrite(graph, node);
  std::vector<Value*> inputs = node->inputs();
  inputs[1] = rewrite.constant(Tensor::from_values(weights->dtype(), narrow, *diagonal));
  return rewrite.commit(node->output(), rewrite.add(node->op().name, window.attributes(), std::move(inputs)));
}

}  // namespace

bool find_depthwise(Graph& graph, const Target&) {
  return at_every_node(graph, [](Graph& each, Node* node) {
    return (node->is("conv") || node->is("conv_transpose")) && is_float(node->output()->type.dtype) &&
           split(each, node);
  });
}

}  // namespace polyphase
