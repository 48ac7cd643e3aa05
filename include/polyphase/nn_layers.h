// Layers with parameters: the names of their parameters are PyTorch's, their settings and defaults TensorRT-LLM 0.5's,
// all of which are honoured. polyphase.nn of the Python package is the same.
//
// A layer is called on a network's tensor, and adds to that network. Constructors refuse in PyTorch's words; that Error
// comes out of the call (polyphase/nn_module.h). Weights are not set until load_state_dict or Parameter::set_value.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "polyphase/nn_functional.h"
#include "polyphase/nn_module.h"

namespace polyphase::api::nn {

// ---------------------------------------------------------------- convolutions

struct ConvOptions {
  Numbers stride = 1;
  Numbers padding = 0;
  Numbers dilation = 1;
  std::int64_t groups = 1;
  bool bias = true;
  std::string padding_mode = "zeros";  // zeros, reflect, replicate, circular
  std::optional<DType> dtype = {};     // of the parameters in networks
};
// What Conv1d, Conv2d and Conv3d are. weight: (out_channels, in_channels / groups, kernel...). bias: (out_channels).
class Conv : public Module {
 public:
  // x: (N, C, spatial...) or (C, spatial...).
  Result<NetworkTensor> operator()(const Operand& x) const;
  Parameter weight;
  Parameter bias;

 protected:
  Conv(int spatial, std::int64_t in_channels, std::int64_t out_channels, const Numbers& kernel_size,
       const ConvOptions& options);

 private:
  int spatial_;
  ConvOptions options_;
};
class Conv1d : public Conv {
 public:
  Conv1d(std::int64_t in_channels, std::int64_t out_channels, const Numbers& kernel_size,
         const ConvOptions& options = {})
      : Conv(1, in_channels, out_channels, kernel_size, options) {}
};
class Conv2d : public Conv {
 public:
  Conv2d(std::int64_t in_channels, std::int64_t out_channels, const Numbers& kernel_size,
         const ConvOptions& options = {})
      : Conv(2, in_channels, out_channels, kernel_size, options) {}
};
class Conv3d : public Conv {
 public:
  Conv3d(std::int64_t in_channels, std::int64_t out_channels, const Numbers& kernel_size,
         const ConvOptions& options = {})
      : Conv(3, in_channels, out_channels, kernel_size, options) {}
};

struct ConvTransposeOptions {
  Numbers stride = 1;
  Numbers padding = 0;
  Numbers output_padding = 0;
  Numbers dilation = 1;
  std::int64_t groups = 1;
  bool bias = true;
  std::string padding_mode = "zeros";  // no other: a transposed convolution crops
  std::optional<DType> dtype = {};
};
// What ConvTranspose1d, 2d and 3d are. weight: (in_channels, out_channels / groups, kernel...). bias: (out_channels).
class ConvTranspose : public Module {
 public:
  // x: (N, C, spatial...) or (C, spatial...). output_size: the spatial sizes of the result, or its shape with or
  // without a batch axis, in place of output_padding; from the least size to the least + stride - 1, as PyTorch has it.
  // A tensor makes the result as large as that one, at every size of one engine.
  Result<NetworkTensor> operator()(const Operand& x, const Sizes& output_size = {}) const;
  Parameter weight;
  Parameter bias;

 protected:
  ConvTranspose(int spatial, std::int64_t in_channels, std::int64_t out_channels, const Numbers& kernel_size,
                const ConvTransposeOptions& options);

 private:
  int spatial_;
  ConvTransposeOptions options_;
};
class ConvTranspose1d : public ConvTranspose {
 public:
  ConvTranspose1d(std::int64_t in_channels, std::int64_t out_channels, const Numbers& kernel_size,
                  const ConvTransposeOptions& options = {})
      : ConvTranspose(1, in_channels, out_channels, kernel_size, options) {}
};
class ConvTranspose2d : public ConvTranspose {
 public:
  ConvTranspose2d(std::int64_t in_channels, std::int64_t out_channels, const Numbers& kernel_size,
                  const ConvTransposeOptions& options = {})
      : ConvTranspose(2, in_channels, out_channels, kernel_size, options) {}
};
class ConvTranspose3d : public ConvTranspose {
 public:
  ConvTranspose3d(std::int64_t in_channels, std::int64_t out_channels, const Numbers& kernel_size,
                  const ConvTransposeOptions& options = {})
      : ConvTranspose(3, in_channels, out_channels, kernel_size, options) {}
};

// ---------------------------------------------------------------- normalisations

struct LayerNormSettings {
  double eps = 1e-05;
  bool elementwise_affine = true;  // it has a weight of ones and a bias of zeros from the start
  std::optional<DType> dtype = {};
};
// Over the last axes. weight, bias: normalized_shape.
class LayerNorm : public Module {
 public:
  explicit LayerNorm(const Numbers& normalized_shape, const LayerNormSettings& options = {});
  Result<NetworkTensor> operator()(const Operand& x) const;  // x: (*, normalized_shape)
  Parameter weight;
  Parameter bias;

 private:
  Numbers normalized_shape_;
  double eps_;
};

struct RmsNormSettings {
  double eps = 1e-06;
  bool elementwise_affine = true;
  std::optional<DType> dtype = {};
};
// x / sqrt(mean(x * x) + eps) * weight over the last axes (torch.nn.RMSNorm). weight: normalized_shape.
class RmsNorm : public Module {
 public:
  explicit RmsNorm(const Numbers& normalized_shape, const RmsNormSettings& options = {});
  Result<NetworkTensor> operator()(const Operand& x) const;  // x: (*, normalized_shape)
  Parameter weight;

 private:
  Numbers normalized_shape_;
  double eps_;
};

struct GroupNormSettings {
  double eps = 1e-05;
  bool affine = true;
  std::optional<DType> dtype = {};
};
// Each group of neighbouring channels. weight, bias: (num_channels).
class GroupNorm : public Module {
 public:
  GroupNorm(std::int64_t num_groups, std::int64_t num_channels, const GroupNormSettings& options = {});
  Result<NetworkTensor> operator()(const Operand& x) const;  // x: (N, C, spatial...)
  Parameter weight;
  Parameter bias;

 private:
  std::int64_t num_groups_;
  double eps_;
};

struct InstanceNormSettings {
  double eps = 1e-05;
  bool affine = false;
  std::optional<DType> dtype = {};
};
// Each channel of each image, of one to three spatial axes. weight, bias: (num_features).
class InstanceNorm : public Module {
 public:
  explicit InstanceNorm(std::int64_t num_features, const InstanceNormSettings& options = {});
  Result<NetworkTensor> operator()(const Operand& x) const;  // x: (N, C, spatial...)
  Parameter weight;
  Parameter bias;

 private:
  double eps_;
};

// ---------------------------------------------------------------- products

struct LinearOptions {
  bool bias = true;
  std::optional<DType> dtype = {};
};
// x * weight^T + bias. weight: (out_features, in_features).
class Linear : public Module {
 public:
  Linear(std::int64_t in_features, std::int64_t out_features, const LinearOptions& options = {});
  Result<NetworkTensor> operator()(const Operand& x) const;  // x: (*, in_features)
  Parameter weight;
  Parameter bias;
};

// Rows of a table. weight: (num_embeddings, embedding_dim).
class Embedding : public Module {
 public:
  Embedding(std::int64_t num_embeddings, std::int64_t embedding_dim, std::optional<DType> dtype = {});
  Result<NetworkTensor> operator()(const Operand& x) const;  // x: integers of any shape
  Parameter weight;
};

struct MultiHeadAttentionOptions {
  bool bias = true;
  bool batch_first = false;
  std::optional<DType> dtype = {};
};
// torch.nn.MultiheadAttention with one width for query, key and value; it gives the result without the weights
// (Vaswani et al. 2017). Parameters: in_proj_weight, in_proj_bias, out_proj.weight, out_proj.bias.
class MultiHeadAttention : public Module {
 public:
  MultiHeadAttention(std::int64_t embed_dim, std::int64_t num_heads, const MultiHeadAttentionOptions& options = {});
  // (L, N, E), or (N, L, E) with batch_first; key and value absent: the query, the key.
  Result<NetworkTensor> operator()(const Operand& query, const Operand& key = {}, const Operand& value = {}) const;
  Parameter in_proj_weight;
  Parameter in_proj_bias;
  Linear out_proj;

 private:
  std::int64_t embed_dim_;
  std::int64_t num_heads_;
  bool batch_first_;
};

// ---------------------------------------------------------------- without parameters

// x * tanh(softplus(x)).
class Mish : public Module {
 public:
  Mish() : Module("Mish") {}
  Result<NetworkTensor> operator()(const Operand& x) const { return functional::mish(x); }
};

// Another dtype; i8 quantises with scale 1, as functional::cast says.
class Cast : public Module {
 public:
  explicit Cast(DType output_dtype = DType::f32);
  Result<NetworkTensor> operator()(const Operand& x) const;

 private:
  DType output_dtype_;
};

// The mean of each window of (N, C, H, W) or (C, H, W).
class AvgPool2d : public Module {
 public:
  explicit AvgPool2d(const Numbers& kernel_size, const functional::AvgPool2dOptions& options = {})
      : Module("AvgPool2d"), kernel_size_(kernel_size), options_(options) {}
  Result<NetworkTensor> operator()(const Operand& x) const { return functional::avg_pool2d(x, kernel_size_, options_); }

 private:
  Numbers kernel_size_;
  functional::AvgPool2dOptions options_;
};

struct UpsampleOptions {
  Sizes size = {};  // numbers or sizes of the network; or
  Reals scale_factor = {};
  std::string mode = "nearest";
  bool align_corners = false;
};
// Resampling of (N, C, spatial...), as functional::interpolate.
class Upsample : public Module {
 public:
  explicit Upsample(const UpsampleOptions& options) : Module("Upsample"), options_(options) {}
  Result<NetworkTensor> operator()(const Operand& x) const;

 private:
  UpsampleOptions options_;
};

// (*, C * r * r, H, W) to (*, C, H * r, W * r) (Shi et al. 2016).
class PixelShuffle : public Module {
 public:
  explicit PixelShuffle(std::int64_t upscale_factor);
  Result<NetworkTensor> operator()(const Operand& x) const;  // rank 3 or more

 private:
  std::int64_t upscale_factor_;
};

}  // namespace polyphase::api::nn
