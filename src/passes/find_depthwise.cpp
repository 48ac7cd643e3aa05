// find_depthwise: a convolution whose weights are 0 between different channels works channel by channel.
//
//   %y = conv_transpose(%x, %w)    w: (C, C, k, k), w[a, b] = 0 for a != b
//                                                   →   %y = conv_transpose(%x, diagonal of %w) groups=C
//
// Bilinear upsampling in FCN is written so. Reads the weights. (An infinite activation times such a 0 would be NaN; the
// result does without.)
#include "passes/passes.h"
#include "passes/weights.h"

namespace polyphase {
namespace {

bool split(Graph& graph, Node* node) {
  const Tensor* weights = constant_of(node->input(1));
  ConvolutionWindow window(*node);
  if (weights == nullptr || window.groups != 1) return false;
  const std::vector<std::int64_t> sizes = weights->sizes();
  const std::int64_t channels = sizes[0];
  if (channels < 2 || sizes[1] != channels) return false;
  const std::vector<double> values = elements_of(*weights);
  if (values.empty()) return false;
  const std::int64_t taps = static_cast<std::int64_t>(values.size()) / (channels * channels);
  std::vector<double> diagonal;
  for (std::int64_t a = 0; a < channels; ++a) {
    for (std::int64_t b = 0; b < channels; ++b) {
      for (std::int64_t t = 0; t < taps; ++t) {
        const double value = values[static_cast<std::size_t>((a * channels + b) * taps + t)];
        if (a == b) diagonal.push_back(value);
        if (a != b && value != 0) return false;
      }
    }
  }
  std::vector<std::int64_t> narrow = sizes;
  narrow[1] = 1;
  window.groups = channels;
  Rewrite rewrite(graph, node);
  std::vector<Value*> inputs = node->inputs();
  inputs[1] = rewrite.constant(Tensor::from_values(weights->dtype(), narrow, diagonal));
  return rewrite.commit(node->output(), rewrite.add(node->op().name, window.attributes(), std::move(inputs)));
}

}  // namespace

bool find_depthwise(Graph& graph, const Target&) {
  return in_every_graph(graph, [](Graph& each) {
    bool changed = false;
    for (Node* node : each.node_list()) {
      changed = ((node->is("conv") || node->is("conv_transpose")) && is_float(node->output()->type.dtype) &&
                 split(each, node)) ||
                changed;
    }
    return changed;
  });
}

}  // namespace polyphase
