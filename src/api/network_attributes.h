// Settings of layers as callers give them, for the operator's own list.
#pragma once

#include <string>

#include "import/network/builder.h"
#include "polyphase/network.h"

namespace polyphase::api {

// Sizes are read with the network's symbolic sizes. Errors: invalid_argument, with the layer's name.
Result<Attributes> attributes_of(NetworkBuilder& builder, const OpDef& op, const AttributeList& given,
                                 const std::string& layer);
Result<Dim> dim_of(NetworkBuilder& builder, const Size& size, const std::string& layer);
Result<std::vector<Dim>> dims_of(NetworkBuilder& builder, const std::vector<Size>& sizes, const std::string& layer);

// The elements as they lie where they are row-major, else a copy; `lent`: nobody but the caller keeps them.
struct ConstantElements {
  polyphase::Tensor tensor;
  bool lent = false;
};
Result<ConstantElements> elements_of(const TensorView& view, std::shared_ptr<void> owner, const std::string& what);

}  // namespace polyphase::api
