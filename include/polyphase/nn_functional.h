// Functions that networks are made of: polyphase.nn.functional of the Python package in C++, with the same names,
// arguments, defaults, results and errors.
//
//   namespace F = polyphase::nn::functional;
//   const auto up = F::conv_transpose2d(x, weight, bias, {.stride = 2, .padding = 1, .output_padding = 1});
//   const auto y = F::silu(F::group_norm(up, 8));
//
// Names, arguments and defaults are those of TensorRT-LLM 0.5's functional module; what that accepted and ignored
// (output_padding, dilation and groups of transposed convolutions; padding, ceil_mode and count_include_pad of pools)
// is honoured. Results, ranges and the words of errors are PyTorch's (torch.nn.functional, 2.x).
//
// A function adds its layers to the network of its tensors; a number beside them becomes a constant. Axes (dim) count
// from 0, or from the end: -1 is the last. Shapes are in PyTorch's order, (N, C, spatial...). An Error among the
// operands is handed on, so a chain may be tested once, at its end. Every function can give invalid_argument, with what
// was found and what to do instead, and the operator's own rule (invalid_model); nothing throws. polyphase/nn_module.h
// has what runs them at once on arrays.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "polyphase/nn_settings.h"

namespace polyphase::api::nn::functional {

// ---------------------------------------------------------------- windows

// One number for every spatial axis, or one for each. Zeros on both sides.
struct ConvOptions {
  Numbers stride = 1;
  Numbers padding = 0;
  Numbers dilation = 1;
  std::int64_t groups = 1;
};
// Convolutions over (N, C, spatial...), or (C, spatial...) without a batch axis.
// weight: (out, in / groups, kernel...). bias: (out), or absent.
Result<NetworkTensor> conv1d(const Operand& input, const Operand& weight, const Operand& bias = {},
                             const ConvOptions& options = {});
Result<NetworkTensor> conv2d(const Operand& input, const Operand& weight, const Operand& bias = {},
                             const ConvOptions& options = {});
Result<NetworkTensor> conv3d(const Operand& input, const Operand& weight, const Operand& bias = {},
                             const ConvOptions& options = {});

struct ConvTransposeOptions {
  Numbers stride = 1;
  Numbers padding = 0;
  Numbers output_padding = 0;  // below the stride or the dilation
  Numbers dilation = 1;
  std::int64_t groups = 1;
};
// Transposed convolutions, with or without a batch axis. weight: (in, out / groups, kernel...). bias: (out), or absent.
// The result has (size - 1) * stride - 2 * padding + dilation * (kernel - 1) + output_padding + 1 places along each
// axis (torch.nn.ConvTranspose2d); docs/guides/network.md shows which.
Result<NetworkTensor> conv_transpose1d(const Operand& input, const Operand& weight, const Operand& bias = {},
                                       const ConvTransposeOptions& options = {});
Result<NetworkTensor> conv_transpose2d(const Operand& input, const Operand& weight, const Operand& bias = {},
                                       const ConvTransposeOptions& options = {});
Result<NetworkTensor> conv_transpose3d(const Operand& input, const Operand& weight, const Operand& bias = {},
                                       const ConvTransposeOptions& options = {});

struct AvgPool2dOptions {
  Numbers stride = {};  // not given: the kernel's size
  Numbers padding = 0;  // at most half of the kernel
  // Windows that begin inside of the image or its padding before it count, even where they end beyond.
  bool ceil_mode = false;
  bool count_include_pad = true;  // zeros of the padding count in the mean
};
// The mean of each window of (N, C, H, W) or (C, H, W).
Result<NetworkTensor> avg_pool2d(const Operand& input, const Numbers& kernel_size,
                                 const AvgPool2dOptions& options = {});

struct InterpolateOptions {
  Sizes size = {};               // the spatial sizes of the result; or
  Reals scale_factor = {};       // above 0, by how much each spatial axis grows; sizes are rounded down
  std::string mode = "nearest";  // nearest, nearest-exact, linear, bilinear, bicubic, trilinear
  bool align_corners = false;
  bool recompute_scale_factor = false;  // coordinates follow from the sizes, not from scale_factor
  bool antialias = false;
};
// Resampling of (N, C, spatial...) as torch.nn.functional.interpolate does it.
Result<NetworkTensor> interpolate(const Operand& input, const InterpolateOptions& options);

// (before, after) of the last axis, then of the one before, …; negative ones crop.
// mode: constant, reflect, replicate, circular.
Result<NetworkTensor> pad(const Operand& input, const std::vector<std::int64_t>& pad,
                          std::string_view mode = "constant", double value = 0);

// ---------------------------------------------------------------- normalisations
// Statistics are taken in FP32 at least, also of f16 and bf16, which are cast back before the weight. The variance is
// the biased one and never negative: that of what is left when the mean is out.

struct LayerNormOptions {
  Operand weight = {};  // normalized_shape; absent: ones
  Operand bias = {};    // normalized_shape; absent: zeros
  double eps = 1e-05;
  bool use_diff_of_squares = true;  // accepted, and changes nothing
};
// (x - mean) / sqrt(variance + eps) * weight + bias over the last axes, which have these sizes.
Result<NetworkTensor> layer_norm(const Operand& input, const Numbers& normalized_shape,
                                 const LayerNormOptions& options = {});

struct RmsNormOptions {
  Operand weight = {};  // absent: ones
  double eps = 1e-06;
};
// x / sqrt(mean(x * x) + eps) * weight over the last axes.
Result<NetworkTensor> rms_norm(const Operand& input, const Numbers& normalized_shape,
                               const RmsNormOptions& options = {});

struct GroupNormOptions {
  Operand weight = {};  // (C); absent: ones
  Operand bias = {};    // (C); absent: zeros
  double eps = 1e-05;
};
// Each group of neighbouring channels of each image of (N, C, spatial...), rank 3 or more.
Result<NetworkTensor> group_norm(const Operand& input, std::int64_t num_groups, const GroupNormOptions& options = {});
// Each channel of each image.
Result<NetworkTensor> instance_norm(const Operand& input, const GroupNormOptions& options = {});

// ---------------------------------------------------------------- shapes and pieces

// f32, f16, bf16, bool, i32 or i8. To i8 it quantises with scale 1: rounded to nearest, ties to even, beyond ±127
// saturated, NaN 0; from i8 it gives the numbers as they are. (Network::cast truncates: docs/semantics.md.)
Result<NetworkTensor> cast(const Operand& input, DType dtype);

// As many elements under another shape. At most one size is -1, which the others tell. A size of 0 copies the input's
// there if zero_is_placeholder, else it is a size of 0. A tensor in the shape's place is a vector of known length,
// whose values a run tells.
Result<NetworkTensor> view(const Operand& input, const Sizes& shape, bool zero_is_placeholder = true);
// Axes of size 1 put in. The positions are those in the result.
Result<NetworkTensor> expand_dims(const Operand& input, const Numbers& dim);
// Axes of size 1 repeated to these sizes, which may be a tensor's values; -1 keeps a size. Missing axes come in front.
Result<NetworkTensor> expand(const Operand& input, const Sizes& expand_shape);
// Axis i of the result is axis dims[i] of the input.
Result<NetworkTensor> permute(const Operand& input, const Numbers& dims);
Result<NetworkTensor> transpose(const Operand& input, std::int64_t dim0, std::int64_t dim1);
// The sizes as a vector of i64; of one axis a number of rank 0.
Result<NetworkTensor> shape(const Operand& input, std::optional<std::int64_t> dim = {});
// start, start + 1, … below end. It has no tensor that could name the network, so that comes first.
Result<NetworkTensor> arange(Network network, const Size& start, const Size& end, DType dtype = DType::i64);

// One after the other along an axis. Integers and tensors of rank 0 are taken as one element.
Result<NetworkTensor> concat(const std::vector<Operand>& inputs, std::int64_t dim = 0);
// sizes[i] elements from starts[i] on along axis i.
Result<NetworkTensor> slice(const Operand& input, const std::vector<Size>& starts, const std::vector<Size>& sizes);
// Pieces of this size along an axis, which it must divide; or of these sizes, which must add up to the axis.
Result<std::vector<NetworkTensor>> split(const Operand& tensor, const Numbers& split_size_or_sections,
                                         std::int64_t dim = 0);
// This many pieces of equal size, a number that divides the axis.
Result<std::vector<NetworkTensor>> chunk(const Operand& tensor, std::int64_t chunks, std::int64_t dim = 0);
Result<NetworkTensor> flip(const Operand& input, const Numbers& dims);
// One element of an axis, which goes. index: an integer, or a tensor of one.
Result<NetworkTensor> select(const Operand& input, std::int64_t dim, const Operand& index);
// The elements of an axis at these places, a vector of them.
Result<NetworkTensor> index_select(const Operand& input, std::int64_t dim, const Operand& index);
// For each place of indices the input's element there, but with the index along dim (torch.gather). An integer is one
// index, at the place of zeros.
Result<NetworkTensor> gather(const Operand& input, std::int64_t dim, const Operand& indices);
// input where the condition holds, else other; all three broadcast.
Result<NetworkTensor> where(const Operand& condition, const Operand& input, const Operand& other);

// ---------------------------------------------------------------- arithmetic

// exp(x) / sum of exp(x) along an axis; not given: the last one.
Result<NetworkTensor> softmax(const Operand& input, std::optional<std::int64_t> dim = {});
Result<NetworkTensor> mean(const Operand& input, const Numbers& dim, bool keepdim = false);
Result<NetworkTensor> max(const Operand& input, const Numbers& dim, bool keepdim = false);
// The place of the greatest element, the first of equals, as i64.
Result<NetworkTensor> argmax(const Operand& input, std::int64_t dim, bool keepdim = false);
// The product of matrices, or of stacks of them, each transposed first if asked for.
Result<NetworkTensor> matmul(const Operand& input, const Operand& mat2, bool transa = false, bool transb = false);
// input * weight^T + bias. weight: (out, in). bias: (out), or absent.
Result<NetworkTensor> linear(const Operand& input, const Operand& weight, const Operand& bias = {});
// The rows of weight, (count, size), at the integers of input.
Result<NetworkTensor> embedding(const Operand& input, const Operand& weight);
// Sums of products over named axes: einsum("bij,bjk->bik", {a, b}). No ellipsis, no letter twice in one operand.
Result<NetworkTensor> einsum(std::string_view einsum_eq, const std::vector<Operand>& inputs);
// log(1 + exp(beta * x)) / beta, and x itself where beta * x is above the threshold.
Result<NetworkTensor> softplus(const Operand& input, double beta = 1, double threshold = 20);
// x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3))), Hendrycks and Gimpel 2016; approximate "none": x * Phi(x).
Result<NetworkTensor> gelu(const Operand& input, std::string_view approximate = "tanh");
Result<NetworkTensor> clip(const Operand& input, double alpha, double beta);  // at least alpha, at most beta

Result<NetworkTensor> mish(const Operand& input);     // x * tanh(softplus(x)), Misra 2019
Result<NetworkTensor> silu(const Operand& input);     // x * sigmoid(x)
Result<NetworkTensor> relu(const Operand& input);     // max(0, x)
Result<NetworkTensor> sigmoid(const Operand& input);  // 1 / (1 + exp(-x))
Result<NetworkTensor> tanh(const Operand& input);
Result<NetworkTensor> round(const Operand& input);  // to the nearest integer, ties to even
Result<NetworkTensor> sqrt(const Operand& input);
Result<NetworkTensor> exp(const Operand& input);
Result<NetworkTensor> log(const Operand& input);  // the natural logarithm
Result<NetworkTensor> sin(const Operand& input);
Result<NetworkTensor> cos(const Operand& input);
Result<NetworkTensor> abs(const Operand& input);

// The operands broadcast; a number takes the other's dtype. At least one of them is a tensor.
Result<NetworkTensor> add(const Operand& left, const Operand& right);
Result<NetworkTensor> sub(const Operand& left, const Operand& right);
Result<NetworkTensor> mul(const Operand& left, const Operand& right);
Result<NetworkTensor> div(const Operand& left, const Operand& right);  // integers become f32
Result<NetworkTensor> pow(const Operand& left, const Operand& right);
Result<NetworkTensor> minimum(const Operand& left, const Operand& right);
Result<NetworkTensor> maximum(const Operand& left, const Operand& right);
Result<NetworkTensor> gt(const Operand& left, const Operand& right);
Result<NetworkTensor> lt(const Operand& left, const Operand& right);
Result<NetworkTensor> eq(const Operand& left, const Operand& right);
Result<NetworkTensor> op_and(const Operand& left, const Operand& right);  // of bools
Result<NetworkTensor> op_or(const Operand& left, const Operand& right);

}  // namespace polyphase::api::nn::functional

namespace polyphase {
namespace nn = api::nn;
}
