// Functions that compute: products, reductions, activations, elementwise arithmetic.
#include "api/nn/write.h"

namespace polyphase::api::nn::functional {
namespace {

// The last two axes change places.
Made turned(Network& network, const NetworkTensor& x) {
  if (x.rank() < 2) {
    return refused_layer("tensor '" + x.name() + "' of rank " + std::to_string(x.rank()) + " is to be transposed.",
                         "Give a matrix.");
  }
  std::vector<std::int64_t> order(static_cast<std::size_t>(x.rank()));
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  return network.transpose(x, {.order = order});
}

bool counts_as_integer(const Operand& operand) {
  if (operand.tensor() != nullptr) return !is_float(*operand.tensor());
  return operand.number<std::int64_t>() != nullptr || operand.number<bool>() != nullptr;
}

using Unary = Result<NetworkTensor> (NetworkLayers::*)(const Operand&, std::string_view);
using Binary = Result<NetworkTensor> (NetworkLayers::*)(const Operand&, const Operand&, std::string_view);

Made unary(Unary layer, const Operand& input) {
  return on_tensor(input, "input",
                   [&](Network& network, const NetworkTensor& x) -> Made { return (network.*layer)(x, {}); });
}

Made binary(Binary layer, const Operand& left, const Operand& right) {
  return in_network_of({left, right}, [&](Network& network) -> Made { return (network.*layer)(left, right, {}); });
}

}  // namespace

Result<NetworkTensor> softmax(const Operand& input, std::optional<std::int64_t> dim) {
  return on_tensor(input, "input", [&](Network& network, const NetworkTensor& x) -> Made {
    TRY(const std::int64_t axis, axis_of(x, dim.value_or(-1)));
    return network.softmax(x, {.axis = axis});
  });
}

Result<NetworkTensor> mean(const Operand& input, const Numbers& dim, bool keepdim) {
  return on_tensor(input, "input", [&](Network& network, const NetworkTensor& x) -> Made {
    TRY(const auto axes, axes_of(x, dim));
    return network.reduce_mean(x, {.axes = axes, .keep = keepdim});
  });
}

Result<NetworkTensor> max(const Operand& input, const Numbers& dim, bool keepdim) {
  return on_tensor(input, "input", [&](Network& network, const NetworkTensor& x) -> Made {
    TRY(const auto axes, axes_of(x, dim));
    return network.reduce_max(x, {.axes = axes, .keep = keepdim});
  });
}

Result<NetworkTensor> argmax(const Operand& input, std::int64_t dim, bool keepdim) {
  return on_tensor(input, "input", [&](Network& network, const NetworkTensor& x) -> Made {
    TRY(const std::int64_t axis, axis_of(x, dim));
    return network.arg_max(x, {.axis = axis, .keep = keepdim});
  });
}

Result<NetworkTensor> matmul(const Operand& input, const Operand& mat2, bool transa, bool transb) {
  return in_network_of({input, mat2}, [&](Network& network) -> Made {
    TRY(NetworkTensor a, tensor_of(network, input, "input"));
    TRY(NetworkTensor b, tensor_of(network, mat2, "mat2"));
    if (transa) {
      TRY(a, turned(network, a));
    }
    if (transb) {
      TRY(b, turned(network, b));
    }
    return network.matmul(a, b);
  });
}

Result<NetworkTensor> linear(const Operand& input, const Operand& weight, const Operand& bias) {
  return in_network_of({input, weight, bias}, [&](Network& network) -> Made {
    TRY(const NetworkTensor x, tensor_of(network, input, "input"));
    TRY(const NetworkTensor w, tensor_of(network, weight, "weight"));
    if (w.rank() != 2)
      return refused_layer("the weight has the sizes " + list_text(w.shape()) + ".", "Give (out, in).");
    const Made y = network.matmul(x, turned(network, w));
    return bias.is_absent() ? y : network.add(y, bias);
  });
}

Result<NetworkTensor> embedding(const Operand& input, const Operand& weight) {
  return in_network_of({input, weight}, [&](Network& network) -> Made {
    TRY(const NetworkTensor w, tensor_of(network, weight, "weight"));
    if (w.rank() != 2) return refused_layer("'weight' must be 2-D", "It has the sizes " + list_text(w.shape()) + ".");
    return network.gather(w, tensor_of(network, input, "input"), {.axis = 0});
  });
}

Result<NetworkTensor> softplus(const Operand& input, double beta, double threshold) {
  return on_tensor(input, "input", [&](Network& network, const NetworkTensor& x) -> Made {
    if (beta == 0) return refused_layer("beta is 0.", "Give another number.");
    const Operand scaled = beta == 1 ? Operand(x) : Operand(network.mul(x, beta));
    const Made plain = network.softplus(scaled);
    const Made y = beta == 1 ? plain : network.mul(plain, 1 / beta);
    return network.where(network.greater(scaled, threshold), x, y);
  });
}

Result<NetworkTensor> gelu(const Operand& input, std::string_view approximate) {
  return on_tensor(input, "input", [&](Network& network, const NetworkTensor& x) -> Made {
    return network.gelu(x, {.approximate = std::string(approximate)});
  });
}

Result<NetworkTensor> clip(const Operand& input, double alpha, double beta) {
  return on_tensor(input, "input", [&](Network& network, const NetworkTensor& x) -> Made {
    return network.clip(x, {.low = alpha, .high = beta});
  });
}

Result<NetworkTensor> mish(const Operand& input) { return unary(&NetworkLayers::mish, input); }
Result<NetworkTensor> silu(const Operand& input) { return unary(&NetworkLayers::silu, input); }
Result<NetworkTensor> relu(const Operand& input) { return unary(&NetworkLayers::relu, input); }
Result<NetworkTensor> sigmoid(const Operand& input) { return unary(&NetworkLayers::sigmoid, input); }
Result<NetworkTensor> tanh(const Operand& input) { return unary(&NetworkLayers::tanh, input); }
Result<NetworkTensor> round(const Operand& input) { return unary(&NetworkLayers::round, input); }
Result<NetworkTensor> sqrt(const Operand& input) { return unary(&NetworkLayers::sqrt, input); }
Result<NetworkTensor> exp(const Operand& input) { return unary(&NetworkLayers::exp, input); }
Result<NetworkTensor> log(const Operand& input) { return unary(&NetworkLayers::log, input); }
Result<NetworkTensor> sin(const Operand& input) { return unary(&NetworkLayers::sin, input); }
Result<NetworkTensor> cos(const Operand& input) { return unary(&NetworkLayers::cos, input); }
Result<NetworkTensor> abs(const Operand& input) { return unary(&NetworkLayers::abs, input); }

Result<NetworkTensor> add(const Operand& left, const Operand& right) {
  return binary(&NetworkLayers::add, left, right);
}
Result<NetworkTensor> sub(const Operand& left, const Operand& right) {
  return binary(&NetworkLayers::sub, left, right);
}
Result<NetworkTensor> mul(const Operand& left, const Operand& right) {
  return binary(&NetworkLayers::mul, left, right);
}
Result<NetworkTensor> div(const Operand& left, const Operand& right) {
  return in_network_of({left, right}, [&](Network& network) -> Made {
    if (!counts_as_integer(left) || !counts_as_integer(right)) return network.div(left, right);
    if (const auto* number = right.number<std::int64_t>()) return network.div(left, static_cast<double>(*number));
    if (const auto* number = right.number<bool>()) return network.div(left, *number ? 1.0 : 0.0);
    return network.div(left, network.cast(right, {.to = DType::f32}));
  });
}
Result<NetworkTensor> pow(const Operand& left, const Operand& right) {
  return binary(&NetworkLayers::pow, left, right);
}
Result<NetworkTensor> minimum(const Operand& left, const Operand& right) {
  return binary(&NetworkLayers::min, left, right);
}
Result<NetworkTensor> maximum(const Operand& left, const Operand& right) {
  return binary(&NetworkLayers::max, left, right);
}
Result<NetworkTensor> gt(const Operand& left, const Operand& right) {
  return binary(&NetworkLayers::greater, left, right);
}
Result<NetworkTensor> lt(const Operand& left, const Operand& right) {
  return binary(&NetworkLayers::less, left, right);
}
Result<NetworkTensor> eq(const Operand& left, const Operand& right) {
  return binary(&NetworkLayers::equal, left, right);
}
Result<NetworkTensor> op_and(const Operand& left, const Operand& right) {
  return binary(&NetworkLayers::and_, left, right);
}
Result<NetworkTensor> op_or(const Operand& left, const Operand& right) {
  return binary(&NetworkLayers::or_, left, right);
}

}  // namespace polyphase::api::nn::functional
