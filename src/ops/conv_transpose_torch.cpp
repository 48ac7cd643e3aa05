// PyTorch's conv_transpose1d, 2d, 3d as a crop, with PyTorch's legality rules in PyTorch's words.
#include <algorithm>

#include "ops/conv_transpose_frontend.h"
#include "ops/window.h"

namespace polyphase {
namespace {

Error refuse_window(const std::string& words) {
  return {ErrorCode::invalid_model, words, "(PyTorch refuses the same: change the call of conv_transpose.)"};
}

// A list of one entry counts for every axis.
template <typename T>
Result<std::vector<T>> expanded(const std::vector<T>& values, const std::string& name, int spatial) {
  const auto count = static_cast<std::size_t>(spatial);
  if (values.size() == count) return values;
  if (values.size() == 1) return std::vector<T>(count, values[0]);
  return refuse_window("expected " + name + " to be a single integer value or a list of " + std::to_string(spatial) +
                       " values to match the convolution dimensions, but got " + name + "=" + print_attribute(values));
}

// "stride_height: 2 stride_width: 2"
template <typename T>
std::string per_axis(const std::string& name, const std::vector<T>& values, const std::string& separator = " ") {
  constexpr const char* axes[] = {"depth", "height", "width"};
  std::string out;
  for (std::size_t i = 0; i < values.size(); ++i) {
    out += (i == 0 ? "" : separator) + name + "_" + axes[i + 3 - values.size()] + ": " + print_attribute(values[i]);
  }
  return out;
}

std::string joined(const std::vector<Dim>& sizes, const std::string& separator) {
  std::string out;
  for (const Dim& size : sizes) out += (out.empty() ? "" : separator) + size.text();
  return out;
}

struct TorchWindow {
  Shape input;  // with a batch axis
  bool unbatched = false;
  std::vector<std::int64_t> stride;
  std::vector<std::int64_t> dilation;
  std::vector<Dim> padding;
  std::vector<Dim> post_padding;
  std::vector<Dim> output_padding;
};

Result<TorchWindow> read_window(const TorchConvTranspose& given) {
  TorchWindow out;
  const std::string n = std::to_string(given.spatial);
  if (given.input.shape.rank() != given.spatial + 1 && given.input.shape.rank() != given.spatial + 2) {
    return refuse_window("Expected " + std::to_string(given.spatial + 1) + "D (unbatched) or " +
                         std::to_string(given.spatial + 2) + "D (batched) input to conv_transpose" + n +
                         "d, but got input of size: " + given.input.shape.text());
  }
  if (given.weight.shape.rank() != given.spatial + 2) {
    return refuse_window("Expected a " + std::to_string(given.spatial + 2) + "D weight for conv_transpose" + n +
                         "d, but got weight of size: " + given.weight.shape.text());
  }
  out.unbatched = given.input.shape.rank() == given.spatial + 1;
  std::vector<Dim> dims = given.input.shape.dims();
  if (out.unbatched) dims.insert(dims.begin(), Dim(1));
  out.input = Shape(std::move(dims));
  TRY(out.stride, expanded(given.stride, "stride", given.spatial));
  TRY(out.padding, expanded(given.padding, "padding", given.spatial));
  out.post_padding = out.padding;
  if (given.post_padding.has_value()) {
    TRY(out.post_padding, expanded(*given.post_padding, "post_padding", given.spatial));
  }
  TRY(out.dilation, expanded(given.dilation, "dilation", given.spatial));
  TRY(out.output_padding, expanded(given.output_padding, "output_padding", given.spatial));
  return out;
}

Result<void> check_dtypes(const TorchConvTranspose& given) {
  const std::string input = "Input type (" + std::string(name_of(given.input.dtype)) + ") and ";
  if (given.weight.dtype != given.input.dtype) {
    return refuse_window(input + "weight type (" + std::string(name_of(given.weight.dtype)) + ") should be the same");
  }
  if (given.bias.has_value() && given.bias->dtype != given.input.dtype) {
    return refuse_window(input + "bias type (" + std::string(name_of(given.bias->dtype)) + ") should be the same");
  }
  return {};
}

// Signs of the settings.
Result<void> check_settings(const TorchConvTranspose& given, const TorchWindow& window, const DimDemands& demand) {
  constexpr auto at_most = DimCheck::Relation::less_equal;
  for (const Dim& p : window.padding) {
    if (!given.post_padding.has_value()) TRY_VOID(demand.require(0, at_most, p, "negative padding is not supported"));
  }
  for (const Dim& p : window.output_padding)
    TRY_VOID(demand.require(0, at_most, p, "negative output_padding is not supported"));
  const auto below_one = [](std::int64_t value) { return value < 1; };
  if (std::any_of(window.stride.begin(), window.stride.end(), below_one))
    return refuse_window("non-positive stride is not supported");
  if (std::any_of(window.dilation.begin(), window.dilation.end(), below_one)) {
    return refuse_window("dilation should be greater than zero, but got " +
                         per_axis("dilation", window.dilation, ", "));
  }
  if (given.groups < 1) return refuse_window("non-positive groups is not supported");
  return {};
}

Result<void> check_weight(const TorchConvTranspose& given, const TorchWindow& window, const DimDemands& demand) {
  constexpr auto at_most = DimCheck::Relation::less_equal;
  constexpr auto equal = DimCheck::Relation::equal;
  const Shape& w = given.weight.shape;
  const Dim groups(given.groups);
  const std::string prefix = "Given groups=" + groups.text() + ", expected weight to be ";
  TRY_VOID(demand.require(
      groups, at_most, w[0],
      prefix + "at least " + groups.text() + " at dimension 0, but got weight of size " + w.text() + " instead"));
  TRY_VOID(demand.require(
      floor_mod(w[0], groups), equal, 0,
      prefix + "divisible by " + groups.text() + " at dimension 0, but got weight of size " + w.text() + " instead"));
  const std::string transposed = "Given transposed=1, weight of size " + w.text() + ", expected ";
  TRY_VOID(demand.require(window.input[1], equal, w[0],
                          transposed + "input" + given.input.shape.text() + " to have " + w[0].text() +
                              " channels, but got " + window.input[1].text() + " channels instead"));
  if (given.bias.has_value()) {
    const Dim channels = w[1] * groups;
    const std::string words = transposed + "bias to be 1-dimensional with " + channels.text() +
                              " elements, but got bias of size " + given.bias->shape.text() + " instead";
    if (given.bias->shape.rank() != 1) return refuse_window(words);
    TRY_VOID(demand.require(given.bias->shape[0], equal, channels, words));
  }
  const std::vector<Dim> kernel(w.begin() + 2, w.end());
  for (const Dim& size : kernel) {
    TRY_VOID(demand.require(1, at_most, size,
                            "kernel size should be greater than zero, but got " + per_axis("kernel", kernel)));
  }
  return demand.require(1, at_most, w[1], "non-empty weight tensor expected, but got: " + w.text());
}

std::vector<Dim> smallest_sizes(const TorchConvTranspose& given, const TorchWindow& window) {
  std::vector<Dim> out;
  for (std::size_t i = 0; i < window.stride.size(); ++i) {
    const int axis = static_cast<int>(i) + 2;
    out.push_back((window.input[axis] - 1) * Dim(window.stride[i]) - window.padding[i] - window.post_padding[i] +
                  dilated_kernel(given.weight.shape[axis], window.dilation[i]));
  }
  return out;
}

// The input is not empty but for batch and channels, output_padding is in its range, and something comes out.
Result<void> check_sizes(const TorchConvTranspose& given, const TorchWindow& window, const DimDemands& demand) {
  constexpr auto at_most = DimCheck::Relation::less_equal;
  const bool no_batch = window.input[0] == 0;
  const std::vector<Dim> spatial(window.input.begin() + 2, window.input.end());
  for (const Dim& size : spatial) {
    if (no_batch) continue;
    TRY_VOID(demand.require(
        1, at_most, size,
        "Only zero batch or zero channel inputs are supported, but got input shape: " + given.input.shape.text()));
  }
  std::vector<Dim> out = smallest_sizes(given, window);
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] += window.output_padding[i];
    TRY_VOID(demand.require(window.output_padding[i] + 1, at_most, std::max(window.stride[i], window.dilation[i]),
                            "output padding must be smaller than either stride or dilation, but got " +
                                per_axis("output_padding", window.output_padding) + " " +
                                per_axis("stride", window.stride) + " " + per_axis("dilation", window.dilation)));
  }
  for (const Dim& size : out) {
    if (no_batch) continue;
    TRY_VOID(demand.require(1, at_most, size,
                            "Given input size per channel: (" + joined(spatial, " x ") +
                                "). Calculated output size per channel: (" + joined(out, " x ") +
                                "). Output size is too small"));
  }
  return {};
}

}  // namespace

Result<ConvTransposeForm> torch_conv_transpose(const TorchConvTranspose& given, std::vector<DimCheck>& checks) {
  const DimDemands demand(checks);
  CHECK(given.spatial >= 1 && given.spatial <= 3);
  TRY(const TorchWindow window, read_window(given));
  TRY_VOID(check_dtypes(given));
  TRY_VOID(check_settings(given, window, demand));
  TRY_VOID(check_weight(given, window, demand));
  TRY_VOID(check_sizes(given, window, demand));
  ConvTransposeForm form{
      window.stride, window.dilation, given.groups, window.padding, window.post_padding, window.unbatched, {}};
  for (std::size_t i = 0; i < form.post.size(); ++i) form.post[i] -= window.output_padding[i];
  return form;
}

Result<std::vector<Dim>> torch_output_size(const TorchConvTranspose& given, const std::vector<Dim>& output_size,
                                           std::vector<DimCheck>& checks) {
  const DimDemands demand(checks);
  CHECK(given.spatial >= 1 && given.spatial <= 3);
  TRY(const TorchWindow window, read_window(given));
  TRY_VOID(check_settings(given, window, demand));
  const auto spatial = static_cast<std::size_t>(given.spatial);
  const auto rank = static_cast<std::size_t>(given.input.shape.rank());
  if (output_size.size() != spatial && output_size.size() != rank) {
    const std::string n = std::to_string(given.spatial);
    return refuse_window("ConvTranspose" + n + "D: for " + std::to_string(rank) + "D input, output_size must have " +
                         n + " or " + std::to_string(rank) + " elements (got " + std::to_string(output_size.size()) +
                         ")");
  }
  const std::vector<Dim> sizes(output_size.end() - given.spatial, output_size.end());
  const std::vector<Dim> low = smallest_sizes(given, window);
  std::vector<Dim> high = low;
  for (std::size_t i = 0; i < spatial; ++i) high[i] += window.stride[i] - 1;
  const std::vector<Dim> input(window.input.begin() + 2, window.input.end());
  const std::string words = "requested an output size of (" + joined(sizes, ", ") + (spatial == 1 ? ",)" : ")") +
                            ", but valid sizes range from [" + joined(low, ", ") + "] to [" + joined(high, ", ") +
                            "] (for an input of torch.Size([" + joined(input, ", ") + "]))";
  std::vector<Dim> out;
  for (std::size_t i = 0; i < spatial; ++i) {
    TRY_VOID(demand.require(low[i], DimCheck::Relation::less_equal, sizes[i], words));
    TRY_VOID(demand.require(sizes[i], DimCheck::Relation::less_equal, high[i], words));
    out.push_back(sizes[i] - low[i]);
  }
  return out;
}

}  // namespace polyphase
