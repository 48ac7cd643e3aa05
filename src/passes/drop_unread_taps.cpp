// drop_unread_taps: taps of a convolution that read nothing but padding, or write nothing but what is cropped.
//
//   %y = conv(%x: f32[N, C, 16], %w: f32[M, C, 3]) dilation=[24] pre=[24] post=[24]
//                                       →  %y = conv(%x, slice(%w) start=[0, 0, 1]) dilation=[24] pre=[0] post=[0]
//
// At each end of the kernel, on axes whose sizes are known. Condition: constant weights, so that cutting them costs
// nothing at run time. Dilated filters over small images have such taps, and the innermost layers of networks that
// halve their image down to a pixel.
#include "passes/passes.h"
#include "passes/weights.h"

namespace polyphase {
namespace {

// One axis: positions p = i * stride + tap * dilation - pre of `walked` steps i, of which those in [0, size) count.
struct Reach {
  std::int64_t walked;
  std::int64_t size;
  std::int64_t stride;
  std::int64_t dilation;
  std::int64_t pre;

  bool counts(std::int64_t tap) const {
    const std::int64_t offset = tap * dilation - pre;
    const std::int64_t first = offset >= 0 ? 0 : (-offset + stride - 1) / stride;
    return first < walked && first * stride + offset < size;
  }
};

struct Taps {
  std::int64_t first;
  std::int64_t end;
};

// The least run of taps that has all that count; one if none does.
Taps taps_that_count(const Reach& reach, std::int64_t count) {
  Taps taps = {0, count};
  while (taps.end > 1 && !reach.counts(taps.end - 1)) --taps.end;
  while (taps.first + 1 < taps.end && !reach.counts(taps.first)) ++taps.first;
  return taps;
}

// Nothing if a size of the axis is open or 0.
std::optional<Reach> reach_of(const Node& node, const ConvolutionWindow& window, std::size_t axis) {
  const int own = static_cast<int>(axis) + 2;
  const auto in = node.input(0)->type.shape[own].constant();
  const auto out = node.output()->type.shape[own].constant();
  const auto pre = window.pre[axis].constant();
  if (!in || !out || !pre || *in == 0 || *out == 0) return std::nullopt;
  const bool transposed = node.is("conv_transpose");
  return Reach{transposed ? *in : *out, transposed ? *out : *in, window.stride[axis], window.dilation[axis], *pre};
}

bool drop_taps(Graph& graph, Node* node) {
  const Value* weights = node->input(1);
  if (!is_constant(weights)) return false;
  ConvolutionWindow window(*node);
  std::vector<Dim> start(static_cast<std::size_t>(weights->type.shape.rank()), 0);
  std::vector<Dim> size = weights->type.shape.dims();
  for (std::size_t axis = 0; axis < window.pre.size(); ++axis) {
    const auto reach = reach_of(*node, window, axis);
    const auto count = size[axis + 2].constant();
    if (!reach || !count) continue;
    const Taps taps = taps_that_count(*reach, *count);
    start[axis + 2] = taps.first;
    size[axis + 2] = taps.end - taps.first;
    window.pre[axis] = window.pre[axis] - window.dilation[axis] * taps.first;
    window.post[axis] = window.post[axis] - window.dilation[axis] * (*count - taps.end);
  }
  if (size == weights->type.shape.dims()) return false;
  Rewrite rewrite(graph, node);
  std::vector<Value*> inputs = node->inputs();
  inputs[1] = rewrite.slice(inputs[1], std::move(start), std::move(size));
  if (!rewrite.ok()) return false;
  return rewrite.commit(node->output(), rewrite.add(node->op().name, window.attributes(), std::move(inputs)));
}

}  // namespace

bool drop_unread_taps(Graph& graph, const Target&) {
  return at_every_node(graph, [](Graph& each, Node* node) {
    return (node->is("conv") || node->is("conv_transpose")) && drop_taps(each, node);
  });
}

}  // namespace polyphase
