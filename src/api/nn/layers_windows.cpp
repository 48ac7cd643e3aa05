// Convolutions and transposed convolutions with parameters, and the layers that change sizes.
#include <algorithm>

#include "api/nn/write.h"
#include "polyphase/nn_layers.h"

namespace polyphase::api::nn {
namespace {

struct WindowSettings {
  int spatial;
  std::int64_t in_channels;
  std::int64_t out_channels;
  std::int64_t groups;
};

// What both kinds refuse at construction, in PyTorch's words.
Result<void> check_channels(const WindowSettings& given) {
  const auto two = [](std::int64_t a, std::int64_t b) { return std::to_string(a) + " and " + std::to_string(b) + "."; };
  if (given.groups <= 0)
    return refused_layer("groups must be a positive integer", "groups is " + std::to_string(given.groups) + ".");
  if (given.in_channels % given.groups != 0)
    return refused_layer("in_channels must be divisible by groups", two(given.in_channels, given.groups));
  if (given.out_channels % given.groups != 0)
    return refused_layer("out_channels must be divisible by groups", two(given.out_channels, given.groups));
  return {};
}

// The weight's shape, (rows, columns / groups, kernel...), if all settings are for as many axes.
Result<std::vector<std::int64_t>> weight_shape(const WindowSettings& given, std::int64_t rows, std::int64_t columns,
                                               const Numbers& kernel_size, const Numbers& stride,
                                               const Numbers& padding, const Numbers& dilation) {
  TRY_VOID(check_channels(given));
  const auto axes = static_cast<std::size_t>(given.spatial);
  TRY(const auto kernel, per_axis(kernel_size, axes, "kernel_size"));
  TRY_VOID(per_axis(stride, axes, "stride"));
  TRY_VOID(per_axis(padding, axes, "padding"));
  TRY_VOID(per_axis(dilation, axes, "dilation"));
  std::vector<std::int64_t> shape = {rows, columns / given.groups};
  shape.insert(shape.end(), kernel.begin(), kernel.end());
  const auto negative = std::find_if(shape.begin(), shape.end(), [](std::int64_t size) { return size < 0; });
  if (negative == shape.end()) return shape;
  return refused_layer(
      "Trying to create tensor with negative dimension " + std::to_string(*negative) + ": " + list_text(shape),
      "Channels and kernel are 0 or more.");
}

Result<std::vector<std::int64_t>> conv_weight(const WindowSettings& given, const Numbers& kernel_size,
                                              const ConvOptions& options) {
  TRY(auto shape, weight_shape(given, given.out_channels, given.in_channels, kernel_size, options.stride,
                               options.padding, options.dilation));
  const std::string& mode = options.padding_mode;
  if (padding_word(mode) != nullptr && mode != "constant") return shape;
  return refused_layer(
      "padding_mode must be one of ['circular', 'reflect', 'replicate', 'zeros'], but got padding_mode='" +
          mode.substr(0, 60) + "'",
      "Give one of them.");
}

Result<std::vector<std::int64_t>> conv_transpose_weight(const WindowSettings& given, const Numbers& kernel_size,
                                                        const ConvTransposeOptions& options) {
  if (options.padding_mode != "zeros") {
    return refused_layer(
        "Only \"zeros\" padding mode is supported for ConvTranspose" + std::to_string(given.spatial) + "d",
        "A transposed convolution crops; pad its input.");
  }
  TRY(auto shape, weight_shape(given, given.in_channels, given.out_channels, kernel_size, options.stride,
                               options.padding, options.dilation));
  TRY_VOID(per_axis(options.output_padding, static_cast<std::size_t>(given.spatial), "output_padding"));
  return shape;
}

std::string kind_of(const char* stem, int spatial) { return stem + std::to_string(spatial) + "d"; }

}  // namespace

Conv::Conv(int spatial, std::int64_t in_channels, std::int64_t out_channels, const Numbers& kernel_size,
           const ConvOptions& options)
    : Module(kind_of("Conv", spatial)), spatial_(spatial), options_(options) {
  auto shape = conv_weight({spatial, in_channels, out_channels, options.groups}, kernel_size, options);
  if (!shape.ok()) {
    refuse(std::move(shape).error());
    return;
  }
  weight = add("weight", Parameter(std::move(*shape), options.dtype));
  if (options.bias) bias = add("bias", Parameter({out_channels}, options.dtype));
}

Result<NetworkTensor> Conv::operator()(const Operand& x) const {
  return in_network_of({x}, [&](Network& network) -> Made {
    TRY_VOID(checked());
    TRY(const Operand own_weight, weight.in(network));
    TRY(const Operand own_bias, bias.in(network));
    return convolution(spatial_, x, own_weight, own_bias,
                       {.stride = options_.stride,
                        .padding = options_.padding,
                        .dilation = options_.dilation,
                        .groups = options_.groups},
                       options_.padding_mode);
  });
}

ConvTranspose::ConvTranspose(int spatial, std::int64_t in_channels, std::int64_t out_channels,
                             const Numbers& kernel_size, const ConvTransposeOptions& options)
    : Module(kind_of("ConvTranspose", spatial)), spatial_(spatial), options_(options) {
  auto shape = conv_transpose_weight({spatial, in_channels, out_channels, options.groups}, kernel_size, options);
  if (!shape.ok()) {
    refuse(std::move(shape).error());
    return;
  }
  weight = add("weight", Parameter(std::move(*shape), options.dtype));
  if (options.bias) bias = add("bias", Parameter({out_channels}, options.dtype));
}

Result<NetworkTensor> ConvTranspose::operator()(const Operand& x, const Sizes& output_size) const {
  return in_network_of({x, output_size.tensor()}, [&](Network& network) -> Made {
    TRY_VOID(checked());
    TRY(const Operand own_weight, weight.in(network));
    TRY(const Operand own_bias, bias.in(network));
    return transposed_convolution(spatial_, x, own_weight, own_bias,
                                  {.stride = options_.stride,
                                   .padding = options_.padding,
                                   .output_padding = options_.output_padding,
                                   .dilation = options_.dilation,
                                   .groups = options_.groups},
                                  output_size);
  });
}

Result<NetworkTensor> Upsample::operator()(const Operand& x) const {
  return functional::interpolate(x, {.size = options_.size,
                                     .scale_factor = options_.scale_factor,
                                     .mode = options_.mode,
                                     .align_corners = options_.align_corners});
}

PixelShuffle::PixelShuffle(std::int64_t upscale_factor) : Module("PixelShuffle"), upscale_factor_(upscale_factor) {
  if (upscale_factor < 1 || upscale_factor > 65536)
    refuse(refused_layer("upscale_factor is " + std::to_string(upscale_factor) + ".", "Give 1 or more."));
}

Result<NetworkTensor> PixelShuffle::operator()(const Operand& x) const {
  return on_tensor(x, "input", [&](Network& network, const NetworkTensor& given) -> Made {
    TRY_VOID(checked());
    const std::int64_t r = upscale_factor_;
    const auto channels = given.rank() < 3 ? std::optional<std::int64_t>(0) : given.size(-3).number();
    if (given.rank() < 3 || (channels.has_value() && *channels % (r * r) != 0)) {
      return refused_layer(
          "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of upscale_factor, but "
          "input has " +
              list_text(given.shape()) + " and upscale_factor=" + std::to_string(r),
          "Give (*, C · factor², H, W).");
    }
    const std::vector<Size> shape = given.shape();
    const std::vector<Size> lead(shape.begin(), shape.end() - 3);
    const Size height = given.size(-2);
    const Size width = given.size(-1);
    const Size fewer = channels.has_value() ? Size(*channels / (r * r)) : given.size(-3) / Size(r * r);
    std::vector<Size> apart = lead;
    apart.insert(apart.end(), {fewer, r, r, height, width});
    std::vector<Size> whole = lead;
    whole.insert(whole.end(), {fewer, height * r, width * r});
    const auto n = static_cast<std::int64_t>(lead.size());
    std::vector<std::int64_t> order(lead.size());
    std::iota(order.begin(), order.end(), 0);
    for (const std::int64_t axis : {0, 3, 1, 4, 2}) order.push_back(n + axis);
    const Made split = network.reshape(given, {.shape = apart});
    return network.reshape(network.transpose(split, {.order = order}), {.shape = whole});
  });
}

}  // namespace polyphase::api::nn
