// polyphase inspect: what is in an engine: inputs, outputs, steps, weights, the memory plan; the graph as a picture,
// all of it as a page.
#include <fmt/format.h>
#include <CLI/App.hpp>

#include <algorithm>
#include <map>

#include "cli/commands.h"
#include "cli/data.h"
#include "cli/exit_code.h"
#include "cli/graph_svg.h"
#include "cli/inspected.h"
#include "cli/json.h"
#include "cli/network.h"
#include "cli/sizes.h"
#include "cli/table.h"
#include "cli/terminal.h"
#include "cli/transposes.h"
#include "io/try.h"
#include "io/whole_file.h"
#include "polyphase/diagnose.h"

namespace polyphase::cli {
namespace {

constexpr const char* inspect_examples = R"(
Examples:
  polyphase inspect model.ppe
  polyphase inspect unet.ppe --shape x=1x3x512x512     # the memory plan for these sizes
  polyphase inspect model.onnx --graph model.svg
  polyphase inspect model.onnx --html report.html      # passes, memory, time, kernels, weights in one page
  polyphase inspect model.ppe --json

The plan's bound is the largest sum of values alive at one step: no arena is smaller.)";

struct InspectFlags {
  NetworkFlags network;
  std::string graph;
  std::string html;
  int threads = 0;
};

// The page shows one run of a few seconds, not the last percent.
constexpr double page_timing_seconds = 10;

Json plan_json(const Inspected& all) {
  const api::Report& report = all.report;
  Json plan = {{"arena_bytes", report.arena_bytes},
               {"lower_bound_bytes", report.lower_bound_bytes},
               {"scratch_bytes", report.scratch_bytes},
               {"constant_bytes", report.constant_bytes}};
  plan["input_sizes"] = all.sizes.inputs;
  plan["placed"] = Json::array();
  for (const api::PlacedValue& place : report.placed) {
    plan["placed"].push_back({{"value", all.info.values[static_cast<std::size_t>(place.value)].name},
                              {"sizes", place.sizes},
                              {"bytes", place.size_bytes},
                              {"offset", place.offset_bytes},
                              {"first_step", place.first_step},
                              {"last_step", place.last_step}});
  }
  return plan;
}

void report_json(const Inspected& all) {
  Json out = json_result("inspect");
  out["model_name"] = all.info.model_name;
  out["producer"] = all.info.producer;
  out["target"] = all.info.cluster;
  out["inputs"] = json_ports(all.inputs);
  out["outputs"] = json_ports(all.outputs);
  out["dims"] = Json::object();
  for (const auto& [name, range] : all.info.dims) out["dims"][name] = {{"low", range.low}, {"high", range.high}};
  out["constant_bytes"] = all.info.constant_bytes;
  out["values"] = Json::array();
  for (const api::ValueInfo& value : all.info.values) {
    out["values"].push_back({{"name", value.name},
                             {"dtype", name_of(value.dtype)},
                             {"sizes", value.sizes},
                             {"layout", value.layout},
                             {"storage", value.storage}});
  }
  out["steps"] = Json::array();
  for (const api::StepInfo& step : all.info.steps) {
    out["steps"].push_back({{"kind", step.kind},
                            {"node", step.node},
                            {"operation", step.operation},
                            {"kernels", step.rows},
                            {"reference", step.reference},
                            {"inputs", step.inputs},
                            {"outputs", step.outputs},
                            {"block", step.block}});
  }
  out["transposes"] = Json::array();
  for (const Transpose& transpose : transposes_of(all.info)) {
    out["transposes"].push_back(
        {{"step", transpose.step}, {"from", transpose.from}, {"to", transpose.to}, {"why", transpose.why}});
  }
  out["remarks"] = all.info.remarks;
  out["plugins"] = Json::array();
  for (const api::PluginUse& use : all.info.plugins)
    out["plugins"].push_back({{"name", use.name}, {"version", use.version}});
  out["memory"] = plan_json(all);
  put_json(out);
}

void put_summary(const Inspected& all) {
  put(fmt::format("model     {}\nmade by   {}, for {}\n", plain(all.info.model_name), plain(all.info.producer),
                  all.info.cluster));
  for (const auto& [word, ports] : {std::pair{"input ", &all.inputs}, std::pair{"output", &all.outputs}}) {
    for (const api::Port& port : *ports)
      put(fmt::format("{}    {} {} {}\n", word, plain(port.name), name_of(port.dtype), shape_text(port.sizes)));
  }
  for (const auto& [name, range] : all.info.dims)
    put(fmt::format("size      {} in {}\n", plain(name), range_text(range)));
  put(fmt::format("weights   {}\n", human_bytes(all.info.constant_bytes)));
  std::map<std::string, int> counts;
  for (const api::StepInfo& step : all.info.steps) ++counts[step.operation.empty() ? step.kind : step.operation];
  std::vector<std::pair<int, std::string>> most;
  for (const auto& [operation, count] : counts) most.emplace_back(count, operation);
  std::stable_sort(most.begin(), most.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  put(fmt::format("steps     {}\n", all.info.steps.size()));
  for (const auto& [count, operation] : most) put(fmt::format("{:>9} x {}\n", count, operation));
}

void put_plan(const Inspected& all) {
  std::vector<std::string> sizes;
  for (std::size_t i = 0; i < all.inputs.size(); ++i)
    sizes.push_back(plain(all.inputs[i].name) + "=" + shape_text(all.sizes.inputs[i]));
  const api::Report& report = all.report;
  put(fmt::format("\nmemory plan for {}\n", join(sizes, " ")));
  put(fmt::format("arena {} ({} bytes), bound {} ({:.3f}x), scratch {}, weights {}\n", human_bytes(report.arena_bytes),
                  report.arena_bytes, human_bytes(report.lower_bound_bytes),
                  report.lower_bound_bytes == 0
                      ? 1.0
                      : static_cast<double>(report.arena_bytes) / static_cast<double>(report.lower_bound_bytes),
                  human_bytes(report.scratch_bytes), human_bytes(report.constant_bytes)));
  if (report.placed.empty()) return;
  Table table({{"offset", Table::Align::right},
               {"bytes", Table::Align::right},
               {"steps", Table::Align::right},
               {"shape"},
               {"value"}});
  std::vector<api::PlacedValue> placed = report.placed;
  std::stable_sort(placed.begin(), placed.end(), [](const auto& a, const auto& b) {
    return a.first_step != b.first_step ? a.first_step < b.first_step : a.offset_bytes < b.offset_bytes;
  });
  for (const api::PlacedValue& place : placed) {
    table.add({std::to_string(place.offset_bytes), std::to_string(place.size_bytes),
               fmt::format("{}..{}", place.first_step, place.last_step), shape_text(place.sizes),
               plain(all.info.values[static_cast<std::size_t>(place.value)].name)});
  }
  put(table.text());
}

void put_steps(const Inspected& all) {
  Table table({{"step", Table::Align::right}, {"operation"}, {"kernels"}, {"result"}, {"layout"}, {"node"}});
  for (std::size_t i = 0; i < all.info.steps.size(); ++i) {
    const api::StepInfo& step = all.info.steps[i];
    std::string result;
    std::string layout;
    if (!step.outputs.empty() && step.outputs.front() >= 0) {
      const api::ValueInfo& value = all.info.values[static_cast<std::size_t>(step.outputs.front())];
      result = std::string(name_of(value.dtype)) + " " + shape_text(value.sizes);
      layout = axes_text(value.layout);
    }
    table.add({std::to_string(i), step.operation.empty() ? step.kind : step.operation, join(step.rows, ", "), result,
               layout, plain(step.node)});
  }
  put("\n" + table.text());
  const std::vector<Transpose> transposes = transposes_of(all.info);
  put(transposes.empty() ? "transposes: none\n" : fmt::format("transposes: {}\n", transposes.size()));
  for (const Transpose& transpose : transposes) put(fmt::format("  step {}: {}\n", transpose.step, transpose.why));
}

// What the page shows beyond the plan: a run that fails is told there and ends nothing.
Result<void> time_for_page(const api::Session& session, Inspected& all) {
  all.threads = session.threads();
  IO_TRY(all.output_sizes, session.output_sizes(all.sizes.inputs));
  IO_TRY(const std::vector<api::Tensor> inputs, api::random_inputs(session.engine().inputs(), all.sizes.inputs));
  auto times = time_steps(session, inputs, page_timing_seconds, all.report);
  if (times.ok()) {
    all.times = std::move(*times);
  } else {
    all.timing_error = times.error().text();
    say("the page has no times: " + all.timing_error);
  }
  all.roof = measure_roof(all.threads);
  return {};
}

Result<void> inspect(const InspectFlags& flags) {
  const bool pages = !flags.html.empty();
  if (pages) {  // before the work, not after it
    IO_TRY(io::NewFile file, io::NewFile::create(flags.html));
  }
  Inspected all;
  api::PassHistory history;
  IO_TRY(const Network network, open_network(flags.network, flags.threads, pages ? &history : nullptr));
  all.info = network.engine.info();
  all.inputs = network.engine.inputs();
  all.outputs = network.engine.outputs();
  all.path = flags.network.path;
  all.was_engine = network.was_engine;
  all.open_seconds = network.open_seconds;
  if (!network.was_engine) all.passes = std::move(history);
  IO_TRY(const api::Session session, open_session(network.engine, pages ? flags.threads : 1));
  IO_TRY(all.sizes, run_sizes(session, network.sizes));
  IO_TRY(all.report, session.explain(all.sizes.inputs));
  if (!all.sizes.chosen.empty())
    say("sizes nobody gave: " + join(all.sizes.chosen, " ") + " (choose with --shape or --dim)");
  if (!flags.graph.empty()) IO_TRY_VOID(io::write_whole_file(flags.graph, {graph_svg(network.engine)}));
  if (pages) {
    IO_TRY_VOID(time_for_page(session, all));
    IO_TRY_VOID(write_page(flags.html, all));
  }
  if (flags.network.json) {
    report_json(all);
    return {};
  }
  put_summary(all);
  put_steps(all);
  put_plan(all);
  return {};
}

}  // namespace

void add_inspect(CLI::App& app, Run& run) {
  CLI::App* command =
      app.add_subcommand("inspect", "Show inputs, outputs, steps and the memory plan; draw the graph, write a report");
  const auto flags = std::make_shared<InspectFlags>();
  add_network_flags(*command, flags->network);
  command->add_option("--graph", flags->graph, "Draw the graph as SVG")->type_name("FILE.svg");
  auto* html =
      command
          ->add_option("--html", flags->html,
                       "Time the network and write one page: the graph around each pass, memory, steps against "
                       "the roof, kernels and their reasons, weights")
          ->type_name("FILE.html");
  add_threads_flag(*command, flags->threads)->needs(html);
  command->footer(inspect_examples);
  command->callback([flags, &run] {
    run = [flags]() -> int {
      const auto done = inspect(*flags);
      if (!done.ok()) report_error(done.error());
      return done.ok() ? exit_ok : exit_user;
    };
  });
}

}  // namespace polyphase::cli
