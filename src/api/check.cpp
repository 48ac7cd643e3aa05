// check: import with a survey, the passes, the choice of kernels; nothing is packed and nothing runs.
#include <algorithm>
#include <chrono>

#include "api/compile.h"
#include "graph/graph.h"
#include "lower/lower.h"
#include "polyphase/diagnose.h"

namespace polyphase::api {
namespace {

constexpr std::size_t most_groups = 64;  // of slow steps

// Calls f for every node, those of regions behind the node that owns them.
template <typename F>
void for_each_node(const Graph& graph, const F& f) {
  for (const auto& node : graph.nodes()) {
    f(*node);
    for (const auto& region : node->regions()) for_each_node(*region, f);
  }
}

CheckedOperator operator_of(const OperatorSurvey::Key& key, const OperatorUse& use) {
  CheckedOperator out;
  out.domain = key.first;
  out.name = key.second;
  out.opset = use.opset;
  out.version = use.version;
  out.is_function = use.is_function;
  out.is_missing = use.is_missing;
  out.nodes = use.nodes;
  out.nodes_refused = use.nodes_refused;
  out.first_node = use.first_node;
  out.advice = use.advice;
  for (const OperatorProblem& problem : use.problems) out.problems.push_back({problem.error, problem.nodes});
  return out;
}

// Every symbol: where it comes from and how many tensors depend on it.
std::vector<CheckedSize> open_sizes(const Graph& graph) {
  std::map<std::string, CheckedSize> found;
  const auto note = [&](const Shape& shape, bool counts, const std::string& input) {
    std::map<std::string, DimRange, std::less<>> symbols;
    for (int axis = 0; axis < shape.rank(); ++axis) {
      shape[axis].collect_symbols(symbols);
      if (!input.empty() && shape[axis].is_symbol())
        found[shape[axis].text()].inputs.push_back(input + "[" + std::to_string(axis) + "]");
    }
    for (const auto& [name, range] : symbols) {
      CheckedSize& size = found[name];
      size.name = name;
      size.range = {range.low, range.high};
      size.values += counts ? 1 : 0;
    }
  };
  for (const auto& input : graph.inputs()) note(input->type.shape, true, input->name);
  for_each_node(graph, [&](const Node& node) {
    if (node.anchors("bind")) {
      for (const Dim& symbol : node.attributes().get<std::vector<Dim>>("symbols")) {
        note(Shape({symbol}), false, {});
        if (symbol.is_symbol()) found[symbol.text()].born_at = node.name();
      }
    }
    for (const auto& output : node.outputs()) note(output->type.shape, true, {});
  });
  std::vector<CheckedSize> out;
  for (auto& [name, size] : found) {
    if (size.values > 0 || !size.inputs.empty() || !size.born_at.empty()) out.push_back(std::move(size));
  }
  return out;
}

void count_dtypes(const Graph& graph, CheckReport& report) {
  const auto count = [&](const polyphase::Value& value) { ++report.dtypes[std::string(name_of(value.type.dtype))]; };
  for (const auto& input : graph.inputs()) count(*input);
  for_each_node(graph, [&](const Node& node) {
    for (const auto& output : node.outputs()) count(*output);
  });
}

void note_dtypes(const std::vector<ChosenStep>& steps, CheckReport& report) {
  const auto steps_with = [&](DType dtype) {
    return std::count_if(steps.begin(), steps.end(), [&](const ChosenStep& step) {
      const auto has = [&](const Type& type) { return type.dtype == dtype; };
      return std::any_of(step.results.begin(), step.results.end(), has) ||
             std::any_of(step.operands.begin(), step.operands.end(), has);
    });
  };
  for (const DType dtype : {DType::f16, DType::bf16, DType::f8e4m3, DType::f8e5m2}) {
    const auto count = steps_with(dtype);
    if (count == 0) continue;
    report.notes.push_back(std::to_string(count) + (count == 1 ? " step reads or writes " : " steps read or write ") +
                           std::string(name_of(dtype)) +
                           ": it is stored so and computed in f32, so it saves memory, not arithmetic.");
  }
  const auto doubles = steps_with(DType::f64);
  if (doubles != 0)
    report.notes.push_back(std::to_string(doubles) + (doubles == 1 ? " step computes" : " steps compute") +
                           " in f64, at half the speed of f32 or less.");
}

std::string text_of(const std::vector<Type>& types) {
  std::string out;
  for (const Type& type : types) out += (out.empty() ? "" : ", ") + type.text();
  return out;
}

void group_slow(const std::vector<ChosenStep>& steps, CheckReport& report) {
  std::map<std::pair<std::string, std::vector<std::string>>, std::size_t> groups;
  for (const ChosenStep& step : steps) {
    if (!step.reference) continue;
    const auto [group, fresh] = groups.emplace(std::pair(step.operation, step.refusals), report.slow.size());
    if (fresh && report.slow.size() == most_groups) return;
    if (fresh) report.slow.push_back({step.operation, text_of(step.operands), 0, step.node, step.refusals});
    ++report.slow[group->second].steps;
  }
  std::stable_sort(report.slow.begin(), report.slow.end(),
                   [](const CheckedSlow& a, const CheckedSlow& b) { return a.steps > b.steps; });
}

// The passes and the choice of kernels, as compile would make them.
Result<void> check_kernels(Graph& graph, const Workshop& workshop, const CompileOptions& options, CheckReport& report) {
  TRY(Target target, target_of(options, workshop));
  TRY(const DimBindings likely, likely_of(options, graph));
  target.likely = &likely;
  TRY_VOID(run_passes(graph, target, pass_options_of(options)));
  TRY(const std::vector<ChosenStep> steps,
      choose_kernels(graph, target, {.model_name = {}, .producer = {}, .likely = likely}));
  report.steps = static_cast<std::int64_t>(steps.size());
  group_slow(steps, report);
  note_dtypes(steps, report);
  return {};
}

Result<CheckReport> check_model(const ModelSource& source, const CompileOptions& options) {
  TRY(const auto workshop, workshop_of(options.plugins));
  OperatorSurvey survey;
  TRY(ImportedModel model, import_source(source, options, *workshop, &survey));
  CheckReport report;
  report.model_name = model.name;
  report.producer = model.producer;
  report.opset = model.opset;
  for (const auto& [key, use] : survey.uses()) report.operators.push_back(operator_of(key, use));
  const Graph& graph = *model.graph;
  for (const auto& input : graph.inputs())
    report.inputs.push_back({input->name, input->type.dtype, sizes_text(input->type.shape), -1});
  if (model.complete) {
    for (std::size_t i = 0; i < graph.outputs().size(); ++i) {
      const Type& type = graph.outputs()[i]->type;
      report.outputs.push_back({graph.output_names()[i], type.dtype, sizes_text(type.shape), -1});
    }
  }
  report.sizes = open_sizes(graph);
  report.run_time_checks = static_cast<std::int64_t>(graph.checks().size());
  count_dtypes(graph, report);
  report.notes = model.warnings;
  if (auto done = check_kernels(*model.graph, *workshop, options, report); !done.ok()) {
    if (done.error().code == ErrorCode::invalid_argument) return std::move(done).error();
    report.errors.push_back(std::move(done).error());
  }
  return report;
}

Result<CheckReport> timed_check(const ModelSource& source, const CompileOptions& options) {
  return without_throwing([&]() -> Result<CheckReport> {
    const auto start = std::chrono::steady_clock::now();
    TRY(CheckReport report, check_model(source, options));
    report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return report;
  });
}

}  // namespace

bool CheckReport::ok() const {
  return errors.empty() && std::all_of(operators.begin(), operators.end(),
                                       [](const CheckedOperator& use) { return use.nodes_refused == 0; });
}

Result<CheckReport> check(const std::string& path, const CompileOptions& options) { return timed_check(path, options); }

Result<CheckReport> check_bytes(std::span<const std::byte> bytes, const CompileOptions& options) {
  return timed_check(bytes, options);
}

}  // namespace polyphase::api
