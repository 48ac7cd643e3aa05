// polyphase compile: a model file into an engine file.
#include <fmt/format.h>
#include <CLI/App.hpp>

#include <algorithm>
#include <filesystem>

#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/json.h"
#include "cli/network.h"
#include "cli/terminal.h"

namespace polyphase::cli {
namespace {

constexpr const char* compile_examples = R"(
Examples:
  polyphase compile model.onnx -o model.ppe
  polyphase compile model.onnx -o any-cpu.ppe --target portable
  polyphase compile unet.onnx -o unet.ppe --shape x=1x3xHxW --dim H=64..1024 --dim W=64..1024 --tune-for x=1x3x512x512
  polyphase compile model.onnx -o model.ppe --tune --threads 4
  polyphase compile model.onnx -o model.ppe --print-after all > passes.txt
  polyphase compile model.onnx -o model.ppe --refittable && polyphase refit model.ppe weights.npz -o new.ppe

Without flags every symbolic size of the model stays open: one engine runs all of them. --dim H=512 fixes a size.)";

struct CompileFlags {
  NetworkFlags network;
  std::string output;
  int threads = 0;
};

std::string output_path(const CompileFlags& flags) {
  if (!flags.output.empty()) return flags.output;
  return std::filesystem::path(flags.network.path).replace_extension(".ppe").string();
}

void report_tuning(const api::TuneReport& tuned) {
  const auto steps = [](std::size_t count) { return fmt::format("{} step{}", count, count == 1 ? "" : "s"); };
  say(fmt::format("tuned: {} measured, {} known from {}", steps(tuned.measured_steps), steps(tuned.cached_steps),
                  plain(tuned.timing_cache)));
  for (const std::string& skipped : tuned.skipped) say(fmt::format("chosen by its estimate: {}", plain(skipped)));
}

void report(const CompileFlags& flags, const Network& network, const std::string& path) {
  const api::EngineInfo info = network.engine.info();
  const auto reference =
      std::count_if(info.steps.begin(), info.steps.end(), [](const api::StepInfo& step) { return step.reference; });
  std::error_code ignored;
  const std::uint64_t bytes = std::filesystem::file_size(path, ignored);
  if (flags.network.json) {
    Json out = json_result("compile");
    out["engine"] = path;
    out["bytes"] = bytes;
    out["seconds"] = network.open_seconds;
    out["target"] = info.cluster;
    out["steps"] = info.steps.size();
    out["reference_steps"] = reference;
    out["constant_bytes"] = info.constant_bytes;
    out["inputs"] = json_ports(network.engine.inputs());
    out["outputs"] = json_ports(network.engine.outputs());
    out["remarks"] = info.remarks;
    if (flags.network.tune) {
      out["tuning"] = {{"measured_steps", network.tuned.measured_steps},
                       {"cached_steps", network.tuned.cached_steps},
                       {"timing_cache", network.tuned.timing_cache},
                       {"skipped", network.tuned.skipped}};
    }
    put_json(out);
  }
  say(fmt::format("{}: {}, {} steps for {}, compiled in {}", plain(path), human_bytes(bytes), info.steps.size(),
                  info.cluster, human_time(network.open_seconds)));
  if (flags.network.tune) report_tuning(network.tuned);
  if (reference > 0)
    warn(fmt::format("{} of {} steps run the operators' plain loops, which are slow; polyphase explain says why.",
                     reference, info.steps.size()));
}

int compile(const CompileFlags& flags) {
  if (is_engine_file(flags.network.path)) {
    report_error({ErrorCode::invalid_argument, "'" + flags.network.path + "' is an engine already.",
                  "Give the model that it was compiled from."});
    return exit_user;
  }
  NetworkFlags with_file = flags.network;
  with_file.engine_file = output_path(flags);
  const auto network = open_network(with_file, flags.threads);
  if (!network.ok()) {
    report_error(network.error());
    return exit_user;
  }
  report(flags, *network, with_file.engine_file);
  return exit_ok;
}

}  // namespace

void add_compile(CLI::App& app, Run& run) {
  CLI::App* command = app.add_subcommand("compile", "Compile a model into an engine file");
  const auto flags = std::make_shared<CompileFlags>();
  add_network_flags(*command, flags->network);
  command->add_option("-o,--output", flags->output, "The engine file (default: the model's name with .ppe)")
      ->type_name("FILE.ppe");
  command->add_flag("--refittable", flags->network.refittable,
                    "The engine takes other weights later: polyphase refit. Up to twice the file");
  command->add_option("--threads", flags->threads, "Threads of the sessions that --tune measures for; 0: one per core")
      ->check(CLI::Range(0, 4096))
      ->needs("--tune")
      ->type_name("N");
  command->footer(compile_examples);
  command->callback([flags, &run] { run = [flags] { return compile(*flags); }; });
}

}  // namespace polyphase::cli
