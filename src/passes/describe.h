// A node as the rows of a catalogue see it, while layouts are being chosen.
#pragma once

#include <vector>

#include "graph/graph.h"
#include "kernel/step_desc.h"

namespace polyphase {

// The step that computes `node` with its operands and results lying dense in these layouts (absent operands: unset).
StepDesc describe(const Node& node, const std::vector<Layout>& inputs, const std::vector<Layout>& outputs);

}  // namespace polyphase
