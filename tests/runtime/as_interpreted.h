// Running an engine beside the interpreter.
#pragma once

#include "engine/engine.h"
#include "graph/graph.h"
#include "kernel/target.h"
#include "passes/random_data.h"

namespace polyphase {

// Fails the present test unless the engine gives for random inputs, bit for bit, what the interpreter gives for
// `graph`.
void expect_as_interpreted(const Graph& graph, Engine engine, const Target& target, Random& random);

}  // namespace polyphase
