// Functions: the functions of a model by what calls them, and which nodes rules ask about.
#pragma once

#include <map>
#include <string>
#include <tuple>

#include "export/legalise.h"
#include "onnx/onnx.pb.h"

namespace polyphase::legal {

class Functions {
 public:
  // The model stays where it is.
  explicit Functions(const onnx::ModelProto& model);
  // null: the node is an operator.
  const onnx::FunctionProto* find(const onnx::NodeProto& node) const;

 private:
  std::map<std::tuple<std::string, std::string, std::string>, const onnx::FunctionProto*> functions_;
};

// Whether the rule is about nodes such as this one, unless it is left out.
bool asks_about(const ExportRule& rule, const onnx::NodeProto& node, const Functions& functions,
                const LegaliseOptions& options);

}  // namespace polyphase::legal
