// Tiles of a run: which sizes are cut, and how finely.
#pragma once

#include <string>
#include <vector>

#include "polyphase/tiles.h"
#include "runtime/pieces.h"
#include "runtime/session.h"

namespace polyphase::api {

// One symbolic size of a run in pieces.
struct TiledSize {
  const EngineCut* cut = nullptr;
  std::int64_t whole = 0;
  std::int64_t own = 0;
  std::vector<Piece> pieces;
  std::int64_t longest() const;
  std::int64_t total() const;  // of all pieces' lengths
};

struct TileChoice {
  DimBindings bindings;          // of the whole
  std::vector<TiledSize> sizes;  // those that are cut, or may be, in the order of the first input's axes
  std::uint64_t memory_bytes = 0;
};

// Errors: as plan_tiles.
Result<TileChoice> choose_tiles(polyphase::Session& session, const std::vector<std::vector<std::int64_t>>& input_sizes,
                                const TileOptions& options);

// Of the network's inputs under the bindings, of its outputs likewise; empty where they cannot be computed.
std::vector<std::vector<std::int64_t>> port_sizes(const polyphase::Engine& engine, const std::vector<EnginePort>& ports,
                                                  const DimBindings& bindings);

// Why the network cannot be tiled along the size.
Error refuse_tiles(const EngineCut& cut);

}  // namespace polyphase::api
