// turn_nearest_resize_into_conv_transpose: a convolution over an image whose elements were repeated s times is a
// transposed convolution of stride s over the image itself, whose taps are sums of the taps that met the same element.
//
//   %z = resize(%x) sizes=[N, C, s*H]                  %y = conv_transpose(%x, w') stride=[s] pre=[k-1 - p]
//   %y = conv(%z, %w) pre=[p]                     →    w'[t] = Σ_m flip(w)[t - m],  0 ≤ m < s,  0 ≤ t < k+s-1
//
// Of the k products of an output (k+s-1)/s are left per axis: of 9 in two dimensions with k = 3, s = 2 four, and the
// enlarged image is never written. (Of one tap move_pointwise_before_resize has put before the resize what it could.)
//
// Condition: place o of the result is place floor(o/s) of the operand on every axis, s > 1 on spatial axes only; the
// convolution has stride 1, no dilation where s > 1, and constant weights. Sums of weights are rounded, so results
// differ in the last bits. Few pixels stay as they are: reading the larger kernel would take longer than the products.
#include <algorithm>
#include <optional>

#include "ops/resize_axis.h"
#include "passes/passes.h"
#include "passes/weights.h"

namespace polyphase {
namespace {

using Dims = std::vector<Dim>;
using Factors = std::vector<std::int64_t>;

constexpr std::int64_t largest_factor = 8;
constexpr std::int64_t most_growth = 8;     // of the kernel
constexpr std::int64_t fewest_pixels = 32;  // of the image, that each weight serves

// How often every element is repeated along an axis, if that is so for any size of it.
std::optional<std::int64_t> factor_of(const Node& resize, std::size_t axis) {
  const Dim& in = resize.input(0)->type.shape[static_cast<int>(axis)];
  const Dim& out = resize.output()->type.shape[static_cast<int>(axis)];
  std::int64_t factor = 1;
  while (factor <= largest_factor && !(out == in * Dim(factor))) ++factor;
  if (factor > largest_factor) return std::nullopt;
  for (const std::int64_t size : {1, 2, 5}) {
    const ResizeAxis places = resize_axis(resize.attributes(), axis, size, size * factor);
    for (std::int64_t place = 0; place < places.out; ++place) {
      const auto sources = resize_sources(resize.attributes(), places, place);
      if (sources.size() != 1 || sources.front().place != place / factor) return std::nullopt;
    }
  }
  return factor;
}

// The factors of the spatial axes; nothing if the resize is anything else than repeating elements along them.
std::optional<Factors> spatial_factors(const Node& resize) {
  const Attributes& given = resize.attributes();
  const auto& coordinate = given.get<std::string>("coordinate");
  if (given.get<std::string>("mode") != "nearest" || coordinate == "align_corners" ||
      coordinate == "tf_crop_and_resize") {
    return std::nullopt;
  }
  Factors factors;
  for (int axis = 0; axis < resize.input(0)->type.shape.rank(); ++axis) {
    const auto factor = factor_of(resize, static_cast<std::size_t>(axis));
    if (!factor.has_value() || (axis < 2 && *factor != 1)) return std::nullopt;
    if (axis >= 2) factors.push_back(*factor);
  }
  return factors;
}

// Taps along `axis`, each the sum of the `factor` taps up to it.
Value* sum_taps(Rewrite& rewrite, Value* weights, int axis, std::int64_t factor) {
  if (!rewrite.ok() || factor == 1) return weights;
  Value* sum = nullptr;
  for (std::int64_t m = 0; m < factor; ++m) {
    Dims pre(static_cast<std::size_t>(weights->type.shape.rank()), 0);
    Dims post = pre;
    pre[static_cast<std::size_t>(axis)] = m;
    post[static_cast<std::size_t>(axis)] = factor - 1 - m;
    Value* moved = rewrite.add("pad", Attributes({{"pre", pre}, {"post", post}}), {weights});
    sum = sum == nullptr ? moved : rewrite.add("add", {}, {sum, moved});
  }
  return sum;
}

bool join(Graph& graph, Node* convolution, const Node& resize, const Factors& factors) {
  ConvolutionWindow window(*convolution);
  const Shape& kernel = convolution->input(1)->type.shape;
  const Shape& image = resize.input(0)->type.shape;
  double growth = 1;
  for (std::size_t i = 0; i < factors.size(); ++i) {
    const auto taps = static_cast<double>(kernel[static_cast<int>(i) + 2].value());
    if (factors[i] > 1 && window.dilation[i] != 1 && taps > 1) return false;
    growth *= (taps + static_cast<double>(factors[i] - 1)) / taps;
  }
  if (growth > most_growth || surely_less_equal(image.element_count(), Dim(fewest_pixels) * image[1])) return false;
  Rewrite rewrite(graph, convolution);
  std::vector<Value*> inputs = convolution->inputs();
  inputs[0] = resize.input(0);
  inputs[1] = flip_taps(rewrite, swap_channels(rewrite, inputs[1], window.groups), 2);
  for (std::size_t i = 0; i < factors.size(); ++i) {
    const Dim reach = Dim(window.dilation[i]) * (kernel[static_cast<int>(i) + 2] - 1);
    inputs[1] = sum_taps(rewrite, inputs[1], static_cast<int>(i) + 2, factors[i]);
    window.stride[i] = factors[i];
    if (factors[i] > 1) window.dilation[i] = 1;
    window.pre[i] = reach - window.pre[i];
    window.post[i] = reach - window.post[i];
  }
  if (!rewrite.ok()) return false;
  return rewrite.commit(convolution->output(), rewrite.add("conv_transpose", window.attributes(), std::move(inputs)));
}

bool turn_resize(Graph& graph, Node* convolution) {
  const Node* resize = produced_by(convolution->input(0), "resize");
  if (resize == nullptr || !is_constant(convolution->input(1)) || !is_float(resize->output()->type.dtype)) return false;
  if (!ConvolutionWindow(*convolution).has_stride_one()) return false;
  const auto factors = spatial_factors(*resize);
  if (!factors.has_value() || std::all_of(factors->begin(), factors->end(), [](auto factor) { return factor == 1; }))
    return false;
  return join(graph, convolution, *resize, *factors);
}

}  // namespace

bool turn_nearest_resize_into_conv_transpose(Graph& graph, const Target&) {
  return at_every_node(graph, [](Graph& each, Node* node) { return node->is("conv") && turn_resize(each, node); });
}

}  // namespace polyphase
