// polyphase export: a model made fit for the engine of others.
#include <fmt/format.h>
#include <CLI/App.hpp>

#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/json.h"
#include "cli/network.h"
#include "cli/table.h"
#include "cli/terminal.h"
#include "io/try.h"
#include "polyphase/export.h"

namespace polyphase::cli {
namespace {

constexpr const char* export_examples = R"(
Examples:
  polyphase export model.onnx --for onnxruntime -o out.onnx
  polyphase export model.onnx --for onnx -o out.onnx --report
  polyphase export model.onnx --for onnx --opset 13 -o out.onnx
  polyphase export model.onnx --for onnxruntime -o out.onnx --json

What the engine takes stays byte for byte. Before anything is written, the model before and after runs in the interpreter
on whole numbers and must give the same bits; where that would take long, each rewritten node does. docs/export_rules.md
lists the rules, docs/opsets.md what --opset rewrites.)";

struct ExportFlags {
  std::string path;
  std::string output;
  std::vector<std::string> without;
  api::ExportOptions options;
  bool report = false;
  bool json = false;
};

Json export_json(const ExportFlags& flags, const api::ExportedModel& exported) {
  const api::ExportReport& report = exported.report;
  Json out = json_result("export");
  out["target"] = report.target;
  out["opset"] = report.opset;
  out["file"] = flags.output;
  out["bytes"] = exported.model.size();
  out["nodes"] = report.nodes;
  out["changes"] = Json::array();
  for (const api::ExportedChange& change : report.changes) {
    out["changes"].push_back({{"node", change.node},
                              {"rule", change.rule},
                              {"why", change.why},
                              {"before", change.before},
                              {"after", change.after},
                              {"tolerance", change.tolerance}});
  }
  out["whole_model_compared"] = report.whole_model_compared;
  out["nodes_compared"] = report.nodes_compared;
  out["runs"] = report.runs;
  out["notes"] = report.notes;
  out["external_files"] = exported.external_files;
  out["seconds"] = report.seconds;
  return out;
}

std::string comparison_text(const api::ExportReport& report) {
  if (report.changes.empty() && report.runs == 0) return "nothing had to change";
  const std::string runs = fmt::format("{} run{}", report.runs, report.runs == 1 ? "" : "s");
  if (report.whole_model_compared) return fmt::format("the whole model gives the same bits ({})", runs);
  return fmt::format("{} rewritten node{} the same bits ({})", report.nodes_compared,
                     report.nodes_compared == 1 ? " gives" : "s give", runs);
}

void put_changes(const api::ExportReport& report) {
  Table table({{"node"}, {"rule"}});
  for (const api::ExportedChange& change : report.changes) {
    table.add({plain(change.node), change.rule});
    table.note("why:    " + plain(change.why));
    table.note("before: " + plain(change.before));
    table.note("after:  " + plain(change.after));
  }
  if (!table.empty()) put(table.text());
  for (const std::string& note : report.notes) put("note: " + plain(note) + "\n");
}

Result<void> run_export(const ExportFlags& flags) {
  if (is_engine_file(flags.path)) {
    return Error{ErrorCode::invalid_argument, "'" + flags.path + "' is an engine, which holds no model.",
                 "Give the model."};
  }
  api::ExportOptions options = flags.options;
  options.without_rules = {flags.without.begin(), flags.without.end()};
  Progress progress;
  options.progress = [&](std::string_view stage, double done) { progress.show(stage, done); };
  IO_TRY(const api::ExportedModel exported, api::export_model(flags.path, options));
  IO_TRY_VOID(api::save_exported(exported, flags.output));
  if (flags.json) {
    put_json(export_json(flags, exported));
    return {};
  }
  if (flags.report) put_changes(exported.report);
  put(fmt::format("{} ({}) for {}, opset {}: {} of {} nodes rewritten; {} ({})\n", plain(flags.output),
                  human_bytes(exported.model.size()), flags.options.target, exported.report.opset,
                  exported.report.rewritten_nodes, exported.report.nodes, comparison_text(exported.report),
                  human_time(exported.report.seconds)));
  return {};
}

}  // namespace

void add_export(CLI::App& app, Run& run) {
  CLI::App* command = app.add_subcommand("export", "Write a model that another engine takes, and that gives the same");
  const auto flags = std::make_shared<ExportFlags>();
  command->add_option("MODEL", flags->path, "A model (.onnx)")->required();
  std::vector<std::string> targets;
  for (const api::ExportTargetInfo& target : api::export_targets()) targets.push_back(target.name);
  command->add_option("--for", flags->options.target, "The engine: " + join(targets, ", "))
      ->required()
      ->type_name("TARGET");
  command->add_option("--opset", flags->options.opset, "Write the model in this opset of ONNX's own operators")
      ->type_name("N");
  command->add_option("-o,--out", flags->output, "The file to write")->required()->type_name("FILE.onnx");
  command->add_option("--without-rule", flags->without, "Leave a rule out, by its name. May be repeated")
      ->allow_extra_args(false)
      ->type_name("RULE");
  command->add_flag("--report", flags->report, "Say which node was rewritten, by which rule, into what");
  command->add_flag("--json", flags->json, "Report as JSON on stdout");
  command->footer(export_examples);
  command->callback([flags, &run] {
    run = [flags]() -> int {
      const auto done = run_export(*flags);
      if (!done.ok()) report_error(done.error());
      return done.ok() ? exit_ok : exit_user;
    };
  });
}

}  // namespace polyphase::cli
