// An engine's program as lines, for golden tests: what runs, on which kernel, and what lives inside what.
#pragma once

#include <string>

#include "engine/engine.h"

namespace polyphase {

//   KIND OPERATIONS [ROW] (operands) -> results
// A value prints as NAME, NAME=constant, or NAME@ROOT+OFFSET for an alias; arena values bear no mark, ports a '!'.
std::string program_text(const Engine& engine);

}  // namespace polyphase
