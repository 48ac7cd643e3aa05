// polyphase run: inputs from files, outputs to files.
#include <fmt/format.h>
#include <CLI/App.hpp>

#include <chrono>

#include "cli/commands.h"
#include "cli/data.h"
#include "cli/exit_code.h"
#include "cli/json.h"
#include "cli/network.h"
#include "cli/table.h"
#include "cli/terminal.h"
#include "io/try.h"

namespace polyphase::cli {
namespace {

constexpr const char* run_examples = R"(
Examples:
  polyphase run model.ppe --inputs in.npz --outputs out.npz
  polyphase run upscale.onnx --input photo.png --output large.png
  polyphase run pix2pix.ppe --input x=edges.png --range=-1..1 --output photo.png
  polyphase run vocoder.ppe --input mel=mel.npy --output speech.wav --sample-rate 22050

Images are [1, C, H, W] (or [C, H, W]), rgb, in --range 0..1, --mean 0, --std 1 unless said otherwise; sounds are [1, C, L] in
-1..1. NumPy has no bfloat16: bf16 inputs are read from f32 arrays, bf16 outputs written as f32. Arrays that numpy.savez named
arr_0, arr_1, … are taken by position. Without --outputs and --output the outputs are described on stdout.)";

struct RunFlags {
  NetworkFlags network;
  InputFlags inputs;
  OutputFlags outputs;
  int threads = 0;
};

void describe(const api::Engine& engine, const std::vector<api::Tensor>& outputs) {
  Table table({{"output"}, {"dtype"}, {"shape"}, {"bytes", Table::Align::right}});
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    table.add({plain(engine.outputs()[i].name), std::string(name_of(outputs[i].dtype())),
               shape_text(outputs[i].sizes()), std::to_string(outputs[i].size_bytes())});
  }
  put(table.text());
}

void report_json(const api::Session& session, const std::vector<api::Tensor>& outputs, double seconds) {
  Json out = json_result("run");
  out["run_ms"] = seconds * 1e3;
  out["threads"] = session.threads();
  out["outputs"] = Json::array();
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    out["outputs"].push_back({{"name", session.engine().outputs()[i].name},
                              {"dtype", name_of(outputs[i].dtype())},
                              {"sizes", outputs[i].sizes()}});
  }
  put_json(out);
}

Result<void> run_network(const RunFlags& flags) {
  IO_TRY(const Network network, open_network(flags.network, flags.threads));
  IO_TRY_VOID(refuse_sizes_of_engine(network, flags.network));
  IO_TRY_VOID(check_output_flags(network.engine, flags.outputs));
  IO_TRY(const Inputs inputs, read_inputs(network.engine, flags.inputs));
  IO_TRY(const api::Session session, open_session(network.engine, flags.threads));
  const auto start = std::chrono::steady_clock::now();
  Result<std::vector<api::Tensor>> ran = session.run(views_of(inputs.tensors));
  if (!ran.ok()) return inputs.explain(std::move(ran).error());
  const std::vector<api::Tensor>& outputs = *ran;
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  IO_TRY_VOID(write_outputs(network.engine, outputs, flags.outputs, inputs));
  if (flags.network.json) {
    report_json(session, outputs, seconds);
  } else if (flags.outputs.archive.empty() && flags.outputs.files.empty()) {
    describe(network.engine, outputs);
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
