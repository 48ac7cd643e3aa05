// Sums of products over labelled axes.
#pragma once

#include <string>

#include "import/compose/emitter.h"

namespace polyphase {

// numpy's equation: "bij,bjk->bik"; without an arrow the labels that stand once are the result's, in order. Operands of
// one dtype. Errors: invalid_model, for an equation that does not fit them.
Result<Value*> einsum(Emitter& node, const std::string& equation, const Values& operands);

}  // namespace polyphase
