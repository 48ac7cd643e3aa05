// Cuts: where a program may be run piece by piece. For each symbolic size of its inputs: how pieces along it lie in the
// outputs, which of their places the pieces' ends spoil, or why there are no pieces. Found by lower (find_cuts), used
// by runtime/pieces.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ops/cut.h"

namespace polyphase {

struct EngineCut {
  std::string symbol;
  std::string node;               // that cannot be cut; empty where an input cannot
  std::string refusal;            // why; empty: pieces are possible
  std::int64_t step = 1;          // pieces begin at multiples of it, and are as long but at the end
  std::vector<CutState> inputs;   // by port
  std::vector<CutState> outputs;  // by port
  std::vector<CutNeed> needs;
};

}  // namespace polyphase
