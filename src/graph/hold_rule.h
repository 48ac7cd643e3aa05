// A plugin's shape rule held against itself.
#pragma once

#include <span>
#include <vector>

#include "ops/op.h"

namespace polyphase {

// Where operands have symbolic sizes: numbers in their place must give what the symbolic result `found` is for them, at
// a few sizes for which the rule's own `demands` hold. Error(invalid_model): they do not.
Result<void> hold_rule_to_numbers(const Part& part, std::span<const OperandInfo> operands,
                                  const std::vector<Type>& found, std::span<const DimCheck> demands);

}  // namespace polyphase
