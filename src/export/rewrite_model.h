// rewrite_model: node after node by somebody's rules; what they leave alone stays byte for byte.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "export/legalise.h"
#include "export/model_facts.h"
#include "onnx/onnx.pb.h"

namespace polyphase::legal {

// What rules made of a node.
struct Settled {
  std::vector<onnx::NodeProto> nodes;
  std::vector<onnx::TensorProto> tensors;
  std::vector<ExportChange> changes;
};

class NodeRules {
 public:
  NodeRules() = default;
  NodeRules(const NodeRules&) = delete;
  NodeRules& operator=(const NodeRules&) = delete;
  virtual ~NodeRules() = default;

  // Whether settle is worth calling.
  virtual Result<bool> touches(const onnx::NodeProto& node, const ModelFacts& facts) const = 0;
  // No changes: the node stays as it is. New tensors are told to `facts`.
  virtual Result<void> settle(const onnx::NodeProto& node, ModelFacts& facts, Settled& out) const = 0;
  // Of ONNX's own domain, in what was made; nothing: that of the model.
  virtual std::optional<std::int64_t> new_opset() const { return std::nullopt; }
  // Whether the same rules are asked again about a smaller twin of the node, to compare that instead.
  virtual bool repeatable() const { return true; }
};

// `model` is what `bytes` parse to; `facts` and `external` are about it.
Result<Legalised> rewrite_model(std::span<const std::byte> bytes, onnx::ModelProto& model, ModelFacts facts,
                                const NodeRules& rules);

}  // namespace polyphase::legal
