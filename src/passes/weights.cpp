// Convolution weights as nodes.
#include "passes/weights.h"

#include <algorithm>
#include <numeric>

namespace polyphase {

Value* swap_channels(Rewrite& rewrite, Value* weights, std::int64_t groups) {
  if (!rewrite.ok()) return nullptr;
  const Shape shape = weights->type.shape;
  std::vector<Dim> split = shape.dims();
  split[0] = floor_div(shape[0], groups);
  split.insert(split.begin(), groups);
  std::vector<std::int64_t> order(split.size());
  std::iota(order.begin(), order.end(), std::int64_t{0});
  std::swap(order[1], order[2]);
  std::vector<Dim> joined = shape.dims();
  joined[0] = shape[1] * Dim(groups);
  joined[1] = floor_div(shape[0], groups);
  Value* swapped = rewrite.add("transpose", Attributes({{"order", order}}), {rewrite.reshape(weights, Shape(split))});
  return rewrite.reshape(swapped, Shape(joined));
}

Value* flip_taps(Rewrite& rewrite, Value* weights, int first_axis) {
  if (!rewrite.ok()) return nullptr;
  const Shape& shape = weights->type.shape;
  std::vector<Dim> start(static_cast<std::size_t>(shape.rank()), 0);
  std::vector<std::int64_t> step(start.size(), 1);
  bool flips = false;
  for (int axis = first_axis; axis < shape.rank(); ++axis) {
    if (shape[axis] == 1) continue;
    start[static_cast<std::size_t>(axis)] = shape[axis] - 1;
    step[static_cast<std::size_t>(axis)] = -1;
    flips = true;
  }
  if (!flips) return weights;
  return rewrite.add("slice", Attributes({{"start", start}, {"size", shape.dims()}, {"step", step}}), {weights});
}

ConvolutionWindow::ConvolutionWindow(const Node& node)
    : stride(node.attributes().get<std::vector<std::int64_t>>("stride")),
      dilation(node.attributes().get<std::vector<std::int64_t>>("dilation")),
      groups(node.attributes().get<std::int64_t>("groups")),
      pre(node.attributes().get<std::vector<Dim>>("pre")),
      post(node.attributes().get<std::vector<Dim>>("post")),
      products(node.attributes().get<DType>("products")),
      rounds_transformed(node.attributes().get<bool>("rounds_transformed")),
      filters_fours(node.attributes().get<bool>("filters_fours")) {}

Attributes ConvolutionWindow::attributes() const {
  return Attributes({{"stride", stride},
                     {"dilation", dilation},
                     {"groups", groups},
                     {"pre", pre},
                     {"post", post},
                     {"products", products},
                     {"rounds_transformed", rounds_transformed},
                     {"filters_fours", filters_fours}});
}

bool ConvolutionWindow::has_stride_one() const {
  return std::all_of(stride.begin(), stride.end(), [](std::int64_t step) { return step == 1; });
}

}  // namespace polyphase
