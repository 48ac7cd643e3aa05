// Crops that only the run knows: the whole output, then a Slice whose borders are computed from shapes.
#pragma once

#include "export/conv_transpose.h"

namespace polyphase::legal {

//   ConvTransposeWithDynamicPads(x, W, pads, B)
//     →  y = ConvTranspose(x, W, B)   Slice(y, pads[:n], Shape(y)[2:] - pads[n:])
//
// Pads that are known become an attribute.
Result<void> rewrite_computed_pads(const onnx::NodeProto& node, Replacement& out);

// The pads of such a node; empty: they are computed, or there are none.
Result<std::vector<std::int64_t>> known_pads(const onnx::NodeProto& node, const ModelFacts& model);
// The elements of a vector of int64; empty: they are computed, or there are none.
Result<std::vector<std::int64_t>> known_integers(const std::string& tensor, const ModelFacts& model);

//   ConvTranspose{output_shape: O}(x, W, B) on x of open sizes
//     →  y = ConvTranspose(x with zeros behind it where O may be larger than what the taps reach, W, B)
//        start = how ONNX splits max((I - 1) stride + span + output_padding - O, 0)   Slice(y, start, start + O)
//
// `taken`: the output_padding that the target takes.
Result<void> rewrite_computed_output_shape(const onnx::NodeProto& node, OutputPadding taken, Replacement& out);

// The one or the other: rewrite_crop where the crop is fixed, else rewrite_computed_output_shape.
Result<void> rewrite_as_pads(const onnx::NodeProto& node, const CropForm& form, Replacement& out);

}  // namespace polyphase::legal
