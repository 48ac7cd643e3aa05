// A plugin's shape rule, called with sizes that may be symbolic.
#pragma once

#include "ops/op.h"
#include "polyphase/polyphase_op.h"

namespace polyphase {

struct ShapeRule {
  const polyphase_op& definition;
  const polyphase_op* given;
};

// One call of the rule. Errors: the plugin's own, and invalid_model where what it wrote is no type.
Result<std::vector<Type>> call_shape_rule(const ShapeRule& rule, const OpDef& op, const Attributes& attributes,
                                          std::span<const OperandInfo> inputs, std::vector<DimCheck>& checks);

}  // namespace polyphase
