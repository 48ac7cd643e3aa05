// Attributes and tensors as a plugin sees them.
#pragma once

#include <optional>
#include <vector>

#include "ops/attributes.h"
#include "polyphase/polyphase_op.h"

namespace polyphase {

std::optional<AttributeKind> kind_of_plugin(polyphase_op_kind kind);

// What a plugin gives as a default. Nothing: of another kind than `kind`, or a pointer that should not be NULL is.
std::optional<Attribute> attribute_of(const polyphase_op_value& value, AttributeKind kind);

// Writes the attributes in the order of `specs`, one by one from `out` on; they point into `attributes`.
void write_values(const Attributes& attributes, const std::vector<AttributeSpec>& specs, polyphase_op_value* out);

polyphase_op_tensor plugin_tensor(const TensorView& view);
polyphase_op_tensor absent_tensor();

}  // namespace polyphase
