// Polyphase: images, volumes and sounds that are larger than memory, run tile by tile.
//
//   Result<std::vector<Tensor>> outputs = run_tiled(session, {view(pixels, {1, 3, 4320, 7680})});
//
// A tile is read with a halo, which follows from the network's own windows, so that the outputs are those of the whole
// run; docs/tiles.md says what can be tiled, and what the bits depend on. A network for which that cannot be is refused
// with an Error that names the node.
#pragma once

#include "polyphase/polyphase.h"

namespace polyphase::api {

// A symbolic size of the inputs.
struct TileAxis {
  std::string size;              // "H"
  std::optional<Error> refusal;  // why the network cannot be tiled along it; the fields below mean nothing then
  std::int64_t step = 1;         // tiles begin at multiples of it
  std::int64_t halo_before = 0;  // places that a tile reads before its own, and behind them, before
  std::int64_t halo_after = 0;   // rounding to steps
};
// Of all symbolic sizes of the engine's inputs, by name. Nothing for an engine that was compiled by a Polyphase that
// did not look for them.
std::vector<TileAxis> tile_axes(const Engine& engine);

struct TileOptions {
  // The size's name → how many places a tile brings to the outputs, the halo not counted; rounded up to whole steps.
  // 0, or more than there are: the size is left whole. Sizes that are not listed are chosen: as few tiles as
  // `memory_bytes` allows, cut where the halos cost least.
  std::map<std::string, std::int64_t> own;
  // What one tile may take with its intermediate values, inputs and outputs. 0: an eighth of the machine's memory, but
  // at most 256 MiB, beyond which tiles of most networks gain nothing.
  std::uint64_t memory_bytes = 0;
  const std::atomic<bool>* cancelled = nullptr;
  std::optional<std::chrono::steady_clock::time_point> deadline;
  std::function<void(double done)> progress;  // after every tile, with the share that is done, 0 to 1
};

struct TilePlan {
  std::map<std::string, std::int64_t> own;  // of all symbolic sizes; a size left whole has all its places
  std::int64_t tiles = 1;
  std::uint64_t memory_bytes = 0;  // what the largest takes
  double work = 1;                 // places computed, over the places of the inputs: 1.05: halos cost 5 %
  std::vector<std::vector<std::int64_t>> output_sizes;  // of the whole
};
// What run_tiled would do for these sizes of the inputs. Errors: unsupported (the network cannot be tiled; names the
// node), invalid_argument (no such size), shape_mismatch (as a whole run), out_of_memory (not even the smallest tiles
// keep to the memory).
Result<TilePlan> plan_tiles(const Session& session, const std::vector<std::vector<std::int64_t>>& input_sizes,
                            const TileOptions& options = {});

// The inputs are there, the outputs are allocated; what a run needs between them is one tile's. Errors: as plan_tiles
// and Session::run.
Result<std::vector<Tensor>> run_tiled(const Session& session, std::span<const TensorView> inputs,
                                      const TileOptions& options = {});

// An input that is read window by window: `read` fills `window`, which is row-major, with the elements from index
// `first` on.
struct TileSource {
  std::vector<std::int64_t> sizes;  // of the whole
  std::function<Result<void>(std::span<const std::int64_t> first, const TensorView& window)> read;
};
// Takes the elements of an output from index `first` on; the window is valid during the call only and may have any
// strides. Every element comes once. Tiles come in the order of their places, along the last size fastest.
using TileSink =
    std::function<Result<void>(std::size_t output, std::span<const std::int64_t> first, const TensorView& window)>;
// Neither inputs nor outputs need be in memory. An Error of a source or of the sink ends the run.
Result<TilePlan> run_tiled(const Session& session, std::span<const TileSource> inputs, const TileSink& sink,
                           const TileOptions& options = {});

}  // namespace polyphase::api
