// polyphase explain: for every step the kernel that was taken, those that were not and why, time, and share of the
// peak.
#include <fmt/format.h>
#include <CLI/App.hpp>

#include <algorithm>
#include <optional>

#include "cli/commands.h"
#include "cli/data.h"
#include "cli/exit_code.h"
#include "cli/json.h"
#include "cli/network.h"
#include "cli/table.h"
#include "cli/terminal.h"
#include "cli/timing.h"
#include "cli/trace.h"
#include "io/try.h"
#include "polyphase/diagnose.h"

namespace polyphase::cli {
namespace {

constexpr const char* explain_examples = R"(
Examples:
  polyphase explain model.ppe
  polyphase explain unet.onnx --shape x=1x3x512x512 --threads 1
  polyphase explain model.ppe --trace t.json      # open t.json at https://ui.perfetto.dev
  polyphase explain model.ppe --no-run --json     # kernels and refusals only

Times are medians over several runs. GFLOP/s counts the arithmetic of the operator's definition, 2 per multiply-add, whatever the
kernel does. The peak is measured here and now, with as many threads: fused multiply-adds on registers alone.)";

struct ExplainFlags {
  NetworkFlags network;
  InputFlags inputs;
  std::string trace;
  int threads = 0;
  bool no_run = false;
};

struct Explained {
  api::EngineInfo info;
  api::Report report;
  std::optional<StepTimes> times;  // none: not run
  double peak_flops = 0;
  int threads = 0;
};

Result<Explained> explain_network(const ExplainFlags& flags) {
  Explained out;
  IO_TRY(const Network network, open_network(flags.network, flags.threads));
  out.info = network.engine.info();
  IO_TRY(const api::Session session, open_session(network.engine, flags.threads));
  out.threads = session.threads();
  std::vector<api::Tensor> tensors;
  if (!flags.inputs.archive.empty() || !flags.inputs.files.empty()) {
    IO_TRY_VOID(refuse_sizes_of_engine(network, flags.network));
    IO_TRY(Inputs inputs, read_inputs(network.engine, flags.inputs));
    tensors = std::move(inputs.tensors);
  } else {
    IO_TRY(const RunSizes sizes, run_sizes(session, network.sizes));
    if (!sizes.chosen.empty()) say("sizes nobody gave: " + join(sizes.chosen, " ") + " (choose with --shape or --dim)");
    IO_TRY(tensors, api::random_inputs(network.engine.inputs(), sizes.inputs));
  }
  if (flags.no_run) {
    IO_TRY(out.report, session.explain(sizes_of(tensors)));
    return out;
  }
  IO_TRY(out.times, time_steps(session, tensors, longest_timing_seconds, out.report));
  out.peak_flops = api::measured_peak_flops(out.threads);
  return out;
}

double seconds_of(const Explained& all, const api::StepReport& step) {
  return all.times.has_value() ? all.times->seconds[static_cast<std::size_t>(step.step)] : 0;
}

// All trips of a loop together, like its seconds.
double flops_of(const Explained& all, const api::StepReport& step) {
  return all.times.has_value() ? step.flops * static_cast<double>(all.times->runs[static_cast<std::size_t>(step.step)])
                               : step.flops;
}

std::size_t reference_count(const Explained& all) {
  return static_cast<std::size_t>(std::count_if(all.report.steps.begin(), all.report.steps.end(),
                                                [](const api::StepReport& step) { return step.reference; }));
}

void report_json(const Explained& all) {
  Json out = json_result("explain");
  out["target"] = all.info.cluster;
  out["threads"] = all.threads;
  out["reference_steps"] = reference_count(all);
  if (all.times.has_value()) {
    out["run_ms"] = all.times->run_seconds * 1e3;
    out["steps_ms"] = all.times->steps_seconds * 1e3;
    out["peak_gflops"] = all.peak_flops / 1e9;
  }
  out["steps"] = Json::array();
  for (const api::StepReport& step : all.report.steps) {
    const api::StepInfo& info = all.info.steps[static_cast<std::size_t>(step.step)];
    Json one = {{"step", step.step},           {"kind", info.kind},   {"node", info.node},
                {"operation", info.operation}, {"kernel", step.row},  {"reference", step.reference},
                {"measured", info.measured},   {"flops", step.flops}, {"bytes", step.bytes}};
    if (step.sizes_unknown) {
      one["sizes_unknown"] = true;
      one["kernels"] = info.rows;
    }
    if (all.times.has_value()) {
      const double seconds = seconds_of(all, step);
      const double rate = seconds > 0 ? flops_of(all, step) / seconds : 0;
      one["ms"] = seconds * 1e3;
      one["runs"] = all.times->runs[static_cast<std::size_t>(step.step)];
      one["share"] = all.times->steps_seconds > 0 ? seconds / all.times->steps_seconds : 0;
      one["gflops"] = rate / 1e9;
      one["percent_of_peak"] = all.peak_flops > 0 ? 100 * rate / all.peak_flops : 0;
    }
    one["refused"] = Json::array();
    one["accepted"] = Json::array();
    for (const api::RowReport& row : step.rows) {
      if (row.refusal.empty()) {
        one["accepted"].push_back({{"kernel", row.row},
                                   {"cost_ms", row.cost_seconds * 1e3},
                                   {"measured", row.measured},
                                   {"taken", row.taken}});
      } else {
        one["refused"].push_back({{"kernel", row.row}, {"reason", row.refusal}});
      }
    }
    out["steps"].push_back(std::move(one));
  }
  put_json(out);
}

std::string kernel_words(const api::StepReport& step, const api::StepInfo& info) {
  if (!step.row.empty()) return step.row;
  if (info.rows.empty()) return info.kind;  // a step that runs no kernel
  return step.sizes_unknown ? join(info.rows, " or ") : "none: the result is empty";
}

std::string cost_words(const api::RowReport& row) {
  return fmt::format("{} {}", row.measured ? "it took" : "its estimate is", human_time(row.cost_seconds));
}

// Of a kernel that was chosen by measurement. An engine's file does not say how long it took.
std::string measured_words(const api::StepReport& step) {
  const auto taken =
      std::find_if(step.rows.begin(), step.rows.end(), [](const api::RowReport& row) { return row.taken; });
  if (taken == step.rows.end() || !taken->measured) return "chosen by measured times, when it was compiled";
  return fmt::format("chosen by measured times: it took {}", human_time(taken->cost_seconds));
}

void report_text(const Explained& all) {
  const bool timed = all.times.has_value();
  using Align = Table::Align;
  std::vector<Table::Column> columns = {{"step", Align::right}};
  if (timed)
    columns.insert(
        columns.end(),
        {{"time", Align::right}, {"share", Align::right}, {"GFLOP/s", Align::right}, {"of peak", Align::right}});
  columns.insert(columns.end(), {{"kernel"}, {"operation"}, {"node"}});
  Table table(columns);
  for (const api::StepReport& step : all.report.steps) {
    const api::StepInfo& info = all.info.steps[static_cast<std::size_t>(step.step)];
    std::vector<std::string> cells = {std::to_string(step.step)};
    if (timed) {
      const double seconds = seconds_of(all, step);
      const bool computes = step.flops > 0 && seconds > 0;
      cells.push_back(human_time(seconds));
      const double rate = computes ? flops_of(all, step) / seconds : 0;
      const double total = all.times->steps_seconds;
      cells.push_back(fmt::format("{:.1f} %", total > 0 ? 100 * seconds / total : 0));
      cells.push_back(computes ? fmt::format("{:.1f}", rate / 1e9) : "");
      cells.push_back(computes && all.peak_flops > 0 ? fmt::format("{:.1f} %", 100 * rate / all.peak_flops) : "");
    }
    cells.insert(cells.end(), {kernel_words(step, info), info.operation, plain(info.node)});
    table.add(std::move(cells));
    if (step.sizes_unknown) table.note("its sizes come from data that was not run: one of these kernels will be taken");
    if (info.measured) table.note(measured_words(step));
    for (const api::RowReport& row : step.rows) {
      if (row.taken) continue;
      if (step.sizes_unknown && row.refusal.empty()) continue;
      table.note(row.refusal.empty() ? fmt::format("not {}: {}", row.row, cost_words(row))
                                     : fmt::format("not {}: {}", row.row, plain(row.refusal)));
    }
  }
  put(table.text());
  put(fmt::format("\n{} steps for {}, {} on the operators' plain loops\n", all.report.steps.size(), all.info.cluster,
                  reference_count(all)));
  if (!timed) return;
  put(fmt::format("{} a run on {} thread{}, {} of it in steps; measured peak {:.1f} GFLOP/s\n",
                  human_time(all.times->run_seconds), all.threads, all.threads == 1 ? "" : "s",
                  human_time(all.times->steps_seconds), all.peak_flops / 1e9));
}

Result<void> save_trace(const ExplainFlags& flags, const Explained& all) {
  std::vector<TraceStep> steps;
  for (const api::StepReport& step : all.report.steps) {
    const api::StepInfo& info = all.info.steps[static_cast<std::size_t>(step.step)];
    steps.push_back({info.operation.empty() ? info.kind : info.operation, info.node, step.row, seconds_of(all, step),
                     flops_of(all, step), step.bytes});
  }
  return write_trace(flags.trace, all.info.model_name, steps);
}

int explain(const ExplainFlags& flags) {
  const auto result = explain_network(flags);
  if (!result.ok()) {
    report_error(result.error());
    return exit_user;
  }
  if (flags.network.json) {
    report_json(*result);
  } else {
    report_text(*result);
  }
  if (flags.trace.empty()) return exit_ok;
  const auto saved = save_trace(flags, *result);
  if (!saved.ok()) report_error(saved.error());
  return saved.ok() ? exit_ok : exit_user;
}

}  // namespace

void add_explain(CLI::App& app, Run& run) {
  CLI::App* command = app.add_subcommand("explain", "Say which kernels run, why, and where the time goes");
  const auto flags = std::make_shared<ExplainFlags>();
  add_network_flags(*command, flags->network);
  add_input_flags(*command, flags->inputs);
  add_threads_flag(*command, flags->threads);
  auto* no_run = command->add_flag("--no-run", flags->no_run, "Kernels and refusals only; nothing is timed");
  command->add_option("--trace", flags->trace, "Write the steps as Chrome trace events, which Perfetto opens")
      ->type_name("FILE.json")
      ->excludes(no_run);
  command->footer(explain_examples);
  command->callback([flags, &run] { run = [flags] { return explain(*flags); }; });
}

}  // namespace polyphase::cli
