// A node as the rows of a catalogue see it, and whether any kernel takes it.
#pragma once

#include <optional>
#include <vector>

#include "graph/graph.h"
#include "kernel/step_desc.h"
#include "kernel/target.h"

namespace polyphase {

// The step that computes `node` with its operands and results lying dense in these layouts (absent operands: unset).
StepDesc describe(const Node& node, const std::vector<Layout>& inputs, const std::vector<Layout>& outputs);
// The same in the layouts that choose_layouts will most likely give: channels-last around spatial operators, row-major
// elsewhere.
StepDesc describe(const Node& node);

// Sizes to estimate with: what the target knows, else usual ones.
DimBindings likely_sizes_of(const Graph& graph, const Target& target);

// The cost of the cheapest row, reference loops aside, that takes the step; nothing if there is none. `likely` are the
// sizes to estimate with.
std::optional<double> cost_of_kernels(const StepDesc& step, const Target& target, const DimBindings& likely);
// The same of a step that may have no kernel as a whole: then of the cheapest cut behind its anchor, as `lower` will
// make it. Casts of narrow images at its ends are cut off wherever that costs less.
std::optional<double> cost_in_pieces(const StepDesc& step, const Target& target, const DimBindings& likely);
// Whether there is one. Costs nothing but the question, where costs may be measured.
bool has_kernel(const StepDesc& step, const Target& target);
// Whether there is one for the step, or for what is left of it between casts of narrow images.
bool has_kernel_between_casts(const StepDesc& step, const Target& target);

}  // namespace polyphase
