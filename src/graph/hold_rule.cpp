// Three sets of numbers for the symbols, and the rule asked again with each.
#include "graph/hold_rule.h"

#include <algorithm>
#include <array>

namespace polyphase {
namespace {

using Symbols = std::map<std::string, DimRange, std::less<>>;

constexpr std::array<std::int64_t, 3> first_sizes = {1, 6, 37};

// Another number for every symbol, and others in each trial.
DimBindings sizes_of_trial(const Symbols& symbols, std::size_t trial) {
  DimBindings out;
  std::int64_t size = first_sizes[trial];
  for (const auto& [name, range] : symbols) {
    out[name] = std::clamp(size, range.low, range.high);
    size += static_cast<std::int64_t>(5 * trial);
  }
  return out;
}

std::optional<std::vector<Type>> with_sizes(std::span<const OperandInfo> operands, const DimBindings& sizes) {
  std::vector<Type> out;
  for (const OperandInfo& operand : operands) {
    Type type;
    if (operand.present()) {
      const auto shape = operand.type->shape.evaluate(sizes);
      if (!shape.has_value()) return std::nullopt;
      if (std::any_of(shape->begin(), shape->end(), [](std::int64_t size) { return size < 0; })) return std::nullopt;
      type = {operand.type->dtype, Shape::from_sizes(*shape)};
    }
    out.push_back(std::move(type));
  }
  return out;
}

bool all_hold(std::span<const DimCheck> demands, const DimBindings& sizes) {
  return std::all_of(demands.begin(), demands.end(), [&](const DimCheck& demand) {
    const auto left = demand.left.evaluate(sizes);
    const auto right = demand.right.evaluate(sizes);
    return left.has_value() && right.has_value() && holds(demand.relation, *left, *right);
  });
}

std::string texts(const std::vector<Type>& types) {
  std::string out;
  for (const Type& type : types) out += (out.empty() ? "" : ", ") + type.text();
  return out;
}

// Numbers that the rule refuses prove nothing: its author may have left that to the run.
Result<void> try_sizes(const Part& part, std::span<const OperandInfo> operands, const std::vector<Type>& found,
                       const DimBindings& sizes) {
  const auto types = with_sizes(operands, sizes);
  if (!types.has_value()) return {};
  std::vector<OperandInfo> infos(types->size());
  for (std::size_t i = 0; i < types->size(); ++i) infos[i].type = operands[i].present() ? &(*types)[i] : nullptr;
  std::vector<DimCheck> unused;
  const auto numbers = infer_types(*part.op, part.attributes, infos, unused);
  if (!numbers.ok()) return {};
  std::vector<Type> said;
  for (const Type& type : found) {
    const auto shape = type.shape.evaluate(sizes);
    if (!shape.has_value()) return {};
    said.push_back({type.dtype, Shape::from_sizes(*shape)});
  }
  if (said == *numbers) return {};
  return Error{ErrorCode::invalid_model,
               "the shape rule of the plugin's operator '" + part.op->name + "' is wrong: for operands " +
                   texts(*types) + " it gives " + texts(*numbers) + ", but its result for sizes yet unknown, " +
                   texts(found) + ", is then " + texts(said) + ".",
               "Correct the plugin's shape function: its results may not depend on what sizes are known."};
}

}  // namespace

Result<void> hold_rule_to_numbers(const Part& part, std::span<const OperandInfo> operands,
                                  const std::vector<Type>& found, std::span<const DimCheck> demands) {
  Symbols symbols;
  for (const OperandInfo& operand : operands) {
    if (!operand.present()) continue;
    for (const Dim& size : operand.type->shape) size.collect_symbols(symbols);
  }
  for (std::size_t trial = 0; trial < first_sizes.size() && !symbols.empty(); ++trial) {
    const DimBindings sizes = sizes_of_trial(symbols, trial);
    if (all_hold(demands, sizes)) TRY_VOID(try_sizes(part, operands, found, sizes));
  }
  return {};
}

}  // namespace polyphase
