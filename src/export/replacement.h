// Replacement: the nodes and tensors that a rewrite puts in place of one node, under names that follow from its own.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "export/model_facts.h"
#include "onnx/onnx.pb.h"

namespace polyphase::legal {

class Replacement {
 public:
  // Of `node`, which stays where it is. The types of new tensors are told to `model`.
  Replacement(const onnx::NodeProto& node, ModelFacts& model) : node_(node), model_(model) {}
  Replacement(const Replacement&) = delete;
  Replacement& operator=(const Replacement&) = delete;

  const onnx::NodeProto& replaced() const { return node_; }
  const ModelFacts& model() const { return model_; }

  // A node with one result, "NODE/WORD"; gives the result's name. `type` may be null where no rule reads it.
  std::string add(std::string_view op_type, const std::vector<std::string>& inputs, std::string_view word,
                  const Type* type = nullptr);
  // The node that gives the results of the replaced one.
  void add_last(std::string_view op_type, const std::vector<std::string>& inputs);
  // The replaced node as it is, for changes; to be called once, at the end.
  onnx::NodeProto& again();
  // The node added most recently, for its attributes.
  onnx::NodeProto& latest() { return nodes_.back(); }
  // A vector of int64 as a new tensor.
  std::string integers(const std::vector<std::int64_t>& values, std::string_view word);
  // Any new tensor, which gets the name "NODE/WORD".
  std::string tensor(onnx::TensorProto value, std::string_view word, const Type& type);

  // The same of our own tensor, row-major.
  std::string constant(const Tensor& value, std::string_view word);

  // x with zeros around it; `pads` are all begins, then all ends, over all axes.
  std::string pad(const std::string& x, const std::vector<std::int64_t>& pads, std::string_view word, const Type& type);
  // The attributes or operands of a Slice, as the opset has it, that takes begins[i] elements away in front of axis
  // 2 + i and ends[i] behind it.
  std::vector<std::string> crop_operands(const std::string& x, const std::vector<std::int64_t>& begins,
                                         const std::vector<std::int64_t>& ends);
  // To the node added last, a Slice that was given what crop_operands gave.
  void set_crop(const std::vector<std::int64_t>& begins, const std::vector<std::int64_t>& ends);

  std::deque<onnx::NodeProto>& nodes() { return nodes_; }
  std::vector<onnx::TensorProto>& tensors() { return tensors_; }

 private:
  std::string fresh(std::string_view word) { return model_.fresh_name(name_of(node_) + "/" + std::string(word)); }

  const onnx::NodeProto& node_;
  ModelFacts& model_;
  std::deque<onnx::NodeProto> nodes_;
  std::vector<onnx::TensorProto> tensors_;
};

const onnx::AttributeProto* find_attribute(const onnx::NodeProto& node, std::string_view name);
std::vector<std::int64_t> integers_of(const onnx::NodeProto& node, std::string_view name);  // none: empty
std::int64_t integer_of(const onnx::NodeProto& node, std::string_view name, std::int64_t otherwise);
std::string word_of(const onnx::NodeProto& node, std::string_view name);  // none: empty
void set_integers(onnx::NodeProto& node, std::string_view name, const std::vector<std::int64_t>& values);
void set_integer(onnx::NodeProto& node, std::string_view name, std::int64_t value);
void set_real(onnx::NodeProto& node, std::string_view name, float value);
void set_word(onnx::NodeProto& node, std::string_view name, std::string_view value);
void drop_attribute(onnx::NodeProto& node, std::string_view name);

}  // namespace polyphase::legal
