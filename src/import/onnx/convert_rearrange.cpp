// CenterCropPad, Col2Im, MaxUnpool, ReverseSequence, Shrink: elements moved, cut or put in place, in ordinary
// operators.
#include <algorithm>

#include "import/onnx/node_context.h"
#include "import/onnx/window_attributes.h"

namespace polyphase {
namespace {

using Sizes = std::vector<Dim>;
using Integers = std::vector<std::int64_t>;

Result<Value*> counted(NodeContext& node, const Dim& count) {
  return node.emit("range", Attributes({{"start", Dim(0)}, {"count", count}, {"step", std::int64_t{1}}}), {});
}

// Each axis loses or gains as much at both ends; what is odd at the end.
Result<Values> convert_center_crop_pad(NodeContext& node) {
  TRY(const Sizes wanted, node.sizes(1));
  const auto rank = static_cast<std::size_t>(node.rank(0));
  Integers axes;
  if (const auto given = node.integers("axes"); given.has_value()) {
    TRY(axes, node.axes(*given, node.rank(0)));
  } else {
    for (std::size_t i = 0; i < rank; ++i) axes.push_back(static_cast<std::int64_t>(i));
  }
  if (axes.size() != wanted.size())
    return broken_rule("shape has " + std::to_string(wanted.size()) + " entries for " + std::to_string(axes.size()) +
                       " axes.");
  Sizes start(rank, Dim(0));
  Sizes size = node.shape(0).dims();
  Sizes pre(rank, Dim(0));
  Sizes post(rank, Dim(0));
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<std::size_t>(axes[i]);
    const Dim old = size[axis];
    start[axis] = max(Dim(0), floor_div(old - wanted[i], Dim(2)));
    size[axis] = min(old, wanted[i]);
    pre[axis] = max(Dim(0), floor_div(wanted[i] - old, Dim(2)));
    post[axis] = max(Dim(0), wanted[i] - old) - pre[axis];
  }
  TRY(Value * value,
      node.emit("slice", Attributes({{"start", start}, {"size", size}, {"step", Integers(rank, 1)}}), {node.input(0)}));
  return single(
      node.emit("pad", Attributes({{"pre", pre}, {"post", post}, {"mode", std::string("constant")}}), {value}));
}

// Columns back into images: a transposed convolution whose kernel puts tap t of a column at place t of the window.
Result<Values> convert_col2im(NodeContext& node) {
  const auto strides = read_list(node, "strides");
  const auto dilations = read_list(node, "dilations");
  const auto all_pads = read_list(node, "pads");
  TRY(const Sizes image, node.sizes(1));
  TRY(const Integers block, node.fixed_integers(2, "block_shape"));
  const std::size_t spatial = block.size();
  if (node.rank(0) != 3 || image.size() != spatial || spatial < 1 || spatial > 3)
    return broken_rule(
        "the operand must be (N, C * taps, L), with one to three entries in image_shape and "
        "block_shape, found " +
        node.type(0).text() + ", " + std::to_string(image.size()) + " and " + std::to_string(spatial) + " entries.");
  const Integers stride = strides.value_or(Integers(spatial, 1));
  const Integers dilation = dilations.value_or(Integers(spatial, 1));
  const Integers pads = all_pads.value_or(Integers(2 * spatial, 0));
  if (stride.size() != spatial || dilation.size() != spatial || pads.size() != 2 * spatial)
    return broken_rule("strides and dilations need an entry per axis of the image, pads two.");
  std::int64_t taps = 1;
  for (std::size_t i = 0; i < spatial; ++i) {
    if (block[i] < 1 || block[i] > 4096 || stride[i] < 1 || dilation[i] < 1 || taps * block[i] > 4096)
      return broken_rule(
          "entries of block_shape, strides and dilations must be at least 1, and the block at most 4096 "
          "taps.");
    taps *= block[i];
  }
  const auto rows = node.shape(0)[1].constant();
  if (!rows.has_value() || *rows < 1 || *rows % taps != 0 || *rows * taps > (1 << 24))
    return broken_rule("axis 1 of the operand must be a multiple of the block's " + std::to_string(taps) +
                       " taps, known before the run, found " + node.type(0).text() + ".");
  Sizes columns{node.shape(0)[0], Dim(*rows)};
  Sizes pre;
  Sizes post;
  for (std::size_t i = 0; i < spatial; ++i) {
    const Dim span(dilation[i] * (block[i] - 1) + 1);
    const Dim count = floor_div(image[i] + Dim(pads[i]) + Dim(pads[spatial + i]) - span, Dim(stride[i])) + 1;
    columns.push_back(count);
    pre.emplace_back(pads[i]);
    post.push_back((count - 1) * Dim(stride[i]) + span - Dim(pads[i]) - image[i]);
  }
  Integers weight_sizes{*rows, 1};
  weight_sizes.insert(weight_sizes.end(), block.begin(), block.end());
  std::vector<double> ones(static_cast<std::size_t>(*rows * taps));
  for (std::int64_t i = 0; i < *rows; ++i) ones[static_cast<std::size_t>(i * taps + i % taps)] = 1;
  Value* weight = node.constant(Tensor::from_values(node.type(0).dtype, weight_sizes, ones));
  TRY(Value * x, reshaped(node, node.input(0), columns));
  return single(node.emit(
      "conv_transpose",
      Attributes({{"stride", stride}, {"dilation", dilation}, {"groups", *rows / taps}, {"pre", pre}, {"post", post}}),
      {x, weight}));
}

// Zeros, then each element at its linear index; the rest of output_shape is filled up with zeros.
Result<Values> convert_max_unpool(NodeContext& node) {
  const auto kernel = read_list(node, "kernel_shape");
  const auto spatial = static_cast<std::size_t>(std::max(0, node.rank(0) - 2));
  if (!kernel.has_value() || kernel->size() != spatial || spatial == 0)
    return broken_rule("kernel_shape must have one entry per spatial axis of " + node.type(0).text() + ".");
  const Integers stride = read_list(node, "strides").value_or(Integers(spatial, 1));
  const Integers pads = read_list(node, "pads").value_or(Integers(2 * spatial, 0));
  if (stride.size() != spatial || pads.size() != 2 * spatial)
    return broken_rule("strides needs an entry per spatial axis, pads two.");
  Sizes shape = node.shape(0).dims();
  for (std::size_t i = 0; i < spatial; ++i)
    shape[i + 2] = (shape[i + 2] - 1) * Dim(stride[i]) - Dim(pads[i]) - Dim(pads[spatial + i]) + Dim((*kernel)[i]);
  Dim count(1);
  for (const Dim& dim : shape) count *= dim;
  TRY(Value * zeros, node.emit("expand", Attributes({{"shape", Sizes{count}}}), {node.scalar(node.type(0).dtype, 0)}));
  TRY(Value * x, reshaped(node, node.input(0), {node.shape(0).element_count()}));
  TRY(Value * indices, reshaped(node, node.input(1), {node.shape(1).element_count()}));
  TRY(Value * y, node.emit("scatter_elements", Attributes({{"axis", std::int64_t{0}}}), {zeros, indices, x}));
  TRY(y, reshaped(node, y, shape));
  if (!node.has(2)) return Values{y};
  TRY(const Sizes wanted, node.sizes(2));
  if (wanted.size() != shape.size())
    return broken_rule("output_shape must have " + std::to_string(shape.size()) + " entries, found " +
                       std::to_string(wanted.size()) + ".");
  Sizes post;
  for (std::size_t i = 0; i < shape.size(); ++i) post.push_back(wanted[i] - shape[i]);
  return single(node.emit(
      "pad", Attributes({{"pre", Sizes(shape.size(), Dim(0))}, {"post", post}, {"mode", std::string("constant")}}),
      {y}));
}

// The first lengths[b] steps of sequence b backwards, the others as they are.
Result<Values> convert_reverse_sequence(NodeContext& node) {
  const std::int64_t time_axis = node.integer("time_axis", 0);
  const std::int64_t batch_axis = node.integer("batch_axis", 1);
  if (node.rank(0) < 2 || time_axis + batch_axis != 1 || time_axis < 0 || batch_axis < 0)
    return broken_rule("time_axis and batch_axis must be 0 and 1, or 1 and 0, of at least two axes; found " +
                       std::to_string(time_axis) + " and " + std::to_string(batch_axis) + " for " +
                       node.type(0).text() + ".");
  Integers order(static_cast<std::size_t>(node.rank(0)));
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::int64_t>(i);
  if (time_axis == 0) std::swap(order[0], order[1]);
  Value* x = node.input(0);
  if (time_axis == 0) {
    TRY(x, node.emit("transpose", Attributes({{"order", order}}), {x}));
  }
  const Dim batch = x->type.shape[0];
  const Dim steps = x->type.shape[1];
  TRY(Value * lengths, node.emit("cast", Attributes({{"to", DType::i64}}), {node.input(1)}));
  TRY(lengths, reshaped(node, lengths, {batch, Dim(1)}));
  TRY(Value * step, counted(node, steps));
  TRY(Value * is_inside, node.emit("less", {}, {step, lengths}));
  TRY(Value * backwards, node.emit("sub", {}, {lengths, step}));
  TRY(backwards, node.emit("sub", {}, {backwards, node.constant(Tensor::from_integers(DType::i64, {}, Integers{1}))}));
  TRY(Value * from, node.emit("where", {}, {is_inside, backwards, step}));
  TRY(from, reshaped(node, from, {batch, steps, Dim(1)}));
  TRY(Value * y, node.emit("gather_nd", Attributes({{"batch_dims", std::int64_t{1}}}), {x, from}));
  if (time_axis == 0) {
    TRY(y, node.emit("transpose", Attributes({{"order", order}}), {y}));
  }
  return Values{y};
}

// x + bias below -lambd, x - bias above lambd, 0 between; integers in FP64.
Result<Values> convert_shrink(NodeContext& node) {
  const DType dtype = node.type(0).dtype;
  const DType computed = is_float(dtype) ? dtype : DType::f64;
  const double lambd = node.real("lambd", 0.5);
  const double bias = node.real("bias", 0.0);
  TRY(Value * x, node.emit("cast", Attributes({{"to", computed}}), {node.input(0)}));
  TRY(Value * is_low, node.emit("less", {}, {x, node.scalar(computed, -lambd)}));
  TRY(Value * is_high, node.emit("greater", {}, {x, node.scalar(computed, lambd)}));
  TRY(Value * raised, node.emit("add", {}, {x, node.scalar(computed, bias)}));
  TRY(Value * lowered, node.emit("sub", {}, {x, node.scalar(computed, bias)}));
  TRY(Value * y, node.emit("where", {}, {is_high, lowered, node.scalar(computed, 0)}));
  TRY(y, node.emit("where", {}, {is_low, raised, y}));
  return single(node.emit("cast", Attributes({{"to", dtype}}), {y}));
}

}  // namespace

std::vector<Converter> rearrange_converters() {
  return {
      {"CenterCropPad", {18}, 2, 2, convert_center_crop_pad},
      {"Col2Im", {18}, 3, 3, convert_col2im},
      {"MaxUnpool", {9, 11, 22}, 2, 3, convert_max_unpool},
      {"ReverseSequence", {10, 28}, 2, 2, convert_reverse_sequence},
      {"Shrink", {9}, 1, 1, convert_shrink},
  };
}

}  // namespace polyphase
