// cut_model: the part of an ONNX model that lies between some tensors and others, as a model of its own.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "base/result.h"
#include "wire/external_data.h"
#include "wire/onnx_model.h"

namespace onnx {
class GraphProto;
class NodeProto;
}  // namespace onnx

namespace polyphase::wire {

// A border of the part, with its type.
struct BorderTensor {
  std::string name;
  DType dtype = DType::f32;
  std::vector<std::string> sizes;  // numbers or names
  bool typed = true;               // false: only the name is written
};

// What a node reads, from inside of its subgraphs too; no empty names.
std::vector<std::string> tensors_read(const onnx::NodeProto& node);
// What the nodes that `to` needs read and `is_given` names, in the order in which it is found; what is behind those is
// not looked at.
std::vector<std::string> tensors_needed(const onnx::GraphProto& graph, const std::set<std::string>& to,
                                        const std::function<bool(const std::string&)>& is_given);

// The model's bytes, with the nodes, weights and functions that `to` needs when `from` is given; weights that lie in
// files beside the model are put into it. Errors: invalid_argument: a tensor is not there, or `to` needs an input that
// is not among `from`, or nothing needs one of `from`.
Result<std::string> cut_model(ModelPointer model, const std::vector<BorderTensor>& from,
                              const std::vector<BorderTensor>& to, ExternalData& external);

}  // namespace polyphase::wire
