// The reports of compare --layers.
#include "cli/layers.h"

#include <fmt/format.h>
#include <CLI/App.hpp>

#include <cmath>

#include "cli/json.h"
#include "cli/table.h"
#include "cli/terminal.h"
#include "io/npz.h"
#include "io/try.h"
#include "polyphase/diagnose.h"

namespace polyphase::cli {
namespace {

constexpr int shown_before = 2;  // layers around the first that differs
constexpr int shown_after = 5;

Json number(double value) {
  if (std::isfinite(value)) return value;
  return std::isnan(value) ? "nan" : "inf";
}

std::string where_text(const api::LayerResult& layer) {
  if (!layer.held) return "computed beside the run";
  return layer.row.empty() ? fmt::format("step {}", layer.step) : fmt::format("step {}, {}", layer.step, layer.row);
}

void report_json(const api::LayerReport& report, const LayerFlags& flags) {
  Json out = json_result("compare");
  out["equal"] = report.first_past < 0;
  out["reference"] = flags.reference;
  out["tolerance"] = report.tolerance;
  const auto name = [&](int index) -> Json {
    if (index < 0) return nullptr;
    return report.layers[static_cast<std::size_t>(index)].tensor;
  };
  out["first_past_tolerance"] = name(report.first_past);
  out["first_not_finite"] = name(report.first_not_finite);
  out["layers"] = Json::array();
  for (const api::LayerResult& layer : report.layers) {
    Json one = {{"tensor", layer.tensor},       {"node", layer.node},
                {"operation", layer.operation}, {"dtype", name_of(layer.dtype)},
                {"sizes", layer.sizes},         {"held", layer.held},
                {"step", layer.step},           {"kernel", layer.row},
                {"compared", layer.compared}};
    one["past_tolerance"] = layer.past_tolerance;
    if (!layer.mismatch.empty()) one["mismatch"] = layer.mismatch;
    one["largest_absolute"] = number(layer.largest_absolute);
    one["relative_rms"] = number(layer.relative_rms);
    one["found_nan"] = layer.found_nan;
    one["found_infinite"] = layer.found_infinite;
    one["expected_nan"] = layer.expected_nan;
    one["expected_infinite"] = layer.expected_infinite;
    out["layers"].push_back(std::move(one));
  }
  out["unknown"] = report.unknown;
  out["unobserved"] = report.unobserved;
  out["seconds"] = {{"run", report.run_seconds},
                    {"capture", report.capture_seconds},
                    {"swallowed", report.swallowed_seconds},
                    {"reference", report.reference_seconds}};
  put_json(out);
}

void put_layers(const api::LayerReport& report, std::size_t first, std::size_t last) {
  Table table({{"tensor"},
               {""},
               {"type"},
               {"max abs", Table::Align::right},
               {"rel rms", Table::Align::right},
               {"computed by"},
               {"node"}});
  for (std::size_t i = first; i < last; ++i) {
    const api::LayerResult& layer = report.layers[i];
    const bool numbers = layer.compared && layer.mismatch.empty();
    table.add({plain(layer.tensor),
               layer.past_tolerance ? "DIFFERS"
               : layer.compared     ? "equal"
                                    : "not compared",
               fmt::format("{} {}", name_of(layer.dtype), shape_text(layer.sizes)),
               numbers ? fmt::format("{:.3g}", layer.largest_absolute) : "",
               numbers ? fmt::format("{:.3g}", layer.relative_rms) : "", where_text(layer), plain(layer.node)});
    if (!layer.mismatch.empty()) table.note(layer.mismatch);
    if (layer.found_nan + layer.found_infinite + layer.expected_nan + layer.expected_infinite > 0)
      table.note(fmt::format("NaN: {} found, {} expected; Inf: {} found, {} expected", layer.found_nan,
                             layer.expected_nan, layer.found_infinite, layer.expected_infinite));
  }
  put(table.text());
}

std::string layer_text(const api::LayerResult& layer) {
  return fmt::format("{} ({} {}, {} '{}'), {}", plain(layer.tensor), name_of(layer.dtype), shape_text(layer.sizes),
                     layer.operation, plain(layer.node), where_text(layer));
}

void report_text(const api::LayerReport& report, const LayerFlags& flags) {
  const auto count = report.layers.size();
  std::size_t first = 0;
  std::size_t last = count;
  if (!flags.all && report.first_past >= 0) {
    const auto at = static_cast<std::size_t>(report.first_past);
    first = at > shown_before ? at - shown_before : 0;
    last = std::min(count, at + shown_after);
  }
  if (flags.all || report.first_past >= 0) put_layers(report, first, last);
  std::size_t compared = 0;
  std::size_t past = 0;
  std::size_t held = 0;
  const api::LayerResult* worst = nullptr;
  for (const api::LayerResult& layer : report.layers) {
    compared += layer.compared ? 1 : 0;
    past += layer.past_tolerance ? 1 : 0;
    held += layer.held ? 1 : 0;
    if (layer.compared && (worst == nullptr || layer.relative_rms > worst->relative_rms)) worst = &layer;
  }
  if (flags.all || report.first_past >= 0) put("\n");
  put(fmt::format("{} tensors, {} read in the run, {} computed beside it; {} compared with {}\n", count, held,
                  count - held, compared, plain(flags.reference)));
  if (!report.unknown.empty())
    put(fmt::format("{} tensors of the archive are not in the model, the first is {}\n", report.unknown.size(),
                    plain(report.unknown.front())));
  if (!report.unobserved.empty())
    put(fmt::format("{} tensors could not be looked at, the first is {}\n", report.unobserved.size(),
                    plain(report.unobserved.front())));
  if (worst != nullptr && report.first_past < 0)
    put(fmt::format("largest error: {:.3g} relative RMS at {}\n", worst->relative_rms, layer_text(*worst)));
  if (report.first_past >= 0) {
    put(fmt::format("FIRST PAST TOLERANCE ({:.3g}; {} of {} are): {}\n", report.tolerance, past, compared,
                    layer_text(report.layers[static_cast<std::size_t>(report.first_past)])));
  } else {
    put(fmt::format("all are within the tolerance of {:.3g}\n", report.tolerance));
  }
  if (report.first_not_finite >= 0)
    put(fmt::format("FIRST NaN OR Inf: {}\n",
                    layer_text(report.layers[static_cast<std::size_t>(report.first_not_finite)])));
  put(fmt::format("run {}, with every tensor kept {} + {}; reference {}\n", human_time(report.run_seconds),
                  human_time(report.capture_seconds), human_time(report.swallowed_seconds),
                  human_time(report.reference_seconds)));
}

Result<void> write_tensors(const std::string& path, const std::map<std::string, api::Tensor>& tensors) {
  std::vector<io::NamedTensor> named;
  for (const auto& [name, tensor] : tensors) named.push_back({name, tensor});
  return io::write_npz(path, named);
}

}  // namespace

void add_layer_flags(CLI::App& command, CLI::Option& layers, LayerFlags& flags) {
  command
      .add_option("--reference", flags.reference,
                  "With --layers: interpreter (the default: the operators' plain loops on the model as it is), or an "
                  "archive with tensors by their names in the model")
      ->type_name("interpreter|FILE.npz")
      ->needs(&layers);
  command.add_option("--tolerance", flags.tolerance, "With --layers: largest relative RMS error (default 1e-4)")
      ->check(CLI::NonNegativeNumber)
      ->needs(&layers);
  command
      .add_option("--write-golden", flags.write_golden,
                  "With --layers: write the reference's tensors, for later runs with --reference")
      ->type_name("FILE.npz")
      ->needs(&layers);
  command.add_option("--write-found", flags.write_found, "With --layers: write the run's tensors")
      ->type_name("FILE.npz")
      ->needs(&layers);
  command.add_flag("--all", flags.all, "With --layers: list every tensor, not only around the first that differs")
      ->needs(&layers);
}

Result<bool> compare_layers(const NetworkFlags& network, const InputFlags& inputs, const LayerFlags& flags,
                            int threads) {
  if (is_engine_file(network.path)) {
    return Error{ErrorCode::invalid_argument,
                 "'" + network.path + "' is an engine: it no longer holds the tensors of its model.",
                 "Give the model; the same options make the same engine."};
  }
  IO_TRY(const SizeFlags sizes, parse_size_flags(network.shapes, network.dims, network.tune_for));
  api::CompileOptions compile;
  compile.target = network.target;
  compile.shapes = sizes.shapes;
  compile.dims = sizes.dims;
  IO_TRY(compile.plugins, load_plugins(network.plugins));
  compile.tune_for = sizes.tune_for;
  compile.without = network.without;
  compile.stop_after = network.stop_after;
  Progress progress;
  compile.progress = [&](std::string_view stage, double done) { progress.show(stage, done); };
  api::LayerOptions options;
  options.tolerance = flags.tolerance;
  options.session.threads = threads;
  options.measure = true;
  options.keep_found = !flags.write_found.empty();
  options.keep_expected = !flags.write_golden.empty();
  if (flags.reference != "interpreter") {
    IO_TRY(const std::vector<io::NamedTensor> golden, io::read_npz(flags.reference));
    if (golden.empty())
      return Error{ErrorCode::invalid_argument, "'" + flags.reference + "' holds no arrays.",
                   "Give an .npz archive with an array per tensor of the model."};
    for (const io::NamedTensor& item : golden) options.golden[item.name] = item.tensor;
  }
  const Inputs* read = nullptr;
  Inputs given;
  options.make_inputs = [&](const api::Engine& engine) -> Result<std::vector<api::Tensor>> {
    if (inputs.archive.empty() && inputs.files.empty()) {
      IO_TRY(const api::Session session, open_session(engine, 1));
      IO_TRY(const RunSizes chosen, run_sizes(session, sizes));
      if (!chosen.chosen.empty())
        say("sizes nobody gave: " + join(chosen.chosen, " ") + " (choose with --shape or --dim)");
      return api::random_inputs(engine.inputs(), chosen.inputs);
    }
    IO_TRY(given, read_inputs(engine, inputs));
    read = &given;
    return given.tensors;
  };
  Result<api::LayerReport> compared = api::compare_layers(network.path, {}, compile, options);
  if (!compared.ok()) {
    if (read != nullptr) return read->explain(std::move(compared).error());
    return std::move(compared).error();
  }
  const api::LayerReport& report = *compared;
  if (!flags.write_golden.empty()) IO_TRY_VOID(write_tensors(flags.write_golden, report.expected));
  if (!flags.write_found.empty()) IO_TRY_VOID(write_tensors(flags.write_found, report.found));
  if (network.json) {
    report_json(report, flags);
  } else {
    report_text(report, flags);
  }
  return report.first_past < 0 && report.first_not_finite < 0;
}

}  // namespace polyphase::cli
