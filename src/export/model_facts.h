// ModelFacts: what rules know of the model around a node: types by name, constants, names that are taken.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "base/shape.h"
#include "base/tensor.h"
#include "ops/op.h"

namespace onnx {
class GraphProto;
class ModelProto;
class NodeProto;
class TensorProto;
}  // namespace onnx

namespace polyphase::wire {
class ExternalData;
}

namespace polyphase::legal {

struct TensorFact {
  Type type;
  Contents contents;  // elements known as sizes
};
using TensorFacts = std::map<std::string, TensorFact, std::less<>>;

class ModelFacts {
 public:
  // `tensors` are those whose types the importer knows. The model and `external`, its files of weights, stay where they
  // are.
  ModelFacts(const onnx::ModelProto& model, TensorFacts tensors, wire::ExternalData& external);

  const TensorFact* find(std::string_view tensor) const;
  void add(std::string tensor, TensorFact fact) { tensors_[std::move(tensor)] = std::move(fact); }
  // A tensor that a rewrite adds.
  void add_initializer(const onnx::TensorProto& tensor);
  // An initializer of the model or of one of its subgraphs; null: none of this name.
  const onnx::TensorProto* initializer(std::string_view tensor) const;
  // The same, or what a small Constant node gives.
  const onnx::TensorProto* constant(std::string_view tensor) const;
  // The Pad that gives this tensor; null: none does.
  const onnx::NodeProto* pad(std::string_view tensor) const;
  // Its elements. Errors: those of reading them.
  Result<Tensor> elements(const onnx::TensorProto& initializer) const;
  // Of ONNX's own domain; 0: not imported.
  std::int64_t opset() const { return opset_; }
  void set_opset(std::int64_t opset) { opset_ = opset; }
  // The wish, or the wish with a number behind it if something has that name.
  std::string fresh_name(const std::string& wish);

 private:
  void collect(const onnx::GraphProto& graph);
  void add_constant(const onnx::NodeProto& node);

  wire::ExternalData* external_;
  TensorFacts tensors_;
  std::map<std::string, const onnx::TensorProto*, std::less<>> initializers_;
  std::map<std::string, std::shared_ptr<const onnx::TensorProto>, std::less<>> constants_;  // and what was added
  std::map<std::string, std::shared_ptr<const onnx::NodeProto>, std::less<>> pads_;         // by what they give
  std::set<std::string, std::less<>> names_;
  std::int64_t opset_ = 0;
};

// Whether it is that of ONNX's own operators.
bool is_own_domain(std::string_view domain);
// The name that messages, reports and new names use: the node's own, or that of its first result.
std::string name_of(const onnx::NodeProto& node);

}  // namespace polyphase::legal
