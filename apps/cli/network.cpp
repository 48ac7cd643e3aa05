// Loads or compiles MODEL.
#include "cli/network.h"

#include <fmt/format.h>
#include <CLI/App.hpp>

#include <array>
#include <chrono>
#include <cstring>
#include <fstream>
#include <set>

#include "cli/terminal.h"
#include "io/try.h"

namespace polyphase::cli {
namespace {

constexpr std::array<char, 8> engine_magic = {'\x89', 'P', 'P', 'E', '\r', '\n', '\x1a', '\n'};

Result<void> refuse_compile_flags(const NetworkFlags& flags) {
  const std::pair<bool, const char*> given[] = {
      {!flags.without.empty(), "--without"},
      {!flags.print_after.empty(), "--print-after"},
      {!flags.stop_after.empty(), "--stop-after"},
      {!flags.tune_for.empty(), "--tune-for"},
      {!flags.precision.empty(), "--precision"},
      {flags.tune, "--tune"},
      {!flags.input_layouts.empty(), "--input-layout"},
      {!flags.output_layouts.empty(), "--output-layout"},
      {flags.target != "native", "--target"},
  };
  for (const auto& [is_given, name] : given) {
    if (!is_given) continue;
    return Error{ErrorCode::invalid_argument,
                 std::string(name) + " is read when a model is compiled; '" + flags.path + "' is an engine.",
                 "Give the model, or leave " + std::string(name) + " out."};
  }
  return {};
}

// An engine's sizes have names already: --shape gives numbers, --dim a size that it has.
Result<void> check_sizes_of_engine(const NetworkFlags& flags, const Network& network) {
  for (const auto& [name, sizes] : network.sizes.shapes) {
    if (is_all_numbers(sizes)) continue;
    return Error{ErrorCode::invalid_argument,
                 "--shape " + name + "=" + shape_text(sizes) + " names sizes; '" + flags.path +
                     "' is an engine, whose sizes have their names already.",
                 "Give numbers, or a value of a named size with --dim."};
  }
  const api::EngineInfo info = network.engine.info();
  for (const auto& [name, range] : network.sizes.dims) {
    if (info.dims.count(name) != 0) continue;
    std::vector<std::string> known;
    for (const auto& [symbol, unused] : info.dims) known.push_back(plain(symbol));
    return Error{ErrorCode::invalid_argument, "--dim names '" + name + "', which is no size of the engine.",
                 known.empty() ? "All its sizes are fixed." : "Its open sizes are: " + join(known, ", ") + "."};
  }
  return {};
}

Result<std::map<std::string, std::string>> parse_layouts(const std::vector<std::string>& given,
                                                         const std::string& flag) {
  std::map<std::string, std::string> out;
  for (const std::string& word : given) {
    IO_TRY(const NamedWord named, split_name(word, flag));
    if (named.name.empty()) {
      return Error{ErrorCode::invalid_argument, flag + " '" + word.substr(0, 60) + "' names no tensor.",
                   "Write " + flag + " x=NHWC."};
    }
    out[named.name] = named.rest;
  }
  return out;
}

// Says which of the passes that were asked for printed nothing, and why.
void report_silent_passes(const NetworkFlags& flags, const std::set<std::string, std::less<>>& printed) {
  for (const std::string& pass : flags.print_after) {
    if (pass != "all" && printed.count(pass) == 0)
      say("polyphase: " + pass + " changed nothing, or did not run: no graph to print.");
  }
}

}  // namespace

bool is_engine_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::array<char, engine_magic.size()> first{};
  // The first four bytes: a damaged or truncated engine shall be refused as one, not as a model.
  file.read(first.data(), first.size());
  return file.gcount() >= 4 && std::memcmp(first.data(), engine_magic.data(), 4) == 0;
}

void add_network_flags(CLI::App& command, NetworkFlags& flags) {
  command.add_option("MODEL", flags.path, "An engine (.ppe), or a model (.onnx, .pt2), which is compiled first")
      ->required();
  command.add_option(
      "--target", flags.target,
      "Which CPUs the engine runs on: native (this one, the default), portable (any; packs its weights when loaded), "
      "scalar, avx2, avx512, avx512_bf16, amx");
  command.add_option("--shape", flags.shapes, "Sizes of an input, numbers or names: x=1x3xHxW. May be repeated")
      ->allow_extra_args(false)
      ->type_name("NAME=SIZES");
  command.add_option("--dim", flags.dims, "Range or value of a named size: H=64..1024, H=512. May be repeated")
      ->allow_extra_args(false)
      ->type_name("NAME=RANGE");
  command
      .add_option("--tune-for", flags.tune_for,
                  "Sizes that kernels are chosen for where sizes stay open; others run too: x=1x3x512x512")
      ->allow_extra_args(false)
      ->type_name("NAME=SIZES");
  command
      .add_option("--input-layout", flags.input_layouts,
                  "How you have an input, by the letters of its axes: x=NHWC, x=NCHW16c, or x=NCHW:NHWC, yours and the "
                  "model's where that is not channels-first. May be repeated")
      ->allow_extra_args(false)
      ->type_name("NAME=LAYOUT");
  command.add_option("--output-layout", flags.output_layouts, "The same for an output: y=NHWC. May be repeated")
      ->allow_extra_args(false)
      ->type_name("NAME=LAYOUT");
  command
      .add_option(
          "--precision", flags.precision,
          "In what type convolutions may multiply: model (bf16 where its tensors are, the default), fp32, or auto "
          "(bf16, or filtering of four outputs at once, wherever that is faster)")
      ->type_name("PRECISION");
  CLI::Option* tune = command.add_flag(
      "--tune", flags.tune, "Choose kernels and layouts by what they take here, measured and kept in a timing cache");
  command
      .add_option("--timing-cache", flags.timing_cache,
                  "The file that keeps what --tune measured (default: timings.txt in ~/.cache/polyphase)")
      ->needs(tune)
      ->type_name("FILE");
  add_plugin_flag(command, flags.plugins);
  command.add_option("--without", flags.without, "Leave a pass out. May be repeated")
      ->allow_extra_args(false)
      ->type_name("PASS");
  command.add_option("--stop-after", flags.stop_after, "The last pass that runs")->type_name("PASS");
  command
      .add_option("--print-after", flags.print_after,
                  "Print the graph on stdout (with --json: stderr) after a pass, or 'all'. May be repeated")
      ->allow_extra_args(false)
      ->type_name("PASS");
  command.add_flag("--json", flags.json, "Report as JSON on stdout");
}

void add_plugin_flag(CLI::App& command, std::vector<std::string>& files) {
  command
      .add_option("--plugin", files,
                  "A shared library with operators that the network uses; its code runs here. May be repeated")
      ->allow_extra_args(false)
      ->type_name("FILE.so");
}

Result<std::vector<api::Plugin>> load_plugins(const std::vector<std::string>& files) {
  std::vector<api::Plugin> out;
  for (const std::string& file : files) {
    IO_TRY(out.emplace_back(), api::Plugin::load(file));
  }
  return out;
}

CLI::Option* add_threads_flag(CLI::App& command, int& threads) {
  return command.add_option("--threads", threads, "Threads of the session; 0, the default: one per core")
      ->check(CLI::Range(0, 4096))
      ->type_name("N");
}

Result<Network> open_network(const NetworkFlags& flags, int threads, api::PassHistory* history) {
  Network out;
  IO_TRY(out.sizes, parse_size_flags(flags.shapes, flags.dims, flags.tune_for));
  IO_TRY(std::vector<api::Plugin> plugins, load_plugins(flags.plugins));
  const auto start = std::chrono::steady_clock::now();
  out.was_engine = is_engine_file(flags.path);
  if (out.was_engine) {
    IO_TRY_VOID(refuse_compile_flags(flags));
    IO_TRY(out.engine, api::Engine::load(flags.path, plugins));
    IO_TRY_VOID(check_sizes_of_engine(flags, out));
  } else {
    api::CompileOptions options;
    options.target = flags.target;
    if (!flags.precision.empty()) options.precision = flags.precision;
    options.refittable = flags.refittable;
    options.engine_file = flags.engine_file;
    options.shapes = out.sizes.shapes;
    options.dims = out.sizes.dims;
    options.tune_for = out.sizes.tune_for;
    IO_TRY(options.input_layouts, parse_layouts(flags.input_layouts, "--input-layout"));
    IO_TRY(options.output_layouts, parse_layouts(flags.output_layouts, "--output-layout"));
    options.tune = flags.tune;
    options.tune_threads = threads;
    options.timing_cache = flags.timing_cache;
    options.tuned = &out.tuned;
    options.plugins = std::move(plugins);
    options.without = flags.without;
    options.stop_after = flags.stop_after;
    options.history = history;
    options.print_after = flags.print_after;
    std::set<std::string, std::less<>> printed;
    options.print = [&](std::string_view pass, std::string_view text) {
      printed.emplace(pass);
      const std::string shown = fmt::format("# after {}\n{}\n", pass, text);
      flags.json ? say(shown) : put(shown);
    };
    Progress progress;
    options.progress = [&](std::string_view stage, double done) { progress.show(stage, done); };
    IO_TRY(out.engine, api::compile(flags.path, options));
    report_silent_passes(flags, printed);
    for (const std::string& warning : out.tuned.warnings) warn(warning);
  }
  out.open_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return out;
}

Result<void> refuse_sizes_of_engine(const Network& network, const NetworkFlags& flags) {
  if (!network.was_engine || (flags.shapes.empty() && flags.dims.empty())) return {};
  const std::string flag = flags.shapes.empty() ? "--dim" : "--shape";
  return Error{ErrorCode::invalid_argument,
               flag + " does nothing here: the sizes come from the inputs, and '" + flags.path + "' is an engine.",
               "Leave " + flag + " out, or give the model."};
}

Result<api::Session> open_session(const api::Engine& engine, int threads) {
  api::SessionOptions options;
  options.threads = threads;
  return api::Session::create(engine, options);
}

}  // namespace polyphase::cli
