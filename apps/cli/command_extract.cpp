// polyphase extract: a part of a model as a model of its own, with data: for a bug report.
#include <fmt/format.h>
#include <CLI/App.hpp>

#include <filesystem>

#include "cli/commands.h"
#include "cli/data.h"
#include "cli/exit_code.h"
#include "cli/json.h"
#include "cli/network.h"
#include "cli/terminal.h"
#include "io/npz.h"
#include "io/try.h"
#include "io/whole_file.h"
#include "polyphase/diagnose.h"

namespace polyphase::cli {
namespace {

constexpr const char* extract_examples = R"(
Examples:
  polyphase extract model.onnx --from a --to y -o part.onnx
  polyphase extract model.onnx --from a --from b --to y -o part.onnx --with-data --inputs in.npz
  polyphase compare part.onnx --inputs part.inputs.npz --expect part.expected.npz

--with-data writes part.inputs.npz and part.expected.npz beside part.onnx: what the interpreter computes at the borders
for --inputs, or for seeded random inputs. `polyphase compare MODEL --layers --all` lists the tensors of a model.)";

struct ExtractFlags {
  NetworkFlags network;
  InputFlags inputs;
  api::ExtractOptions part;
  std::string output;
};

Result<void> write_tensors(const std::string& path, const std::map<std::string, api::Tensor>& tensors) {
  std::vector<io::NamedTensor> named;
  for (const auto& [name, tensor] : tensors) named.push_back({name, tensor});
  return io::write_npz(path, named);
}

Json tensors_json(const std::map<std::string, api::Tensor>& tensors) {
  Json out = Json::array();
  for (const auto& [name, tensor] : tensors)
    out.push_back({{"name", name}, {"dtype", name_of(tensor.dtype())}, {"sizes", tensor.sizes()}});
  return out;
}

Result<void> extract(const ExtractFlags& flags) {
  if (is_engine_file(flags.network.path)) {
    return Error{ErrorCode::invalid_argument, "'" + flags.network.path + "' is an engine, which holds no model.",
                 "Give the model."};
  }
  IO_TRY(const SizeFlags sizes, parse_size_flags(flags.network.shapes, flags.network.dims, flags.network.tune_for));
  api::CompileOptions compile;
  compile.target = flags.network.target;
  compile.shapes = sizes.shapes;
  compile.dims = sizes.dims;
  api::ExtractOptions options = flags.part;
  options.make_inputs = [&](const api::Engine& engine) -> Result<std::vector<api::Tensor>> {
    if (!flags.inputs.archive.empty() || !flags.inputs.files.empty()) {
      IO_TRY(const Inputs read, read_inputs(engine, flags.inputs));
      return read.tensors;
    }
    IO_TRY(const api::Session session, open_session(engine, 1));
    IO_TRY(const RunSizes chosen, run_sizes(session, sizes));
    return api::random_inputs(engine.inputs(), chosen.inputs);
  };
  IO_TRY(const api::Extracted part, api::extract(flags.network.path, options, compile));
  const std::filesystem::path output(flags.output);
  const std::string stem = (output.parent_path() / output.stem()).string();
  if (options.with_data) {
    IO_TRY_VOID(write_tensors(stem + ".inputs.npz", part.inputs));
    IO_TRY_VOID(write_tensors(stem + ".expected.npz", part.outputs));
  }
  IO_TRY_VOID(io::write_whole_file(flags.output, {part.model}));
  if (flags.network.json) {
    Json out = json_result("extract");
    out["file"] = flags.output;
    out["bytes"] = part.model.size();
    out["inputs"] = tensors_json(part.inputs);
    out["outputs"] = tensors_json(part.outputs);
    put_json(out);
    return {};
  }
  put(fmt::format("{} ({}){}\n", plain(flags.output), human_bytes(part.model.size()),
                  options.with_data ? ", with " + plain(stem) + ".inputs.npz and .expected.npz" : ""));
  return {};
}

}  // namespace

void add_extract(CLI::App& app, Run& run) {
  CLI::App* command = app.add_subcommand("extract", "Write a part of a model as a model of its own, with data");
  const auto flags = std::make_shared<ExtractFlags>();
  command->add_option("MODEL", flags->network.path, "A model (.onnx)")->required();
  const auto add_list = [&](const char* name, std::vector<std::string>& list, const char* help) {
    command->add_option(name, list, help)->allow_extra_args(false)->required()->type_name("TENSOR");
  };
  add_list("--from", flags->part.from, "A tensor that becomes an input. May be repeated");
  add_list("--to", flags->part.to, "A tensor that becomes an output. May be repeated");
  command->add_option("-o,--out", flags->output, "The file to write")->required()->type_name("FILE.onnx");
  command->add_flag("--with-data", flags->part.with_data, "Write the part's inputs and expected outputs beside it");
  command->add_option("--shape", flags->network.shapes, "Sizes of an input, numbers or names. May be repeated")
      ->allow_extra_args(false)
      ->type_name("NAME=SIZES");
  command->add_option("--dim", flags->network.dims, "Range or value of a named size. May be repeated")
      ->allow_extra_args(false)
      ->type_name("NAME=RANGE");
  command->add_flag("--json", flags->network.json, "Report as JSON on stdout");
  add_input_flags(*command, flags->inputs);
  command->footer(extract_examples);
  command->callback([flags, &run] {
    run = [flags]() -> int {
      const auto done = extract(*flags);
      if (!done.ok()) report_error(done.error());
      return done.ok() ? exit_ok : exit_user;
    };
  });
}

}  // namespace polyphase::cli
