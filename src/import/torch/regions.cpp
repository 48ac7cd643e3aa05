// Regions of the IR that a program's inner graphs become: what they capture, what they give, who owns them.
#include <algorithm>

#include "import/torch/higher_order.h"

namespace polyphase {

Graph& ProgramImporter::new_region(std::string name) {
  regions_.push_back(std::make_unique<Graph>(registry_));
  regions_.back()->name = std::move(name);
  return *regions_.back();
}

std::unique_ptr<Graph> ProgramImporter::finished(const Graph& region) {
  const auto place =
      std::find_if(regions_.begin(), regions_.end(), [&](const auto& one) { return one.get() == &region; });
  std::unique_ptr<Graph> out = std::move(*place);
  regions_.erase(place);
  return out;
}

// Outer values inside of a region: an input of it, or a constant or sizes of its own. `operands`, if given, gets what
// the inputs stand for.
Result<ProgramMeanings> ProgramImporter::captured(const ProgramMeanings& given, Graph& region, Values* operands) {
  ProgramMeanings out;
  for (const ProgramMeaning& outer : given) {
    Value* const value = outer.value;
    ProgramMeaning inner;
    inner.storage = outer.storage;
    if (value->producer != nullptr && value->producer->constant() != nullptr) {
      inner.value = region.add_constant(*value->producer->constant(), value->name);
    } else if (value->producer != nullptr && value->producer->weight() != nullptr) {
      inner.value = region.add_constant(*value->producer->weight(), value->name, nullptr,
                                        value->producer->attributes().get<std::string>("weight"));
    } else if (value->contents.has_value() && value->type.dtype == DType::i64 && value->type.shape.rank() <= 1) {
      Emitter emitter(region, value->name);
      inner.value = emitter.sizes_as_data(*value->contents, value->type.shape.rank() == 0);
    } else {
      inner.value = region.add_input(value->name, value->type);
      if (operands != nullptr) operands->push_back(value);
    }
    out.push_back(std::move(inner));
  }
  return out;
}

Result<void> ProgramImporter::add_outputs(const ProgramMeanings& results, Graph& region) {
  for (const ProgramMeaning& result : results) {
    if (result.value == nullptr) return lacking("a result of the graph inside is no tensor.", flatten_advice);
    region.add_output(result.value, result.value->name);
  }
  return {};
}

ProgramMeaning meaning_of(Value* value) {
  ProgramMeaning out;
  out.value = value;
  return out;
}

// The node that owns the regions; each of its results has a memory of its own.
Result<ProgramMeanings> ProgramImporter::add_owner(std::string_view op_name, Attributes attributes, Values operands,
                                                   const std::string& name, const std::vector<Graph*>& regions) {
  std::vector<std::unique_ptr<Graph>> owned;
  for (const Graph* region : regions) owned.push_back(finished(*region));
  TRY(Node * node,
      scope_->graph->add(op_name, std::move(attributes), std::move(operands), name, nullptr, std::move(owned)));
  ProgramMeanings out;
  for (const auto& result : node->outputs()) {
    out.push_back(meaning_of(result.get()));
    out.back().storage = storages_++;
  }
  return out;
}

}  // namespace polyphase
