// describe: an ONNX node in a line, for reports.
#pragma once

#include <string>

namespace onnx {
class NodeProto;
}

namespace polyphase::legal {

// "ConvTranspose{strides: [2, 2], auto_pad: SAME_UPPER}": numbers and words; tensors and graphs by their names alone.
std::string describe(const onnx::NodeProto& node);

}  // namespace polyphase::legal
