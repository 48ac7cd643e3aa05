// The parts of check_engine, in the order in which they run: each relies on the ones before.
#pragma once

#include "engine/engine.h"
#include "ops/registry.h"

namespace polyphase {

Error refuse_engine(std::string message);
std::string name_of_value(const Engine& engine, int value);

// Ports, storage, constants, aliases: every index in range.
Result<void> check_values(const Engine& engine);
// Blocks and steps: every index in range, every value written once and before it is read, nothing of the caller's
// overwritten.
Result<void> check_order(const Engine& engine);
// Blocks take and give what the steps that run them say.
Result<void> check_control(const Engine& engine);
// Cuts: every axis there, every number small enough to reckon with.
Result<void> check_cuts(const Engine& engine);
// Results' types follow from the parts and the operands' types; adds the checks that only sizes can decide.
Result<void> check_shapes(Engine& engine);

}  // namespace polyphase
