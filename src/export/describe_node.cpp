// Attributes in the order of the node.
#include "export/describe_node.h"

#include "onnx/onnx.pb.h"
#include "wire/printable.h"

namespace polyphase::legal {
namespace {

constexpr int most_entries = 16;

std::string value_text(const onnx::AttributeProto& attribute) {
  switch (attribute.type()) {
    case onnx::AttributeProto::INT:
      return std::to_string(attribute.i());
    case onnx::AttributeProto::STRING:
      return wire::printable(attribute.s());
    case onnx::AttributeProto::INTS: {
      std::string out;
      for (int i = 0; i < attribute.ints_size() && i < most_entries; ++i)
        out += (i == 0 ? "" : ", ") + std::to_string(attribute.ints(i));
      return "[" + out + (attribute.ints_size() > most_entries ? ", …]" : "]");
    }
    default:
      return "…";
  }
}

}  // namespace

std::string describe(const onnx::NodeProto& node) {
  std::string out;
  for (const auto& attribute : node.attribute())
    out += (out.empty() ? "" : ", ") + wire::printable(attribute.name()) + ": " + value_text(attribute);
  const std::string domain = node.domain().empty() ? "" : wire::printable(node.domain()) + ".";
  return domain + wire::printable(node.op_type()) + (out.empty() ? "" : "{" + out + "}");
}

}  // namespace polyphase::legal
