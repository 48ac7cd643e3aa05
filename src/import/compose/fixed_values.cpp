// Evaluates by the operators' references, each node once, without recursion.
#include "import/compose/fixed_values.h"

#include <algorithm>
#include <vector>

namespace polyphase {
namespace {

constexpr std::int64_t max_result_elements = 4096;
constexpr std::int64_t max_operand_elements = 1 << 16;

bool is_small(const Type& type, std::int64_t most) {
  const auto count = type.shape.element_count().constant();
  return type.shape.is_static() && count.has_value() && *count <= most;
}

// May this node be evaluated once its operands are fixed?
bool is_foldable(const Node& node) {
  if (node.fused() || !node.regions().empty() || node.op().reference == nullptr) return false;
  std::map<std::string, DimRange, std::less<>> symbols;
  node.attributes().collect_symbols(symbols);
  if (!symbols.empty()) return false;
  for (const auto& output : node.outputs()) {
    if (!is_small(output->type, max_result_elements)) return false;
  }
  return std::all_of(node.inputs().begin(), node.inputs().end(), [](const Value* input) {
    return input == nullptr || is_small(input->type, max_operand_elements);
  });
}

}  // namespace

// What needs no evaluation.
std::optional<Tensor> FixedValues::known(const Value* value) {
  if (value->producer != nullptr && value->producer->weight() != nullptr) {
    weights_.insert(value->producer->attributes().get<std::string>("weight"));
    return *value->producer->weight();
  }
  if (value->producer != nullptr && value->producer->constant() != nullptr) return *value->producer->constant();
  if (!value->contents.has_value()) return std::nullopt;
  std::vector<std::int64_t> numbers;
  for (const Dim& dim : *value->contents) {
    if (!dim.is_constant()) return std::nullopt;
    numbers.push_back(dim.value());
  }
  const auto sizes = value->type.shape.evaluate({});
  if (!sizes.has_value()) return std::nullopt;
  return Tensor::from_integers(value->type.dtype, *sizes, numbers);
}

void FixedValues::evaluate(const Node& node) {
  std::vector<Tensor> operands;
  for (const Value* input : node.inputs()) {
    if (input == nullptr) {
      operands.emplace_back();
      continue;
    }
    const auto& operand = found_.at(input);
    if (!operand.has_value()) return;
    operands.push_back(*operand);
  }
  auto results = evaluate_reference(node.op(), node.attributes(), operands);
  if (!results.ok() || results->size() != node.outputs().size()) return;
  for (std::size_t i = 0; i < results->size(); ++i) found_[node.output(i)] = (*results)[i];
}

std::optional<Tensor> FixedValues::of(const Value* wanted) {
  std::vector<const Value*> path{wanted};
  while (!path.empty()) {
    const Value* value = path.back();
    if (found_.count(value) != 0) {
      path.pop_back();
      continue;
    }
    if (auto tensor = known(value);
        tensor.has_value() || value->producer == nullptr || !is_foldable(*value->producer)) {
      found_[value] = std::move(tensor);
      path.pop_back();
      continue;
    }
    const std::size_t before = path.size();
    bool hopeless = false;
    for (const Value* input : value->producer->inputs()) {
      if (input == nullptr) continue;
      const auto found = found_.find(input);
      if (found == found_.end()) path.push_back(input);
      if (found != found_.end() && !found->second.has_value()) hopeless = true;
    }
    if (!hopeless && path.size() > before) continue;
    path.resize(before);
    for (const auto& output : value->producer->outputs()) found_[output.get()] = std::nullopt;
    if (!hopeless) evaluate(*value->producer);
    path.pop_back();
  }
  return found_.at(wanted);
}

}  // namespace polyphase
