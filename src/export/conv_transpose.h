// A ConvTranspose of an ONNX model as rules see it: what is written, and the crop that it means.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "export/model_facts.h"
#include "export/replacement.h"

namespace polyphase::legal {

struct ConvTransposeFacts {
  Type x;
  Type weight;
  std::vector<std::int64_t> kernel;
  std::vector<std::int64_t> stride;
  std::vector<std::int64_t> dilation;
  std::int64_t groups = 1;
  // What is taken away in front and behind of (I - 1) stride + span; negative: the output grows by places that hold the
  // bias. Of ConvTransposeWithDynamicPads: symbolic where its pads are.
  std::vector<Dim> pre;
  std::vector<Dim> post;
  std::string auto_pad;                      // "NOTSET" where absent
  std::vector<std::int64_t> output_padding;  // zeros where absent
  std::vector<std::int64_t> output_shape;    // empty: absent

  std::size_t axes() const { return kernel.size(); }
  std::int64_t span(std::size_t i) const { return (kernel[i] - 1) * dilation[i] + 1; }
  bool is_same() const { return auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER"; }
  // Whether the crop is known without the sizes of x.
  bool fixed_crop() const;
};

// Errors: the types of its operands are not known, or it breaks a rule of ONNX.
Result<ConvTransposeFacts> read_conv_transpose(const onnx::NodeProto& node, const ModelFacts& model);

// Why ONNX's own shape inference gives the output a wrong rank; empty: it does not.
Result<std::string> output_shape_below_input(const onnx::NodeProto& node, const ModelFacts& model);

// How much output_padding a target takes on an axis beside any pads.
enum class OutputPadding { none, below_stride, as_onnx };
std::int64_t most_output_padding(OutputPadding taken, const ConvTransposeFacts& facts, std::size_t axis);
// How far pads may go.
enum class Crop { any, within_span };  // span - 1, so that every place of the natural output can be kept
// Where the zeros go that make the output grow.
enum class Growth { around_input, around_kernel };
struct CropForm {
  OutputPadding output_padding = OutputPadding::none;
  Crop crop = Crop::any;
  Growth growth = Growth::around_input;
};

// A fixed crop, which the caller has made sure of, as pads and no auto_pad or output_shape:
//
//   x ─ ConvTranspose{output_padding, auto_pad, output_shape}  →  x ─ [Pad] ─ ConvTranspose{pads} ─ [Slice]
//
// Where the output grows beyond what the taps reach and the target has no output_padding for it, zeros around x make
// room: each lengthens the output by a stride of places that hold nothing but the bias. Padding the output instead
// would need the bias there too. Taps of 0 around the kernel do the same by a dilation each: no node more, but more
// products. Where the output shrinks beyond the span, a Slice takes the rest away.
Result<void> rewrite_crop(const onnx::NodeProto& node, const CropForm& form, Replacement& out);
// The same of another x and another crop: `inputs` and `facts` in place of the node's own.
Result<void> rewrite_crop_of(const onnx::NodeProto& node, std::vector<std::string> inputs,
                             const ConvTransposeFacts& facts, const CropForm& form, Replacement& out);

}  // namespace polyphase::legal
