// The same case with symbols for its sizes: shape rules must give what the numbers give, and a row that takes the
// symbols must take the numbers.
#pragma once

#include <optional>
#include <string>

#include "conformance/execution.h"

namespace polyphase::test {

struct SymbolicStep {
  StepDesc desc;
  std::string wrong;  // what the shape rules got wrong; empty: nothing
};

// `concrete` with a symbol for every size above 1 of the images, but for their channels (axis 1); equal sizes share
// one. Nothing: the attributes tie the sizes down.
std::optional<SymbolicStep> with_symbols(const PreparedCase& prepared, const StepDesc& concrete);

}  // namespace polyphase::test
