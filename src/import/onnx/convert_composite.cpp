// Operators that are a few others: CausalConvWithState, DeformConv, SwiGLU.
#include "import/compose/composer.h"
#include "import/compose/deform_conv.h"
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

Result<Values> convert_deform_conv(NodeContext& node) {
  const Integers stride = read_list(node, "strides").value_or(Integers{1, 1});
  const Integers dilation = read_list(node, "dilations").value_or(Integers{1, 1});
  const Integers pads = node.integers("pads").value_or(Integers{0, 0, 0, 0});
  node.ignore("kernel_shape");
  if (stride.size() != 2 || dilation.size() != 2 || pads.size() != 4)
    return broken_rule("strides and dilations must have 2 entries, pads 4.");
  TRY(Value * y, deform_conv(node, {.x = node.input(0),
                                    .weight = node.input(1),
                                    .offset = node.input(2),
                                    .mask = node.input(4),
                                    .bias = node.input(3),
                                    .stride = {stride[0], stride[1]},
                                    .dilation = {dilation[0], dilation[1]},
                                    .pad = {pads[0], pads[1]},
                                    .groups = node.integer("group", 1),
                                    .offset_groups = node.integer("offset_group", 1)}));
  return Values{y};
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
