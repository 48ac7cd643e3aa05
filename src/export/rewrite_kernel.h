// Kernels of transposed convolutions in other words: an axis more, dilation written out as taps of 0.
#pragma once

#include "base/result.h"

namespace onnx {
class NodeProto;
}

namespace polyphase::legal {

class Replacement;

//   x[N, C, L] ─ ConvTranspose  →  x ─ Unsqueeze ─ ConvTranspose on [N, C, L, 1] ─ Squeeze
Result<void> rewrite_one_axis_as_two(const onnx::NodeProto& node, Replacement& out);

//   ConvTranspose{dilations: [2]} with W = a b c  →  ConvTranspose with W = a 0 b 0 c
//
// The weight must be an initializer.
Result<void> rewrite_dilation_as_zeros(const onnx::NodeProto& node, Replacement& out);

}  // namespace polyphase::legal
