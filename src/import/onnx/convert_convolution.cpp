// Conv, ConvTranspose and the ONNX Runtime variants of both.
#include "import/onnx/convolution.h"
#include "import/onnx/node_context.h"
#include "import/onnx/window_attributes.h"
#include "ops/conv_transpose_frontend.h"

namespace polyphase {
namespace {

// Long lists of a hostile model stay out of messages, and absurd numbers out of kernels.
Result<void> check_lists(NodeContext& node, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const auto list = node.integers(name);
    if (!list.has_value()) continue;
    if (list->size() > 2 * max_rank) {
      return broken_rule("attribute '" + std::string(name) + "' has " + std::to_string(list->size()) +
                         " entries, more than any operand has axes.");
    }
    for (const std::int64_t entry : *list) {
      if (entry > INT32_MAX) {
        return lacking(
            "attribute '" + std::string(name) + "' has the entry " + std::to_string(entry) + ", beyond 2^31.",
            "No tensor is that large; export the model again.");
      }
    }
  }
  return {};
}

Result<void> check_ranks(const Type& x, const Type& weight) {
  if (x.shape.rank() >= 3 && weight.shape.rank() == x.shape.rank()) return {};
  return broken_rule("the operand and the weight must have the same rank, 3 or more, found " + x.text() + " and " +
                     weight.text() + ".");
}

Result<Values> convert_conv(NodeContext& node) {
  TRY(Value * value, import_convolution(node));
  return Values{value};
}

}  // namespace

Result<Value*> import_convolution(NodeContext& node) {
  return import_convolution(node, {node.input(0), node.input(1), node.input(2)});
}

Result<Value*> import_convolution(NodeContext& node, const ConvolutionOperands& operands) {
  TRY_VOID(check_lists(node, {"strides", "dilations", "kernel_shape", "pads"}));
  TRY_VOID(check_ranks(operands.x->type, operands.weight->type));
  const Shape& weight = operands.weight->type.shape;
  const OnnxWindowSettings settings = window_settings(node, {weight.begin() + 2, weight.end()});
  const std::int64_t groups = node.integer("group", 1);
  TRY(WindowForm window, onnx_window(settings, node.graph().checks()));
  Attributes attributes({{"stride", std::move(window.stride)},
                         {"dilation", std::move(window.dilation)},
                         {"groups", groups},
                         {"pre", std::move(window.pre)},
                         {"post", std::move(window.post)}});
  return node.emit("conv", std::move(attributes), {operands.x, operands.weight, operands.bias});
}

namespace {

// com.microsoft's variant has its pads as operand 2 and the bias behind it.
Result<Values> convert_conv_transpose(NodeContext& node) {
  const bool pads_are_operand = node.op_type() == "ConvTransposeWithDynamicPads";
  TRY_VOID(check_lists(node, {"strides", "dilations", "kernel_shape", "output_padding", "output_shape"}));
  TRY_VOID(check_ranks(node.type(0), node.type(1)));
  OnnxConvTranspose given;
  given.input = node.shape(0);
  given.weight = node.shape(1);
  given.auto_pad = read_auto_pad(node);
  given.dilations = read_list(node, "dilations");
  given.group = node.integer("group", 1);
  given.kernel_shape = read_list(node, "kernel_shape");
  given.output_padding = read_list(node, "output_padding");
  given.strides = read_list(node, "strides");
  if (const auto sizes = read_list(node, "output_shape"); sizes.has_value())
    given.output_shape.emplace(sizes->begin(), sizes->end());
  if (!pads_are_operand) {
    TRY_VOID(check_lists(node, {"pads"}));
    given.pads = read_pads(node);
  }
  if (pads_are_operand && node.has(2)) {
    TRY(given.pads, node.sizes(2));
  }
  TRY(ConvTransposeForm form, onnx_conv_transpose(given, node.graph().checks()));
  for (std::string& warning : form.warnings) node.warn(std::move(warning));
  Attributes attributes({{"stride", std::move(form.stride)},
                         {"dilation", std::move(form.dilation)},
                         {"groups", form.groups},
                         {"pre", std::move(form.pre)},
                         {"post", std::move(form.post)}});
  Value* bias = node.input(pads_are_operand ? 3 : 2);
  TRY(Value * value, node.emit("conv_transpose", std::move(attributes), {node.input(0), node.input(1), bias}));
  return Values{value};
}

}  // namespace

std::vector<Converter> convolution_converters() {
  return {
      {"Conv", {1, 11, 22}, 2, 3, convert_conv},
      {"ConvTranspose", {1, 11, 22}, 2, 3, convert_conv_transpose},
      {"ConvTransposeWithDynamicPads", {1}, 2, 4, convert_conv_transpose, "com.microsoft"},
  };
}

}  // namespace polyphase
