// PyTorch's legality table for transposed convolution, row by row with the whole message, and the crop that legal
// settings become.
#include "ops/conv_transpose_frontend.h"
#include "ops/infer.h"

namespace polyphase::test {
namespace {

TorchConvTranspose call(const std::vector<std::string>& input, const std::vector<std::string>& weight) {
  TorchConvTranspose out;
  out.spatial = static_cast<int>(weight.size()) - 2;
  out.input = f32(input);
  out.weight = f32(weight);
  return out;
}

// "pre=[…] post=[…]" or the refusal.
std::string form_of_torch(const TorchConvTranspose& given) {
  std::vector<DimCheck> checks;
  const auto form = torch_conv_transpose(given, checks);
  if (!form.ok()) return form.error().message;
  return "pre=" + print_attribute(form->pre) + " post=" + print_attribute(form->post) +
         (form->unbatched ? " unbatched" : "");
}

TEST(TorchConvTranspose, PaddingAndOutputPaddingAreOneCrop) {
  TorchConvTranspose given = call({"1", "4", "5", "5"}, {"4", "2", "3", "3"});
  given.stride = {2};
  given.padding = {1};
  given.output_padding = {0, 1};
  EXPECT_EQ(form_of_torch(given), "pre=[1, 1] post=[1, 0]");
  given.input = f32({"4", "5", "5"});
  EXPECT_EQ(form_of_torch(given), "pre=[1, 1] post=[1, 0] unbatched");
}

TEST(TorchConvTranspose, PaddingBeyondTheKernelIsLegal) {
  TorchConvTranspose given = call({"1", "1", "9"}, {"1", "1", "2"});
  given.padding = {3};
  EXPECT_EQ(form_of_torch(given), "pre=[3] post=[3]");
}

TEST(TorchConvTranspose, OutputPaddingBelowStrideOrDilation) {
  TorchConvTranspose given = call({"1", "1", "3", "3"}, {"1", "1", "3", "3"});
  given.dilation = {2};
  given.output_padding = {1};
  EXPECT_EQ(form_of_torch(given), "pre=[0, 0] post=[-1, -1]");
  given.output_padding = {1, 2};
  EXPECT_EQ(form_of_torch(given),
            "output padding must be smaller than either stride or dilation, but got output_padding_height: 1 "
            "output_padding_width: 2 "
            "stride_height: 1 stride_width: 1 dilation_height: 2 dilation_width: 2");
  TorchConvTranspose volume = call({"1", "1", "3", "3", "3"}, {"1", "1", "3", "3", "3"});
  volume.output_padding = {1, 0, 0};
  EXPECT_EQ(form_of_torch(volume),
            "output padding must be smaller than either stride or dilation, but got output_padding_depth: 1 "
            "output_padding_height: 0 "
            "output_padding_width: 0 stride_depth: 1 stride_height: 1 stride_width: 1 dilation_depth: 1 "
            "dilation_height: 1 dilation_width: 1");
}

TEST(TorchConvTranspose, SignsOfTheSettings) {
  const TorchConvTranspose plain = call({"1", "2", "3"}, {"2", "1", "3"});
  TorchConvTranspose given = plain;
  given.padding = {-1};
  EXPECT_EQ(form_of_torch(given), "negative padding is not supported");
  given = plain;
  given.output_padding = {-1};
  EXPECT_EQ(form_of_torch(given), "negative output_padding is not supported");
  given = plain;
  given.stride = {0};
  EXPECT_EQ(form_of_torch(given), "non-positive stride is not supported");
  given = plain;
  given.dilation = {0};
  EXPECT_EQ(form_of_torch(given), "dilation should be greater than zero, but got dilation_width: 0");
  given = plain;
  given.groups = 0;
  EXPECT_EQ(form_of_torch(given), "non-positive groups is not supported");
}

TEST(TorchConvTranspose, LengthsOfTheSettings) {
  TorchConvTranspose given = call({"1", "2", "3", "3"}, {"2", "1", "3", "3"});
  given.stride = {1, 2, 3};
  EXPECT_EQ(form_of_torch(given),
            "expected stride to be a single integer value or a list of 2 values to match the convolution dimensions, "
            "but got stride=[1, 2, 3]");
}

TEST(TorchConvTranspose, WeightAndChannels) {
  TorchConvTranspose given = call({"1", "2", "3"}, {"2", "1", "3"});
  given.groups = 4;
  EXPECT_EQ(
      form_of_torch(given),
      "Given groups=4, expected weight to be at least 4 at dimension 0, but got weight of size [2, 1, 3] instead");
  given = call({"1", "3", "3"}, {"3", "1", "3"});
  given.groups = 2;
  EXPECT_EQ(
      form_of_torch(given),
      "Given groups=2, expected weight to be divisible by 2 at dimension 0, but got weight of size [3, 1, 3] instead");
  EXPECT_EQ(form_of_torch(call({"1", "2", "3", "4"}, {"3", "1", "3", "2"})),
            "Given transposed=1, weight of size [3, 1, 3, 2], expected input[1, 2, 3, 4] to have 3 channels, but got 2 "
            "channels instead");
  EXPECT_EQ(form_of_torch(call({"1", "2", "3"}, {"2", "1", "0"})),
            "kernel size should be greater than zero, but got kernel_width: 0");
  EXPECT_EQ(form_of_torch(call({"1", "2", "3"}, {"2", "0", "2"})),
            "non-empty weight tensor expected, but got: [2, 0, 2]");
}

TEST(TorchConvTranspose, Bias) {
  TorchConvTranspose given = call({"1", "2", "3"}, {"2", "2", "3"});
  given.groups = 2;
  given.bias = f32({"3"});
  EXPECT_EQ(form_of_torch(given),
            "Given transposed=1, weight of size [2, 2, 3], expected bias to be 1-dimensional with 4 elements, but got "
            "bias of size [3] instead");
  given.bias = f32({"2", "2"});
  EXPECT_EQ(form_of_torch(given),
            "Given transposed=1, weight of size [2, 2, 3], expected bias to be 1-dimensional with 4 elements, but got "
            "bias of size [2, 2] instead");
  given.bias = type_of(DType::f64, {"4"});
  EXPECT_EQ(form_of_torch(given), "Input type (f32) and bias type (f64) should be the same");
}

TEST(TorchConvTranspose, Ranks) {
  TorchConvTranspose given = call({"1", "2", "3", "4", "5"}, {"2", "2", "3", "3"});
  EXPECT_EQ(
      form_of_torch(given),
      "Expected 3D (unbatched) or 4D (batched) input to conv_transpose2d, but got input of size: [1, 2, 3, 4, 5]");
  given = call({"1", "2", "3", "4"}, {"2", "2", "3"});
  given.spatial = 2;
  EXPECT_EQ(form_of_torch(given), "Expected a 4D weight for conv_transpose2d, but got weight of size: [2, 2, 3]");
}

TEST(TorchConvTranspose, Dtypes) {
  TorchConvTranspose given = call({"1", "2", "3"}, {"2", "2", "3"});
  given.input.dtype = DType::f16;
  EXPECT_EQ(form_of_torch(given), "Input type (f16) and weight type (f32) should be the same");
}

TEST(TorchConvTranspose, EmptyAndTooSmall) {
  EXPECT_EQ(form_of_torch(call({"0", "2", "3"}, {"2", "2", "3"})), "pre=[0] post=[0]");
  EXPECT_EQ(form_of_torch(call({"1", "2", "1", "0"}, {"2", "2", "3", "3"})),
            "Only zero batch or zero channel inputs are supported, but got input shape: [1, 2, 1, 0]");
  TorchConvTranspose given = call({"1", "2", "1", "4"}, {"2", "2", "1", "1"});
  given.padding = {1, 0};
  EXPECT_EQ(
      form_of_torch(given),
      "Given input size per channel: (1 x 4). Calculated output size per channel: (-1 x 4). Output size is too small");
}

TEST(TorchConvTranspose, SymbolicSizesBecomeDemands) {
  TorchConvTranspose given = call({"N", "2", "H"}, {"2", "2", "4"});
  given.stride = {2};
  given.padding = {1};
  given.output_padding = {Dim::symbol("p")};
  std::vector<DimCheck> checks;
  const auto form = torch_conv_transpose(given, checks);
  ASSERT_TRUE(form.ok());
  EXPECT_EQ(print_attribute(form->post), "[-p + 1]");
  ASSERT_EQ(checks.size(), 3U);
  EXPECT_EQ(checks[0].left.text() + " <= " + checks[0].right.text(), "1 <= H");
  EXPECT_EQ(checks[1].left.text() + " <= " + checks[1].right.text(), "p + 1 <= 2");
  EXPECT_EQ(checks[2].left.text() + " <= " + checks[2].right.text(), "1 <= 2*H + p");
}

// The output_padding, or the refusal.
std::string output_padding_for(const TorchConvTranspose& given, const std::vector<Dim>& output_size) {
  std::vector<DimCheck> checks;
  const auto found = torch_output_size(given, output_size, checks);
  return found.ok() ? print_attribute(*found) : found.error().message;
}

TEST(TorchOutputSize, RangeAndLength) {
  TorchConvTranspose given = call({"1", "1", "3", "3"}, {"1", "1", "3", "3"});
  given.stride = {2};
  given.padding = {1};
  EXPECT_EQ(output_padding_for(given, {5, 6}), "[0, 1]");
  EXPECT_EQ(output_padding_for(given, {1, 1, 6, 6}), "[1, 1]");
  EXPECT_EQ(output_padding_for(given, {4, 4}),
            "requested an output size of (4, 4), but valid sizes range from [5, 5] to [6, 6] (for an input of "
            "torch.Size([3, 3]))");
  EXPECT_EQ(output_padding_for(given, {5, 7}),
            "requested an output size of (5, 7), but valid sizes range from [5, 5] to [6, 6] (for an input of "
            "torch.Size([3, 3]))");
  EXPECT_EQ(output_padding_for(given, {5}),
            "ConvTranspose2D: for 4D input, output_size must have 2 or 4 elements (got 1)");
}

TEST(TorchOutputSize, TheRangeKnowsTheStrideOnly) {
  TorchConvTranspose given = call({"1", "1", "3"}, {"1", "1", "3"});
  given.padding = {1};
  given.dilation = {3};
  EXPECT_EQ(output_padding_for(given, {7}), "[0]");
  EXPECT_EQ(
      output_padding_for(given, {9}),
      "requested an output size of (9,), but valid sizes range from [7] to [7] (for an input of torch.Size([3]))");
  given.input = f32({"1", "1", "L"});
  EXPECT_EQ(output_padding_for(given, {Dim::symbol("S")}), "[-L + S - 4]");
}

}  // namespace
}  // namespace polyphase::test
