// How the builder says that a call is wrong.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace polyphase {

inline Error refused_call(std::string message, std::string hint) {
  return Error{ErrorCode::invalid_argument, std::move(message), std::move(hint)};
}

// What a rule says about a layer, with something to do.
inline Error with_advice(Error error, std::string_view op, const std::string& layer) {
  if (error.hint.empty()) error.hint = "(docs/operators.md says what operator " + std::string(op) + " takes.)";
  return std::move(error).at_node(layer);
}

}  // namespace polyphase
