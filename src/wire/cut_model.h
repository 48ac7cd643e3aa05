// cut_model: the part of an ONNX model that lies between some tensors and others, as a model of its own.
#pragma once

#include <string>
#include <vector>

#include "base/dtype.h"
#include "base/result.h"
#include "wire/external_data.h"
#include "wire/onnx_model.h"

namespace polyphase::wire {

// A border of the part, with its type.
struct BorderTensor {
  std::string name;
  DType dtype = DType::f32;
  std::vector<std::string> sizes;  // numbers or names
};

// The model's bytes, with the nodes, weights and functions that `to` needs when `from` is given; weights that lie in
// files beside the model are put into it. Errors: invalid_argument: a tensor is not there, or `to` needs an input that
// is not among `from`, or nothing needs one of `from`.
Result<std::string> cut_model(ModelPointer model, const std::vector<BorderTensor>& from,
                              const std::vector<BorderTensor>& to, ExternalData& external);

}  // namespace polyphase::wire
