// polyphase compare: run, and hold the outputs against expected ones.
#include <fmt/format.h>
#include <CLI/App.hpp>

#include <algorithm>
#include <optional>

#include "cli/commands.h"
#include "cli/data.h"
#include "cli/differences.h"
#include "cli/exit_code.h"
#include "cli/json.h"
#include "cli/layers.h"
#include "cli/network.h"
#include "cli/table.h"
#include "cli/terminal.h"
#include "io/npz.h"
#include "io/try.h"

namespace polyphase::cli {
namespace {

constexpr const char* compare_examples = R"(
Examples:
  polyphase compare model.ppe --inputs in.npz --expect out.npz
  polyphase compare model.onnx --inputs in.npz --expect out.npz --rtol 1e-4 --atol 1e-6
  polyphase compare model.onnx --inputs in.npz --layers
  polyphase compare model.onnx --inputs in.npz --layers --reference golden.npz

Every element must satisfy |found - expected| <= atol + rtol * |expected|. Integers and bools must be equal. NaN equals NaN, an
infinity equals itself. Outputs that the archive does not hold are not compared. Exit code 1: something differs.

--layers runs the same plan as ever and looks at every tensor of the model in it, also at those that fusions swallow. A float tensor is
past tolerance if the RMS of the difference is above --tolerance times the RMS of the reference.)";

struct CompareFlags {
  NetworkFlags network;
  InputFlags inputs;
  std::string expected;
  double rtol = 1e-3;
  double atol = 1e-5;
  std::size_t worst = 10;
  int threads = 0;
  bool layers = false;
  LayerFlags layer;
};

struct Compared {
  std::string output;
  Difference difference;
};

void report_json(const std::vector<Compared>& all, const CompareFlags& flags, bool equal) {
  Json out = json_result("compare");
  out["equal"] = equal;
  out["rtol"] = flags.rtol;
  out["atol"] = flags.atol;
  out["outputs"] = Json::array();
  for (const Compared& item : all) {
    const Difference& difference = item.difference;
    Json one = {{"name", item.output}, {"equal", difference.equal()}};
    if (!difference.mismatch.empty()) one["mismatch"] = difference.mismatch;
    one["elements"] = difference.elements;
    one["outside"] = difference.outside;
    one["largest_absolute"] = json_number(difference.largest_absolute);
    one["largest_relative"] = json_number(difference.largest_relative);
    one["relative_rms"] = json_number(difference.relative_rms);
    one["found_nan"] = difference.found_nan;
    one["expected_nan"] = difference.expected_nan;
    one["worst"] = Json::array();
    for (const Place& place : difference.worst) {
      one["worst"].push_back({{"index", place.index},
                              {"found", json_number(place.found)},
                              {"expected", json_number(place.expected)},
                              {"difference", json_number(place.difference)}});
    }
    out["outputs"].push_back(std::move(one));
  }
  put_json(out);
}

std::string index_text(const std::vector<std::int64_t>& index) { return fmt::format("[{}]", fmt::join(index, ", ")); }

void report_worst(const Compared& item) {
  put(fmt::format("\nworst places of {}:\n", plain(item.output)));
  Table table({{"index"},
               {"found", Table::Align::right},
               {"expected", Table::Align::right},
               {"difference", Table::Align::right},
               {"over the allowed", Table::Align::right}});
  for (const Place& place : item.difference.worst) {
    table.add({index_text(place.index), fmt::format("{:.9g}", place.found), fmt::format("{:.9g}", place.expected),
               fmt::format("{:.3g}", place.difference), fmt::format("{:.3g}x", place.excess)});
  }
  put(table.text());
}

void report_text(const std::vector<Compared>& all) {
  Table table({{"output"},
               {"", Table::Align::left},
               {"elements", Table::Align::right},
               {"outside", Table::Align::right},
               {"max abs", Table::Align::right},
               {"max rel", Table::Align::right},
               {"rel rms", Table::Align::right}});
  for (const Compared& item : all) {
    const Difference& d = item.difference;
    if (!d.mismatch.empty()) {
      table.add({plain(item.output), "DIFFERS", std::to_string(d.elements), "", "", "", ""});
      table.note(d.mismatch);
      continue;
    }
    table.add({plain(item.output), d.equal() ? "equal" : "DIFFERS", std::to_string(d.elements),
               std::to_string(d.outside), fmt::format("{:.3g}", d.largest_absolute),
               fmt::format("{:.3g}", d.largest_relative), fmt::format("{:.3g}", d.relative_rms)});
    if (d.found_nan + d.expected_nan > 0)
      table.note(fmt::format("NaN: {} found, {} expected", d.found_nan, d.expected_nan));
  }
  put(table.text());
  for (const Compared& item : all) {
    if (!item.difference.worst.empty()) report_worst(item);
  }
}

// Whether everything is equal.
Result<bool> compare(const CompareFlags& flags) {
  IO_TRY(const Network network, open_network(flags.network, flags.threads));
  IO_TRY_VOID(refuse_sizes_of_engine(network, flags.network));
  IO_TRY(const Inputs inputs, read_inputs(network.engine, flags.inputs));
  IO_TRY(const std::vector<io::NamedTensor> expected, io::read_npz(flags.expected));
  if (expected.empty())
    return Error{ErrorCode::invalid_argument, "'" + flags.expected + "' holds no arrays.",
                 "Give an .npz archive with an array per output."};
  const std::vector<api::Port>& ports = network.engine.outputs();
  for (const io::NamedTensor& item : expected) {
    if (port_index(ports, item.name) >= 0) continue;
    std::vector<std::string> names;
    for (const api::Port& port : ports) names.push_back("'" + plain(port.name) + "'");
    return Error{ErrorCode::invalid_argument,
                 "'" + flags.expected + "' holds '" + plain(item.name) + "', which is no output.",
                 "The outputs are " + join(names, ", ") + "."};
  }
  IO_TRY(const api::Session session, open_session(network.engine, flags.threads));
  Result<std::vector<api::Tensor>> ran = session.run(views_of(inputs.tensors));
  if (!ran.ok()) return inputs.explain(std::move(ran).error());
  const std::vector<api::Tensor>& outputs = *ran;
  std::vector<Compared> all;
  for (const io::NamedTensor& item : expected) {
    const auto index = static_cast<std::size_t>(port_index(ports, item.name));
    all.push_back(
        {ports[index].name, compare_tensors(outputs[index], item.tensor, flags.rtol, flags.atol, flags.worst)});
  }
  const bool equal = std::all_of(all.begin(), all.end(), [](const Compared& item) { return item.difference.equal(); });
  if (flags.network.json) {
    report_json(all, flags, equal);
  } else {
    report_text(all);
  }
  if (!equal) say("polyphase: the outputs differ from what was expected.");
  return equal;
}

}  // namespace

void add_compare(CLI::App& app, Run& run) {
  CLI::App* command = app.add_subcommand("compare", "Run and compare the outputs with expected ones");
  const auto flags = std::make_shared<CompareFlags>();
  add_network_flags(*command, flags->network);
  add_input_flags(*command, flags->inputs);
  auto* expect = command->add_option("--expect", flags->expected, "Archive with the expected outputs, by name")
                     ->type_name("FILE.npz");
  auto* layers = command
                     ->add_flag("--layers", flags->layers,
                                "Hold every tensor inside the model against a reference: which is the first to differ")
                     ->excludes(expect);
  add_layer_flags(*command, *layers, flags->layer);
  command->add_option("--rtol", flags->rtol, "Relative tolerance (default 1e-3)")->check(CLI::NonNegativeNumber);
  command->add_option("--atol", flags->atol, "Absolute tolerance (default 1e-5)")->check(CLI::NonNegativeNumber);
  command->add_option("--worst", flags->worst, "Places listed for each output (default 10)")
      ->check(CLI::Range(0, 1000))
      ->type_name("N");
  add_threads_flag(*command, flags->threads);
  command->footer(compare_examples);
  command->callback([flags, &run] {
    if (!flags->layers && flags->expected.empty()) throw CLI::RequiredError("--expect (or --layers)");
    run = [flags]() -> int {
      const auto equal =
          flags->layers ? compare_layers(flags->network, flags->inputs, flags->layer, flags->threads) : compare(*flags);
      if (!equal.ok()) report_error(equal.error());
      return equal.ok() && *equal ? exit_ok : exit_user;
    };
  });
}

}  // namespace polyphase::cli
