// polyphase refit: an engine file with other weights, without the model and without a compilation.
#include <fmt/format.h>
#include <CLI/App.hpp>

#include <algorithm>
#include <chrono>

#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/json.h"
#include "cli/network.h"
#include "cli/terminal.h"
#include "io/npz.h"
#include "io/try.h"
#include "polyphase/polyphase.h"

namespace polyphase::cli {
namespace {

constexpr const char* refit_examples = R"(
Examples:
  polyphase compile model.onnx -o model.ppe --refittable
  polyphase refit model.ppe weights.npz -o new.ppe

WEIGHTS.npz holds arrays by the model's names: initialisers of an ONNX model, parameters and buffers of a PyTorch module, as
numpy.savez("weights.npz", **{name: w.numpy() for name, w in net.state_dict().items()}) writes them. What is not in it keeps
the elements that the engine has.)";

struct RefitFlags {
  std::string engine;
  std::string weights;
  std::string output;
  std::vector<std::string> plugins;
  bool json = false;
};

// NumPy has no name for bf16 and the 8-bit floats: their bits come as unsigned integers of the same width.
api::NamedView as_weight(const io::NamedTensor& given, const api::EngineInfo& info) {
  api::NamedView out{given.name, given.tensor.view()};
  for (const api::WeightInfo& weight : info.weights) {
    if (std::find(weight.names.begin(), weight.names.end(), given.name) == weight.names.end()) continue;
    const bool nameless = weight.dtype == DType::bf16 || (is_float(weight.dtype) && size_bytes(weight.dtype) == 1);
    const DType found = out.view.dtype;
    if (nameless && is_integer(found) && !is_signed(found) && size_bytes(found) == size_bytes(weight.dtype))
      out.view.dtype = weight.dtype;
  }
  return out;
}

struct Refitted {
  api::Engine engine;
  api::RefitReport report;
  double seconds = 0;
};

Result<Refitted> refit_files(const RefitFlags& flags) {
  Refitted out;
  IO_TRY(const std::vector<api::Plugin> plugins, load_plugins(flags.plugins));
  IO_TRY(const api::Engine engine, api::Engine::load(flags.engine, plugins));
  IO_TRY(const auto arrays, io::read_npz(flags.weights));
  const api::EngineInfo info = engine.info();
  std::vector<api::NamedView> weights;
  for (const io::NamedTensor& array : arrays) weights.push_back(as_weight(array, info));
  const auto start = std::chrono::steady_clock::now();
  IO_TRY(out.engine, engine.refit(weights, &out.report));
  out.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  IO_TRY_VOID(out.engine.save(flags.output));
  return out;
}

int refit(const RefitFlags& flags) {
  const auto done = refit_files(flags);
  if (!done.ok()) {
    report_error(done.error());
    return exit_user;
  }
  if (flags.json) {
    Json out = json_result("refit");
    out["engine"] = flags.output;
    out["seconds"] = done->seconds;
    out["exchanged"] = done->report.exchanged;
    out["left_out"] = done->report.left_out;
    out["without_effect"] = done->report.without_effect;
    put_json(out);
  }
  say(fmt::format("{}: {} weights exchanged in {}", plain(flags.output), done->report.exchanged.size(),
                  human_time(done->seconds)));
  const auto tell = [](const std::vector<std::string>& names, const char* what) {
    constexpr std::size_t most = 8;
    if (names.empty()) return;
    std::vector<std::string> first;
    for (std::size_t i = 0; i < names.size() && i < most; ++i) first.push_back(plain(names[i]));
    say(fmt::format("{} {}: {}{}", names.size(), what, join(first, ", "), names.size() > most ? ", …" : ""));
  };
  tell(done->report.left_out, "weights keep their elements, which are not in the file");
  tell(done->report.without_effect, "are no part of what the network computes");
  return exit_ok;
}

}  // namespace

void add_refit(CLI::App& app, Run& run) {
  CLI::App* command = app.add_subcommand("refit", "Give an engine other weights, without compiling it again");
  const auto flags = std::make_shared<RefitFlags>();
  command->add_option("ENGINE", flags->engine, "An engine that was compiled with --refittable")->required();
  command->add_option("WEIGHTS", flags->weights, "The weights by name (.npz)")->required()->type_name("FILE.npz");
  command->add_option("-o,--output", flags->output, "The engine file to write")->required()->type_name("FILE.ppe");
  add_plugin_flag(*command, flags->plugins);
  command->add_flag("--json", flags->json, "Report as JSON on stdout");
  command->footer(refit_examples);
  command->callback([flags, &run] { run = [flags] { return refit(*flags); }; });
}

}  // namespace polyphase::cli
