// Pieces: the parts of one size that a program is run on one after the other, so that their results together are those
// of the whole. A part of the size has
//
//   its own places        [first, last)     they bring their outputs
//   the places it reads   [begin, end)      with the halo that the program's windows reach into
//
// The places read begin at a multiple of the cut's step, and end at one or with the whole.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/engine.h"

namespace polyphase {

struct Piece {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t length() const { return end - begin; }
  // Of each output that lies in pieces: places [first, last) of the whole, the first of which is place `skip` of the
  // piece's own result.
  struct Share {
    std::int64_t first = 0;
    std::int64_t last = 0;
    std::int64_t skip = 0;
  };
  std::vector<Share> outputs;  // by port
};

// The pieces of a size of `bindings`, each with up to `own` places of its own (rounded up to whole steps), in order;
// one piece is the whole. Errors: shape_mismatch (an output's size cannot be computed).
Result<std::vector<Piece>> pieces_of(const Engine& engine, const EngineCut& cut, const DimBindings& bindings,
                                     std::int64_t own);

}  // namespace polyphase
