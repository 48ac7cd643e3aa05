// compare_layers: one run that shows its values, what fusions swallowed computed beside it, the reference, the verdict.
#include "api/layers.h"

#include <algorithm>
#include <chrono>
#include <cmath>

namespace polyphase::api {
namespace {

using Expected = std::map<std::string, polyphase::Tensor, std::less<>>;  // by tensor

// f16 and bf16 round every tensor where a fusion rounds once.
double tolerance_for(const Graph& graph, double wanted) {
  double out = wanted;
  const auto look = [&](const auto& self, const Graph& in) -> void {
    const auto raise = [&](const polyphase::Value& value) {
      if (value.type.dtype == DType::f16) out = std::max(out, 16 * std::ldexp(1.0, -11));
      if (value.type.dtype == DType::bf16) out = std::max(out, 16 * std::ldexp(1.0, -8));
    };
    for (const auto& input : in.inputs()) raise(*input);
    for (const auto& node : in.nodes()) {
      for (const auto& output : node->outputs()) raise(*output);
      for (const auto& region : node->regions()) self(self, *region);
    }
  };
  look(look, graph);
  return out;
}

Result<Expected> interpreted(const Graph& graph, const std::vector<LogicalTensor>& tensors,
                             const std::vector<polyphase::Tensor>& inputs) {
  std::unordered_map<const polyphase::Value*, std::vector<const LogicalTensor*>> wanted;
  for (const LogicalTensor& tensor : tensors) wanted[tensor.value].push_back(&tensor);
  Expected out;
  const auto observe = [&](const polyphase::Value& value, const polyphase::Tensor& tensor) {
    const auto found = wanted.find(&value);
    if (found == wanted.end()) return;
    for (const LogicalTensor* logical : found->second) out[logical->name] = tensor;
  };
  TRY_VOID(interpret(graph, inputs, observe));
  return out;
}

Result<Expected> given(const std::vector<LogicalTensor>& tensors, const LayerOptions& options, const Graph& graph,
                       LayerReport& report) {
  std::set<std::string_view> known;
  for (const LogicalTensor& tensor : tensors) known.insert(tensor.name);
  for (const auto& input : graph.inputs()) known.insert(input->name);
  Expected out;
  for (const auto& [name, tensor] : options.golden) {
    if (known.count(name) == 0) {
      report.unknown.push_back(name);
      continue;
    }
    TRY(const polyphase::TensorView view, inner_view(tensor.view(), "the golden tensor '" + name + "'"));
    // The caller's tensor lives as long as the call.
    out[name] = polyphase::Tensor(Buffer::borrow(nullptr, view.data, 0), view);
  }
  return out;
}

LayerResult describe(const LogicalTensor& tensor, const Captured& captured) {
  LayerResult out;
  out.tensor = tensor.name;
  if (const Node* node = tensor.value->producer; node != nullptr) {
    out.node = node->name();
    out.operation = node->op().name;
  }
  out.dtype = captured.tensor.dtype();
  out.sizes = captured.tensor.sizes();
  out.held = captured.step >= 0;
  out.step = captured.step;
  out.row = captured.row;
  return out;
}

// NaN and infinities where no reference is there to tell.
void count_not_finite(const polyphase::TensorView& view, LayerResult& result) {
  if (!is_float(view.dtype)) return;
  LayerResult counted;
  compare_values(view, view, 0, counted);
  result.found_nan = counted.found_nan;
  result.found_infinite = counted.found_infinite;
}

void judge(const std::vector<LogicalTensor>& tensors, const Captures& captures, const Expected& expected,
           LayerReport& report) {
  for (const LogicalTensor& tensor : tensors) {
    const auto captured = captures.find(tensor.place);
    const auto reference = expected.find(tensor.name);
    if (captured == captures.end()) {
      // A branch that did not run has no reference either.
      if (reference != expected.end()) report.unobserved.push_back(tensor.name);
      continue;
    }
    LayerResult result = describe(tensor, captured->second);
    if (reference != expected.end()) {
      compare_values(captured->second.tensor.view(), reference->second.view(), report.tolerance, result);
    } else {
      count_not_finite(captured->second.tensor.view(), result);
    }
    const int index = static_cast<int>(report.layers.size());
    if (result.past_tolerance && report.first_past < 0) report.first_past = index;
    const bool odd = result.found_nan > result.expected_nan || result.found_infinite > result.expected_infinite;
    if (odd && report.first_not_finite < 0) report.first_not_finite = index;
    report.layers.push_back(std::move(result));
  }
}

Result<std::vector<polyphase::Tensor>> dense_inputs(std::span<const TensorView> inputs) {
  std::vector<polyphase::Tensor> out;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    TRY(const polyphase::TensorView view, inner_view(inputs[i], "input " + std::to_string(i)));
    TRY(out.emplace_back(), polyphase::Tensor::allocate(view.dtype, view.size_span()));
    copy_elements(view, out.back().view());
  }
  return out;
}

Result<Tensor> row_major(const polyphase::Tensor& from) {
  TRY(const polyphase::Tensor to, polyphase::Tensor::allocate(from.dtype(), from.view().size_span()));
  copy_elements(from.view(), to.view());
  return Access::tensor(to);
}

Result<LayerReport> compare_model(const std::string& path, std::span<const TensorView> inputs,
                                  const CompileOptions& compile, const LayerOptions& options) {
  TRY(auto workshop, workshop_of(compile.plugins));
  TRY(ImportedModel model, import_source(path, compile, *workshop));
  const std::vector<LogicalTensor> tensors = logical_tensors(model);
  ImportedModel compiled;
  compiled.name = model.name;
  compiled.graph = clone(*model.graph);
  TRY(const Engine engine, compile_graph(std::move(compiled), workshop, compile));
  std::vector<Tensor> made;
  std::vector<TensorView> views(inputs.begin(), inputs.end());
  if (options.make_inputs) {
    TRY(made, options.make_inputs(engine));
    views.clear();
    for (const Tensor& tensor : made) views.push_back(tensor.view());
  }
  TRY(CapturedRun run, capture_run(engine, views, options));
  TRY(const std::vector<polyphase::Tensor> dense, dense_inputs(views));

  LayerReport report;
  report.tolerance = tolerance_for(*model.graph, options.tolerance);
  report.run_seconds = run.run_seconds;
  report.capture_seconds = run.capture_seconds;
  TRY(report.swallowed_seconds, compute_swallowed(*model.graph, tensors, dense, compile, options, run.captures));
  const auto start = std::chrono::steady_clock::now();
  TRY(const Expected expected, options.golden.empty() ? interpreted(*model.graph, tensors, dense)
                                                      : given(tensors, options, *model.graph, report));
  report.reference_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  judge(tensors, run.captures, expected, report);
  for (const LogicalTensor& tensor : tensors) {
    const auto found = run.captures.find(tensor.place);
    if (options.keep_found && found != run.captures.end()) {
      TRY(report.found[tensor.name], row_major(found->second.tensor));
    }
    const auto reference = expected.find(tensor.name);
    if (options.keep_expected && reference != expected.end())
      report.expected[tensor.name] = Access::tensor(reference->second);
  }
  return report;
}

}  // namespace

Result<LayerReport> compare_layers(const std::string& path, std::span<const TensorView> inputs,
                                   const CompileOptions& compile, const LayerOptions& options) {
  return without_throwing([&] { return compare_model(path, inputs, compile, options); });
}

}  // namespace polyphase::api
