// Model-local functions: found by name, and checked before any is inlined: no cycle, bounded depth, bounded total size.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>

#include "base/result.h"

namespace onnx {
class FunctionProto;
class ModelProto;
class NodeProto;
}  // namespace onnx

namespace polyphase {

inline constexpr int max_functions = 10'000;
inline constexpr int max_call_depth = 100;

class FunctionTable {
 public:
  // Errors: two of a name, a cycle, calls too deep, or more than max_nodes nodes once everything is inlined.
  static Result<FunctionTable> of(onnx::ModelProto& model, std::int64_t max_nodes);
  onnx::FunctionProto* find(const onnx::NodeProto& node) const;

 private:
  std::map<std::tuple<std::string, std::string, std::string>, onnx::FunctionProto*> functions_;
};

// "ai.onnx" and "" are the same domain, ONNX's own.
inline std::string_view domain_of(std::string_view domain) { return domain == "ai.onnx" ? std::string_view() : domain; }

}  // namespace polyphase
