// recognise_inverse_stft: frames that are added up where they overlap are a transposed convolution, and what makes the
// frames from their spectra joins its weights.
//
//   %i = place t·hop + n of element n of frame t         %f = transpose(%frames)
//   %s = scatter_nd(zeros, %i, %frames) add        →     %s = conv_transpose(%f, ones where tap = channel) stride=hop
//
//   %f = dft(%z) inverse onesided                        %p = real parts, imaginary parts as channels
//   %w = mul(%f, %window)                                %y = conv_transpose(%p, window · inverse basis) stride=hop
//   %y = conv_transpose(%w, %weights) stride=hop   →
//
//   %e = expand(%squares)  [1, points, T]                %o = expand(1)  [1, 1, T]
//   %y = conv_transpose(%e, %weights)              →     %y = conv_transpose(%o, Σ over points of squares · weights)
//
// torch.istft is written in the first form, torch.nn.functional.fold (Col2Im) arrives as the convolution of the second;
// the third is the sum of the windows that both are divided by; of an open number of frames torch.istft writes that as
// a chain of scatters, one for each point (window_sums.h). Between them reshapes that add or drop axes of one element,
// and transposes. Constant windows and weights, a known number of points. The basis costs points² products for each
// frame: frames that a scatter adds cheaply stay transforms where they are long. Reads values.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "passes/passes.h"
#include "passes/places.h"
#include "passes/rewrite.h"
#include "passes/window_sums.h"

namespace polyphase {
namespace {

using Integers = std::vector<std::int64_t>;

const Dim& size_of_last(const Value* value) { return value->type.shape[value->type.shape.rank() - 1]; }

// ---------------------------------------------------------------- from the convolution back to the spectra

// What the convolution reads, followed back to a transform, or to a constant that is the same for every frame: which
// axis of the transform's result each of its own axes is (-1: an axis of one element), and by what each channel is
// multiplied.
struct Frames {
  const Node* transform = nullptr;  // null: the window is all there is
  std::vector<int> axes;
  std::vector<double> window;
};

// Axis by axis the same but for axes of one element.
bool follow_reshape(const Shape& from, const Shape& to, std::vector<int>& axes) {
  std::vector<int> origin(static_cast<std::size_t>(to.rank()), -1);
  int next = 0;
  for (int axis = 0; axis < to.rank(); ++axis) {
    if (to[axis] == 1) continue;
    while (next < from.rank() && from[next] == 1) ++next;
    if (next == from.rank() || !(from[next] == to[axis])) return false;
    origin[static_cast<std::size_t>(axis)] = next++;
  }
  while (next < from.rank() && from[next] == 1) ++next;
  if (next != from.rank()) return false;
  for (int& axis : axes) axis = axis < 0 ? -1 : origin[static_cast<std::size_t>(axis)];
  return true;
}

// The factors, if they are constant and vary along one axis only.
bool follow_window(const Value* factors, const Shape& image, int axis, std::vector<double>& window) {
  const Tensor* tensor = constant_of(factors);
  if (tensor == nullptr) return false;
  const Shape& own = factors->type.shape;
  for (int i = 0; i < own.rank(); ++i) {
    if (!(own[i] == 1) && i + image.rank() - own.rank() != axis) return false;
  }
  const std::vector<double> values = elements_of(*tensor);
  if (values.size() != 1 && values.size() != window.size()) return false;
  for (std::size_t i = 0; i < window.size(); ++i) window[i] *= values[values.size() == 1 ? 0 : i];
  return true;
}

bool follow(const Graph& graph, const Value* value, Frames& found) {
  for (;;) {
    const Node* node = value->producer;
    if (node == nullptr || !graph.has_one_user(value)) return false;
    const Shape& shape = value->type.shape;
    const int channel = found.axes[1];
    if (node->is("dft")) {
      found.transform = node;
      return channel >= 0 && node->attributes().get<std::int64_t>("axis") == channel;
    }
    if (node->is("expand")) return channel >= 0 && follow_window(node->input(0), shape, channel, found.window);
    if (node->is("reshape")) {
      if (!follow_reshape(node->input(0)->type.shape, shape, found.axes)) return false;
    } else if (node->is("transpose")) {
      const auto& order = node->attributes().get<Integers>("order");
      for (int& axis : found.axes) axis = axis < 0 ? -1 : static_cast<int>(order[static_cast<std::size_t>(axis)]);
    } else if (node->is("mul")) {
      std::size_t side = 0;
      while (side < 2 && !(node->input(side)->type == value->type &&
                           follow_window(node->input(1 - side), shape, channel, found.window)))
        ++side;
      if (side == 2) return false;
      value = node->input(side);
      continue;
    } else {
      return false;
    }
    value = node->input(0);
  }
}

// ---------------------------------------------------------------- a scatter as overlap-add

Tensor ones_on_diagonal(DType dtype, std::int64_t points) {
  std::vector<double> weights(static_cast<std::size_t>(points * points));
  for (std::int64_t n = 0; n < points; ++n) weights[static_cast<std::size_t>(n * points + n)] = 1;
  return Tensor::from_values(dtype, Integers{points, 1, points}, weights);
}

// Beyond, the transform and the addition of its frames cost less than the products.
constexpr std::int64_t longest_scattered = 1024;

// Rows of frames · points updates, one column for each of the batch.
bool turn_scatter(Graph& graph, Node* scatter) {
  if (scatter->attributes().get<std::string>("reduction") != "add" || !is_zero(scatter->input(0))) return false;
  const Shape& whole = scatter->output()->type.shape;
  const Node* turn = produced_by(scatter->input(2), "transpose");
  if (whole.rank() != 2 || turn == nullptr || !is_float(scatter->output()->type.dtype)) return false;
  const Node* flat = produced_by(turn->input(0), "reshape");
  const auto places = places_of(scatter->input(1));
  if (flat == nullptr || !places.has_value() || places->offset != 0) return false;
  Value* frames = flat->input(0);
  const Shape& from = frames->type.shape;
  const std::vector<Places::Axis>& axes = places->axes;
  if (axes.size() != 2 || from.rank() != 3 || axes[1].step != 1 || axes[0].step < 1) return false;
  if (!(axes[0].size == from[1]) || !(axes[1].size == from[2]) || !from[2].is_constant() || !(from[0] == whole[1]))
    return false;
  const std::int64_t points = from[2].value();
  const std::int64_t hop = axes[0].step;
  if (points > longest_scattered || hop > points || !graph.has_one_user(flat->output())) return false;
  Frames source{nullptr, {0, 2, 1}, std::vector<double>(static_cast<std::size_t>(points), 1.0)};
  if (!follow(graph, frames, source)) return false;
  const Dim behind = (from[1] - 1) * Dim(hop) + Dim(points) - whole[0];
  Rewrite rewrite(graph, scatter);
  Value* channels = rewrite.add("transpose", Attributes({{"order", Integers{0, 2, 1}}}), {frames});
  Value* weights = rewrite.constant(ones_on_diagonal(frames->type.dtype, points));
  Value* sums = rewrite.add("conv_transpose",
                            Attributes({{"stride", Integers{hop}},
                                        {"dilation", Integers{1}},
                                        {"pre", std::vector<Dim>{Dim(0)}},
                                        {"post", std::vector<Dim>{behind}}}),
                            {channels, weights});
  if (!rewrite.ok()) return false;
  Value* rows = rewrite.reshape(sums, Shape({from[0], whole[0]}));
  return rewrite.commit(scatter->output(), rewrite.add("transpose", Attributes({{"order", Integers{1, 0}}}), {rows}));
}

// ---------------------------------------------------------------- spectra as channels

struct Spectra {
  Value* value = nullptr;  // of the transform
  const Frames* frames = nullptr;
  Shape image;  // of the convolution's operand
  Dim bins;
};

// The axes of `value` (without the parts of a complex number, if `apart`) in the order of the convolution's, those of
// one element in front.
Integers order_of(const Spectra& z, bool apart) {
  const int last = z.value->type.shape.rank() - 1;
  Integers order;
  std::vector<bool> used(static_cast<std::size_t>(last), false);
  for (const int axis : z.frames->axes) {
    if (axis >= 0) used[static_cast<std::size_t>(axis)] = true;
  }
  for (int axis = 0; axis < last; ++axis) {
    if (!used[static_cast<std::size_t>(axis)]) order.push_back(axis);
  }
  for (std::size_t i = 0; i < z.frames->axes.size(); ++i) {
    if (i == 1 && !apart) order.push_back(last);
    if (z.frames->axes[i] >= 0) order.push_back(z.frames->axes[i]);
  }
  return order;
}

Value* in_order(Rewrite& rewrite, Value* value, const Integers& order) {
  if (!rewrite.ok() || std::is_sorted(order.begin(), order.end())) return value;
  return rewrite.add("transpose", Attributes({{"order", order}}), {value});
}

Shape with_channels(const Shape& image, const Dim& channels) {
  Shape out = image;
  out[1] = channels;
  return out;
}

// (batch, 2 · bins, …): the real parts, then the imaginary ones.
Value* channels_of(Rewrite& rewrite, const Spectra& z) {
  const Node* pair = produced_by(z.value, "concat");
  const Node* turn = produced_by(z.value, "transpose");
  Integers outer(static_cast<std::size_t>(z.value->type.shape.rank()));
  std::iota(outer.begin(), outer.end(), 0);
  if (turn != nullptr && turn->attributes().get<Integers>("order").back() + 1 == z.value->type.shape.rank()) {
    outer = turn->attributes().get<Integers>("order");
    pair = produced_by(turn->input(0), "concat");
  }
  const std::int64_t last = z.value->type.shape.rank() - 1;
  const bool made_of_two = pair != nullptr && pair->inputs().size() == 2 &&
                           pair->attributes().get<std::int64_t>("axis") == last && size_of_last(pair->input(0)) == 1 &&
                           size_of_last(pair->input(1)) == 1;
  if (!made_of_two) {
    Value* ordered = in_order(rewrite, z.value, order_of(z, false));
    return rewrite.ok() ? rewrite.reshape(ordered, with_channels(z.image, z.bins * 2)) : nullptr;
  }
  std::vector<Value*> parts;
  for (Value* part : pair->inputs()) {
    Shape without = part->type.shape;
    part = rewrite.reshape(part, Shape(std::vector<Dim>(without.begin(), without.end() - 1)));
    Integers order;
    for (const std::int64_t axis : order_of(z, true)) order.push_back(outer[static_cast<std::size_t>(axis)]);
    part = in_order(rewrite, part, order);
    if (!rewrite.ok()) return nullptr;
    parts.push_back(rewrite.reshape(part, with_channels(z.image, z.bins)));
  }
  return rewrite.add("concat", Attributes({{"axis", std::int64_t{1}}}), std::move(parts));
}

// ---------------------------------------------------------------- the basis

// The weights times the window, by (point, …).
std::vector<double> windowed(const Frames& frames, const Tensor& weights) {
  std::vector<double> out = elements_of(weights);
  const std::size_t row = out.size() / frames.window.size();
  for (std::size_t i = 0; i < out.size(); ++i) out[i] *= frames.window[i / row];
  return out;
}

// For one channel of ones: the sum over points.
Tensor summed_weights(const Frames& frames, const Tensor& old) {
  const std::vector<double> before = windowed(frames, old);
  const std::size_t row = before.size() / frames.window.size();
  std::vector<double> out(row);
  for (std::size_t i = 0; i < before.size(); ++i) out[i % row] += before[i];
  Integers sizes = old.sizes();
  sizes[0] = 1;
  return Tensor::from_values(old.dtype(), sizes, out);
}

// weights[channel of spectra][…] = Σ over points of basis · window · old weights; what is zero in `old` costs nothing.
Tensor joined_weights(const Frames& frames, std::int64_t bins, const Tensor& old) {
  const auto points = static_cast<std::int64_t>(frames.window.size());
  const std::vector<double> before = windowed(frames, old);
  const std::int64_t row = static_cast<std::int64_t>(before.size()) / points;
  std::vector<double> cosine(frames.window.size());
  std::vector<double> sine(frames.window.size());
  for (std::int64_t i = 0; i < points; ++i) {
    const double angle = 2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(points);
    cosine[static_cast<std::size_t>(i)] = std::cos(angle) / static_cast<double>(points);
    sine[static_cast<std::size_t>(i)] = std::sin(angle) / static_cast<double>(points);
  }
  std::vector<double> out(static_cast<std::size_t>(2 * bins * row));
  for (std::int64_t n = 0; n < points; ++n) {
    for (std::int64_t j = 0; j < row; ++j) {
      const double weight = before[static_cast<std::size_t>(n * row + j)];
      if (weight == 0) continue;
      for (std::int64_t k = 0; k < std::min(bins, points / 2 + 1); ++k) {
        const double mirrored = k == 0 || 2 * k == points ? 1 : 2;
        const auto turn = static_cast<std::size_t>(k * n % points);
        out[static_cast<std::size_t>(k * row + j)] += mirrored * weight * cosine[turn];
        out[static_cast<std::size_t>((bins + k) * row + j)] -= mirrored * weight * sine[turn];
      }
    }
  }
  Integers sizes = old.sizes();
  sizes[0] = 2 * bins;
  return Tensor::from_values(old.dtype(), sizes, out);
}

bool join_transform(Graph& graph, Node* conv) {
  const Value* image = conv->input(0);
  const Tensor* weights = constant_of(conv->input(1));
  if (weights == nullptr || conv->attributes().get<std::int64_t>("groups") != 1 || image->type.shape.rank() < 3 ||
      !image->type.shape[1].is_constant() || !is_float(image->type.dtype))
    return false;
  const std::int64_t points = image->type.shape[1].value();
  Frames found;
  found.axes.resize(static_cast<std::size_t>(image->type.shape.rank()));
  std::iota(found.axes.begin(), found.axes.end(), 0);
  found.window.assign(static_cast<std::size_t>(points), 1.0);
  if (points < 2 || !follow(graph, image, found)) return false;
  Rewrite rewrite(graph, conv);
  std::vector<Value*> inputs = conv->inputs();
  if (found.transform == nullptr) {
    inputs[0] = rewrite.expand(rewrite.scalar(image->type.dtype, 1), with_channels(image->type.shape, 1));
    inputs[1] = rewrite.constant(summed_weights(found, *weights));
  } else {
    const Attributes& transform = found.transform->attributes();
    Value* spectra = found.transform->input(0);
    const Dim& bins = spectra->type.shape[static_cast<int>(transform.get<std::int64_t>("axis"))];
    if (!transform.get<bool>("inverse") || !transform.get<bool>("onesided") || !bins.is_constant() ||
        !(size_of_last(spectra) == 2))
      return false;
    inputs[0] = channels_of(rewrite, {spectra, &found, image->type.shape, bins});
    inputs[1] = rewrite.constant(joined_weights(found, bins.value(), *weights));
  }
  if (!rewrite.ok()) return false;
  return rewrite.commit(conv->output(), rewrite.add("conv_transpose", conv->attributes(), std::move(inputs)));
}

bool recognise_overlap_add(Graph& graph, Node* node) {
  if (node->outputs().empty() || node->output()->type.dtype == DType::f64) return false;
  if (node->is("scatter_nd")) return turn_scatter(graph, node) || join_window_sums(graph, node);
  return node->is("conv_transpose") && join_transform(graph, node);
}

}  // namespace

bool recognise_inverse_stft(Graph& graph, const Target&) {
  return in_every_graph(graph, [](Graph& each) {
    bool changed = false;
    // A scatter's convolution joins its transform in the second round.
    for (int round = 0; round < 2; ++round) {
      for (Node* node : each.node_list()) changed = recognise_overlap_add(each, node) || changed;
    }
    return changed;
  });
}

}  // namespace polyphase
