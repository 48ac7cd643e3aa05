// operator_versions: how ONNX's operators changed from version to version, as data.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace polyphase::legal {

enum class VersionForm {
  same,     // nothing but element types
  grown,    // attributes, operands or results more, which the older form does not need
  changed,  // the older form means something else
  born,     // the first version
  gone      // no operator any more
};

struct OperatorVersion {
  std::string_view op_type;
  int version;  // the opset that brought it
  VersionForm form;
  std::uint32_t new_types;  // that the version before did not take: bits by TensorProto.DataType
  std::uint32_t old_types;  // that this version does not take any more
  bool first_operand_only;  // these hold for operand 0, other operands took them before
  int operands_before;      // at most, of the version before
  int results_before;
  std::string_view new_attributes;  // "ceil_mode=0 dilations=1s": with their defaults; None: none that changes nothing
};

// By name, oldest first; those that opset 7 means are left out.
std::span<const OperatorVersion> operator_versions();

}  // namespace polyphase::legal
