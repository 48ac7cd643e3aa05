// move_factors_out_of_weights: computed factors of a convolution's weights, one for each input or output channel, scale
// the images instead, so that the weights are constant.
//
//   %m = mul(%w: f32[M, C, k, k], %s: f32[1, C, 1, 1])          %z = mul(%x, %s)
//   %n = mul(%m, %d: f32[M, 1, 1, 1])                     →     %c = conv(%z, %w)
//   %y = conv(%x, %n)                                           %y = mul(%c, reshape(%d) to [1, M, 1, 1])
//
// Modulated convolutions (StyleGAN2, Karras et al. 2020) then need no weights packed at every run. They give each image
// of a batch its own group of channels; where the groups differ in their factors only, they become a batch again.
// Transposes and reshapes may stand in between. Condition: FP32, sizes that are known, and an image that is small
// beside the weights. Every product has the same factors, rounded in another order.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "passes/passes.h"
#include "passes/weights.h"

namespace polyphase {
namespace {

// Weights of which computing and packing one takes as long as scaling so many elements of an image.
constexpr std::int64_t elements_for_a_weight = 8;

// Where an axis of a factor lies: `step` elements of an axis of the weights apart. Axes of one element lie nowhere.
struct WeightAxis {
  int of = -1;
  std::int64_t step = 0;
  std::int64_t size = 1;
};
using WeightAxes = std::vector<WeightAxis>;

std::int64_t elements_along(const Dim& dim) { return dim.constant().value_or(1); }

// Those of a value that broadcasts to one whose axes lie at `axes`.
WeightAxes axes_of_operand(const WeightAxes& axes, const Shape& operand) {
  WeightAxes own(axes.end() - operand.rank(), axes.end());
  for (int i = 0; i < operand.rank(); ++i) {
    if (operand[i] == 1) own[static_cast<std::size_t>(i)] = {};
  }
  return own;
}

// Those of a reshape's operand; nothing where the elements along an axis of it lie unevenly, or a size is open.
std::optional<WeightAxes> axes_before_reshape(const WeightAxes& axes, const Shape& operand) {
  if (!operand.is_static()) return std::nullopt;
  WeightAxes own(static_cast<std::size_t>(operand.rank()));
  std::size_t next = axes.size();
  WeightAxis axis;  // what no axis of the operand has yet of the result's present one
  const auto take_next = [&] {
    while (axis.size == 1 && next > 0) axis = axes[--next];
  };
  for (int i = operand.rank() - 1; i >= 0; --i) {
    const std::int64_t size = elements_along(operand[i]);
    if (size == 1) continue;
    take_next();
    WeightAxis taken = {axis.of, axis.step, 1};
    while (taken.size < size) {
      take_next();
      const std::int64_t more = std::min(size / taken.size, axis.size);
      const bool is_even = axis.of == taken.of && axis.step == taken.step * taken.size;
      if (!is_even || axis.size % more != 0 || size % (taken.size * more) != 0) return std::nullopt;
      taken.size *= more;
      axis = {axis.of, axis.step * more, axis.size / more};
    }
    own[static_cast<std::size_t>(i)] = taken;
  }
  return own;
}

// The weights as a constant times factors of the channels on both sides.
class FactoredWeights {
 public:
  FactoredWeights(Rewrite& rewrite, const Node& convolution, std::int64_t groups)
      : rewrite_(rewrite),
        shape_(convolution.input(1)->type.shape),
        groups_(groups),
        is_transposed_(convolution.is("conv_transpose")),
        rows_(elements_along(shape_[0]) / groups) {
    WeightAxes axes;
    for (int i = 0; i < shape_.rank(); ++i) {
      const std::int64_t size = elements_along(shape_[i]);
      axes.push_back(size == 1 ? WeightAxis{} : WeightAxis{i, 1, size});
    }
    constant_ = without_factors(convolution.input(1), axes);
    if (constant_ != nullptr) constant_ = rewrite_.expand(constant_, shape_);
  }

  // Null where they are no such product.
  Value* constant() const {
    return rewrite_.ok() && !fails_ && (of_rows_ != nullptr || of_columns_ != nullptr) ? constant_ : nullptr;
  }
  // The constant of one group, the same in each.
  Value* constant_of_group() const {
    std::vector<Dim> size = shape_.dims();
    size[0] = rows_;
    return rewrite_.slice(constant_, std::vector<Dim>(size.size(), 0), size);
  }
  bool groups_differ() const { return groups_differ_; }
  // The factors of each channel (C), or null.
  Value* of_input() const { return is_transposed_ ? of_rows_ : of_columns_; }
  Value* of_output() const { return is_transposed_ ? of_columns_ : of_rows_; }

 private:
  // The value without its computed factors, which are taken; broadcasts to the value's shape. Null if nothing is left.
  Value* without_factors(Value* value, const WeightAxes& axes) {
    if (!rewrite_.ok() || fails_) return nullptr;
    if (is_constant(value)) {
      for (const WeightAxis& axis : axes) groups_differ_ = groups_differ_ || (axis.of == 0 && reach(axis) > rows_);
      return value;
    }
    const Node* node = value->producer;
    if (node != nullptr && node->is("mul")) {
      Value* parts[2];
      for (std::size_t i = 0; i < 2; ++i)
        parts[i] = without_factors(node->input(i), axes_of_operand(axes, node->input(i)->type.shape));
      if (parts[0] == nullptr || parts[1] == nullptr) return parts[0] == nullptr ? parts[1] : parts[0];
      return parts[0] == node->input(0) && parts[1] == node->input(1) ? value
                                                                      : rewrite_.add("mul", {}, {parts[0], parts[1]});
    }
    if (node != nullptr && node->is("expand"))
      return without_factors(node->input(0), axes_of_operand(axes, node->input(0)->type.shape));
    if (node != nullptr && (node->is("transpose") || node->is("reshape"))) {
      if (const auto own = axes_before(*node, axes)) return moved(*node, *own);
    }
    take(value, axes);
    return nullptr;
  }

  static std::optional<WeightAxes> axes_before(const Node& node, const WeightAxes& axes) {
    if (node.is("reshape")) return axes_before_reshape(axes, node.input(0)->type.shape);
    const auto& order = node.attributes().get<std::vector<std::int64_t>>("order");
    WeightAxes own(axes.size());
    for (std::size_t i = 0; i < order.size(); ++i) own[static_cast<std::size_t>(order[i])] = axes[i];
    return own;
  }

  Value* moved(const Node& node, const WeightAxes& axes) {
    Value* const operand = without_factors(node.input(0), axes);
    if (operand == nullptr) return nullptr;
    Value* const whole = rewrite_.expand(operand, node.input(0)->type.shape);
    return rewrite_.ok() ? rewrite_.add(node.op().name, node.attributes(), {whole}) : nullptr;
  }

  static std::int64_t reach(const WeightAxis& axis) { return axis.step * axis.size; }

  // A factor that is computed: of the weights' rows (groups and all) or of their columns within each group.
  void take(Value* value, const WeightAxes& axes) {
    const bool is_of_columns =
        std::any_of(axes.begin(), axes.end(), [](const WeightAxis& axis) { return axis.of == 1; });
    const std::int64_t channels = is_of_columns ? elements_along(shape_[1]) : rows_;
    std::int64_t groups = 1;
    std::int64_t within = 1;
    bool crosses = false;             // some axis lies within groups and beyond
    std::int64_t before = INT64_MAX;  // how far apart the elements of the axis in front are, in channels
    for (const WeightAxis& axis : axes) {
      if (axis.of < 0) continue;
      const bool is_of_group = axis.of == 0 && axis.step % rows_ == 0;
      if (!is_of_group && axis.of != (is_of_columns ? 1 : 0)) return fail();
      const std::int64_t step = is_of_group ? axis.step / rows_ * channels : axis.step;
      if (step >= before) return fail();
      before = step;
      crosses = crosses || (!is_of_group && step * axis.size > channels);
      (is_of_group ? groups : within) *= axis.size;
    }
    Value*& factors = is_of_columns ? of_columns_ : of_rows_;
    Value* const own =
        crosses && groups * within != groups_ * channels ? nullptr : of_each_channel(value, groups, within, channels);
    if (own == nullptr) return fail();
    factors = factors == nullptr ? own : rewrite_.add("mul", {}, {factors, own});
  }

  Value* of_each_channel(Value* value, std::int64_t groups, std::int64_t within, std::int64_t channels) {
    const Shape all{groups_ * channels};
    if (groups * within == groups_ * channels) return rewrite_.reshape(value, all);
    const bool covers = (groups == 1 || groups == groups_) && (within == 1 || within == channels);
    if (!covers) return nullptr;
    Value* const vector = rewrite_.reshape(value, Shape{groups, within});
    return rewrite_.reshape(rewrite_.expand(vector, Shape{groups_, channels}), all);
  }

  void fail() { fails_ = true; }

  Rewrite& rewrite_;
  Shape shape_;
  std::int64_t groups_;
  bool is_transposed_;
  std::int64_t rows_;  // of a group
  bool fails_ = false;
  bool groups_differ_ = false;  // in their constants
  Value* constant_ = nullptr;
  Value* of_rows_ = nullptr;
  Value* of_columns_ = nullptr;
};

// A number for each channel of a batch of images, against an image of that rank.
Value* beside_image(Rewrite& rewrite, Value* channels, std::int64_t batch, int rank) {
  std::vector<Dim> sizes(static_cast<std::size_t>(rank), 1);
  sizes[0] = batch;
  sizes[1] = elements_along(channels->type.shape[0]) / batch;
  return rewrite.reshape(channels, Shape(sizes));
}

Value* with_batch(Rewrite& rewrite, Value* image, std::int64_t batch) {
  std::vector<Dim> sizes = image->type.shape.dims();
  sizes[0] = sizes[0] * batch;
  sizes[1] = floor_div(sizes[1], batch);
  return rewrite.reshape(image, Shape(sizes));
}

bool move_factors(Graph& graph, Node* node) {
  Value* const weights = node->input(1);
  if (is_constant(weights) || weights->type.dtype != DType::f32 || !weights->type.shape.is_static()) return false;
  const Shape& image = node->input(0)->type.shape;
  const auto elements = image.element_count().constant();
  if (!elements || *elements > elements_for_a_weight * *weights->type.shape.element_count().constant()) return false;
  ConvolutionWindow window(*node);
  Rewrite rewrite(graph, node);
  const FactoredWeights factored(rewrite, *node, window.groups);
  if (factored.constant() == nullptr) return false;
  const bool joins_groups = window.groups > 1 && image[0] == 1 && !factored.groups_differ();
  const std::int64_t batch = joins_groups ? window.groups : 1;
  if (joins_groups) window.groups = 1;
  const auto scale = [&](Value* value, std::string_view op, Value* channels) {
    if (channels == nullptr || !rewrite.ok()) return value;
    return rewrite.add(op, {}, {value, beside_image(rewrite, channels, batch, image.rank())});
  };
  Value* const scaled = scale(with_batch(rewrite, node->input(0), batch), "mul", factored.of_input());
  Value* const constant = joins_groups ? factored.constant_of_group() : factored.constant();
  if (!rewrite.ok()) return false;
  Value* const product = rewrite.add(node->op().name, window.attributes(), {scaled, constant});
  Value* const result = scale(scale(product, "mul", factored.of_output()), "add", node->input(2));
  return rewrite.ok() && rewrite.commit(node->output(), rewrite.reshape(result, node->output()->type.shape));
}

}  // namespace

bool move_factors_out_of_weights(Graph& graph, const Target&) {
  return at_every_node(graph, [](Graph& each, Node* node) {
    return (node->is("conv") || node->is("conv_transpose")) && move_factors(each, node);
  });
}

}  // namespace polyphase
