// polyphase compat: one test for each distinct operator configuration of a model.
#include <fmt/format.h>
#include <CLI/App.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/json.h"
#include "cli/network.h"
#include "cli/table.h"
#include "cli/terminal.h"
#include "io/try.h"
#include "io/whole_file.h"
#include "polyphase/diagnose.h"

namespace polyphase::cli {
namespace {

constexpr const char* compat_examples = R"(
Examples:
  polyphase compat model.onnx
  polyphase compat net.pt2 --json compat.json --table compat.md
  polyphase compat unet.onnx --sizes H=64,65 --sizes W=64,80 --only conv_transpose

Each operator is cut out of the model as it was imported, with its attributes, its weights and the types of its operands; equal
ones are one test. It is compiled alone, with passes and kernels, run on the tensors that reach it when the model runs on seeded
random inputs, and held against the reference interpreter. Open sizes are tested at the least, a middle and an odd value that
the model takes. Exit codes: 0 nothing is wrong; 1 something is, or the model cannot be read; 4 nothing is wrong, but operators are
missing or refused, or nothing could be run.)";

struct CompatFlags {
  NetworkFlags network;
  api::CompatOptions options;
  std::vector<std::string> sizes;
  double tolerance = -1;
  std::string json_file;
  std::string table_file;
};

Result<std::map<std::string, std::vector<std::int64_t>>> parse_sizes(const std::vector<std::string>& words) {
  std::map<std::string, std::vector<std::int64_t>> out;
  for (const std::string& word : words) {
    IO_TRY(const NamedWord named, split_name(word, "--sizes"));
    const auto broken = [&] {
      return Error{ErrorCode::invalid_argument, "--sizes is '" + plain(word) + "', expected NAME=SIZE,SIZE.",
                   "For example --sizes H=64,65."};
    };
    if (named.name.empty()) return broken();
    const char* at = named.rest.data();
    const char* const end = at + named.rest.size();
    for (;;) {
      std::int64_t value = 0;
      const auto [next, failure] = std::from_chars(at, end, value);
      if (failure != std::errc() || value < 0) return broken();
      out[named.name].push_back(value);
      if (next == end) break;
      if (*next != ',') return broken();
      at = next + 1;
    }
  }
  return out;
}

Json case_json(const api::CompatCase& one) {
  return {{"sizes", one.sizes},        {"operands", one.operands},
          {"kernel", one.kernel},      {"outcome", name_of(one.outcome)},
          {"reason", one.reason},      {"error", json_number(one.error)},
          {"tolerance", one.tolerance}};
}

Json row_json(const api::CompatRow& row) {
  Json out = {{"operation", row.operation}, {"attributes", row.attributes}};
  out["operands"] = Json::array();
  for (const api::CompatOperand& operand : row.operands) {
    if (!operand.present) {
      out["operands"].push_back(nullptr);
      continue;
    }
    out["operands"].push_back(
        {{"dtype", name_of(operand.dtype)}, {"sizes", operand.sizes}, {"constant", operand.constant}});
  }
  out["nodes"] = row.nodes;
  out["first_node"] = row.first_node;
  out["outcome"] = name_of(row.outcome);
  out["reason"] = row.reason;
  out["cases"] = Json::array();
  for (const api::CompatCase& one : row.cases) out["cases"].push_back(case_json(one));
  return out;
}

constexpr api::CompatOutcome outcomes[] = {api::CompatOutcome::wrong, api::CompatOutcome::missing,
                                           api::CompatOutcome::refused, api::CompatOutcome::not_run,
                                           api::CompatOutcome::right};

Json report_json(const api::CompatReport& report, const CompatFlags& flags) {
  Json out = json_result("compat");
  out["polyphase"] = api::version();
  out["ok"] = report.ok();
  out["model_name"] = report.model_name;
  out["producer"] = report.producer;
  out["reference"] = "interpreter";
  out["seed"] = flags.options.seed;
  out["counts"] = Json::object();
  for (const api::CompatOutcome outcome : outcomes)
    out["counts"][std::string(name_of(outcome))] = report.count(outcome);
  out["constant_nodes"] = report.constant_nodes;
  out["rows"] = Json::array();
  for (const api::CompatRow& row : report.rows) out["rows"].push_back(row_json(row));
  out["notes"] = report.notes;
  out["seconds"] = report.seconds;
  return out;
}

std::string operands_text(const api::CompatRow& row) {
  std::vector<std::string> words;
  for (const api::CompatOperand& operand : row.operands) {
    words.push_back(!operand.present ? std::string("-")
                                     : fmt::format("{} {}{}", name_of(operand.dtype), shape_text(operand.sizes),
                                                   operand.constant ? " constant" : ""));
  }
  return join(words, ", ");
}

std::string kernels_text(const api::CompatRow& row) {
  std::vector<std::string> words;
  for (const api::CompatCase& one : row.cases) {
    if (!one.kernel.empty() && std::find(words.begin(), words.end(), one.kernel) == words.end())
      words.push_back(one.kernel);
  }
  return join(words, " / ");
}

// The case that is nearest to its tolerance, or past it.
std::string error_text(const api::CompatRow& row) {
  const api::CompatCase* worst = nullptr;
  for (const api::CompatCase& one : row.cases) {
    if (one.outcome != api::CompatOutcome::right && one.outcome != api::CompatOutcome::wrong) continue;
    if (worst == nullptr || one.error > worst->error) worst = &one;
  }
  if (worst == nullptr) return "";
  if (worst->error == 0) return "exact";
  return fmt::format("{:.2g} of {:.2g}", worst->error, worst->tolerance);
}

std::vector<const api::CompatRow*> worst_first(const api::CompatReport& report) {
  std::vector<const api::CompatRow*> out;
  for (const api::CompatOutcome outcome : outcomes) {
    for (const api::CompatRow& row : report.rows) {
      if (row.outcome == outcome) out.push_back(&row);
    }
  }
  return out;
}

std::string summary(const api::CompatReport& report) {
  std::vector<std::string> words;
  for (const api::CompatOutcome outcome : outcomes) {
    if (const auto count = report.count(outcome); count > 0)
      words.push_back(fmt::format("{} {}", count, name_of(outcome)));
  }
  return fmt::format("{} configuration{} ({}), {} in {}", report.rows.size(), report.rows.size() == 1 ? "" : "s",
                     words.empty() ? "nothing to test" : join(words, ", "),
                     report.ok() ? "nothing is wrong" : "NOT all right", human_time(report.seconds));
}

void report_text(const api::CompatReport& report) {
  Table table({{"operator"},
               {"nodes", Table::Align::right},
               {"operands"},
               {"kernel"},
               {""},
               {"error", Table::Align::right},
               {"first node"}});
  for (const api::CompatRow* row : worst_first(report)) {
    std::string outcome(name_of(row->outcome));
    if (row->outcome != api::CompatOutcome::right)
      std::transform(outcome.begin(), outcome.end(), outcome.begin(),
                     [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; });
    table.add({plain(row->operation), std::to_string(row->nodes), operands_text(*row), kernels_text(*row), outcome,
               error_text(*row), plain(row->first_node)});
    if (!row->attributes.empty()) table.note(plain(row->attributes.substr(0, 200)));
    if (!row->reason.empty()) table.note("why: " + plain(row->reason));
  }
  if (!table.empty()) put(table.text());
  for (const std::string& note : report.notes) put("note      " + plain(note) + "\n");
  put(fmt::format("\n{}\n", summary(report)));
}

// A cell of Markdown: names come out of models.
std::string cell(std::string_view text) {
  std::string out;
  for (const char c : plain(text)) {
    if (c == '|' || c == '<' || c == '`' || c == '*' || c == '_' || c == '[') out += '\\';
    out += c;
  }
  return out;
}

std::string markdown(const api::CompatReport& report, const CompatFlags& flags) {
  std::string out =
      fmt::format("# Compatibility of {}\n\nPolyphase {}, seed {}, against its reference interpreter: {}.\n\n",
                  cell(report.model_name.empty() ? flags.network.path : report.model_name), api::version(),
                  flags.options.seed, summary(report));
  out += "| operator | attributes | nodes | operands | sizes | kernel | outcome | largest error | first node |\n";
  out += "|---|---|--:|---|---|---|---|--:|---|\n";
  for (const api::CompatRow* row : worst_first(report)) {
    std::vector<std::string> sizes;
    for (const api::CompatCase& one : row->cases) {
      std::vector<std::string> words;
      for (const auto& [name, value] : one.sizes) words.push_back(fmt::format("{}={}", name, value));
      sizes.push_back(join(words, " "));
    }
    const std::string outcome = std::string(name_of(row->outcome)) + (row->reason.empty() ? "" : ": " + row->reason);
    out += fmt::format("| {} | {} | {} | {} | {} | {} | {} | {} | {} |\n", cell(row->operation), cell(row->attributes),
                       row->nodes, cell(operands_text(*row)), cell(join(sizes, "; ")), cell(kernels_text(*row)),
                       cell(outcome), error_text(*row), cell(row->first_node));
  }
  for (const std::string& note : report.notes) out += "\n" + cell(note) + "\n";
  return out;
}

Result<int> compat(CompatFlags flags) {
  if (is_engine_file(flags.network.path)) {
    return Error{ErrorCode::invalid_argument,
                 "'" + flags.network.path + "' is an engine: it no longer holds the operators of its model.",
                 "Give the model."};
  }
  IO_TRY(const SizeFlags sizes, parse_size_flags(flags.network.shapes, flags.network.dims, {}));
  IO_TRY(flags.options.sizes, parse_sizes(flags.sizes));
  if (flags.tolerance >= 0) flags.options.tolerance = flags.tolerance;
  api::CompileOptions compile;
  compile.target = flags.network.target;
  compile.shapes = sizes.shapes;
  compile.dims = sizes.dims;
  IO_TRY(compile.plugins, load_plugins(flags.network.plugins));
  Progress progress;
  compile.progress = [&](std::string_view stage, double done) { progress.show(stage, done); };
  IO_TRY(const api::CompatReport report, api::compat(flags.network.path, compile, flags.options));
  const std::string json = report_json(report, flags).dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
  if (!flags.json_file.empty()) IO_TRY_VOID(io::write_whole_file(flags.json_file, {json}));
  if (!flags.table_file.empty()) IO_TRY_VOID(io::write_whole_file(flags.table_file, {markdown(report, flags)}));
  report_text(report);
  if (report.count(api::CompatOutcome::wrong) > 0) return exit_user;
  return report.ok() ? exit_ok : exit_unsupported;
}

}  // namespace

void add_compat(CLI::App& app, Run& run) {
  CLI::App* command = app.add_subcommand("compat", "Test each distinct operator configuration of a model");
  const auto flags = std::make_shared<CompatFlags>();
  command->add_option("MODEL", flags->network.path, "A model (.onnx, .pt2)")->required();
  command->add_option("--json", flags->json_file, "Also write the result as JSON")->type_name("FILE.json");
  command->add_option("--table", flags->table_file, "Also write the table as Markdown")->type_name("FILE.md");
  command->add_option("--seed", flags->options.seed, "Of the random inputs (default 0)");
  command
      ->add_option("--tolerance", flags->tolerance,
                   "Largest relative RMS error of a float result (default by type: 1e-5 for f32, 1e-11 for f64, two "
                   "roundings for smaller ones). Integers must be equal")
      ->check(CLI::NonNegativeNumber);
  command->add_option("--only", flags->options.only, "Only this operator, by its name in the table")->type_name("OP");
  command->add_option("--sizes", flags->sizes, "Values of an open size, one test each: H=64,65. May be repeated")
      ->allow_extra_args(false)
      ->type_name("NAME=N,N");
  command
      ->add_option("--most-operations", flags->options.most_operations,
                   "Leave out tests whose reference needs more multiply-adds (default 2e10; it does some 1e8 a second)")
      ->check(CLI::NonNegativeNumber);
  command->add_option("--target", flags->network.target,
                      "As for compile: native, portable, scalar, avx2, avx512, avx512_bf16, amx");
  command
      ->add_option("--shape", flags->network.shapes, "Sizes of an input, numbers or names: x=1x3xHxW. May be repeated")
      ->allow_extra_args(false)
      ->type_name("NAME=SIZES");
  command->add_option("--dim", flags->network.dims, "Range or value of a named size: H=64..1024. May be repeated")
      ->allow_extra_args(false)
      ->type_name("NAME=RANGE");
  add_plugin_flag(*command, flags->network.plugins);
  add_threads_flag(*command, flags->options.session.threads);
  command->footer(compat_examples);
  command->callback([flags, &run] {
    run = [flags]() -> int {
      const auto code = compat(*flags);
      if (!code.ok()) report_error(code.error());
      return code.ok() ? *code : static_cast<int>(exit_user);
    };
  });
}

}  // namespace polyphase::cli
