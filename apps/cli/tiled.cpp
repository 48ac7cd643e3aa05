// `run --tile`: flags to options, and the run.
#include "cli/tiled.h"

#include <CLI/App.hpp>

#include <charconv>

#include "cli/sizes.h"
#include "cli/terminal.h"
#include "cli/tile_files.h"
#include "io/try.h"

namespace polyphase::cli {
namespace {

Result<std::uint64_t> bytes_of(const std::string& text) {
  std::uint64_t number = 0;
  const char* const last = text.data() + text.size();
  const auto [end, failure] = std::from_chars(text.data(), last, number);
  const std::string unit(end, last);
  int shift = -1;
  if (unit.empty()) shift = 0;
  if (unit == "K" || unit == "KiB") shift = 10;
  if (unit == "M" || unit == "MiB") shift = 20;
  if (unit == "G" || unit == "GiB") shift = 30;
  if (failure != std::errc() || shift < 0 || number == 0 || number > (UINT64_MAX >> shift)) {
    return Error{ErrorCode::invalid_argument, "--memory is '" + text + "', expected a number of bytes.",
                 "For example --memory 512M or --memory 2G."};
  }
  return number << shift;
}

Error unreadable(const std::string& text) {
  return {ErrorCode::invalid_argument, "--tile is '" + text + "', expected auto, N, HxW or DxHxW.",
          "For example --tile auto, or --tile 512x512; 0 leaves a size whole."};
}

Result<std::vector<std::int64_t>> numbers_of(const std::string& text) {
  std::vector<std::int64_t> out;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find('x', at), text.size());
    std::int64_t number = 0;
    const auto [stop, failure] = std::from_chars(text.data() + at, text.data() + end, number);
    if (failure != std::errc() || stop != text.data() + end || number < 0) return unreadable(text);
    out.push_back(number);
    at = end + 1;
  }
  return out;
}

// The numbers are those of the last axes of the first input whose sizes are open there.
Result<std::map<std::string, std::int64_t>> own_of(const api::Engine& engine, const std::string& text) {
  IO_TRY(const std::vector<std::int64_t> numbers, numbers_of(text));
  std::map<std::string, std::int64_t> own;
  for (const api::TileAxis& axis : api::tile_axes(engine)) own[axis.size] = 0;
  for (const api::Port& port : engine.inputs()) {
    const std::size_t rank = port.sizes.size();
    const std::size_t spatial = rank > 2 ? rank - 2 : std::min<std::size_t>(rank, 1);
    bool any = false;
    for (std::size_t i = 0; i < spatial; ++i) any = any || own.count(port.sizes[rank - spatial + i]) != 0;
    if (!any) continue;
    if (numbers.size() != 1 && numbers.size() != spatial) {
      return Error{ErrorCode::invalid_argument,
                   "--tile " + text + " has " + std::to_string(numbers.size()) + " numbers; input '" +
                       plain(port.name) + "' (" + shape_text(port.sizes) + ") has " + std::to_string(spatial) +
                       " sizes to cut.",
                   "Give one number for all, or one for each."};
    }
    for (std::size_t i = 0; i < spatial; ++i) {
      const std::string& name = port.sizes[rank - spatial + i];
      const std::int64_t number = numbers[numbers.size() == 1 ? 0 : i];
      if (own.count(name) != 0) {
        own[name] = number;
      } else if (numbers.size() > 1 && number != 0) {
        return Error{ErrorCode::invalid_argument,
                     "--tile " + text + " cuts the size " + plain(name) + " of input '" + plain(port.name) +
                         "', which is not open.",
                     "Write 0 for it, or export the model with this axis open (dynamic_axes or dynamic_shapes)."};
      }
    }
    return own;
  }
  return own;
}

}  // namespace

void add_tile_flags(CLI::App& command, TileFlags& flags) {
  command
      .add_option(
          "--tile", flags.tile,
          "Run in tiles, for inputs larger than memory; the outputs are the same. auto chooses tiles by "
          "--memory; N, HxW or DxHxW are how many places of the input a tile has for itself, 0 leaves a size whole")
      ->type_name("TILE");
  command
      .add_option(
          "--memory", flags.memory,
          "With --tile auto: what one tile may take, as 512M or 2G (default: an eighth of the machine's memory, at "
          "most 256M)")
      ->type_name("BYTES");
}

Result<TiledResult> run_tiled(const api::Session& session, const TileFlags& tiles, const InputFlags& inputs,
                              const OutputFlags& outputs) {
  const api::Engine& engine = session.engine();
  api::TileOptions options;
  if (!tiles.memory.empty()) {
    IO_TRY(options.memory_bytes, bytes_of(tiles.memory));
    if (tiles.tile != "auto") {
      return Error{ErrorCode::invalid_argument,
                   "--memory is given, but --tile " + tiles.tile + " says how large tiles are.",
                   "Leave --memory out, or write --tile auto."};
    }
  }
  if (tiles.tile != "auto") {
    IO_TRY(options.own, own_of(engine, tiles.tile));
  }
  IO_TRY(const TileInputs from, open_tile_inputs(engine, inputs));
  std::vector<std::vector<std::int64_t>> sizes;
  for (const api::TileSource& source : from.sources) sizes.push_back(source.sizes);
  auto planned = api::plan_tiles(session, sizes, options);
  if (!planned.ok()) return from.known.explain(std::move(planned).error());
  TiledResult result{std::move(*planned)};
  IO_TRY(const TileOutputs to, open_tile_outputs(engine, outputs, from.known, result.plan.output_sizes));
  options.own = result.plan.own;
  Progress progress;
  options.progress = [&](double done) { progress.show("tiles", done); };
  auto ran = api::run_tiled(session, from.sources, to.sink, options);
  if (!ran.ok()) return from.known.explain(std::move(ran).error());
  IO_TRY_VOID(to.finish());
  return result;
}

}  // namespace polyphase::cli
