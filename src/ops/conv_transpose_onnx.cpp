// ONNX's ConvTranspose as a crop. Natural size: N = (I-1)*stride + (k-1)*dilation + 1 + output_padding.
//
//   auto_pad     output_shape  total padding          begin                 size
//   NOTSET       absent        the pads               the begins            N - begin - end
//   VALID        absent        0                      0                     N
//   SAME_UPPER   absent        N - I*stride           total // 2            I*stride
//   SAME_LOWER   absent        N - I*stride           total - total // 2    I*stride
//   SAME_UPPER   O             max(N - O, 0)          total // 2            O
//   others       O             max(N - O, 0)          total - total // 2    O
//
// The rest of the crop is at the end: post = N - output_padding - size - begin. It is negative where the output grows,
// so what output_shape or output_padding adds lies at the end and holds the bias; what SAME adds, where the kernel is
// smaller than the stride, lies at both ends, its total being negative and // rounding down.
#include "ops/conv_transpose_frontend.h"
#include "ops/onnx_window.h"
#include "ops/window.h"

namespace polyphase {
namespace {

Result<void> check_shapes(const OnnxConvTranspose& given, const DimDemands& demand) {
  if (given.input.rank() < 3 || given.weight.rank() != given.input.rank()) {
    return Error{ErrorCode::invalid_model,
                 "ConvTranspose: input and weight must have the same rank, 3 or more, found input " +
                     given.input.text() + " and weight " + given.weight.text() + "."};
  }
  TRY_VOID(demand.require(given.weight[0], DimCheck::Relation::equal, given.input[1],
                          "ConvTranspose: dimension 0 of the weight must equal the input's channels, found input " +
                              given.input.text() + " and weight " + given.weight.text() + "."));
  const std::string group =
      "ConvTranspose: attribute group must be at least 1 and divide the input's channels, found input " +
      given.input.text() + ", group=" + std::to_string(given.group) + ".";
  if (given.group < 1) return Error{ErrorCode::invalid_model, group};
  return demand.require(floor_mod(given.input[1], Dim(given.group)), DimCheck::Relation::equal, 0, group);
}

Result<std::vector<std::int64_t>> output_padding_of(const OnnxConvTranspose& given, const WindowForm& window) {
  const std::size_t spatial = window.stride.size();
  if (!given.output_padding.has_value()) return std::vector<std::int64_t>(spatial, 0);
  const std::vector<std::int64_t>& padding = *given.output_padding;
  bool legal = padding.size() == spatial;
  for (std::size_t i = 0; legal && i < spatial; ++i)
    legal = padding[i] >= 0 && padding[i] < std::max(window.stride[i], window.dilation[i]);
  if (legal) return padding;
  return Error{ErrorCode::invalid_model,
               "ConvTranspose: attribute output_padding must have one value per spatial axis, from 0 to below the "
               "stride or below the dilation "
               "(the rule of ONNX and of PyTorch), found output_padding=" +
                   print_attribute(padding) + ", strides=" + print_attribute(window.stride) +
                   ", dilations=" + print_attribute(window.dilation) + "."};
}

// The spatial sizes asked for; a shape that also names batch and channels is cut down to them.
Result<std::vector<Dim>> output_shape_of(const OnnxConvTranspose& given, std::size_t spatial, ConvTransposeForm& form) {
  std::vector<Dim> sizes = *given.output_shape;
  if (sizes.size() == spatial + 2) {
    form.warnings.push_back("ConvTranspose: attribute output_shape " + print_attribute(sizes) +
                            " names batch and channels too, which ONNX forbids; its last " + std::to_string(spatial) +
                            " values are used.");
    sizes.erase(sizes.begin(), sizes.begin() + 2);
  }
  if (sizes.size() == spatial) return sizes;
  return Error{ErrorCode::invalid_model,
               "ConvTranspose: attribute output_shape must have one value per spatial axis (" +
                   std::to_string(spatial) + "), found " + print_attribute(sizes) + "."};
}

bool surely_empty(const Shape& shape) {
  for (const Dim& dim : shape) {
    if (dim == 0) return true;
  }
  return false;
}

}  // namespace

Result<ConvTransposeForm> onnx_conv_transpose(const OnnxConvTranspose& given, std::vector<DimCheck>& checks) {
  const DimDemands demand(checks);
  TRY_VOID(check_shapes(given, demand));
  const std::vector<Dim> kernel(given.weight.begin() + 2, given.weight.end());
  OnnxWindowSettings attributes{"ConvTranspose", given.input,        kernel,     given.auto_pad,
                                given.dilations, given.kernel_shape, given.pads, given.strides};
  TRY(WindowForm window, read_onnx_window(attributes, checks));
  const std::size_t spatial = kernel.size();
  ConvTransposeForm form{window.stride, window.dilation, given.group, window.pre, window.post, false, {}};
  TRY(const std::vector<std::int64_t> output_padding, output_padding_of(given, window));
  std::vector<Dim> asked;
  if (given.output_shape.has_value()) {
    TRY(asked, output_shape_of(given, spatial, form));
  }
  const bool upper = given.auto_pad == "SAME_UPPER";
  const bool same = upper || given.auto_pad == "SAME_LOWER";
  for (std::size_t i = 0; i < spatial; ++i) {
    const Dim& size = given.input[static_cast<int>(i) + 2];
    const Dim stride(form.stride[i]);
    const Dim plain = (size - 1) * stride + dilated_kernel(kernel[i], form.dilation[i]);
    const Dim natural = plain + output_padding[i];
    Dim out = natural - form.pre[i] - form.post[i];
    if (!asked.empty() || same) {
      const Dim wanted = asked.empty() ? size * stride : asked[i];
      const Dim total = asked.empty() ? natural - wanted : max(natural - wanted, 0);
      form.pre[i] = upper ? floor_div(total, 2) : total - floor_div(total, 2);
      out = wanted;
    }
    form.post[i] = plain - out - form.pre[i];
    if (surely_empty(given.input)) continue;  // the operator itself refuses negative sizes
    TRY_VOID(demand.require(
        1, DimCheck::Relation::less_equal, out,
        "ConvTranspose: the output must have at least one element on every spatial axis, but axis " +
            std::to_string(i + 2) + " of input " + given.input.text() + " gives size " + out.text() + "."));
  }
  return form;
}

}  // namespace polyphase
