// Symbolic floats of a program: sympy's srepr becomes a number, or nodes that compute it from sizes and data.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/result.h"
#include "import/compose/emitter.h"
#include "import/torch/sym_expr.h"

namespace polyphase {

struct SymbolicReal {
  double number = 0;
  Value* data = nullptr;  // if set: f64 of rank 0, and `number` means nothing
};

// `reals` are the floats that data tell. Error: unsupported (what is beyond this arithmetic).
Result<SymbolicReal> build_real(std::string_view expression, Emitter& node, const SymbolMeaning& size,
                                const std::map<std::string, Value*, std::less<>>& reals);

}  // namespace polyphase
