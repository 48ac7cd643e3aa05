// What CompileOptions::history asks for: the graph as it goes through the passes.
#pragma once

#include "graph/graph.h"
#include "passes/pipeline.h"
#include "polyphase/diagnose.h"

namespace polyphase::api {

// Records `graph` as it is, and has `options` record what the passes make of it. `history` outlives the passes.
void record_passes(const Graph& graph, PassHistory& history, PassOptions& options);

}  // namespace polyphase::api
