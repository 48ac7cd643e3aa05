// Fused steps are cut into runs of their parts: where no kernel takes the whole, or where kernels between are faster.
#pragma once

#include <cstddef>
#include <vector>

#include "graph/graph.h"

namespace polyphase {

// Parts [begin, end) of a step as a step of their own, whose operands index `operands`.
struct PartRun {
  std::vector<Part> parts;
  std::size_t anchor = 0;     // the step's, if it is among them, else the first
  std::vector<int> operands;  // of the whole step; Part::running: what the part before the run gave, Part::absent: none
};

// A part alone has its operands in its own order, as rows of unfused steps read them, also one twice and absent ones;
// of several each is there once, and absent ones are left out.
PartRun cut_parts(const std::vector<Part>& parts, std::size_t anchor, std::size_t begin, std::size_t end);

// The result of each part, by the operands of the whole. Error: a part's shape rule refuses them.
Result<std::vector<Type>> types_of_parts(const std::vector<Part>& parts, const std::vector<OperandInfo>& inputs);

}  // namespace polyphase
