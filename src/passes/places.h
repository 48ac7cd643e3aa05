// Places: integer tensors that count along their axes, such as the indices of overlapping frames.
#pragma once

#include <optional>
#include <vector>

#include "graph/graph.h"

namespace polyphase {

// An integer tensor whose element at (i, j, …) is offset + i · step[0] + j · step[1] + …, over axes of more than one
// element that may since have been flattened.
struct Places {
  struct Axis {
    Dim size;
    std::int64_t step;
  };
  std::int64_t offset = 0;
  std::vector<Axis> axes;
};

// Places that constants, ranges, sums, multiples, casts and gathers from 0, 1, 2, … make, with sizes known or not.
// Reads values.
std::optional<Places> places_of(const Value* value);

}  // namespace polyphase
