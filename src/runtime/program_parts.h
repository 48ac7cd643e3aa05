// The parts of make_program, in the order in which they run: each relies on the ones before. Everything in the engine
// may come from a file, so nothing in it is believed.
#pragma once

#include "runtime/program.h"

namespace polyphase {

// Error(corrupt): the engine contradicts itself in `what`.
Error damaged_engine(const std::string& what);

// Values, constants and ports.
Result<void> resolve_values(Program& program);
// Steps of all blocks in order, and from where to where each root lives.
Result<void> resolve_blocks(Program& program);
// From when each size is known; returns the level of every symbol.
Result<std::map<std::string, int, std::less<>>> resolve_levels(Program& program);
// Descriptions, rows and weights.
Result<void> resolve_steps(Program& program, const std::map<std::string, int, std::less<>>& level_of_symbol);

}  // namespace polyphase
