// turn_zero_insertion_into_conv_transpose: zeros put between the elements, and a convolution over them, are a
// transposed convolution that never sees the zeros.
//
//   %a = reshape(%x) shape=[N, C, H, 1]
//   %b = pad(%a) post=[0, 0, 0, s-1]                    %z = conv_transpose(%x, ones[C, 1, 1]) stride=[s] groups=C
//   %z = reshape(%b) shape=[N, C, H*s]              →        post=[1-s]
//
//   %z = conv_transpose(%x, ones) groups=C stride=[s]
//   %y = conv(%z, %w) dilation=[d] pre=[p]          →   %y = conv_transpose(%x, flip(swap(%w))) stride=[s] dilation=[d]
//                                                            pre=[d*(k-1) - p + pre of %z]
//
// Condition of the second: the kernel that inserts is one tap of 1 per channel without bias, and crops nothing; the
// convolution has stride 1 and constant weights; nobody else reads the values between.
#include <algorithm>

#include "passes/passes.h"
#include "passes/weights.h"

namespace polyphase {
namespace {

using Dims = std::vector<Dim>;

// One spatial axis of reshape, pad, reshape: its step; 1 where nothing is inserted.
std::optional<std::vector<std::int64_t>> steps_of(const Shape& from, const Shape& split, const Node& pad) {
  if (pad.attributes().get<std::string>("mode") != "constant" || pad.attributes().get<double>("value") != 0)
    return std::nullopt;
  const auto& pre = pad.attributes().get<Dims>("pre");
  const auto& post = pad.attributes().get<Dims>("post");
  std::vector<std::int64_t> steps;
  int at = 0;  // in `split`
  for (int axis = 0; axis < from.rank(); ++axis, ++at) {
    const auto place = static_cast<std::size_t>(at);
    if (at >= split.rank() || !(split[at] == from[axis]) || !(pre[place] == 0) || !(post[place] == 0))
      return std::nullopt;
    const bool opens = at + 1 < split.rank() && split[at + 1] == 1 && split.rank() - at > from.rank() - axis;
    if (axis >= 2) steps.push_back(1);
    if (!opens) continue;
    ++at;
    const Dim& zeros = post[place + 1];
    if (axis < 2 || !(pre[place + 1] == 0) || !zeros.is_constant() || zeros.value() < 0) return std::nullopt;
    steps.back() = zeros.value() + 1;
  }
  if (at != split.rank()) return std::nullopt;
  return steps;
}

bool name_insertion(Graph& graph, Node* last) {
  const Node* pad = produced_for_one(graph, last->input(0), "pad");
  const Node* first = pad == nullptr ? nullptr : produced_for_one(graph, pad->input(0), "reshape");
  if (first == nullptr) return false;
  Value* x = first->input(0);
  const Shape& from = x->type.shape;
  if (from.rank() < 3 || from.rank() > 5 || !is_float(x->type.dtype) || !from[1].is_constant()) return false;
  const auto steps = steps_of(from, first->output()->type.shape, *pad);
  if (!steps.has_value()) return false;
  const auto spatial = steps->size();
  Dims post;
  for (const std::int64_t step : *steps) post.push_back(Dim(1 - step));
  Dims sizes{from[1], 1};
  sizes.insert(sizes.end(), spatial, Dim(1));
  Rewrite rewrite(graph, last);
  Value* ones = rewrite.expand(rewrite.scalar(x->type.dtype, 1), Shape(sizes));
  const Attributes attributes({{"stride", *steps},
                               {"dilation", std::vector<std::int64_t>(spatial, 1)},
                               {"groups", from[1].value()},
                               {"pre", Dims(spatial, 0)},
                               {"post", post}});
  return rewrite.ok() && rewrite.commit(last->output(), rewrite.add("conv_transpose", attributes, {x, ones}));
}

bool never_crops(const Dims& dims) {
  return std::all_of(dims.begin(), dims.end(), [](const Dim& dim) { return surely_less_equal(dim, 0); });
}

// One tap of 1 per channel: what name_insertion writes, or a model itself.
bool inserts_zeros(const Node& node) {
  const ConvolutionWindow window(node);
  const Value* weights = node.input(1);
  const Shape& shape = weights->type.shape;
  if (node.input(2) != nullptr || !(shape[0] == window.groups) || !never_crops(window.pre) || !never_crops(window.post))
    return false;
  if (!(shape.element_count() == window.groups)) return false;
  if (const Node* filled = produced_by(weights, "expand")) weights = filled->input(0);
  return is_filled_with(weights, 1);
}

bool join(Graph& graph, Node* convolution) {
  const Node* insertion = produced_for_one(graph, convolution->input(0), "conv_transpose");
  if (insertion == nullptr || !inserts_zeros(*insertion) || !is_constant(convolution->input(1))) return false;
  const ConvolutionWindow inserted(*insertion);
  ConvolutionWindow window(*convolution);
  if (!window.has_stride_one()) return false;
  Value* weights = convolution->input(1);
  for (std::size_t i = 0; i < window.pre.size(); ++i) {
    const Dim reach = Dim(window.dilation[i]) * (weights->type.shape[static_cast<int>(i) + 2] - 1);
    window.stride[i] = inserted.stride[i];
    window.pre[i] = reach - window.pre[i] + inserted.pre[i];
    window.post[i] = reach - window.post[i] + inserted.post[i];
  }
  Rewrite rewrite(graph, convolution);
  std::vector<Value*> inputs = convolution->inputs();
  inputs[0] = insertion->input(0);
  inputs[1] = flip_taps(rewrite, swap_channels(rewrite, weights, window.groups), 2);
  if (!rewrite.ok()) return false;
  return rewrite.commit(convolution->output(), rewrite.add("conv_transpose", window.attributes(), std::move(inputs)));
}

}  // namespace

bool turn_zero_insertion_into_conv_transpose(Graph& graph, const Target&) {
  return at_every_node(graph, [](Graph& each, Node* node) {
    return (node->is("reshape") && name_insertion(each, node)) || (node->is("conv") && join(each, node));
  });
}

}  // namespace polyphase
