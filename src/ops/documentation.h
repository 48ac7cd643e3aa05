// docs/operators.md, written from the definitions.
#pragma once

#include <string>

#include "ops/registry.h"

namespace polyphase {

// One Markdown section per operator, by name: meaning, operands, results, attributes with kinds and defaults.
std::string document_operators(const Registry& registry);

}  // namespace polyphase
