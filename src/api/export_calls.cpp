// Every call that may matter is taken apart for a look; then those that did, for good.
#include "api/export_calls.h"

#include "api/compile.h"
#include "export/inline_calls.h"
#include "graph/graph.h"
#include "import/compose/fixed_values.h"

namespace polyphase::api {
namespace {

// Values by (graph, name), those of regions too.
using ValuesByPlace = std::map<std::pair<std::string, std::string>, const polyphase::Value*>;

void collect_values(const Graph& graph, ValuesByPlace& out) {
  for (const auto& node : graph.nodes()) {
    for (const auto& output : node->outputs()) out[{graph.name, output->name}] = output.get();
    for (const auto& region : node->regions()) collect_values(*region, out);
  }
}

// Elements of a short vector of integers that nodes make of constants.
Contents contents_of(const polyphase::Value& value, FixedValues& fixed) {
  if (value.contents.has_value() || value.type.dtype != DType::i64 || value.type.shape.rank() != 1)
    return value.contents;
  const auto length = value.type.shape[0].constant();
  if (!length.has_value() || *length > 2 * max_rank) return std::nullopt;
  const auto tensor = fixed.of(&value);
  if (!tensor.has_value()) return std::nullopt;
  std::vector<Dim> out;
  for (std::int64_t i = 0; i < *length; ++i) out.emplace_back(tensor->view().as<std::int64_t>()[i]);
  return out;
}

}  // namespace

// A name that means tensors of different types in different subgraphs is left out.
legal::TensorFacts facts_of(const ImportedModel& model) {
  ValuesByPlace values;
  collect_values(*model.graph, values);
  legal::TensorFacts out;
  std::set<std::string> ambiguous;
  FixedValues fixed;
  const auto add = [&](const std::string& name, const polyphase::Value& value) {
    const auto [found, fresh] = out.emplace(name, legal::TensorFact{value.type, contents_of(value, fixed)});
    if (!fresh && !(found->second.type == value.type)) ambiguous.insert(name);
  };
  for (const auto& input : model.graph->inputs()) add(input->name, *input);
  for (const ImportedTensor& tensor : model.tensors) {
    const auto found = values.find({tensor.graph, tensor.value});
    if (found != values.end()) add(tensor.name, *found->second);
  }
  for (const std::string& name : ambiguous) out.erase(name);
  return out;
}

namespace {

std::span<const std::byte> bytes_of(const std::string& model) { return std::as_bytes(std::span(model)); }

Result<legal::TensorFacts> facts_in(const std::string& model, const legal::LegaliseOptions& with,
                                    const Workshop& workshop) {
  CompileOptions import;
  if (with.folder.has_value()) import.external_data_folder = with.folder->string();
  OperatorSurvey survey;
  auto imported = import_source(bytes_of(model), import, workshop, &survey);
  if (!imported.ok()) return std::move(imported).error().within("while reading the model with its functions inlined");
  return facts_of(*imported);
}

}  // namespace

Result<std::vector<legal::TargetFinding>> find_refused_in_calls(const ModelWithFacts& model,
                                                                const legal::LegaliseOptions& with,
                                                                const Workshop& workshop) {
  TRY(const legal::InlinedModel all, legal::inline_calls(model.bytes, with, nullptr));
  if (all.calls.empty()) return legal::find_refused(model.bytes, model.facts, with);
  TRY(legal::TensorFacts facts, facts_in(all.model, with, workshop));
  return legal::find_refused(bytes_of(all.model), std::move(facts), with);
}

Result<legal::Legalised> legalise_calls(const ModelWithFacts& model, const legal::LegaliseOptions& with,
                                        const Workshop& workshop, std::vector<std::string>& notes) {
  TRY(const legal::InlinedModel all, legal::inline_calls(model.bytes, with, nullptr));
  if (all.calls.empty()) return legal::legalise(model.bytes, model.facts, with);
  TRY(legal::TensorFacts facts, facts_in(all.model, with, workshop));
  TRY(const auto found, legal::find_refused(bytes_of(all.model), facts, with));
  std::set<std::string> places;
  for (const legal::TargetFinding& finding : found) {
    if (const auto from = all.places.find(finding.node); from != all.places.end()) places.merge(std::set(from->second));
  }
  TRY(const legal::InlinedModel some, legal::inline_calls(model.bytes, with, &places));
  if (some.calls.empty()) return legal::legalise(model.bytes, model.facts, with);
  if (some.calls.size() != all.calls.size()) {
    TRY(facts, facts_in(some.model, with, workshop));
  }
  for (const legal::InlinedCall& call : some.calls)
    notes.push_back("the call '" + call.call + "' of the function '" + call.function +
                    "' became the function's nodes, of which a rule rewrites some");
  TRY(legal::Legalised out, legal::legalise(bytes_of(some.model), std::move(facts), with));
  out.nodes = some.nodes;
  return out;
}

}  // namespace polyphase::api
