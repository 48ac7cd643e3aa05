// Convolutions and transposed convolutions over one to three spatial axes, with or without a batch axis, as PyTorch,
// ONNX and TensorRT describe them: what they mean by paddings and sizes stands in ops/conv_transpose_frontend.h and
// ops/onnx_window.h.
#include <algorithm>

#include "base/layout_name.h"
#include "import/network/attempt.h"
#include "import/network/builder.h"
#include "import/network/refuse.h"
#include "ops/conv_transpose_frontend.h"
#include "ops/onnx_window.h"

namespace polyphase {
namespace {

const char* onnx_name(PaddingMode mode) {
  switch (mode) {
    case PaddingMode::explicit_padding:
      return "NOTSET";
    case PaddingMode::valid:
      return "VALID";
    case PaddingMode::same_upper:
      return "SAME_UPPER";
    case PaddingMode::same_lower:
      return "SAME_LOWER";
  }
  return "NOTSET";
}

template <typename T>
Result<std::vector<T>> per_axis(const std::vector<T>& given, const char* name, std::size_t spatial) {
  if (given.size() == spatial) return given;
  if (given.size() == 1) return std::vector<T>(spatial, given.front());
  return refused_call(std::string(name) + " is " + print_attribute(given) +
                          "; expected one value, or one for each of the " + std::to_string(spatial) + " spatial axes.",
                      "The weight's rank less two is the number of spatial axes.");
}

bool all_zero(const std::vector<Dim>& sizes) {
  return std::all_of(sizes.begin(), sizes.end(), [](const Dim& size) { return size == 0; });
}

// The types, with a batch axis; `unbatched`: the operand has none.
struct WindowTypes {
  Type x;
  Type weight;
  std::size_t spatial = 0;
  bool unbatched = false;
};

Result<WindowTypes> window_types(const std::vector<Value*>& values) {
  WindowTypes out{values[0]->type, values[1]->type, 0, false};
  const int rank = out.weight.shape.rank();
  if (rank < 3 || rank > 5) {
    return refused_call(
        "the weight is " + out.weight.text() + "; it must have one to three spatial axes behind its two of channels.",
        "Reshape the weight to (channels, channels per group, kernel...).");
  }
  out.spatial = static_cast<std::size_t>(rank) - 2;
  out.unbatched = out.x.shape.rank() == rank - 1;
  if (!out.unbatched && out.x.shape.rank() != rank) {
    return refused_call("the operand is " + out.x.text() + " and the weight is " + out.weight.text() +
                            "; their ranks must be equal, or the operand's less by one where it has no batch axis.",
                        "Reshape the operand to (batch, channels, spatial...).");
  }
  return out;
}

Result<void> check_kernel(const std::vector<std::int64_t>& kernel, const WindowTypes& types) {
  if (kernel.empty()) return {};
  TRY(const std::vector<std::int64_t> expected, per_axis(kernel, "kernel", types.spatial));
  for (std::size_t i = 0; i < types.spatial; ++i) {
    if (types.weight.shape[static_cast<int>(i) + 2] == expected[i]) continue;
    return refused_call("kernel is " + print_attribute(expected) + ", but the weight is " + types.weight.text() + ".",
                        "Leave kernel out: the weight tells it.");
  }
  return {};
}

Result<void> check_mode(const GivenConvolution& given) {
  const bool padded = !all_zero(given.pre_padding) || !all_zero(given.post_padding);
  if (given.mode == PaddingMode::explicit_padding || !padded) return {};
  return refused_call(std::string("pre_padding or post_padding is given beside padding mode ") + onnx_name(given.mode) +
                          ", which works them out itself.",
                      "Give paddings with mode explicit, or none.");
}

Shape with_batch(const WindowTypes& types) {
  if (!types.unbatched) return types.x.shape;
  std::vector<Dim> dims = types.x.shape.dims();
  dims.insert(dims.begin(), Dim(1));
  return Shape(std::move(dims));
}

OnnxWindowSettings onnx_settings(const GivenConvolution& given, const WindowTypes& types) {
  OnnxWindowSettings out{.op = "conv", .input = with_batch(types), .kernel = {}};
  out.kernel.assign(types.weight.shape.begin() + 2, types.weight.shape.end());
  out.auto_pad = onnx_name(given.mode);
  out.dilations = given.dilation;
  out.strides = given.stride;
  return out;
}

// The lists with an entry for each axis.
Result<void> complete(GivenConvolution& given, std::size_t spatial) {
  if (given.post_padding.empty()) given.post_padding = given.pre_padding;
  TRY(given.stride, per_axis(given.stride, "stride", spatial));
  TRY(given.dilation, per_axis(given.dilation, "dilation", spatial));
  TRY(given.pre_padding, per_axis(given.pre_padding, "pre_padding", spatial));
  TRY(given.post_padding, per_axis(given.post_padding, "post_padding", spatial));
  return {};
}

Result<Attributes> convolution_attributes(GivenConvolution given, const WindowTypes& types,
                                          std::vector<DimCheck>& checks) {
  TRY_VOID(check_kernel(given.kernel, types));
  TRY_VOID(check_mode(given));
  TRY_VOID(complete(given, types.spatial));
  if (given.mode != PaddingMode::explicit_padding) {
    TRY(const WindowForm form, onnx_window(onnx_settings(given, types), checks));
    given.pre_padding = form.pre;
    given.post_padding = form.post;
  }
  return Attributes({{"stride", given.stride},
                     {"dilation", given.dilation},
                     {"groups", given.groups},
                     {"pre", given.pre_padding},
                     {"post", given.post_padding}});
}

Result<ConvTransposeForm> explicit_form(const GivenDeconvolution& given, const WindowTypes& types,
                                        const std::optional<Type>& bias, std::vector<DimCheck>& checks) {
  TorchConvTranspose torch{.spatial = static_cast<int>(types.spatial), .input = types.x, .weight = types.weight};
  torch.bias = bias;
  torch.stride = given.stride;
  torch.padding = given.pre_padding;
  torch.post_padding = given.post_padding;
  torch.groups = given.groups;
  torch.dilation = given.dilation;
  if (!given.output_padding.empty()) torch.output_padding = given.output_padding;
  if (!given.output_size.empty()) {
    TRY(torch.output_padding, torch_output_size(torch, given.output_size, checks));
  }
  return torch_conv_transpose(torch, checks);
}

Result<ConvTransposeForm> automatic_form(const GivenDeconvolution& given, const WindowTypes& types,
                                         std::vector<DimCheck>& checks) {
  OnnxConvTranspose onnx{.input = with_batch(types), .weight = types.weight.shape};
  onnx.auto_pad = onnx_name(given.mode);
  onnx.dilations = given.dilation;
  onnx.group = given.groups;
  onnx.strides = given.stride;
  if (!given.output_size.empty()) onnx.output_shape = given.output_size;
  if (!given.output_padding.empty()) {
    TRY(const std::vector<Dim> padding, per_axis(given.output_padding, "output_padding", types.spatial));
    if (!std::all_of(padding.begin(), padding.end(), [](const Dim& size) { return size.is_constant(); })) {
      return refused_call("output_padding is " + print_attribute(padding) + " beside padding mode " +
                              onnx_name(given.mode) + ", which takes numbers only.",
                          "Give output_size instead, or paddings with mode explicit.");
    }
    onnx.output_padding = integers_of(padding);
  }
  return onnx_conv_transpose(onnx, checks);
}

// A whole shape is in the result's layout.
std::vector<Dim> spatial_sizes(const GivenDeconvolution& given) {
  const auto layout = LayoutName::parse(given.layouts.result.empty() ? given.layouts.data : given.layouts.result);
  if (!layout.ok() || given.output_size.size() != static_cast<std::size_t>(layout->rank())) return given.output_size;
  std::vector<Dim> out;
  for (const char axis : std::string("DHW")) {
    const std::size_t place = layout->place_of(axis);
    if (place < layout->axes().size()) out.push_back(given.output_size[place]);
  }
  return out;
}

Result<Attributes> deconvolution_attributes(GivenDeconvolution given, const WindowTypes& types,
                                            const std::optional<Type>& bias, std::vector<DimCheck>& checks) {
  TRY_VOID(check_kernel(given.kernel, types));
  TRY_VOID(check_mode(given));
  given.output_size = spatial_sizes(given);
  if (!given.output_size.empty() && !all_zero(given.output_padding)) {
    return refused_call("output_padding and output_size are both given.", "Give one of them: each tells the other.");
  }
  if (given.mode == PaddingMode::explicit_padding && given.post_padding.empty()) given.post_padding = given.pre_padding;
  auto form = given.mode == PaddingMode::explicit_padding ? explicit_form(given, types, bias, checks) : [&] {
    auto completed = complete(given, types.spatial);
    return completed.ok() ? automatic_form(given, types, checks)
                          : Result<ConvTransposeForm>(std::move(completed).error());
  }();
  if (!form.ok()) return std::move(form).error();
  return Attributes({{"stride", form->stride},
                     {"dilation", form->dilation},
                     {"groups", form->groups},
                     {"pre", form->pre},
                     {"post", form->post}});
}

}  // namespace

Result<std::vector<Value*>> NetworkBuilder::window_operands(std::string_view op, const GivenOperands& given,
                                                            const std::string& layer) {
  for (std::size_t i = 0; i < given.size(); ++i) {
    const bool absent = std::holds_alternative<std::monostate>(given[i]);
    if (std::holds_alternative<TensorNumber>(given[i]) || (absent && i == 2)) continue;
    const std::string name = i == 0 ? "x" : i == 1 ? "weight" : "bias";
    return refused_call("operand '" + name + "' of a convolution is " + (absent ? "not there." : "a number."),
                        "Give a tensor: an input, a layer's result, or add_constant.")
        .at_node(layer);
  }
  return settle_operands(here().registry().at(op), given, layer);
}

// The batch axis that was not there is put before the operand and taken from the result.
Result<int> NetworkBuilder::finish_window(std::string_view op, Attributes attributes, std::vector<Value*> operands,
                                          bool unbatched, const GivenLayouts& layouts, const std::string& layer) {
  if (unbatched) {
    std::vector<Dim> shape = operands[0]->type.shape.dims();
    shape.insert(shape.begin(), Dim(1));
    TRY(Node * batch, emit("reshape", Attributes({{"shape", std::move(shape)}}), {operands[0]}, layer + "/batch"));
    operands[0] = batch->output();
  }
  TRY(Node * node, emit(op, std::move(attributes), std::move(operands), layer));
  if (unbatched) {
    std::vector<Dim> shape = node->output()->type.shape.dims();
    shape.erase(shape.begin());
    TRY(node, emit("reshape", Attributes({{"shape", std::move(shape)}}), {node->output()}, layer + "/unbatch"));
  }
  Value* result = node->output();
  if (const std::string& wanted = layouts.result.empty() ? layouts.data : layouts.result; !wanted.empty()) {
    const std::string plain = LayoutName::channels_first(result->type.shape.rank() - 2);
    TRY(result, change_layout(result, plain, wanted, 0, layer + "/out_layout"));
  }
  return enter(result, layer, "layer '" + layer + "'");
}

Result<int> NetworkBuilder::add_convolution(const GivenOperands& x_weight_bias, const GivenConvolution& given,
                                            std::string_view name) {
  TRY(const std::string layer, layer_name(name, "conv"));
  Attempt attempt(*this, layer);
  TRY(std::vector<Value*> values, window_operands("conv", x_weight_bias, layer));
  TRY_VOID(undo_layouts("conv", given, values, layer));
  auto types = window_types(values);
  if (!types.ok()) return with_advice(std::move(types).error(), "conv", layer);
  auto attributes = convolution_attributes(given, *types, here().checks());
  if (!attributes.ok()) return with_advice(std::move(attributes).error(), "conv", layer);
  TRY(const int made,
      finish_window("conv", std::move(*attributes), std::move(values), types->unbatched, given.layouts, layer));
  attempt.succeed();
  return made;
}

Result<int> NetworkBuilder::add_deconvolution(const GivenOperands& x_weight_bias, const GivenDeconvolution& given,
                                              std::string_view name) {
  TRY(const std::string layer, layer_name(name, "conv_transpose"));
  Attempt attempt(*this, layer);
  TRY(std::vector<Value*> values, window_operands("conv_transpose", x_weight_bias, layer));
  TRY_VOID(undo_layouts("conv_transpose", given, values, layer));
  auto types = window_types(values);
  if (!types.ok()) return with_advice(std::move(types).error(), "conv_transpose", layer);
  std::optional<Type> bias;
  if (values[2] != nullptr) bias = values[2]->type;
  auto attributes = deconvolution_attributes(given, *types, bias, here().checks());
  if (!attributes.ok()) return with_advice(std::move(attributes).error(), "conv_transpose", layer);
  TRY(const int made, finish_window("conv_transpose", std::move(*attributes), std::move(values), types->unbatched,
                                    given.layouts, layer));
  attempt.succeed();
  return made;
}

}  // namespace polyphase
