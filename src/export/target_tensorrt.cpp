// Rules of TensorRT: of IDeconvolutionLayer, and of the ONNX parser in front of it.
#include <algorithm>

#include "export/computed_crop.h"
#include "export/conv_transpose.h"
#include "export/refusals.h"
#include "export/rewrite_kernel.h"
#include "export/rule.h"

namespace polyphase::legal {
namespace {

bool any_above(const std::vector<std::int64_t>& values, std::int64_t limit) {
  return std::any_of(values.begin(), values.end(), [&](std::int64_t value) { return value > limit; });
}

Result<std::string> trt_output_shape(const onnx::NodeProto& node, const ModelFacts& model) {
  TRY(const ConvTransposeFacts facts, read_conv_transpose(node, model));
  return facts.output_shape.empty() ? std::string() : std::string("there is no output_shape");
}

Result<std::string> trt_auto_pad(const onnx::NodeProto& node, const ModelFacts& model) {
  TRY(const ConvTransposeFacts facts, read_conv_transpose(node, model));
  if (facts.is_same()) return facts.auto_pad + " has another size where the kernel is smaller than the stride";
  if (facts.auto_pad == "VALID" && any_above(facts.output_padding, 0))
    return std::string("output_padding is not read beside auto_pad VALID");
  return std::string();
}

Result<std::string> trt_output_padding(const onnx::NodeProto& node, const ModelFacts& model) {
  TRY(const ConvTransposeFacts facts, read_conv_transpose(node, model));
  return any_above(facts.output_padding, 0) ? std::string("there is no output_padding") : std::string();
}

Result<std::string> trt_dilation(const onnx::NodeProto& node, const ModelFacts& model) {
  TRY(const ConvTransposeFacts facts, read_conv_transpose(node, model));
  const bool both = any_above(facts.dilation, 1) && any_above(facts.stride, 1);
  if (!both || model.initializer(node.input(1)) == nullptr) return std::string();
  return std::string("dilation beside a stride");
}

Result<std::string> trt_one_axis(const onnx::NodeProto& node, const ModelFacts& model) {
  TRY(const ConvTransposeFacts facts, read_conv_transpose(node, model));
  return facts.axes() == 1 ? std::string("there is no layer for one spatial axis") : std::string();
}

Result<std::string> trt_open_channels(const onnx::NodeProto& node, const ModelFacts& model) {
  TRY(const ConvTransposeFacts facts, read_conv_transpose(node, model));
  if (facts.x.shape[1].is_constant()) return std::string();
  return "the number of channels must be fixed when the engine is built; the input is " + facts.x.text();
}

Result<std::string> trt_element_type(const onnx::NodeProto& node, const ModelFacts& model) {
  TRY(const ConvTransposeFacts facts, read_conv_transpose(node, model));
  const DType dtype = facts.x.dtype;
  if (dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16) return std::string();
  return "its elements must be f32, f16 or bf16; the input is " + facts.x.text();
}

Result<void> trt_crop(const onnx::NodeProto& node, Replacement& out) {
  return rewrite_as_pads(node, {OutputPadding::none, Crop::any}, out);
}

constexpr std::string_view nvinfer = "NvInfer.h (TensorRT 11.1), IDeconvolutionLayer";

}  // namespace

ExportTarget tensorrt_target() {
  return {
      "tensorrt",
      "NVIDIA TensorRT",
      "a validator that states these rules, and a stand-in for TensorRT's parser that obeys them; "
      "tools/check_tensorrt.py asks the real one where it is installed",
      {{"computed-pads", "ConvTransposeWithDynamicPads", "com.microsoft", "all",
        "ONNX Runtime, docs/ContribOperators.md",
        "Refused by the parser. Becomes ConvTranspose, with these pads where they are known, else with a Slice whose "
        "borders are computed.",
        onnxruntime_operator, rewrite_computed_pads},
       {"output-shape", "ConvTranspose", "", "all",
        "onnx-tensorrt 10.1, importer of ConvTranspose: output_shape is not read beside SAME, is computed from static "
        "sizes, and refused where padding would be below zero",
        "Refused or wrong. Becomes pads; where the input's sizes are open, a Slice whose borders are computed from "
        "Shape.",
        trt_output_shape, trt_crop},
       {"auto-pad", "ConvTranspose", "", "all",
        "NvInfer.h, PaddingMode: SAME gives min(I * S, (I - 1) * S + DK); onnx-tensorrt 10.1: output_padding is read "
        "beside NOTSET alone",
        "Wrong sizes. Becomes pads.", trt_auto_pad, trt_crop},
       {"output-padding", "ConvTranspose", "", "all",
        "NvInfer.h has none; NVIDIA/TensorRT issue 2168, pytorch/TensorRT issues 3344 and 3352",
        "Padding behind becomes less by as much: pre = p, post = p - output_padding. Where that would be below zero, "
        "zeros go behind the input, which make the output longer by a stride each, by places that hold the bias; the "
        "parser itself would put zeros behind the output, and add the bias in a layer of its own.",
        trt_output_padding, trt_crop},
       {"dilation-with-stride", "ConvTranspose", "", "all",
        "onnx-tensorrt leaves test_convtranspose_dilations out; Torch-TensorRT gives such layers back to PyTorch",
        "Refused. The kernel gets taps of 0 in between, and no dilation.", trt_dilation, rewrite_dilation_as_zeros},
       {"one-axis", "ConvTranspose", "", "all",
        "NvInfer.h, addDeconvolutionNd: two or three spatial axes; NVIDIA/TensorRT issue 1587",
        "Refused by the layer, and by some parsers. Becomes a layer of two axes, the second of size 1.", trt_one_axis,
        rewrite_one_axis_as_two},
       {"open-channels", "ConvTranspose", "", "all", nvinfer,
        "Refused, and no rewrite helps: give the channels of the model's input a number.", trt_open_channels, nullptr},
       {"element-type", "ConvTranspose", "", "all", "TensorRT's support matrix of ONNX operators",
        "Refused, and no rewrite keeps the numbers: convert the model to float32, float16 or bfloat16.",
        trt_element_type, nullptr}}};
}

}  // namespace polyphase::legal
