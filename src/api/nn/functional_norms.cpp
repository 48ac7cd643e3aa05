// Normalisations. Statistics are taken in FP32 at least, also of f16 and bf16, and the variance never is negative.
#include "api/nn/write.h"

namespace polyphase::api::nn::functional {
namespace {

bool is_narrow_float(const NetworkTensor& x) { return x.dtype() == DType::f16 || x.dtype() == DType::bf16; }

// Cast back before the weight, as the originals do.
Made with_weight(Network& network, const Made& normalised, const Operand& weight, const Operand& bias, DType dtype) {
  TRY(NetworkTensor y, normalised);
  if (y.dtype() != dtype) {
    TRY(y, network.cast(y, {.to = dtype}));
  }
  if (!weight.is_absent()) {
    TRY(y, network.mul(y, weight));
  }
  return bias.is_absent() ? Made(y) : network.add(y, bias);
}

Result<std::int64_t> first_axis(const NetworkTensor& x, const Numbers& normalized_shape) {
  const std::vector<std::int64_t>& sizes = normalized_shape.list();
  const auto rank = static_cast<std::size_t>(x.rank());
  bool fits = !sizes.empty() && sizes.size() <= rank;
  for (std::size_t i = 1; fits && i <= sizes.size(); ++i) {
    const auto known = x.size(-static_cast<int>(i)).number();
    fits = !known.has_value() || *known == sizes[sizes.size() - i];
  }
  if (fits) return x.rank() - static_cast<std::int64_t>(sizes.size());
  const std::string words = list_text(sizes);
  return refused_layer("Given normalized_shape=" + words + ", expected input with shape [*, " +
                           words.substr(1, words.size() - 2) + "], but got input of size" + list_text(x.shape()),
                       "The last axes of the input have these sizes.");
}

// A vector of one entry per channel, as it broadcasts to x.
Result<Operand> per_channel(Network& network, const Operand& given, const NetworkTensor& x) {
  if (given.is_absent()) return Operand();
  TRY(const NetworkTensor vector, tensor_of(network, given, "a weight"));
  std::vector<Size> shape(static_cast<std::size_t>(x.rank()) - 1, 1);
  shape[0] = x.size(1);
  return Operand(network.reshape(vector, {.shape = shape}));
}

Made with_channels(Network& network, const Made& normalised, const GroupNormOptions& options, const NetworkTensor& x) {
  TRY(const Operand weight, per_channel(network, options.weight, x));
  TRY(const Operand bias, per_channel(network, options.bias, x));
  return with_weight(network, normalised, weight, bias, x.dtype());
}

Result<void> no_errors(const Operand& weight, const Operand& bias) {
  if (weight.error() != nullptr) return Error(*weight.error());
  if (bias.error() != nullptr) return Error(*bias.error());
  return {};
}

}  // namespace

Result<NetworkTensor> layer_norm(const Operand& input, const Numbers& normalized_shape,
                                 const LayerNormOptions& options) {
  return on_tensor(input, "input", [&](Network& network, const NetworkTensor& x) -> Made {
    TRY_VOID(no_errors(options.weight, options.bias));
    TRY(const std::int64_t axis, first_axis(x, normalized_shape));
    if (!is_narrow_float(x))
      return network.layer_norm(x, options.weight, options.bias, {.axis = axis, .epsilon = options.eps});
    const Made wide = network.cast(x, {.to = DType::f32});
    const Made y = network.layer_norm(wide, {}, {}, {.axis = axis, .epsilon = options.eps});
    return with_weight(network, y, options.weight, options.bias, x.dtype());
  });
}

Result<NetworkTensor> rms_norm(const Operand& input, const Numbers& normalized_shape, const RmsNormOptions& options) {
  return on_tensor(input, "input", [&](Network& network, const NetworkTensor& x) -> Made {
    TRY_VOID(no_errors(options.weight, {}));
    TRY(const std::int64_t axis, first_axis(x, normalized_shape));
    const layers::LayerNorm settings{.axis = axis, .epsilon = options.eps, .centre = false};
    if (!is_narrow_float(x)) return network.layer_norm(x, options.weight, {}, settings);
    const Made wide = network.cast(x, {.to = DType::f32});
    return with_weight(network, network.layer_norm(wide, {}, {}, settings), options.weight, {}, x.dtype());
  });
}

Result<NetworkTensor> group_norm(const Operand& input, std::int64_t num_groups, const GroupNormOptions& options) {
  return on_tensor(input, "input", [&](Network& network, const NetworkTensor& x) -> Made {
    TRY_VOID(no_errors(options.weight, options.bias));
    if (x.rank() < 3) {
      return refused_layer(
          "Expected at least 3 dimensions for group_norm, but got input of size " + list_text(x.shape()),
          "Give (N, C, spatial...).");
    }
    const auto channels = x.size(1).number();
    if (num_groups < 1 || (channels.has_value() && *channels % num_groups != 0)) {
      return refused_layer(
          "Expected number of channels in input to be divisible by num_groups, but got input of shape " +
              list_text(x.shape()) + " and num_groups=" + std::to_string(num_groups),
          "Give a divisor of the channels.");
    }
    const layers::GroupNorm settings{.groups = num_groups, .epsilon = options.eps};
    if (!is_narrow_float(x)) return network.group_norm(x, options.weight, options.bias, settings);
    const Made wide = network.cast(x, {.to = DType::f32});
    return with_channels(network, network.group_norm(wide, {}, {}, settings), options, x);
  });
}

Result<NetworkTensor> instance_norm(const Operand& input, const GroupNormOptions& options) {
  return on_tensor(input, "input", [&](Network& network, const NetworkTensor& x) -> Made {
    TRY_VOID(no_errors(options.weight, options.bias));
    if (x.rank() < 3) {
      return refused_layer("instance_norm takes (N, C, spatial...), but got input of size " + list_text(x.shape()),
                           "Give at least one spatial axis.");
    }
    const layers::InstanceNorm settings{.epsilon = options.eps};
    if (!is_narrow_float(x)) return network.instance_norm(x, options.weight, options.bias, settings);
    const Made wide = network.cast(x, {.to = DType::f32});
    return with_channels(network, network.instance_norm(wide, {}, {}, settings), options, x);
  });
}

}  // namespace polyphase::api::nn::functional
