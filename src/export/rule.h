// ExportRule and ExportTarget: what an engine of others refuses or gets wrong, and what is put in its place.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace onnx {
class NodeProto;
}

namespace polyphase::legal {

class ModelFacts;
class Replacement;

struct ExportRule {
  std::string_view name;      // "output-padding-from-stride-on"
  std::string_view op_type;   // of the nodes that are asked about
  std::string_view domain;    // "" is ONNX's own
  std::string_view versions;  // of the target that are known to need it
  std::string_view source;    // where that can be read, or how it was found
  std::string_view doc;       // what the target does to such a node, and what it becomes
  // Why the target cannot take the node; empty: it can.
  Result<std::string> (*applies)(const onnx::NodeProto&, const ModelFacts&) = nullptr;
  // Null: nothing can be put in its place.
  Result<void> (*rewrite)(const onnx::NodeProto&, Replacement&) = nullptr;
};

struct ExportTarget {
  std::string_view name;
  std::string_view title;
  std::string_view checked;  // how its rules are tested
  std::vector<ExportRule> rules;
};

// In the order in which the documentation lists them.
std::span<const ExportTarget> export_targets();
// null: no target of this name.
const ExportTarget* find_export_target(std::string_view name);

// The targets' tables, a file each.
ExportTarget onnx_target();
ExportTarget onnxruntime_target();
ExportTarget openvino_target();
ExportTarget tensorrt_target();
ExportTarget tvm_target();

}  // namespace polyphase::legal
