// splice_model: an ONNX model with some of its parts exchanged; every other byte stays as it is.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace polyphase::wire {

// Parts are serialised messages of onnx.proto.
struct ModelSplice {
  std::map<int, std::vector<std::string>> nodes;  // place in the main graph → the NodeProtos that stand there instead
  std::vector<std::string> new_initializers;      // TensorProtos of the main graph, behind those that are there
  std::set<int> dropped_initializers;             // by their place in the main graph
  std::set<int> dropped_functions;                // by their place in the model
  std::optional<std::vector<std::string>> opset_imports;  // OperatorSetIdProtos in place of all that are there
};

// Errors: unsupported: the graph lies in the file in several pieces, or the result would be larger than protobuf
// allows.
Result<std::string> splice_model(std::span<const std::byte> model, const ModelSplice& splice);

}  // namespace polyphase::wire
