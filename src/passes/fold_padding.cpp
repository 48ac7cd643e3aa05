// fold_padding: padding that the operator behind, or before, does by itself.
//
//   %p = pad(%x) pre=[0, 0, 1] post=[0, 0, 1]
//   %y = conv(%p, %w) pre=[0] post=[0]                  →  %y = conv(%x, %w) pre=[1] post=[1]
//   %y = conv_transpose(%p, %w) stride=[2] pre=[1] …    →  %y = conv_transpose(%x, %w) stride=[2] pre=[-1] …
//   %y = max_pool(%p) …       (a pad by -inf)           →  %y = max_pool(%x) pre=[1] post=[1] …
//   %y = avg_pool(%p) …                                 →  %y = avg_pool(%x) pre=[1] post=[1] include_pad=true
//
//   %c = conv_transpose(%x, %w) pre=[0] post=[0]
//   %y = pad(%c) pre=[0, 0, -1] post=[0, 0, 2]          →  %y = conv_transpose(%x, %w) pre=[1] post=[-2]
//
// Condition: constant mode, spatial axes only, nobody else reads what lies between, and the padding is the operator's
// own value (0, or -inf). A crop that comes before a padding is not undone by it. After a transposed convolution what
// is cut off may always be left out; what is added must be where nothing but 0 would be: no bias, and no crop on that
// side.
#include <algorithm>
#include <limits>

#include "passes/passes.h"
#include "passes/weights.h"

namespace polyphase {
namespace {

using Dims = std::vector<Dim>;

struct Padding {
  Dims pre;  // of the spatial axes
  Dims post;
};

// A pad of spatial axes by one value; nothing else.
std::optional<Padding> spatial_padding(const Node& pad, double value) {
  if (pad.attributes().get<std::string>("mode") != "constant") return std::nullopt;
  const auto& pre = pad.attributes().get<Dims>("pre");
  const auto& post = pad.attributes().get<Dims>("post");
  const bool adds = std::any_of(pre.begin(), pre.end(), [](const Dim& d) { return !surely_less_equal(d, 0); }) ||
                    std::any_of(post.begin(), post.end(), [](const Dim& d) { return !surely_less_equal(d, 0); });
  if (adds && pad.attributes().get<double>("value") != value) return std::nullopt;
  if (pre.size() < 3) return std::nullopt;
  for (std::size_t axis = 0; axis < 2; ++axis) {
    if (!(pre[axis] == 0) || !(post[axis] == 0)) return std::nullopt;
  }
  return Padding{{pre.begin() + 2, pre.end()}, {post.begin() + 2, post.end()}};
}

bool is_positive_or_zero(const Dim& dim) { return surely_less_equal(0, dim); }
bool is_negative_or_zero(const Dim& dim) { return surely_less_equal(dim, 0); }

// Adds the pad's amounts to the operator's own; false where the pad crops what the operator would pad.
bool add_to(Dims& own, const Dims& pad) {
  for (std::size_t i = 0; i < own.size(); ++i) {
    if (!is_positive_or_zero(pad[i]) && !is_negative_or_zero(own[i])) return false;
    own[i] += pad[i];
  }
  return true;
}

bool into_convolution(Graph& graph, Node* node, const Node& pad) {
  const auto padding = spatial_padding(pad, 0);
  if (!padding.has_value()) return false;
  ConvolutionWindow window(*node);
  if (node->is("conv")) {
    if (!add_to(window.pre, padding->pre) || !add_to(window.post, padding->post)) return false;
  } else {
    for (std::size_t i = 0; i < window.pre.size(); ++i) {
      if (!is_positive_or_zero(padding->pre[i]) || !is_positive_or_zero(padding->post[i])) return false;
      window.pre[i] -= padding->pre[i] * Dim(window.stride[i]);
      window.post[i] -= padding->post[i] * Dim(window.stride[i]);
    }
  }
  std::vector<Value*> inputs = node->inputs();
  inputs[0] = pad.input(0);
  Rewrite rewrite(graph, node);
  return rewrite.commit(node->output(), rewrite.add(node->op().name, window.attributes(), std::move(inputs)));
}

bool into_pool(Graph& graph, Node* node, const Node& pad) {
  const bool averages = node->is("avg_pool");
  const auto padding = spatial_padding(pad, averages ? 0 : -std::numeric_limits<double>::infinity());
  if (!padding.has_value() || node->attributes().get<bool>("ceil")) return false;
  Attributes attributes = node->attributes();
  Dims pre = attributes.get<Dims>("pre");
  Dims post = attributes.get<Dims>("post");
  if (averages) {
    const auto is_zero = [](const Dim& dim) { return dim == 0; };
    const bool pads = !std::all_of(pre.begin(), pre.end(), is_zero) || !std::all_of(post.begin(), post.end(), is_zero);
    if (pads && !attributes.get<bool>("include_pad")) return false;
    attributes.set("include_pad", true);
  }
  if (!add_to(pre, padding->pre) || !add_to(post, padding->post)) return false;
  attributes.set("pre", pre);
  attributes.set("post", post);
  Rewrite rewrite(graph, node);
  return rewrite.commit(node->output(), rewrite.add(node->op().name, attributes, {pad.input(0)}));
}

bool behind_transposed_convolution(Graph& graph, Node* pad) {
  Node* node = produced_for_one(graph, pad->input(0), "conv_transpose");
  const auto padding = node == nullptr ? std::nullopt : spatial_padding(*pad, 0);
  if (!padding.has_value()) return false;
  ConvolutionWindow window(*node);
  const auto subtract = [&](Dims& crop, const Dims& added) {
    for (std::size_t i = 0; i < crop.size(); ++i) {
      const bool only_crops = is_negative_or_zero(added[i]);
      if (!only_crops && (node->input(2) != nullptr || !is_negative_or_zero(crop[i]))) return false;
      crop[i] -= added[i];
    }
    return true;
  };
  if (!subtract(window.pre, padding->pre) || !subtract(window.post, padding->post)) return false;
  Rewrite rewrite(graph, pad, node->name());
  return rewrite.commit(pad->output(), rewrite.add("conv_transpose", window.attributes(), node->inputs()));
}

bool fold_pad(Graph& graph, Node* node) {
  if (node->is("pad")) return behind_transposed_convolution(graph, node);
  const bool convolves = node->is("conv") || node->is("conv_transpose");
  if (!convolves && !node->is("max_pool") && !node->is("avg_pool")) return false;
  const Node* pad = produced_for_one(graph, node->input(0), "pad");
  if (pad == nullptr) return false;
  return convolves ? into_convolution(graph, node, *pad) : into_pool(graph, node, *pad);
}

}  // namespace

bool fold_padding(Graph& graph, const Target&) { return at_every_node(graph, fold_pad); }

}  // namespace polyphase
