// ONNX's ConvTranspose, Conv and pools: the crop and padding of every auto_pad case, symbolic sizes, and each refusal
// whole.
#include "ops/conv_transpose_frontend.h"
#include "ops/infer.h"
#include "ops/onnx_window.h"

namespace polyphase::test {
namespace {

using Integers = std::vector<std::int64_t>;

// Input [1, 1, I], weight [1, 1, k], stride s.
OnnxConvTranspose node(const std::string& input, const std::string& kernel, std::int64_t stride,
                       const std::string& auto_pad = "NOTSET") {
  OnnxConvTranspose out{f32({"1", "1", input}).shape, f32({"1", "1", kernel}).shape, auto_pad};
  out.strides = Integers{stride};
  return out;
}

// "[pre] [post] size", then warnings; or the refusal.
std::string form_of_onnx(const OnnxConvTranspose& given) {
  std::vector<DimCheck> checks;
  const auto form = onnx_conv_transpose(given, checks);
  if (!form.ok()) return form.error().message;
  const Attributes attributes{{"stride", form->stride},
                              {"dilation", form->dilation},
                              {"groups", form->groups},
                              {"pre", form->pre},
                              {"post", form->post}};
  const Inferred found =
      infer("conv_transpose", print_attributes(attributes), {{DType::f32, given.input}, {DType::f32, given.weight}});
  std::string out = print_attribute(form->pre) + " " + print_attribute(form->post) + " " + found.result;
  for (const std::string& warning : form->warnings) out += "\n" + warning;
  return out;
}

TEST(OnnxConvTranspose, ExplicitPads) {
  OnnxConvTranspose given = node("3", "3", 2);
  given.pads = std::vector<Dim>{1, 0};
  given.output_padding = Integers{1};
  EXPECT_EQ(form_of_onnx(given), "[1] [-1] f32[1, 1, 7]");
  given.pads =
      std::vector<Dim>{Dim::symbol("a"), Dim::symbol("b")};  // computed, as ConvTransposeWithDynamicPads has them
  EXPECT_EQ(form_of_onnx(given), "[a] [b - 1] f32[1, 1, -a - b + 8]");
}

TEST(OnnxConvTranspose, SameHasTheSizeTimesStride) {
  EXPECT_EQ(form_of_onnx(node("3", "4", 1, "SAME_UPPER")), "[1] [2] f32[1, 1, 3]");
  EXPECT_EQ(form_of_onnx(node("3", "4", 1, "SAME_LOWER")), "[2] [1] f32[1, 1, 3]");
  EXPECT_EQ(form_of_onnx(node("H", "3", 2, "SAME_UPPER")), "[0] [1] f32[1, 1, 2*H]");
}

TEST(OnnxConvTranspose, SameWithOutputPaddingKeepsTheSize) {
  OnnxConvTranspose given = node("3", "3", 2, "SAME_UPPER");
  given.output_padding = Integers{1};
  EXPECT_EQ(form_of_onnx(given), "[1] [0] f32[1, 1, 6]");
}

TEST(OnnxConvTranspose, SameWithAKernelBelowTheStrideGrowsAtBothEnds) {
  EXPECT_EQ(form_of_onnx(node("3", "1", 3, "SAME_UPPER")), "[-1] [-1] f32[1, 1, 9]");
  EXPECT_EQ(form_of_onnx(node("H", "1", 3, "SAME_LOWER")), "[-1] [-1] f32[1, 1, 3*H]");
  EXPECT_EQ(form_of_onnx(node("3", "3", 4, "SAME_UPPER")), "[-1] [0] f32[1, 1, 12]");
  EXPECT_EQ(form_of_onnx(node("3", "3", 4, "SAME_LOWER")), "[0] [-1] f32[1, 1, 12]");
}

TEST(OnnxConvTranspose, OutputShapeSplitsTheRest) {
  for (const auto& [auto_pad, expected] :
       std::vector<std::pair<std::string, std::string>>{{"NOTSET", "[2] [1] f32[1, 1, 4]"},
                                                        {"VALID", "[2] [1] f32[1, 1, 4]"},
                                                        {"SAME_LOWER", "[2] [1] f32[1, 1, 4]"},
                                                        {"SAME_UPPER", "[1] [2] f32[1, 1, 4]"}}) {
    OnnxConvTranspose given = node("3", "3", 2, auto_pad);
    given.output_shape = std::vector<Dim>{4};
    EXPECT_EQ(form_of_onnx(given), expected) << auto_pad;
  }
}

TEST(OnnxConvTranspose, OutputShapeBeyondTheNaturalSizeGrowsAtTheEnd) {
  OnnxConvTranspose given = node("3", "3", 2);
  given.output_shape = std::vector<Dim>{10};
  EXPECT_EQ(form_of_onnx(given), "[0] [-3] f32[1, 1, 10]");
  given.pads = std::vector<Dim>{1, 1};  // does not count beside output_shape
  EXPECT_EQ(form_of_onnx(given), "[0] [-3] f32[1, 1, 10]");
}

TEST(OnnxConvTranspose, OutputShapeBelowTheInputSize) {
  OnnxConvTranspose given = node("3", "3", 2);
  given.output_shape = std::vector<Dim>{2};
  EXPECT_EQ(form_of_onnx(given), "[3] [2] f32[1, 1, 2]");
}

TEST(OnnxConvTranspose, OutputShapeOfASymbolicInput) {
  OnnxConvTranspose given = node("H", "3", 2);
  given.output_shape = std::vector<Dim>{8};
  EXPECT_EQ(
      form_of_onnx(given),
      "[-((max(0, 2*H - 7))//2) + max(0, 2*H - 7)] [((max(0, 2*H - 7))//2) + 2*H - max(0, 2*H - 7) - 7] f32[1, 1, 8]");
}

TEST(OnnxConvTranspose, OutputShapeWithBatchAndChannelsIsTakenWithAWarning) {
  OnnxConvTranspose given = node("3", "3", 2);
  given.output_shape = std::vector<Dim>{1, 1, 6};
  EXPECT_EQ(form_of_onnx(given),
            "[1] [0] f32[1, 1, 6]\nConvTranspose: attribute output_shape [1, 1, 6] names batch and channels too, which "
            "ONNX forbids; its last 1 "
            "values are used.");
  given.output_shape = std::vector<Dim>{1, 6};
  EXPECT_EQ(form_of_onnx(given),
            "ConvTranspose: attribute output_shape must have one value per spatial axis (1), found [1, 6].");
}

TEST(OnnxConvTranspose, OutputPaddingRule) {
  OnnxConvTranspose given = node("3", "3", 2);
  given.output_padding = Integers{2};
  EXPECT_EQ(form_of_onnx(given),
            "ConvTranspose: attribute output_padding must have one value per spatial axis, from 0 to below the stride "
            "or below the dilation (the "
            "rule of ONNX and of PyTorch), found output_padding=[2], strides=[2], dilations=[1].");
  given.dilations = Integers{3};
  EXPECT_EQ(form_of_onnx(given), "[0] [-2] f32[1, 1, 13]");
}

TEST(OnnxConvTranspose, Refusals) {
  OnnxConvTranspose given = node("3", "3", 2);
  given.strides = Integers{0};
  EXPECT_EQ(form_of_onnx(given),
            "ConvTranspose: attribute strides must have one positive value per spatial axis (1), found [0].");
  given = node("3", "3", 2);
  given.dilations = Integers{1, 1};
  EXPECT_EQ(form_of_onnx(given),
            "ConvTranspose: attribute dilations must have one positive value per spatial axis (1), found [1, 1].");
  given = node("3", "3", 2);
  given.pads = std::vector<Dim>{-1, 0};
  EXPECT_EQ(form_of_onnx(given), "ConvTranspose: attribute pads must not hold negative values, found [-1, 0].");
  given.pads = std::vector<Dim>{1};
  EXPECT_EQ(form_of_onnx(given),
            "ConvTranspose: attribute pads must have a begin for each spatial axis and then an end for each (2 "
            "values), found [1].");
  given = node("3", "3", 2, "SAME_UPPER");
  given.pads = std::vector<Dim>{0, 1};
  EXPECT_EQ(form_of_onnx(given),
            "ConvTranspose: attribute pads cannot be used together with auto_pad SAME_UPPER, found [0, 1].");
  EXPECT_EQ(form_of_onnx(node("3", "3", 2, "SAME")),
            "ConvTranspose: attribute auto_pad must be NOTSET, VALID, SAME_UPPER or SAME_LOWER, found 'SAME'.");
  given = node("3", "3", 2);
  given.kernel_shape = Integers{2};
  EXPECT_EQ(form_of_onnx(given), "ConvTranspose: attribute kernel_shape is [2], but the weight's kernel is [3].");
  EXPECT_EQ(form_of_onnx(node("3", "0", 2)), "ConvTranspose: every kernel size must be at least 1, found [0].");
}

TEST(OnnxConvTranspose, RefusesShapes) {
  OnnxConvTranspose given = node("3", "3", 2);
  given.weight = f32({"2", "1", "3"}).shape;
  EXPECT_EQ(form_of_onnx(given),
            "ConvTranspose: dimension 0 of the weight must equal the input's channels, found input [1, 1, 3] and "
            "weight [2, 1, 3].");
  given.input = f32({"1", "2", "3"}).shape;
  given.group = 3;
  EXPECT_EQ(form_of_onnx(given),
            "ConvTranspose: attribute group must be at least 1 and divide the input's channels, found input [1, 2, 3], "
            "group=3.");
  given.weight = f32({"2"}).shape;
  EXPECT_EQ(
      form_of_onnx(given),
      "ConvTranspose: input and weight must have the same rank, 3 or more, found input [1, 2, 3] and weight [2].");
  given = node("1", "1", 1);
  given.pads = std::vector<Dim>{1, 0};
  EXPECT_EQ(form_of_onnx(given),
            "ConvTranspose: the output must have at least one element on every spatial axis, but axis 2 of input [1, "
            "1, 1] gives size 0.");
  given.input = f32({"1", "1", "1", "1", "1", "1"}).shape;
  given.weight = given.input;
  EXPECT_EQ(
      form_of_onnx(given),
      "ConvTranspose: the input must be (N, C, one to three spatial axes), rank 3 to 5, found [1, 1, 1, 1, 1, 1].");
}

TEST(OnnxConvTranspose, EmptyInputs) {
  OnnxConvTranspose given = node("3", "3", 2);
  given.input = f32({"0", "1", "3"}).shape;
  EXPECT_EQ(form_of_onnx(given), "[0] [0] f32[0, 1, 7]");
  EXPECT_EQ(form_of_onnx(node("0", "3", 2)), "[0] [0] f32[1, 1, 1]");
}

// "[pre] [post]" or the refusal.
std::string window_of(const OnnxWindowSettings& given) {
  std::vector<DimCheck> checks;
  const auto form = onnx_window(given, checks);
  return form.ok() ? print_attribute(form->pre) + " " + print_attribute(form->post) + (form->ceil ? " ceil" : "")
                   : form.error().message;
}

TEST(OnnxWindow, AutoPad) {
  OnnxWindowSettings given{"Conv", f32({"1", "1", "6"}).shape, {3}, "SAME_UPPER"};
  given.strides = Integers{2};
  EXPECT_EQ(window_of(given), "[0] [1]");
  given.auto_pad = "SAME_LOWER";
  EXPECT_EQ(window_of(given), "[1] [0]");
  given.dilations = Integers{2};
  EXPECT_EQ(window_of(given), "[2] [1]");
  given.auto_pad = "VALID";
  given.ceil_mode = true;
  EXPECT_EQ(window_of(given), "[0] [0]");
  given.auto_pad = "NOTSET";
  EXPECT_EQ(window_of(given), "[0] [0] ceil");
  given.kernel = {3, 3};
  EXPECT_EQ(window_of(given), "Conv: the kernel must have one size per spatial axis (1), found [3, 3].");
}

TEST(OnnxWindow, SymbolicSizesGiveSymbolicPaddingAndTheSizeOfTheRule) {
  OnnxWindowSettings given{"Conv", f32({"1", "1", "H"}).shape, {3}, "SAME_UPPER"};
  EXPECT_EQ(window_of(given), "[1] [1]");
  given.strides = Integers{2};
  EXPECT_EQ(window_of(given), "[2*((H + 1)//2) - H] [1]");
  std::vector<DimCheck> checks;
  const WindowForm form = onnx_window(given, checks).value();
  const Attributes attributes{
      {"stride", form.stride}, {"dilation", form.dilation}, {"pre", form.pre}, {"post", form.post}};
  EXPECT_EQ(infer("conv", print_attributes(attributes), {f32({"1", "1", "H"}), f32({"1", "1", "3"})}).result,
            "f32[1, 1, (H + 1)//2]");
}

}  // namespace
}  // namespace polyphase::test
