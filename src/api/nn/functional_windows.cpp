// Convolutions, transposed convolutions, pools, resampling and padding.
#include <algorithm>
#include <array>
#include <cmath>

#include "api/nn/write.h"

namespace polyphase::api::nn {
namespace {

Result<void> expect_window_rank(const NetworkTensor& x, int spatial, const char* what) {
  if (x.rank() == spatial + 1 || x.rank() == spatial + 2) return {};
  const std::string axes = what == std::string("avg_pool2d") ? "" : std::to_string(spatial) + "d";
  return refused_layer("Expected " + std::to_string(spatial + 1) + "D (unbatched) or " + std::to_string(spatial + 2) +
                           "D (batched) input to " + what + axes + ", but got input of size: " + list_text(x.shape()),
                       "Give (C, spatial...) or (N, C, spatial...).");
}

// Zeros for the axes in front, then the paddings.
std::vector<Size> behind_zeros(std::size_t rank, const std::vector<std::int64_t>& paddings) {
  std::vector<Size> out(rank - paddings.size(), 0);
  out.insert(out.end(), paddings.begin(), paddings.end());
  return out;
}

// What PyTorch refuses: paddings that reflect or wrap around more than the axis holds.
Result<void> expect_room(const NetworkTensor& x, const std::vector<Size>& before, const std::vector<Size>& after,
                         std::string_view mode) {
  for (std::size_t axis = before.size(); axis-- > 0;) {
    const auto size = x.size(static_cast<int>(axis)).number();
    const std::int64_t most = std::max(before[axis].number().value_or(0), after[axis].number().value_or(0));
    if (!size.has_value() || most < 1) continue;
    if (mode == "reflect" && most >= *size) {
      return refused_layer("Padding size should be less than the corresponding input dimension, but got: padding (" +
                               before[axis].text() + ", " + after[axis].text() + ") at dimension " +
                               std::to_string(axis) + " of input " + list_text(x.shape()),
                           "Pad less, or twice.");
    }
    if (mode == "circular" && most > *size)
      return refused_layer("Padding value causes wrapping around more than once.", "Pad less, or twice.");
  }
  return {};
}

std::vector<Size> as_sizes(const std::vector<std::int64_t>& numbers) { return {numbers.begin(), numbers.end()}; }

struct Resampling {
  const char* word;  // of PyTorch
  const char* mode;  // of resize
  int axes;          // spatial ones; 0: any number
};
constexpr std::array<Resampling, 6> resamplings = {{{"nearest", "nearest", 0},
                                                    {"nearest-exact", "nearest", 0},
                                                    {"linear", "linear", 1},
                                                    {"bilinear", "linear", 2},
                                                    {"bicubic", "cubic", 2},
                                                    {"trilinear", "linear", 3}}};

Result<Size> scaled_size(const NetworkTensor& x, int axis, double factor) {
  const Size size = x.size(axis);
  const double scaled = std::floor(static_cast<double>(size.number().value_or(1)) * factor);
  if (!(scaled < 0x1p62)) {
    return refused_layer("axis " + std::to_string(axis) + " of tensor '" + x.name() + "' is " + size.text() +
                             ", which times " + list_text(Reals(factor)) + " is beyond 64-bit arithmetic.",
                         "Give a smaller factor.");
  }
  if (size.number().has_value()) return Size(static_cast<std::int64_t>(scaled));
  if (factor == std::floor(factor)) return size * Size(static_cast<std::int64_t>(factor));
  return refused_layer("axis " + std::to_string(axis) + " of tensor '" + x.name() + "' is " + size.text() +
                           ", which has no size times " + list_text(Reals(factor)) + " as an expression.",
                       "Give size, or a whole factor.");
}

// What interpolate refuses before it looks at sizes.
Result<Resampling> resampling_of(const NetworkTensor& x, const functional::InterpolateOptions& options) {
  const auto* found = std::find_if(resamplings.begin(), resamplings.end(),
                                   [&](const Resampling& one) { return options.mode == one.word; });
  if (found == resamplings.end()) {
    return refused_layer("mode is '" + options.mode.substr(0, 58) + "'.",
                         "It is one of nearest, nearest-exact, linear, bilinear, bicubic, trilinear.");
  }
  const int spatial = x.rank() - 2;
  if (spatial < 1 || spatial > 3 || (found->axes != 0 && found->axes != spatial)) {
    return refused_layer("Got " + std::to_string(x.rank()) + "D input, but " + options.mode + " mode needs " +
                             std::to_string((found->axes == 0 ? 2 : found->axes) + 2) + "D input",
                         "Give (N, C, spatial...).");
  }
  if (options.size.is_given() == !options.scale_factor.empty())
    return refused_layer("either size or scale_factor should be defined", "Give one of them.");
  if (options.align_corners && found->mode == std::string_view("nearest")) {
    return refused_layer(
        "align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | trilinear",
        "Leave it out.");
  }
  if (options.antialias && options.mode != "bilinear" && options.mode != "bicubic") {
    return refused_layer(
        "Anti-alias option is restricted to bilinear and bicubic modes and requires a 4-D tensor as input",
        "Leave it out.");
  }
  return *found;
}

// The result's spatial sizes.
Result<std::vector<Size>> resampled_sizes(const NetworkTensor& x, const functional::InterpolateOptions& options,
                                          std::size_t spatial) {
  if (options.size.is_given()) {
    if (options.size.tensor().error() != nullptr) return Error(*options.size.tensor().error());
    std::vector<Size> sizes = options.size.filled(spatial);
    if (const NetworkTensor* like = options.size.tensor().tensor(); like != nullptr) {  // as large as that tensor
      sizes = like->shape();
      if (sizes.size() == spatial + 2) sizes.erase(sizes.begin(), sizes.begin() + 2);
    }
    if (sizes.size() == spatial) return sizes;
    return refused_layer(
        "size has " + std::to_string(sizes.size()) + " entries for " + std::to_string(spatial) + " spatial axes.",
        "Give one for each.");
  }
  const std::vector<double> factors = options.scale_factor.filled(spatial);
  if (factors.size() != spatial || !std::all_of(factors.begin(), factors.end(), [](double one) { return one > 0; })) {
    return refused_layer("scale_factor is " + list_text(options.scale_factor) + ".",
                         "Give a factor above 0, or one for each spatial axis.");
  }
  std::vector<Size> sizes;
  for (std::size_t i = 0; i < spatial; ++i) {
    TRY(sizes.emplace_back(), scaled_size(x, static_cast<int>(i) + 2, factors[i]));
  }
  return sizes;
}

}  // namespace

const char* padding_word(std::string_view mode) {
  return mode == "constant" || mode == "zeros" ? "constant"
         : mode == "reflect"                   ? "reflect"
         : mode == "replicate"                 ? "edge"
         : mode == "circular"                  ? "wrap"
                                               : nullptr;
}

Made convolution(int spatial, const Operand& input, const Operand& weight, const Operand& bias,
                 const functional::ConvOptions& options, const std::string& padding_mode) {
  return in_network_of({input, weight, bias}, [&](Network& network) -> Made {
    const auto axes = static_cast<std::size_t>(spatial);
    TRY(NetworkTensor x, tensor_of(network, input, "input"));
    TRY_VOID(expect_window_rank(x, spatial, "conv"));
    TRY(std::vector<std::int64_t> paddings, per_axis(options.padding, axes, "padding"));
    if (padding_mode != "zeros" && std::any_of(paddings.begin(), paddings.end(), [](auto one) { return one != 0; })) {
      const std::vector<Size> around = behind_zeros(static_cast<std::size_t>(x.rank()), paddings);
      TRY_VOID(expect_room(x, around, around, padding_mode));
      TRY(x, network.pad(x, {.pre = around, .post = around, .mode = padding_word(padding_mode)}));
      paddings.assign(axes, 0);
    }
    TRY(const auto stride, per_axis(options.stride, axes, "stride"));
    TRY(const auto dilation, per_axis(options.dilation, axes, "dilation"));
    return network.add_convolution_nd(
        x, weight, bias,
        {.stride = stride, .dilation = dilation, .groups = options.groups, .pre_padding = as_sizes(paddings)});
  });
}

Made transposed_convolution(int spatial, const Operand& input, const Operand& weight, const Operand& bias,
                            const functional::ConvTransposeOptions& options, const Sizes& output_size) {
  return in_network_of({input, weight, bias, output_size.tensor()}, [&](Network& network) -> Made {
    const auto axes = static_cast<std::size_t>(spatial);
    TRY(const NetworkTensor x, tensor_of(network, input, "input"));
    TRY_VOID(expect_window_rank(x, spatial, "conv_transpose"));
    DeconvolutionSettings settings;
    if (const NetworkTensor* like = output_size.tensor().tensor(); like != nullptr) {  // a vector holds the sizes
      settings.output_size = like->shape();
      if (like->rank() == 1) {
        TRY(settings.output_size, values_of(network, *like));
      }
    } else if (output_size.is_given()) {
      settings.output_size = output_size.list();
    } else {
      TRY(const auto output_padding, per_axis(options.output_padding, axes, "output_padding"));
      settings.output_padding = as_sizes(output_padding);
    }
    TRY(settings.stride, per_axis(options.stride, axes, "stride"));
    TRY(settings.dilation, per_axis(options.dilation, axes, "dilation"));
    settings.groups = options.groups;
    TRY(const auto paddings, per_axis(options.padding, axes, "padding"));
    settings.pre_padding = as_sizes(paddings);
    return network.add_deconvolution_nd(x, weight, bias, settings);
  });
}

namespace functional {

Result<NetworkTensor> conv1d(const Operand& input, const Operand& weight, const Operand& bias,
                             const ConvOptions& options) {
  return convolution(1, input, weight, bias, options, "zeros");
}
Result<NetworkTensor> conv2d(const Operand& input, const Operand& weight, const Operand& bias,
                             const ConvOptions& options) {
  return convolution(2, input, weight, bias, options, "zeros");
}
Result<NetworkTensor> conv3d(const Operand& input, const Operand& weight, const Operand& bias,
                             const ConvOptions& options) {
  return convolution(3, input, weight, bias, options, "zeros");
}
Result<NetworkTensor> conv_transpose1d(const Operand& input, const Operand& weight, const Operand& bias,
                                       const ConvTransposeOptions& options) {
  return transposed_convolution(1, input, weight, bias, options, {});
}
Result<NetworkTensor> conv_transpose2d(const Operand& input, const Operand& weight, const Operand& bias,
                                       const ConvTransposeOptions& options) {
  return transposed_convolution(2, input, weight, bias, options, {});
}
Result<NetworkTensor> conv_transpose3d(const Operand& input, const Operand& weight, const Operand& bias,
                                       const ConvTransposeOptions& options) {
  return transposed_convolution(3, input, weight, bias, options, {});
}

Result<NetworkTensor> avg_pool2d(const Operand& input, const Numbers& kernel_size, const AvgPool2dOptions& options) {
  return on_tensor(input, "input", [&](Network& network, const NetworkTensor& given) -> Made {
    TRY_VOID(expect_window_rank(given, 2, "avg_pool2d"));
    std::vector<Size> shape = given.shape();
    const bool unbatched = shape.size() == 3;
    NetworkTensor x = given;
    if (unbatched) {
      shape.insert(shape.begin(), 1);
      TRY(x, network.reshape(x, {.shape = shape}));
    }
    TRY(const auto kernel, per_axis(kernel_size, 2, "kernel_size"));
    TRY(const auto paddings, per_axis(options.padding, 2, "padding"));
    std::vector<std::int64_t> stride = kernel;
    if (!options.stride.empty()) {
      TRY(stride, per_axis(options.stride, 2, "stride"));
    }
    for (std::size_t i = 0; i < 2; ++i) {
      if (kernel[i] != 0 && stride[i] != 0) continue;
      return refused_layer("stride should not be zero",
                           "kernel_size is " + list_text(kernel) + ", stride is " + list_text(stride) + ".");
    }
    for (std::size_t i = 0; i < 2; ++i) {
      if (paddings[i] >= 0 && paddings[i] <= kernel[i] / 2) continue;
      return refused_layer("pad should be at most half of effective kernel size",
                           "padding is " + list_text(paddings) + ", kernel_size is " + list_text(kernel) + ".");
    }
    TRY(const NetworkTensor y, network.avg_pool(x, {.kernel = kernel,
                                                    .stride = stride,
                                                    .dilation = {1, 1},
                                                    .pre = as_sizes(paddings),
                                                    .post = as_sizes(paddings),
                                                    .ceil = options.ceil_mode,
                                                    .include_pad = options.count_include_pad}));
    if (!unbatched) return y;
    std::vector<Size> without = y.shape();
    without.erase(without.begin());
    return network.reshape(y, {.shape = without});
  });
}

Result<NetworkTensor> interpolate(const Operand& input, const InterpolateOptions& options) {
  return on_tensor(input, "input", [&](Network& network, const NetworkTensor& x) -> Made {
    TRY(const Resampling resampling, resampling_of(x, options));
    const auto spatial = static_cast<std::size_t>(x.rank() - 2);
    TRY(const std::vector<Size> spatial_sizes, resampled_sizes(x, options, spatial));
    std::vector<Size> sizes = {x.size(0), x.size(1)};
    sizes.insert(sizes.end(), spatial_sizes.begin(), spatial_sizes.end());
    std::vector<double> scales;
    if (!options.size.is_given() && !options.recompute_scale_factor) {
      scales = {1, 1};
      for (const double factor : options.scale_factor.filled(spatial)) scales.push_back(factor);
    }
    const bool floor = options.mode == "nearest";
    return network.resize(x, {.sizes = sizes,
                              .scales = scales,
                              .mode = resampling.mode,
                              .coordinate = options.align_corners ? "align_corners"
                                            : floor               ? "asymmetric"
                                                                  : "half_pixel",
                              .nearest = floor ? "floor" : "round_prefer_ceil",
                              .cubic_coefficient = options.antialias ? -0.5 : -0.75,
                              .exclude_outside = options.antialias,
                              .antialias = options.antialias});
  });
}

Result<NetworkTensor> pad(const Operand& input, const std::vector<std::int64_t>& pad, std::string_view mode,
                          double value) {
  return on_tensor(input, "input", [&](Network& network, const NetworkTensor& x) -> Made {
    const char* word = mode == "zeros" ? nullptr : padding_word(mode);
    if (word == nullptr) {
      return refused_layer("mode is '" + std::string(mode.substr(0, 58)) + "'.",
                           "It is one of constant, reflect, replicate, circular.");
    }
    const auto rank = static_cast<std::size_t>(x.rank());
    if (pad.size() % 2 != 0 || pad.size() > 2 * rank) {
      return refused_layer(
          "Padding length must be divisible by 2 and at most twice the number of dimensions of the input, found " +
              std::to_string(pad.size()) + " for rank " + std::to_string(rank) + ".",
          "Give two numbers for each axis, from the last on.");
    }
    std::vector<Size> before(rank, 0);
    std::vector<Size> after(rank, 0);
    for (std::size_t i = 0; i < pad.size() / 2; ++i) {
      before[rank - 1 - i] = pad[2 * i];
      after[rank - 1 - i] = pad[2 * i + 1];
    }
    TRY_VOID(expect_room(x, before, after, mode));
    return network.pad(x, {.pre = before, .post = after, .mode = word, .value = value});
  });
}

}  // namespace functional
}  // namespace polyphase::api::nn
