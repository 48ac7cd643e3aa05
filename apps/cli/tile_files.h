// Files that tiles are read from and written to.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/data.h"
#include "polyphase/tiles.h"

namespace polyphase::cli {

struct TileInputs {
  std::vector<api::TileSource> sources;  // by position
  Inputs known;                          // tensors are there only where the sources read from memory
};

// Windows of the files themselves where every input is a row-major .npy of its dtype, a .png that is not interlaced or
// a .wav; otherwise of the tensors that read_inputs gives. Errors: as read_inputs.
Result<TileInputs> open_tile_inputs(const api::Engine& engine, const InputFlags& flags);

struct TileOutputs {
  api::TileSink sink;
  // When everything has come: the files take their names.
  std::function<Result<void>()> finish;
};

// Rows of .npy and .png files and parts of .wav files as they come; archives, and what NumPy cannot name, when all has
// come. Errors: as write_outputs.
Result<TileOutputs> open_tile_outputs(const api::Engine& engine, const OutputFlags& flags, const Inputs& inputs,
                                      const std::vector<std::vector<std::int64_t>>& sizes);

}  // namespace polyphase::cli
