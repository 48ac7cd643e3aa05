// polyphase check: what a model needs and whether it is there, without compiling it.
#include <fmt/format.h>
#include <CLI/App.hpp>

#include <algorithm>

#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/json.h"
#include "cli/network.h"
#include "cli/sizes.h"
#include "cli/table.h"
#include "cli/terminal.h"
#include "io/try.h"
#include "polyphase/diagnose.h"
#include "polyphase/export.h"

namespace polyphase::cli {
namespace {

constexpr const char* check_examples = R"(
Examples:
  polyphase check model.onnx
  polyphase check unet.onnx --shape x=1x3xHxW --dim H=64..1024
  polyphase check model.onnx --json
  polyphase check model.onnx --for tensorrt
  polyphase check model.onnx --split parts

Nothing is packed and nothing runs. Exit codes: 0 the model would compile and run; 4 it needs what Polyphase does not
have, or breaks a rule in a node (the table says what and what to do); 1 it cannot be read. With --split 0 says that the
parts are there.)";

struct CheckFlags {
  std::string path;
  std::string target = "native";
  std::vector<std::string> shapes;
  std::vector<std::string> dims;
  std::vector<std::string> plugins;
  std::string for_engine;  // another engine's rules instead of our own
  std::string split;       // the folder to write
  bool json = false;
};

std::string operator_text(const api::CheckedOperator& use) {
  return plain(use.domain.empty() ? use.name : use.domain + "." + use.name);
}

const char* state_of(const api::CheckedOperator& use) {
  if (use.is_missing) return "missing";
  if (use.nodes_refused > 0) return "refused";
  return use.is_function ? "function" : "there";
}

Json error_json(const Error& error) {
  return {{"code", name_of(error.code)}, {"node", error.node}, {"message", error.message}, {"hint", error.hint}};
}

Json operators_json(const api::CheckReport& report) {
  Json out = Json::array();
  for (const api::CheckedOperator& use : report.operators) {
    Json one = {{"domain", use.domain},
                {"operator", use.name},
                {"opset", use.opset},
                {"version", use.version},
                {"state", state_of(use)},
                {"nodes", use.nodes},
                {"nodes_refused", use.nodes_refused},
                {"first_node", use.first_node},
                {"advice", use.advice}};
    one["problems"] = Json::array();
    for (const api::CheckProblem& problem : use.problems) {
      one["problems"].push_back(error_json(problem.error));
      one["problems"].back()["nodes"] = problem.nodes;
    }
    out.push_back(std::move(one));
  }
  return out;
}

void report_json(const api::CheckReport& report) {
  Json out = json_result("check");
  out["ok"] = report.ok();
  out["model_name"] = report.model_name;
  out["producer"] = report.producer;
  out["opset"] = report.opset;
  out["inputs"] = json_ports(report.inputs);
  out["outputs"] = json_ports(report.outputs);
  out["operators"] = operators_json(report);
  out["sizes"] = Json::array();
  for (const api::CheckedSize& size : report.sizes) {
    out["sizes"].push_back({{"name", size.name},
                            {"low", size.range.low},
                            {"high", size.range.high},
                            {"inputs", size.inputs},
                            {"born_at", size.born_at},
                            {"values", size.values}});
  }
  out["run_time_checks"] = report.run_time_checks;
  out["steps"] = report.steps;
  out["slow"] = Json::array();
  for (const api::CheckedSlow& slow : report.slow) {
    out["slow"].push_back({{"operation", slow.operation},
                           {"operands", slow.operands},
                           {"steps", slow.steps},
                           {"first_node", slow.first_node},
                           {"reasons", slow.reasons}});
  }
  out["dtypes"] = report.dtypes;
  out["notes"] = report.notes;
  out["errors"] = Json::array();
  for (const Error& error : report.errors) out["errors"].push_back(error_json(error));
  out["seconds"] = report.seconds;
  put_json(out);
}

std::string version_text(const api::CheckedOperator& use) {
  if (use.is_function) return "";
  if (use.opset == 0 && use.version == 0) return "";  // ATen has no versions
  return use.version > 0 ? std::to_string(use.version) : fmt::format("opset {}", use.opset);
}

// What cannot be taken first, then the most frequent.
void put_operators(const api::CheckReport& report) {
  std::vector<const api::CheckedOperator*> order;
  for (const api::CheckedOperator& use : report.operators) order.push_back(&use);
  std::stable_sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
    const auto key = [](const auto* use) { return std::tuple(!use->is_missing, use->nodes_refused == 0, -use->nodes); };
    return key(a) < key(b);
  });
  Table table(
      {{"operator"}, {"version", Table::Align::right}, {"nodes", Table::Align::right}, {"state"}, {"first node"}});
  for (const api::CheckedOperator* use : order) {
    const std::string nodes = use->nodes_refused == 0 || use->nodes_refused == use->nodes
                                  ? std::to_string(use->nodes)
                                  : fmt::format("{} of {}", use->nodes_refused, use->nodes);
    std::string state = state_of(*use);
    if (use->nodes_refused > 0)
      std::transform(state.begin(), state.end(), state.begin(),
                     [](char c) { return static_cast<char>(c - 'a' + 'A'); });
    table.add({operator_text(*use), version_text(*use), nodes, state, plain(use->first_node)});
    if (use->is_missing) table.note("do: " + plain(use->advice));
    for (const api::CheckProblem& problem : use->problems) {
      table.note(
          fmt::format("{} node{}: {}", problem.nodes, problem.nodes == 1 ? "" : "s", plain(problem.error.message)));
      if (!problem.error.hint.empty()) table.note("do: " + plain(problem.error.hint));
    }
  }
  put("\n" + table.text());
}

void put_sizes(const api::CheckReport& report) {
  if (report.sizes.empty()) {
    put("\nsizes     all are fixed\n");
    return;
  }
  Table table({{"open size"}, {"range"}, {"tensors", Table::Align::right}, {"comes from"}});
  for (const api::CheckedSize& size : report.sizes) {
    std::vector<std::string> from;
    for (const std::string& input : size.inputs) from.push_back(plain(input));
    table.add({plain(size.name), range_text(size.range), std::to_string(size.values),
               size.born_at.empty() ? join(from, ", ") : "data, at node " + plain(size.born_at)});
  }
  put("\n" + table.text());
  if (report.run_time_checks > 0)
    put(fmt::format("{} relation{} between them {} tested whenever sizes change\n", report.run_time_checks,
                    report.run_time_checks == 1 ? "" : "s", report.run_time_checks == 1 ? "is" : "are"));
}

void put_slow(const api::CheckReport& report) {
  std::int64_t slow = 0;
  for (const api::CheckedSlow& group : report.slow) slow += group.steps;
  put(fmt::format("\nspeed     {} of {} steps will run on plain loops\n", slow, report.steps));
  if (report.slow.empty()) return;
  Table table({{"operation"}, {"steps", Table::Align::right}, {"operands"}, {"first node"}});
  for (const api::CheckedSlow& group : report.slow) {
    table.add({group.operation, std::to_string(group.steps), plain(group.operands), plain(group.first_node)});
    for (const std::string& reason : group.reasons) table.note("not " + plain(reason));
    if (group.reasons.empty()) table.note("no kernel is written for it yet");
  }
  put(table.text());
}

void report_text(const api::CheckReport& report) {
  put(fmt::format("model     {}\n", plain(report.model_name)));
  if (!report.producer.empty()) put(fmt::format("made by   {}\n", plain(report.producer)));
  for (const auto& [word, ports] : {std::pair{"input ", &report.inputs}, std::pair{"output", &report.outputs}}) {
    for (const api::Port& port : *ports)
      put(fmt::format("{}    {} {} {}\n", word, plain(port.name), name_of(port.dtype), shape_text(port.sizes)));
  }
  std::vector<std::string> dtypes;
  for (const auto& [dtype, count] : report.dtypes) dtypes.push_back(fmt::format("{} {}", count, dtype));
  put(fmt::format("tensors   {}\n", join(dtypes, ", ")));
  put_operators(report);
  put_sizes(report);
  put_slow(report);
  for (const std::string& note : report.notes) put("note      " + plain(note) + "\n");
  for (const Error& error : report.errors) put("ERROR     " + plain(error.text()) + "\n");
  if (report.ok()) {
    put(fmt::format("\nready: it would compile and run (looked at in {})\n", human_time(report.seconds)));
    return;
  }
  std::int64_t types = 0;
  std::int64_t nodes = 0;
  for (const api::CheckedOperator& use : report.operators) {
    types += use.nodes_refused > 0 ? 1 : 0;
    nodes += use.nodes_refused;
  }
  put(fmt::format("\nNOT READY: {} operator type{} with {} node{} cannot be taken (looked at in {})\n", types,
                  types == 1 ? "" : "s", nodes, nodes == 1 ? "" : "s", human_time(report.seconds)));
}

// What another engine would say.
Result<bool> check_for_engine(const CheckFlags& flags) {
  IO_TRY(const std::vector<api::ExportFinding> found, api::check_for(flags.path, flags.for_engine));
  if (flags.json) {
    Json out = json_result("check");
    out["ok"] = found.empty();
    out["for"] = flags.for_engine;
    out["findings"] = Json::array();
    for (const api::ExportFinding& finding : found) {
      out["findings"].push_back({{"node", finding.node},
                                 {"operation", finding.operation},
                                 {"rule", finding.rule},
                                 {"why", finding.why},
                                 {"doc", finding.doc},
                                 {"rewrites", finding.rewrites}});
    }
    put_json(out);
    return found.empty();
  }
  Table table({{"node"}, {"rule"}, {"export"}});
  for (const api::ExportFinding& finding : found) {
    table.add({plain(finding.node), finding.rule, finding.rewrites ? "rewrites it" : "REFUSES IT"});
    table.note("why: " + plain(finding.why));
    table.note(finding.doc);
  }
  if (!table.empty()) put(table.text());
  put(found.empty() ? fmt::format("ready: {} takes it, as far as the rules know\n", flags.for_engine)
                    : fmt::format("NOT READY for {}: {} node{}; polyphase export rewrites what can be rewritten\n",
                                  flags.for_engine, found.size(), found.size() == 1 ? "" : "s"));
  return found.empty();
}

Result<bool> split_into_folder(const CheckFlags& flags) {
  IO_TRY(const api::SplitModel split, api::split(flags.path));
  IO_TRY_VOID(api::save_split(split, flags.split));
  if (flags.json) {
    Json out = json_result("check");
    out["ok"] = true;
    out["folder"] = flags.split;
    out["pieces"] = Json::array();
    for (const api::SplitPiece& piece : split.pieces)
      out["pieces"].push_back(
          {{"file", piece.file}, {"inputs", piece.inputs}, {"outputs", piece.outputs}, {"nodes", piece.nodes}});
    put_json(out);
    return true;
  }
  Table table({{"part"}, {"nodes", Table::Align::right}, {"from"}, {"to"}});
  for (const api::SplitPiece& piece : split.pieces)
    table.add(
        {piece.file, std::to_string(piece.nodes), plain(join(piece.inputs, ", ")), plain(join(piece.outputs, ", "))});
  put(table.text());
  put(fmt::format("{}: {} part{} and manifest.json; in Python polyphase.load_split runs them\n", plain(flags.split),
                  split.pieces.size(), split.pieces.size() == 1 ? "" : "s"));
  return true;
}

Result<bool> check(const CheckFlags& flags) {
  if (is_engine_file(flags.path)) {
    return Error{ErrorCode::invalid_argument, "'" + flags.path + "' is an engine: it was compiled already.",
                 "Give the model; polyphase explain tells what an engine runs."};
  }
  if (!flags.split.empty()) return split_into_folder(flags);
  if (!flags.for_engine.empty()) return check_for_engine(flags);
  IO_TRY(const SizeFlags sizes, parse_size_flags(flags.shapes, flags.dims, {}));
  api::CompileOptions options;
  options.target = flags.target;
  options.shapes = sizes.shapes;
  options.dims = sizes.dims;
  IO_TRY(options.plugins, load_plugins(flags.plugins));
  Progress progress;
  options.progress = [&](std::string_view stage, double done) { progress.show(stage, done); };
  IO_TRY(const api::CheckReport report, api::check(flags.path, options));
  if (flags.json) {
    report_json(report);
  } else {
    report_text(report);
  }
  return report.ok();
}

}  // namespace

void add_check(CLI::App& app, Run& run) {
  CLI::App* command = app.add_subcommand("check", "Say whether a model can be compiled, what is missing, what is slow");
  const auto flags = std::make_shared<CheckFlags>();
  command->add_option("MODEL", flags->path, "A model (.onnx, .pt2)")->required();
  command->add_option("--target", flags->target,
                      "As for compile: native, portable, scalar, avx2, avx512, avx512_bf16, amx");
  command->add_option("--shape", flags->shapes, "Sizes of an input, numbers or names: x=1x3xHxW. May be repeated")
      ->allow_extra_args(false)
      ->type_name("NAME=SIZES");
  command->add_option("--dim", flags->dims, "Range or value of a named size: H=64..1024, H=512. May be repeated")
      ->allow_extra_args(false)
      ->type_name("NAME=RANGE");
  add_plugin_flag(*command, flags->plugins);
  command->add_option("--for", flags->for_engine, "What another engine would refuse instead: as for export")
      ->type_name("TARGET");
  command
      ->add_option("--split", flags->split,
                   "Cut the model into parts that Polyphase takes and parts for ONNX Runtime, in a new folder")
      ->type_name("DIR");
  command->add_flag("--json", flags->json, "Report as JSON on stdout");
  command->footer(check_examples);
  command->callback([flags, &run] {
    run = [flags]() -> int {
      const auto ready = check(*flags);
      if (!ready.ok()) report_error(ready.error());
      if (!ready.ok()) return exit_user;
      return *ready ? exit_ok : exit_unsupported;
    };
  });
}

}  // namespace polyphase::cli
