// Two graphs on the same whole numbers, at several sizes where sizes are open.
#include "api/export_check.h"

#include <algorithm>
#include <cmath>
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
// And where none of those fit, all alike: crops may be larger than small outputs.
constexpr std::array<std::int64_t, 3> tried_alike = {20, 100, 256};
constexpr int wanted_runs = 3;

Result<std::vector<polyphase::Tensor>> whole_numbers(const Graph& graph, const DimBindings& sizes,
                                                     std::int64_t largest_integer) {
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
        store_integer(element, dtype, drawn % (largest_integer + 1));  // at most 1: a legal index and bool
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
  double tolerance = 0;
};

Error differs(const Twins& twins, const std::string& how) {
  return Error{ErrorCode::unsupported,
               "what was made of " + twins.what + " is not the same: " + how + ". Nothing was written.",
               "That is a defect of Polyphase: leave the rule out (--without-rule), and report the model."};
}

// Within a share of the largest.
bool close_elements(const polyphase::Tensor& one, const polyphase::Tensor& other, double tolerance) {
  const auto element = [](const polyphase::Tensor& of, std::int64_t i) {
    return load_double(of.view().data + i * static_cast<std::int64_t>(size_bytes(of.dtype())), of.dtype());
  };
  const std::int64_t count = one.view().element_count();
  double largest = 1;
  for (std::int64_t i = 0; i < count; ++i) largest = std::max(largest, std::abs(element(one, i)));
  const double unit = is_narrow(one.dtype()) ? 1000 * tolerance : tolerance;
  for (std::int64_t i = 0; i < count; ++i) {
    const double apart = std::abs(element(one, i) - element(other, i));
    if (!(apart <= unit * largest) && !(std::isnan(element(one, i)) && std::isnan(element(other, i)))) return false;
  }
  return true;
}

// Nothing: the model before takes no such inputs.
Result<bool> equal_at(const Twins& twins, const DimBindings& sizes) {
  TRY(std::vector<polyphase::Tensor> inputs, whole_numbers(twins.before, sizes, 1));
  auto expected = interpret(twins.before, inputs);
  if (!expected.ok() && expected.error().code != ErrorCode::out_of_memory) {  // pads may be among the inputs
    TRY(inputs, whole_numbers(twins.before, sizes, 0));
    expected = interpret(twins.before, inputs);
  }
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
    const bool equal = twins.tolerance == 0 || !is_float(one.dtype()) ? equal_elements(one.view(), other.view())
                                                                      : close_elements(one, other, twins.tolerance);
    if (!equal) return differs(twins, "the elements of " + output + " differ");
  }
  return true;
}

using SizeRanges = std::map<std::string, DimRange, std::less<>>;

// Those of the inputs; what the model's own rules say of one alone is its range.
SizeRanges open_input_sizes(const Graph& graph) {
  SizeRanges out;
  for (const auto& input : graph.inputs()) {
    for (const Dim& dim : input->type.shape) dim.collect_symbols(out);
  }
  const auto fix = [&](const Dim& size, const Dim& number) {
    if (size.is_symbol() && number.is_constant() && out.count(size.symbol_name()) != 0)
      out[size.symbol_name()] = {number.value(), number.value()};
  };
  for (const DimCheck& check : graph.checks()) {
    if (check.relation != DimCheck::Relation::equal) continue;
    fix(check.left, check.right);
    fix(check.right, check.left);
  }
  return out;
}

// Sizes for all open ones, those that take the least work first.
std::vector<DimBindings> size_sets(const Graph& graph) {
  const SizeRanges open = open_input_sizes(graph);
  if (open.empty()) return {{}};
  const auto within = [](std::int64_t wish, DimRange range) {
    return std::clamp(wish, range.low, std::max(range.low, range.high));
  };
  std::vector<std::pair<double, DimBindings>> sets;
  for (std::size_t n = 0; n < tried_sizes.size(); ++n) {
    DimBindings sizes;
    std::size_t i = n;
    for (const auto& [name, range] : open) sizes[name] = within(tried_sizes[i++ % tried_sizes.size()], range);
    sets.emplace_back(work_of(graph, sizes), std::move(sizes));
  }
  for (const std::int64_t size : tried_alike) {
    DimBindings sizes;
    for (const auto& [name, range] : open) sizes[name] = within(size, range);
    sets.emplace_back(work_of(graph, sizes), std::move(sizes));
  }
  std::stable_sort(sets.begin(), sets.end(),
                   [](const auto& one, const auto& other) { return one.first < other.first; });
  std::vector<DimBindings> out;
  for (auto& [work, sizes] : sets) out.push_back(std::move(sizes));
  return out;
}

// Whether some run took place; false: the sizes that were tried fit nowhere.
Result<bool> equal_everywhere(const Twins& twins, ExportReport& report) {
  int runs = 0;
  for (const DimBindings& sizes : size_sets(twins.before)) {
    if (runs == wanted_runs || (runs > 0 && work_of(twins.before, sizes) > most_work / 10)) break;
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
    if (part.unknown.has_value()) return *part.unknown;
    const std::string what = "node '" + part.node + "'";
    auto before = graph_of(part.before, of);
    if (!before.ok()) return std::move(before).error().within("while comparing " + what);
    auto after = graph_of(part.after, of);
    if (!after.ok()) return std::move(after).error().within("while comparing what was made of " + what);
    TRY(const bool ran, equal_everywhere({**before, **after, what, part.tolerance}, report));
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
  const auto& parts = of.legalised.parts;
  if (parts.empty() && !of.other_opset) return {};
  const bool rounds = std::any_of(parts.begin(), parts.end(), [](const auto& part) { return part.tolerance > 0; });
  const Graph& before = *of.imported.graph;
  if (!rounds && of.imported.complete && work_of(before, size_sets(before).front()) <= most_work) {
    auto after = graph_of(of.legalised.model, of);
    if (!after.ok()) return std::move(after).error().within("while reading what was made of the model");
    TRY(report.whole_model_compared, equal_everywhere({before, **after, "the model", 0}, report));
    if (report.whole_model_compared) return {};
    report.notes.emplace_back(
        "the model takes none of the sizes that were tried, so its nodes were compared one by one");
  }
  return compare_parts(of, report);
}

}  // namespace polyphase::api
