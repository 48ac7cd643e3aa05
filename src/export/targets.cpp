// The list of targets.
#include "base/lasting.h"
#include "export/rule.h"

namespace polyphase::legal {

std::span<const ExportTarget> export_targets() {
  static const std::vector<ExportTarget>& targets = lasting<std::vector<ExportTarget>>(
      {onnx_target(), onnxruntime_target(), openvino_target(), tensorrt_target(), tvm_target()});
  return targets;
}

const ExportTarget* find_export_target(std::string_view name) {
  for (const ExportTarget& target : export_targets()) {
    if (target.name == name) return &target;
  }
  return nullptr;
}

}  // namespace polyphase::legal
