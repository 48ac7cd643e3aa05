// What must hold in an engine before anyone runs it, whoever made it.
#pragma once

#include "engine/engine.h"
#include "ops/registry.h"

namespace polyphase {

// Checks every index, name and size rule that does not need a kernel: ports, aliases, storage, blocks, the order of
// writes and reads, constants' sizes. Infers the shapes of every step again from its parts: what contradicts them is
// refused, and what only the sizes of a run can tell is added to engine.checks. What is left to the runtime, because
// rows and sizes are known there: that a row exists and accepts the step, that packed weights have the row's size, and
// check_aliases. Error(corrupt): the engine contradicts itself; the message names the part.
Result<void> check_engine(Engine& engine, const Registry& registry);

// For these sizes: no size is negative, no value exceeds the address space, every alias lies inside its base.
// `unbound_ok` skips values whose sizes the bindings do not tell.
Result<void> check_aliases(const Engine& engine, const DimBindings& bindings, bool unbound_ok = false);

}  // namespace polyphase
