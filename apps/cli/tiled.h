// `run --tile`: a network over inputs that are read, computed and written tile by tile.
#pragma once

#include <string>
#include <vector>

#include "cli/data.h"
#include "polyphase/tiles.h"

namespace polyphase::cli {

struct TileFlags {
  std::string tile;    // auto, N, HxW, DxHxW; empty: whole
  std::string memory;  // "512M"; empty: the library's choice
};

void add_tile_flags(CLI::App& command, TileFlags& flags);

struct TiledResult {
  api::TilePlan plan;
};

// Reads the inputs, runs, writes the outputs: window by window where the files allow it.
Result<TiledResult> run_tiled(const api::Session& session, const TileFlags& tiles, const InputFlags& inputs,
                              const OutputFlags& outputs);

}  // namespace polyphase::cli
