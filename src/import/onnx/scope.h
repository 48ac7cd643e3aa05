// Scope: what names stand for while nodes are translated: in the main graph, a function's body, or a subgraph.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/result.h"
#include "base/tensor.h"
#include "graph/graph.h"

namespace onnx {
class AttributeProto;
}

namespace polyphase {

// An attribute of a node; inside a function its value may come from the call, where it has another name.
struct NamedAttribute {
  std::string_view name;
  onnx::AttributeProto* proto = nullptr;
};

// Domain → version; "ai.onnx" is "".
using Opsets = std::map<std::string, std::int64_t, std::less<>>;

// What one name stands for.
struct Meaning {
  Value* value = nullptr;  // null while an initialiser waits for its first use, and for an absent optional operand
  std::optional<Tensor> tensor;                         // an initialiser
  std::string weight = {};                              // its name, if it may be exchanged in the engine
  std::shared_ptr<Error> problem;                       // an initialiser that we cannot store: told only if it is used
  bool missing = false;                                 // the result of an operator that we lack
  std::shared_ptr<const std::vector<Value*>> sequence;  // of known length; then there is no value
  bool is_empty_optional = false;

  // A tensor or a sequence, as opposed to an absent operand or an optional that holds nothing.
  bool is_there() const { return value != nullptr || tensor.has_value() || sequence != nullptr; }
};

// Where the nodes of one body belong: its opsets, the attributes that its function was called with, the path to it.
struct Body {
  const Opsets* opsets = nullptr;
  const std::map<std::string_view, onnx::AttributeProto*>* attributes = nullptr;  // null: not a function
  std::string prefix;                                                             // "call1/call2/", for node names
};

struct Scope {
  Graph* graph = nullptr;
  const Body* body = nullptr;
  Scope* outer = nullptr;  // whose names are visible too (subgraphs); null for the main graph and functions
  std::unordered_map<std::string_view, Meaning> names;
};

}  // namespace polyphase
