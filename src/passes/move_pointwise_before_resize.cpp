// move_pointwise_before_resize: a convolution of one tap and a resize change places, so that the convolution works on
// the small image.
//
//   %z = resize(%x) sizes=[N, C, 4*H, 4*W]              %c = conv(%x, %w, %b)
//   %y = conv(%z, %w, %b)                          →    %y = resize(%c) sizes=[N, M, 4*H, 4*W]
//
//   %z = resize(%x) …                                   %c = conv(%x, slice(%w))
//   %t = concat(%a, %z) axis=1                     →    %r = resize(%c) …
//   %y = conv(%t, %w, %b)                               %y = add(conv(%a, slice(%w), %b), %r)
//
// as decoders write it that bring the images of all levels to the size of the largest (SegFormer, UPerNet). Resampling
// is linear and the same for every channel, and its weights add up to 1, which lets the bias pass; what is rounded
// differs. Condition: a resize of the spatial axes alone, to at least twice the pixels, that nobody else reads;
// constant weights, one group; so many channels that the products saved pay for resampling those of the result. A
// nearest resize, which moves elements only, always goes last.
#include <algorithm>

#include "passes/passes.h"
#include "passes/weights.h"

namespace polyphase {
namespace {

using Dims = std::vector<Dim>;

// One tap and no padding: each output reads one pixel.
bool is_pointwise(const Node& convolution) {
  const ConvolutionWindow window(convolution);
  const auto none = [](const Dims& dims) {
    return std::all_of(dims.begin(), dims.end(), [](const Dim& dim) { return dim == 0; });
  };
  return window.has_stride_one() && none(window.pre) && none(window.post) &&
         is_one_pixel(convolution.input(1)->type.shape);
}

Dim pixels_of(const Shape& image) { return product_of(image, 2, image.rank()); }

// Whether the products saved at each pixel pay for resampling `to` channels instead of `from`, and for reading them
// once more: measured, a product takes a fiftieth of a nanosecond, an element that is resampled one, one that is read
// half.
bool pays(const Dim& from, const Dim& to) {
  const auto channels = from.constant();
  const auto results = to.constant();
  if (!channels || !results) return false;
  constexpr std::int64_t fewest = 32;
  constexpr std::int64_t fewest_of_many = 96;  // of results that are more than twice as many
  return *channels >= (2 * *channels >= *results ? fewest : fewest_of_many);
}

// The resize that gives `value`, if a convolution of `results` channels may go before it.
const Node* movable_resize(const Graph& graph, Value* value, const Dim& results) {
  const Node* resize = produced_by(value, "resize");
  if (resize == nullptr) return nullptr;
  const Shape& from = resize->input(0)->type.shape;
  const Shape& to = value->type.shape;
  if (from.rank() < 3 || !(from[0] == to[0]) || !(from[1] == to[1])) return nullptr;
  const Attributes& given = resize->attributes();
  const auto& scales = given.get<std::vector<double>>("scales");
  if (!scales.empty() && (scales[0] != 1 || scales[1] != 1)) return nullptr;
  if (given.get<std::string>("coordinate") == "tf_crop_and_resize") return nullptr;
  if (!surely_less_equal(pixels_of(from) * 2, pixels_of(to))) return nullptr;
  if (given.get<std::string>("mode") == "nearest" && is_float(value->type.dtype)) return resize;
  const bool is_read_once = value->type.dtype == DType::f32 && graph.has_one_user(value) && !graph.is_output(value);
  return is_read_once && pays(from[1], results) ? resize : nullptr;
}

// The convolution of an image that is the operand's channels from `first` on.
Value* convolve_part(Rewrite& rewrite, const Node& convolution, Value* image, const Dim& first, Value* bias) {
  Value* weights = convolution.input(1);
  Dims start(static_cast<std::size_t>(weights->type.shape.rank()), 0);
  Dims size = weights->type.shape.dims();
  start[1] = first;
  size[1] = image->type.shape[1];
  Value* part = rewrite.slice(weights, std::move(start), std::move(size));
  if (!rewrite.ok()) return nullptr;
  std::vector<Value*> inputs = {image, part};
  if (bias != nullptr) inputs.push_back(bias);
  return rewrite.add("conv", convolution.attributes(), std::move(inputs));
}

Value* resize_like(Rewrite& rewrite, const Node& resize, Value* small, const Shape& to) {
  if (!rewrite.ok()) return nullptr;
  Attributes attributes = resize.attributes();
  attributes.set("sizes", to.dims());
  return rewrite.add("resize", attributes, {small});
}

Value* bias_of(const Node& convolution) { return convolution.inputs().size() > 2 ? convolution.input(2) : nullptr; }

bool move_before(Graph& graph, Node* convolution, const Node& resize) {
  Rewrite rewrite(graph, convolution);
  std::vector<Value*> inputs = convolution->inputs();
  inputs[0] = resize.input(0);
  Value* small = rewrite.add("conv", convolution->attributes(), std::move(inputs));
  Value* result = resize_like(rewrite, resize, small, convolution->output()->type.shape);
  return rewrite.ok() && rewrite.commit(convolution->output(), result);
}

// The operands that are no such resizes stay together and come first in the sum: the others can join it as it is
// stored.
bool take_apart(Graph& graph, Node* convolution, const Node& concat) {
  const Shape& to = convolution->output()->type.shape;
  std::vector<const Node*> resizes;
  std::vector<std::size_t> others;
  for (std::size_t i = 0; i < concat.inputs().size(); ++i) {
    resizes.push_back(movable_resize(graph, concat.input(i), to[1]));
    if (resizes.back() == nullptr) others.push_back(i);
  }
  const bool are_neighbours = others.empty() || others.back() - others.front() + 1 == others.size();
  if (others.size() == resizes.size() || !are_neighbours) return false;
  Rewrite rewrite(graph, convolution);
  Value* sum = nullptr;
  Value* bias = bias_of(*convolution);
  const auto add = [&](Value* term) {
    sum = sum == nullptr || !rewrite.ok() ? term : rewrite.add("add", {}, {sum, term});
  };
  const auto first_channel = [&](std::size_t operand) {
    Dim first = 0;
    for (std::size_t i = 0; i < operand; ++i) first = first + concat.input(i)->type.shape[1];
    return first;
  };
  if (!others.empty()) {
    std::vector<Value*> images;
    for (const std::size_t i : others) images.push_back(concat.input(i));
    Value* image = images.size() == 1 ? images.front() : rewrite.add("concat", concat.attributes(), images);
    if (!rewrite.ok()) return false;
    add(convolve_part(rewrite, *convolution, image, first_channel(others.front()), bias));
    bias = nullptr;
  }
  for (std::size_t i = 0; i < resizes.size() && rewrite.ok(); ++i) {
    if (resizes[i] == nullptr) continue;
    Value* small = convolve_part(rewrite, *convolution, resizes[i]->input(0), first_channel(i), bias);
    bias = nullptr;
    add(resize_like(rewrite, *resizes[i], small, to));
  }
  return rewrite.ok() && rewrite.commit(convolution->output(), sum);
}

bool move_pointwise(Graph& graph, Node* convolution) {
  if (!is_constant(convolution->input(1)) || !is_pointwise(*convolution)) return false;
  Value* image = convolution->input(0);
  if (const Node* resize = movable_resize(graph, image, convolution->output()->type.shape[1]))
    return move_before(graph, convolution, *resize);
  const Node* concat = produced_for_one(graph, image, "concat");
  return concat != nullptr && ConvolutionWindow(*convolution).groups == 1 &&
         concat->attributes().get<std::int64_t>("axis") == 1 && take_apart(graph, convolution, *concat);
}

}  // namespace

bool move_pointwise_before_resize(Graph& graph, const Target&) {
  return at_every_node(graph, [](Graph& each, Node* node) { return node->is("conv") && move_pointwise(each, node); });
}

}  // namespace polyphase
