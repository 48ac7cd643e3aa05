// By domain, name and overload; "ai.onnx" is the domain without a name.
#include "export/functions.h"

#include "export/model_facts.h"

namespace polyphase::legal {
namespace {

std::string plain_domain(const std::string& domain) { return is_own_domain(domain) ? std::string() : domain; }

}  // namespace

Functions::Functions(const onnx::ModelProto& model) {
  for (const auto& function : model.functions())
    functions_[{plain_domain(function.domain()), function.name(), function.overload()}] = &function;
}

const onnx::FunctionProto* Functions::find(const onnx::NodeProto& node) const {
  if (functions_.empty()) return nullptr;
  const auto found = functions_.find({plain_domain(node.domain()), node.op_type(), node.overload()});
  return found == functions_.end() ? nullptr : found->second;
}

bool asks_about(const ExportRule& rule, const onnx::NodeProto& node, const Functions& functions,
                const LegaliseOptions& options) {
  if (rule.op_type != node.op_type() || options.without_rules.count(rule.name) != 0) return false;
  if (rule.domain.empty() ? !is_own_domain(node.domain()) : rule.domain != node.domain()) return false;
  return functions.find(node) == nullptr;
}

}  // namespace polyphase::legal
