// Normalisations, products, attention and casts with parameters.
#include <cmath>

#include "api/nn/write.h"
#include "polyphase/nn_layers.h"

namespace polyphase::api::nn {
namespace {

constexpr double of_ones = 1;
constexpr double of_zeros = 0;

}  // namespace

LayerNorm::LayerNorm(const Numbers& normalized_shape, const LayerNormSettings& options)
    : Module("LayerNorm"), normalized_shape_(normalized_shape), eps_(options.eps) {
  if (!options.elementwise_affine) return;
  weight = add("weight", Parameter(normalized_shape.list(), options.dtype, of_ones));
  bias = add("bias", Parameter(normalized_shape.list(), options.dtype, of_zeros));
}

Result<NetworkTensor> LayerNorm::operator()(const Operand& x) const {
  return in_network_of({x}, [&](Network& network) -> Made {
    TRY_VOID(checked());
    TRY(const Operand own_weight, weight.in(network));
    TRY(const Operand own_bias, bias.in(network));
    return functional::layer_norm(x, normalized_shape_, {.weight = own_weight, .bias = own_bias, .eps = eps_});
  });
}

RmsNorm::RmsNorm(const Numbers& normalized_shape, const RmsNormSettings& options)
    : Module("RmsNorm"), normalized_shape_(normalized_shape), eps_(options.eps) {
  if (options.elementwise_affine) weight = add("weight", Parameter(normalized_shape.list(), options.dtype, of_ones));
}

Result<NetworkTensor> RmsNorm::operator()(const Operand& x) const {
  return in_network_of({x}, [&](Network& network) -> Made {
    TRY_VOID(checked());
    TRY(const Operand own_weight, weight.in(network));
    return functional::rms_norm(x, normalized_shape_, {.weight = own_weight, .eps = eps_});
  });
}

GroupNorm::GroupNorm(std::int64_t num_groups, std::int64_t num_channels, const GroupNormSettings& options)
    : Module("GroupNorm"), num_groups_(num_groups), eps_(options.eps) {
  if (num_groups < 1 || num_channels % num_groups != 0) {
    refuse(refused_layer("num_channels (" + std::to_string(num_channels) + ") must be divisible by num_groups (" +
                             std::to_string(num_groups) + ")",
                         "Give a divisor of the channels."));
    return;
  }
  if (!options.affine) return;
  weight = add("weight", Parameter({num_channels}, options.dtype, of_ones));
  bias = add("bias", Parameter({num_channels}, options.dtype, of_zeros));
}

Result<NetworkTensor> GroupNorm::operator()(const Operand& x) const {
  return in_network_of({x}, [&](Network& network) -> Made {
    TRY_VOID(checked());
    TRY(const Operand own_weight, weight.in(network));
    TRY(const Operand own_bias, bias.in(network));
    return functional::group_norm(x, num_groups_, {.weight = own_weight, .bias = own_bias, .eps = eps_});
  });
}

InstanceNorm::InstanceNorm(std::int64_t num_features, const InstanceNormSettings& options)
    : Module("InstanceNorm"), eps_(options.eps) {
  if (!options.affine) return;
  weight = add("weight", Parameter({num_features}, options.dtype, of_ones));
  bias = add("bias", Parameter({num_features}, options.dtype, of_zeros));
}

Result<NetworkTensor> InstanceNorm::operator()(const Operand& x) const {
  return in_network_of({x}, [&](Network& network) -> Made {
    TRY_VOID(checked());
    TRY(const Operand own_weight, weight.in(network));
    TRY(const Operand own_bias, bias.in(network));
    return functional::instance_norm(x, {.weight = own_weight, .bias = own_bias, .eps = eps_});
  });
}

Linear::Linear(std::int64_t in_features, std::int64_t out_features, const LinearOptions& options) : Module("Linear") {
  weight = add("weight", Parameter({out_features, in_features}, options.dtype));
  if (options.bias) bias = add("bias", Parameter({out_features}, options.dtype));
}

Result<NetworkTensor> Linear::operator()(const Operand& x) const {
  return in_network_of({x}, [&](Network& network) -> Made {
    TRY_VOID(checked());
    TRY(const Operand own_weight, weight.in(network));
    TRY(const Operand own_bias, bias.in(network));
    return functional::linear(x, own_weight, own_bias);
  });
}

Embedding::Embedding(std::int64_t num_embeddings, std::int64_t embedding_dim, std::optional<DType> dtype)
    : Module("Embedding") {
  weight = add("weight", Parameter({num_embeddings, embedding_dim}, dtype));
}

Result<NetworkTensor> Embedding::operator()(const Operand& x) const {
  return in_network_of({x}, [&](Network& network) -> Made {
    TRY_VOID(checked());
    TRY(const Operand own_weight, weight.in(network));
    return functional::embedding(x, own_weight);
  });
}

Cast::Cast(DType output_dtype) : Module("Cast"), output_dtype_(output_dtype) {
  if (!can_cast_to(output_dtype)) {
    refuse(refused_layer("output_dtype is '" + python_name(output_dtype) + "'.",
                         "Cast takes float32, float16, bfloat16, bool, int32, int8."));
  }
}

Result<NetworkTensor> Cast::operator()(const Operand& x) const {
  if (auto fine = checked(); !fine.ok()) return std::move(fine).error();
  return functional::cast(x, output_dtype_);
}

// ---------------------------------------------------------------- attention

MultiHeadAttention::MultiHeadAttention(std::int64_t embed_dim, std::int64_t num_heads,
                                       const MultiHeadAttentionOptions& options)
    : Module("MultiHeadAttention"),
      out_proj(embed_dim, embed_dim, {.bias = options.bias, .dtype = options.dtype}),
      embed_dim_(embed_dim),
      num_heads_(num_heads),
      batch_first_(options.batch_first) {
  if (num_heads < 1 || embed_dim % num_heads != 0) {
    refuse(refused_layer("embed_dim must be divisible by num_heads",
                         std::to_string(embed_dim) + " and " + std::to_string(num_heads) + "."));
    return;
  }
  in_proj_weight = add("in_proj_weight", Parameter({3 * embed_dim, embed_dim}, options.dtype));
  if (options.bias) in_proj_bias = add("in_proj_bias", Parameter({3 * embed_dim}, options.dtype));
  add("out_proj", out_proj);
}

namespace {

// (N, L, E) to (N, heads, L, E / heads).
Made heads_apart(Network& network, const NetworkTensor& x, std::int64_t heads, std::int64_t width) {
  const Made split = network.reshape(x, {.shape = {x.size(0), x.size(1), heads, width}});
  return network.transpose(split, {.order = {0, 2, 1, 3}});
}

Result<void> expect_sequence(const NetworkTensor& x) {
  if (x.rank() == 3) return {};
  return refused_layer(
      "MultiHeadAttention takes a sequence, a batch and a width, but got input of size " + list_text(x.shape()),
      "Give (L, N, E), or (N, L, E) with batch_first.");
}

}  // namespace

Result<NetworkTensor> MultiHeadAttention::operator()(const Operand& query, const Operand& key,
                                                     const Operand& value) const {
  return in_network_of({query, key, value}, [&](Network& network) -> Made {
    TRY_VOID(checked());
    const Operand& keys = key.is_absent() ? query : key;
    const Operand given[] = {query, keys, value.is_absent() ? keys : value};
    NetworkTensor xs[3];
    for (std::size_t i = 0; i < 3; ++i) {
      TRY(xs[i], tensor_of(network, given[i], "input"));
      TRY_VOID(expect_sequence(xs[i]));
    }
    for (std::size_t i = 0; i < 3 && !batch_first_; ++i) {
      TRY(xs[i], functional::transpose(xs[i], 0, 1));
    }
    TRY(const Operand all_weights, in_proj_weight.in(network));
    TRY(const std::vector<NetworkTensor> weights, functional::split(all_weights, embed_dim_));
    TRY(const Operand all_biases, in_proj_bias.in(network));
    std::vector<NetworkTensor> biases;
    if (!all_biases.is_absent()) {
      TRY(biases, functional::split(all_biases, embed_dim_));
    }
    for (std::size_t i = 0; i < 3; ++i) {
      TRY(xs[i], functional::linear(xs[i], weights[i], biases.empty() ? Operand() : Operand(biases[i])));
    }
    const std::int64_t width = embed_dim_ / num_heads_;
    Operand apart[3];
    for (std::size_t i = 0; i < 3; ++i) apart[i] = heads_apart(network, xs[i], num_heads_, width);
    const Made mixed =
        network.attention(apart[0], apart[1], apart[2], {}, {}, {.scale = 1 / std::sqrt(static_cast<double>(width))});
    const Made joined = network.reshape(network.transpose(mixed, {.order = {0, 2, 1, 3}}),
                                        {.shape = {xs[0].size(0), xs[0].size(1), embed_dim_}});
    const Made y = out_proj(joined);
    return batch_first_ ? y : functional::transpose(y, 0, 1);
  });
}

}  // namespace polyphase::api::nn
