// part_models: a rewritten node and what stands in its place, each as a model of its own, so that both can be run.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "export/legalise.h"
#include "onnx/onnx.pb.h"

namespace polyphase::legal {

struct RewrittenNode {
  const onnx::ModelProto& model;  // for its versions
  const ModelFacts& facts;        // before the rewrite
  const onnx::NodeProto& node;
  std::span<const onnx::NodeProto> instead;
  std::span<const onnx::TensorProto> new_tensors;
  std::optional<std::int64_t> new_opset;  // of what stands in its place; nothing: the model's
};
// Operands that are weights are in the models, all others are inputs. Errors: an operand's type is not known.
Result<ChangedNode> part_models(const RewrittenNode& rewritten);

}  // namespace polyphase::legal
