// Convolutions in both directions, by every name that PyTorch has for them.
#include "import/compose/composer.h"
#include "import/torch/aten_node.h"
#include "ops/conv_transpose_frontend.h"

namespace polyphase {
namespace {

Result<Value*> transposed(AtenNode& node, int spatial) {
  Value* x = node.tensor("input");
  Value* const weight = node.tensor("weight");
  Value* const bias = node.tensor("bias");
  TorchConvTranspose settings;
  settings.spatial = spatial;
  settings.input = x->type;
  settings.weight = weight->type;
  if (bias != nullptr) settings.bias = bias->type;
  settings.stride = node.integers("stride");
  settings.padding = node.sizes("padding");
  settings.output_padding = node.sizes("output_padding");
  settings.groups = node.integer("groups");
  settings.dilation = node.integers("dilation");
  TRY_VOID(node.finish());
  TRY(ConvTransposeForm form, torch_conv_transpose(settings, node.graph().checks()));
  for (std::string& warning : form.warnings) node.warn(std::move(warning));
  Composer c(node);
  if (form.unbatched) x = c.unsqueeze(x, 0);
  Value* y = c.with_optional("conv_transpose", {x, weight, bias},
                             Attributes({{"stride", std::move(form.stride)},
                                         {"dilation", std::move(form.dilation)},
                                         {"groups", form.groups},
                                         {"pre", std::move(form.pre)},
                                         {"post", std::move(form.post)}}));
  if (form.unbatched) y = c.squeeze(y, 0);
  return c.result(y);
}

// "same" pads to ceil(size / stride) with stride 1: d(k - 1) in all, the odd one behind.
Result<void> named_padding(AtenNode& node, const Shape& weight, std::vector<Dim>& pre, std::vector<Dim>& post,
                           const std::vector<std::int64_t>& stride, const std::vector<std::int64_t>& dilation) {
  const std::string name = node.word("padding");
  if (name != "same" && name != "valid")
    return broken_program("Invalid padding string: '" + name + "'; it must be 'valid' or 'same'.");
  for (std::size_t i = 0; i < stride.size(); ++i) {
    if (name == "same" && stride[i] != 1)
      return broken_program("padding='same' is not supported for strided convolutions");
    const Dim total = name == "same" ? Dim(dilation[i]) * (weight[static_cast<int>(i) + 2] - 1) : Dim(0);
    pre.push_back(floor_div(total, 2));
    post.push_back(total - floor_div(total, 2));
  }
  return {};
}

Result<Value*> forward(AtenNode& node, int spatial, bool padding_is_named) {
  Value* x = node.tensor("input");
  Value* const weight = node.tensor("weight");
  const auto count = static_cast<std::size_t>(spatial);
  const int rank = x->type.shape.rank();
  const bool unbatched = rank == spatial + 1;
  if (weight->type.shape.rank() != spatial + 2 || (rank != spatial + 2 && !unbatched))
    return broken_program("a convolution over " + std::to_string(spatial) + " axes takes operands of rank " +
                          std::to_string(spatial + 2) + " (or " + std::to_string(spatial + 1) +
                          " without a batch), found " + x->type.text() + " and the weight " + weight->type.text() +
                          ".");
  const auto stride = node.integers("stride", count);
  const auto dilation = node.integers("dilation", count);
  const std::int64_t groups = node.integer("groups");
  std::vector<Dim> pre;
  std::vector<Dim> post;
  TRY_VOID(node.finish());
  for (const auto* list : {&stride, &dilation}) {
    if (list->size() != count)
      return broken_program("a list has " + std::to_string(list->size()) + " entries for " + std::to_string(count) +
                            " axes.");
    for (const std::int64_t entry : *list) {
      if (entry <= 0) return broken_program("non-positive stride is not supported");
    }
  }
  if (padding_is_named) {
    TRY_VOID(named_padding(node, weight->type.shape, pre, post, stride, dilation));
  } else {
    pre = node.sizes("padding", count);
    post = pre;
    if (pre.size() != count)
      return broken_program("padding has " + std::to_string(pre.size()) + " entries for " + std::to_string(count) +
                            " axes.");
    for (const Dim& one : pre) {
      if (one.is_constant() && one.value() < 0) return broken_program("negative padding is not supported");
    }
  }
  Composer c(node);
  if (unbatched) x = c.unsqueeze(x, 0);
  Value* y = c.with_optional("conv", {x, weight, node.tensor("bias")},
                             Attributes({{"stride", stride},
                                         {"dilation", dilation},
                                         {"groups", groups},
                                         {"pre", std::move(pre)},
                                         {"post", std::move(post)}}));
  if (unbatched) y = c.squeeze(y, 0);
  return c.result(y);
}

template <int spatial>
Result<Values> convert_conv(AtenNode& node) {
  TRY(Value * y, forward(node, spatial, false));
  return Values{y};
}

template <int spatial>
Result<Values> convert_conv_padding(AtenNode& node) {
  TRY(Value * y, forward(node, spatial, true));
  return Values{y};
}

template <int spatial>
Result<Values> convert_conv_transpose(AtenNode& node) {
  TRY(Value * y, transposed(node, spatial));
  return Values{y};
}

// aten.convolution: the rank is the weight's, the direction an argument.
Result<Values> convert_convolution(AtenNode& node) {
  const int spatial = node.tensor("weight")->type.shape.rank() - 2;
  if (spatial < 1 || spatial > 3)
    return lacking("a convolution over " + std::to_string(spatial) + " axes; Polyphase has 1, 2 and 3.",
                   "Fold the other axes into the batch.");
  TRY(Value * y, node.flag("transposed") ? transposed(node, spatial) : forward(node, spatial, false));
  return Values{y};
}

}  // namespace

std::vector<AtenEntry> aten_convolution_entries() {
  return {
      {"conv1d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[1] stride=[1], SymInt[1] padding=[0], SymInt[1] "
       "dilation=[1], SymInt groups=1) -> Tensor",
       convert_conv<1>},
      {"conv1d.padding(Tensor input, Tensor weight, Tensor? bias=None, SymInt[1] stride=[1], str padding=\"valid\", "
       "SymInt[1] dilation=[1], SymInt groups=1) -> Tensor",
       convert_conv_padding<1>},
      {"conv2d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=[1, 1], SymInt[2] padding=[0, 0], "
       "SymInt[2] dilation=[1, 1], SymInt groups=1) -> Tensor",
       convert_conv<2>},
      {"conv2d.padding(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=[1, 1], str padding=\"valid\", "
       "SymInt[2] dilation=[1, 1], SymInt groups=1) -> Tensor",
       convert_conv_padding<2>},
      {"conv3d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[3] stride=[1, 1, 1], SymInt[3] padding=[0, 0, "
       "0], SymInt[3] dilation=[1, 1, 1], SymInt groups=1) -> Tensor",
       convert_conv<3>},
      {"conv3d.padding(Tensor input, Tensor weight, Tensor? bias=None, SymInt[3] stride=[1, 1, 1], str "
       "padding=\"valid\", SymInt[3] dilation=[1, 1, 1], SymInt groups=1) -> Tensor",
       convert_conv_padding<3>},
      {"conv_transpose1d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[1] stride=[1], SymInt[1] padding=[0], "
       "SymInt[1] output_padding=[0], SymInt groups=1, SymInt[1] dilation=[1]) -> Tensor",
       convert_conv_transpose<1>},
      {"conv_transpose2d.input(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=[1, 1], SymInt[2] "
       "padding=[0, 0], SymInt[2] output_padding=[0, 0], SymInt groups=1, SymInt[2] dilation=[1, 1]) -> Tensor",
       convert_conv_transpose<2>},
      {"conv_transpose3d.input(Tensor input, Tensor weight, Tensor? bias=None, SymInt[3] stride=[1, 1, 1], SymInt[3] "
       "padding=[0, 0, 0], SymInt[3] output_padding=[0, 0, 0], SymInt groups=1, SymInt[3] dilation=[1, 1, 1]) -> "
       "Tensor",
       convert_conv_transpose<3>},
      {"convolution(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, SymInt[] dilation, "
       "bool transposed, SymInt[] output_padding, SymInt groups) -> Tensor",
       convert_convolution},
      {"convolution_overrideable(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, "
       "SymInt[] dilation, bool transposed, SymInt[] output_padding, SymInt groups) -> Tensor",
       convert_convolution},
  };
}

}  // namespace polyphase
