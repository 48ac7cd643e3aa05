// Operators that are a few others: CausalConvWithState, DeformConv, SwiGLU.
#include <algorithm>
#include <cmath>

#include "import/compose/composer.h"
#include "import/onnx/node_context.h"
#include "import/onnx/window_attributes.h"

namespace polyphase {
namespace {

using Sizes = Composer::Sizes;
using Integers = Composer::Integers;

// silu with a slope, times b.
Result<Values> convert_swiglu(NodeContext& node) {
  const double alpha = node.real("alpha", 1.0);
  if (!(node.type(0) == node.type(1)))
    return broken_rule("both operands must have one type, found " + node.type(0).text() + " and " +
                       node.type(1).text() + ".");
  Composer make(node);
  Value* a = node.input(0);
  Value* gate = alpha == 1.0 ? make.op("silu", {a}) : make.mul(a, make.op("sigmoid", {make.mul(a, alpha)}));
  return make.results({make.mul(gate, node.input(1))});
}

// A depthwise convolution that sees the past only; the last k - 1 places are handed on.
Result<Values> convert_causal_conv(NodeContext& node) {
  const std::string activation = node.word("activation", "none");
  if (activation != "none" && activation != "silu" && activation != "swish")
    return broken_rule("activation is '" + activation.substr(0, 40) + "'; it must be none, silu or swish.");
  if (node.rank(0) != 3 || node.rank(1) != 3 || !node.shape(0)[1].is_constant())
    return broken_rule("the operand must be (N, C, L) with a fixed C and the weight (C, 1, k), found " +
                       node.type(0).text() + " and " + node.type(1).text() + ".");
  Composer make(node);
  const Dim before = node.shape(1)[2] - 1;
  Value* x = node.input(0);
  Value* longer = node.has(3) ? make.concat({node.input(3), x}, 2) : make.pad(x, 2, before, 0);
  Value* y = make.with_optional("conv", {longer, node.input(1), node.input(2)},
                                Attributes({{"stride", Integers{1}},
                                            {"dilation", Integers{1}},
                                            {"groups", node.shape(0)[1].value()},
                                            {"pre", Sizes{Dim(0)}},
                                            {"post", Sizes{Dim(0)}}}));
  if (activation != "none") y = make.op("silu", {y});
  Values results{y};
  if (node.output_count() > 1) results.push_back(make.slice(longer, 2, make.size(longer, 2) - before, before));
  return make.results(std::move(results));
}

// Each tap of a convolution is read at its own place: grid_sample for all taps, then one product with the weights.
//
//   columns[n, c, t, o] = mask[n, t, o] · x[n, c, o·stride - pad + t·dilation + offset[n, t, o]];   y = W · columns
Result<Values> convert_deform_conv(NodeContext& node) {
  if (node.rank(0) != 4 || node.rank(1) != 4 || node.rank(2) != 4)
    return broken_rule("the operand, the weight and the offsets must have rank 4, found " + node.type(0).text() + ", " +
                       node.type(1).text() + " and " + node.type(2).text() + ".");
  const std::int64_t groups = node.integer("group", 1);
  const std::int64_t offset_groups = node.integer("offset_group", 1);
  const Shape& x = node.shape(0);
  const Shape& w = node.shape(1);
  const Shape& offset = node.shape(2);
  if (!w.is_static() || !x[1].is_constant())
    return lacking("the weight's sizes or the channels are not fixed.", "Export with fixed channels and kernel.");
  const std::int64_t channels = x[1].value();
  const std::int64_t outputs = w[0].value();
  const std::int64_t kernel[2] = {w[2].value(), w[3].value()};
  const std::int64_t taps = kernel[0] * kernel[1];
  if (groups < 1 || offset_groups < 1 || channels % offset_groups != 0 || outputs % groups != 0 ||
      w[1].value() * groups != channels || taps < 1)
    return broken_rule(
        "group and offset_group must divide the channels, and the weight be (M, C / group, kH, kW); "
        "found " +
        node.type(0).text() + ", " + node.type(1).text() + ", group " + std::to_string(groups) + ", offset_group " +
        std::to_string(offset_groups) + ".");
  const Integers stride = read_list(node, "strides").value_or(Integers{1, 1});
  const Integers dilation = read_list(node, "dilations").value_or(Integers{1, 1});
  const Integers pads = node.integers("pads").value_or(Integers{0, 0, 0, 0});
  node.ignore("kernel_shape");
  if (stride.size() != 2 || dilation.size() != 2 || pads.size() != 4)
    return broken_rule("strides and dilations must have 2 entries, pads 4.");
  Composer make(node);
  make.require_equal(
      offset[1], offset_groups * taps * 2,
      "DeformConv: the offsets must have 2 · offset_group · kH · kW channels, found " + node.type(2).text() + ".");
  const DType own = node.type(0).dtype;
  const DType dtype = size_bytes(own) < 4 ? DType::f32 : own;
  const Dim batch = x[0];
  const Dim planes = batch * Dim(offset_groups);
  const Dim out[2] = {offset[2], offset[3]};
  // Offsets as (N·G, taps, 2, H, W), in FP64: whole places must stay whole; their places as coordinates between the
  // centres of the outer elements.
  Value* moved = make.reshape(make.cast(node.input(2), DType::f64), {planes, Dim(taps), Dim(2), out[0], out[1]});
  Value* coordinates[2] = {};
  for (int axis = 0; axis < 2; ++axis) {
    Sizes along{Dim(1), Dim(1), Dim(1)};
    along[static_cast<std::size_t>(axis) + 1] = out[axis];
    Value* windows =
        make.mul(make.counting(out[axis], DType::f64), static_cast<double>(stride[static_cast<std::size_t>(axis)]));
    std::vector<double> places;
    for (std::int64_t t = 0; t < taps; ++t) {
      const std::int64_t tap = axis == 0 ? t / kernel[1] : t % kernel[1];
      places.push_back(static_cast<double>(tap) * static_cast<double>(dilation[static_cast<std::size_t>(axis)]) -
                       static_cast<double>(pads[static_cast<std::size_t>(axis)]));
    }
    Value* taken = node.constant(Tensor::from_values(DType::f64, Integers{taps, 1, 1}, places));
    Value* own_offset = make.reshape(make.slice(moved, 2, axis, 1), {planes, Dim(taps), out[0], out[1]});
    Value* place = make.add(make.add(own_offset, taken), make.reshape(windows, along));
    // grid_sample's outer edges are -1 and 1: (2·place + 1) / size - 1, for axes of one element as well.
    Value* size = make.cast(make.dims({x[axis + 2]}, true), DType::f64);
    coordinates[axis] = make.add(make.div(make.add(make.mul(place, 2), 1.0), size), -1.0);
    coordinates[axis] = make.reshape(coordinates[axis], {planes, Dim(taps) * out[0], out[1], Dim(1)});
  }
  Value* grid = make.concat({coordinates[1], coordinates[0]}, 3);
  Value* image = make.reshape(make.cast(node.input(0), dtype), {planes, Dim(channels / offset_groups), x[2], x[3]});
  Value* read = make.op("grid_sample", {image, grid});
  const Dim points = out[0] * out[1];
  if (node.has(4)) {
    read = make.mul(read, make.reshape(make.cast(node.input(4), dtype), {planes, Dim(1), Dim(taps) * out[0], out[1]}));
  }
  Value* columns = make.reshape(read, {batch, Dim(groups), Dim(channels / groups * taps), points});
  Value* weight = make.reshape(make.cast(node.input(1), dtype),
                               {Dim(groups), Dim(outputs / groups), Dim(channels / groups * taps)});
  Value* y = make.reshape(make.matmul(weight, columns), {batch, Dim(outputs), out[0], out[1]});
  if (node.has(3)) y = make.add(y, make.reshape(make.cast(node.input(3), dtype), {Dim(outputs), Dim(1), Dim(1)}));
  return make.results({make.cast(y, own)});
}

}  // namespace

std::vector<Converter> composite_converters() {
  return {
      {"CausalConvWithState", {27}, 2, 4, convert_causal_conv},
      {"DeformConv", {19, 22}, 3, 5, convert_deform_conv},
      {"SwiGLU", {28}, 2, 2, convert_swiglu},
  };
}

}  // namespace polyphase
