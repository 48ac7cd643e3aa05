// Two graphs on the same whole numbers, at several sizes where sizes are open.
#include "api/export_check.h"

#include <algorithm>
#include <random>

#include "api/compile.h"
#include "base/shape_binding.h"
#include "graph/graph.h"

namespace polyphase::api {
namespace {

// What the interpreter does in some ten seconds, in multiply-adds.
constexpr double most_work = 5e8;
// Sizes that open ones are tried at; a model may refuse some.
constexpr std::array<std::int64_t, 12> tried_sizes = {5, 8, 13, 16, 3, 7, 32, 10, 2, 24, 64, 1};
constexpr int wanted_runs = 3;

Result<std::vector<polyphase::Tensor>> whole_numbers(const Graph& graph, const DimBindings& sizes) {
  std::mt19937 random(1);
  std::vector<polyphase::Tensor> out;
  for (const auto& input : graph.inputs()) {
    const auto known = input->type.shape.evaluate(sizes);
    if (!known.has_value())
      return Error{ErrorCode::unsupported, "the size of input '" + input->name + "' cannot be chosen.",
                   "Give the input a shape of numbers and names."};
    TRY(polyphase::Tensor tensor, polyphase::Tensor::allocate(input->type.dtype, *known));
    const DType dtype = input->type.dtype;
    const std::int64_t count = tensor.view().element_count();
    for (std::int64_t i = 0; i < count; ++i) {
      std::byte* const element = tensor.view().data + i * static_cast<std::int64_t>(size_bytes(dtype));
      const auto drawn = static_cast<std::int64_t>(random() % 7U);
      if (is_float(dtype)) {
        store_double(element, dtype, static_cast<double>(drawn - 3));
      } else {
        store_integer(element, dtype, drawn % 2);  // a legal index, size and bool
      }
    }
    out.push_back(std::move(tensor));
  }
  return out;
}

// Multiply-adds of one run, roughly.
double work_of(const Graph& graph, const DimBindings& sizes) {
  double work = 0;
  const auto elements = [&](const polyphase::Value* value) {
    const auto known = value == nullptr ? std::nullopt : value->type.shape.element_count().evaluate(sizes);
    return known.has_value() ? static_cast<double>(*known) : 1;
  };
  const auto size = [&](const polyphase::Value* value, int axis) {
    const auto known = value->type.shape[axis].evaluate(sizes);
    return known.has_value() ? static_cast<double>(std::max<std::int64_t>(1, *known)) : 1;
  };
  for (const auto& node : graph.nodes()) {
    for (const auto& region : node->regions()) work += 8 * work_of(*region, sizes);
    for (const auto& output : node->outputs()) work += elements(output.get());
    if (node->anchors("conv")) {
      work += elements(node->output()) * elements(node->input(1)) / size(node->input(1), 0);
    } else if (node->anchors("conv_transpose")) {
      work += elements(node->input(0)) * elements(node->input(1)) / size(node->input(1), 0);
    } else if (node->anchors("matmul") && node->input(0)->type.shape.rank() > 0) {
      work += elements(node->output()) * size(node->input(0), node->input(0)->type.shape.rank() - 1);
    }
  }
  return work;
}

struct Twins {
  const Graph& before;
  const Graph& after;
  std::string what;  // "the model", "node 'up1'"
};

Error differs(const Twins& twins, const std::string& how) {
  return Error{ErrorCode::unsupported,
               "what was made of " + twins.what + " is not the same: " + how + ". Nothing was written.",
               "That is a defect of Polyphase: leave the rule out (--without-rule), and report the model."};
}

// Nothing: the model before takes no such inputs.
Result<bool> equal_at(const Twins& twins, const DimBindings& sizes) {
  TRY(const std::vector<polyphase::Tensor> inputs, whole_numbers(twins.before, sizes));
  const auto expected = interpret(twins.before, inputs);
  if (!expected.ok() && expected.error().code == ErrorCode::out_of_memory) return expected.error();
  if (!expected.ok()) return false;
  const auto found = interpret(twins.after, inputs);
  if (!found.ok()) return differs(twins, found.error().text());
  if (found->size() != expected->size()) return differs(twins, "it has another number of outputs");
  for (std::size_t i = 0; i < found->size(); ++i) {
    const polyphase::Tensor& one = (*expected)[i];
    const polyphase::Tensor& other = (*found)[i];
    const std::string output = "output '" + twins.before.output_names()[i] + "'";
    if (!(one.type() == other.type()))
      return differs(twins, output + " is " + other.type().text() + " instead of " + one.type().text());
    if (!equal_elements(one.view(), other.view())) return differs(twins, "the elements of " + output + " differ");
  }
  return true;
}

// The n-th way to give the open sizes of the inputs numbers.
DimBindings numbers_for(const std::map<std::string, DimRange, std::less<>>& open, std::size_t n) {
  DimBindings out;
  std::size_t i = n;
  for (const auto& [name, range] : open)
    out[name] = std::clamp(tried_sizes[i++ % tried_sizes.size()], range.low, std::max(range.low, range.high));
  return out;
}

std::map<std::string, DimRange, std::less<>> open_input_sizes(const Graph& graph) {
  std::map<std::string, DimRange, std::less<>> out;
  for (const auto& input : graph.inputs()) {
    for (const Dim& dim : input->type.shape) dim.collect_symbols(out);
  }
  return out;
}

// Whether some run took place; false: the sizes that were tried fit nowhere.
Result<bool> equal_everywhere(const Twins& twins, ExportReport& report) {
  const auto open = open_input_sizes(twins.before);
  int runs = 0;
  const std::size_t tries = open.empty() ? 1 : tried_sizes.size();
  for (std::size_t n = 0; n < tries && runs < wanted_runs; ++n) {
    const DimBindings sizes = numbers_for(open, n);
    if (runs > 0 && work_of(twins.before, sizes) > most_work) continue;
    TRY(const bool ran, equal_at(twins, sizes));
    runs += ran ? 1 : 0;
  }
  report.runs += runs;
  return runs > 0;
}

Result<std::unique_ptr<Graph>> graph_of(const std::string& model, const ExportComparison& of) {
  CompileOptions options;
  options.external_data_folder = of.folder;
  TRY(ImportedModel imported, import_source(std::as_bytes(std::span(model)), options, of.workshop));
  return std::move(imported.graph);
}

Result<void> compare_parts(const ExportComparison& of, ExportReport& report) {
  for (const legal::ChangedNode& part : of.legalised.parts) {
    const std::string what = "node '" + part.node + "'";
    auto before = graph_of(part.before, of);
    if (!before.ok()) return std::move(before).error().within("while comparing " + what);
    auto after = graph_of(part.after, of);
    if (!after.ok()) return std::move(after).error().within("while comparing what was made of " + what);
    TRY(const bool ran, equal_everywhere({**before, **after, what}, report));
    if (!ran)
      return Error{ErrorCode::unsupported,
                   "what was made of the node could not be compared: it takes none of the sizes "
                   "that were tried.",
                   "Give the model's inputs fixed sizes."}
          .at_node(part.node);
    ++report.nodes_compared;
  }
  return {};
}

}  // namespace

Result<void> compare_exported(const ExportComparison& of, ExportReport& report) {
  if (of.legalised.changes.empty()) return {};
  const Graph& before = *of.imported.graph;
  const DimBindings first = numbers_for(open_input_sizes(before), 0);
  if (of.imported.complete && work_of(before, first) <= most_work) {
    auto after = graph_of(of.legalised.model, of);
    if (!after.ok()) return std::move(after).error().within("while reading what was made of the model");
    TRY(report.whole_model_compared, equal_everywhere({before, **after, "the model"}, report));
    if (report.whole_model_compared) return {};
    report.notes.emplace_back(
        "the model takes none of the sizes that were tried, so its nodes were compared one by one");
  }
  return compare_parts(of, report);
}

}  // namespace polyphase::api
