// polyphase run: inputs from files, outputs to files.
#include <fmt/format.h>
#include <CLI/App.hpp>

#include <chrono>
#include <functional>
#include <numeric>

#include "cli/commands.h"
#include "cli/data.h"
#include "cli/exit_code.h"
#include "cli/json.h"
#include "cli/network.h"
#include "cli/sizes.h"
#include "cli/table.h"
#include "cli/terminal.h"
#include "cli/tiled.h"
#include "io/try.h"

namespace polyphase::cli {
namespace {

constexpr const char* run_examples = R"(
Examples:
  polyphase run model.ppe --inputs in.npz --outputs out.npz
  polyphase run upscale.onnx --input photo.png --output large.png
  polyphase run pix2pix.ppe --input x=edges.png --range=-1..1 --output photo.png
  polyphase run vocoder.ppe --input mel=mel.npy --output speech.wav --sample-rate 22050
  polyphase run upscale.onnx --input huge.png --output larger.png --tile auto --memory 512M

Images are [1, C, H, W] (or [C, H, W]), rgb, in --range 0..1, --mean 0, --std 1 unless said otherwise; sounds are [1, C, L] in
-1..1. NumPy has no bfloat16: bf16 inputs are read from f32 arrays, bf16 outputs written as f32. Arrays that numpy.savez named
arr_0, arr_1, … are taken by position. Without --outputs and --output the outputs are described on stdout.)";

struct RunFlags {
  NetworkFlags network;
  InputFlags inputs;
  OutputFlags outputs;
  TileFlags tiles;
  int threads = 0;
};

void describe(const api::Engine& engine, const std::vector<Sizes>& outputs) {
  Table table({{"output"}, {"dtype"}, {"shape"}, {"bytes", Table::Align::right}});
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const api::Port& port = engine.outputs()[i];
    const std::int64_t count =
        std::accumulate(outputs[i].begin(), outputs[i].end(), std::int64_t{1}, std::multiplies<>());
    table.add({plain(port.name), std::string(name_of(port.dtype)), shape_text(outputs[i]),
               std::to_string(static_cast<std::uint64_t>(count) * size_bytes(port.dtype))});
  }
  put(table.text());
}

void report_json(const api::Session& session, const std::vector<Sizes>& outputs, double seconds,
                 const api::TilePlan* tiles) {
  Json out = json_result("run");
  out["run_ms"] = seconds * 1e3;
  out["threads"] = session.threads();
  out["outputs"] = Json::array();
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const api::Port& port = session.engine().outputs()[i];
    out["outputs"].push_back({{"name", port.name}, {"dtype", name_of(port.dtype)}, {"sizes", outputs[i]}});
  }
  if (tiles != nullptr) {
    out["tiles"] = {
        {"count", tiles->tiles}, {"own", tiles->own}, {"memory_bytes", tiles->memory_bytes}, {"work", tiles->work}};
  }
  put_json(out);
}

Result<void> run_in_tiles(const RunFlags& flags, const Network& network, const api::Session& session) {
  const auto start = std::chrono::steady_clock::now();
  IO_TRY(const TiledResult result, run_tiled(session, flags.tiles, flags.inputs, flags.outputs));
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (flags.network.json) {
    report_json(session, result.plan.output_sizes, seconds, &result.plan);
  } else if (flags.outputs.archive.empty() && flags.outputs.files.empty()) {
    describe(network.engine, result.plan.output_sizes);
  }
  std::string cuts;
  for (const auto& [name, own] : result.plan.own)
    cuts += (cuts.empty() ? "" : ", ") + plain(name) + " by " + std::to_string(own);
  say(fmt::format("ran {} in {} on {} thread{}: {} tile{} ({}), {} each, halos add {:.1f} %", plain(flags.network.path),
                  human_time(seconds), session.threads(), session.threads() == 1 ? "" : "s", result.plan.tiles,
                  result.plan.tiles == 1 ? "" : "s", cuts, human_bytes(result.plan.memory_bytes),
                  (result.plan.work - 1) * 100));
  return {};
}

Result<void> run_network(const RunFlags& flags) {
  IO_TRY(const Network network, open_network(flags.network, flags.threads));
  IO_TRY_VOID(refuse_sizes_of_engine(network, flags.network));
  IO_TRY_VOID(check_output_flags(network.engine, flags.outputs));
  if (!flags.tiles.tile.empty()) {
    IO_TRY(const api::Session session, open_session(network.engine, flags.threads));
    return run_in_tiles(flags, network, session);
  }
  if (!flags.tiles.memory.empty()) {
    return Error{ErrorCode::invalid_argument, "--memory is given without --tile.",
                 "Add --tile auto: --memory bounds what one tile takes."};
  }
  IO_TRY(const Inputs inputs, read_inputs(network.engine, flags.inputs));
  IO_TRY(const api::Session session, open_session(network.engine, flags.threads));
  const auto start = std::chrono::steady_clock::now();
  Result<std::vector<api::Tensor>> ran = session.run(views_of(inputs.tensors));
  if (!ran.ok()) return inputs.explain(std::move(ran).error());
  const std::vector<api::Tensor>& outputs = *ran;
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  IO_TRY_VOID(write_outputs(network.engine, outputs, flags.outputs, inputs));
  if (flags.network.json) {
    report_json(session, sizes_of(outputs), seconds, nullptr);
  } else if (flags.outputs.archive.empty() && flags.outputs.files.empty()) {
    describe(network.engine, sizes_of(outputs));
  }
  say(fmt::format("ran {} in {} on {} thread{}", plain(flags.network.path), human_time(seconds), session.threads(),
                  session.threads() == 1 ? "" : "s"));
  return {};
}

}  // namespace

void add_run(CLI::App& app, Run& run) {
  CLI::App* command = app.add_subcommand("run", "Run an engine or a model on inputs from files");
  const auto flags = std::make_shared<RunFlags>();
  add_network_flags(*command, flags->network);
  add_input_flags(*command, flags->inputs);
  add_output_flags(*command, flags->outputs);
  add_tile_flags(*command, flags->tiles);
  add_threads_flag(*command, flags->threads);
  command->footer(run_examples);
  command->callback([flags, &run] {
    run = [flags]() -> int {
      const auto done = run_network(*flags);
      if (!done.ok()) report_error(done.error());
      return done.ok() ? exit_ok : exit_user;
    };
  });
}

}  // namespace polyphase::cli
