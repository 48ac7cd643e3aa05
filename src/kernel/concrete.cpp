// Symbols replaced by numbers, and strides judged against a layout.
#include "kernel/concrete.h"

#include <algorithm>

namespace polyphase {
namespace {

constexpr std::int64_t usual_side = 128;

bool evaluate_operand(OperandDesc& operand, const DimBindings& bindings) {
  if (!operand.present || operand.type.shape.is_static()) return true;
  const auto sizes = operand.type.shape.evaluate(bindings);
  if (!sizes.has_value()) return false;
  operand.type.shape = Shape::from_sizes(*sizes);
  return true;
}

bool holds_symbols(const Attributes& attributes) {
  std::map<std::string, DimRange, std::less<>> symbols;
  attributes.collect_symbols(symbols);
  return !symbols.empty();
}

}  // namespace

Density density_of(const Shape& shape, const Layout& layout, const std::vector<Dim>& strides) {
  const std::vector<Dim> dense = layout.dense_strides(shape.dims());
  std::vector<std::size_t> axes;  // of more than one element, innermost first
  bool is_dense = true;
  for (std::size_t i = layout.order().size(); i-- > 0;) {
    const std::size_t axis = layout.order()[i];
    if (shape[static_cast<int>(axis)] == 1) continue;
    axes.push_back(axis);
    is_dense = is_dense && strides[axis] == dense[axis];
  }
  if (is_dense) return Density::dense;
  if (!(strides[axes.front()] == 1)) return Density::strided;
  for (std::size_t i = 1; i < axes.size(); ++i) {
    const Dim inner = strides[axes[i - 1]] * shape[static_cast<int>(axes[i - 1])];
    if (!surely_less_equal(inner, strides[axes[i]])) return Density::strided;
  }
  return Density::pitched;
}

std::optional<StepDesc> evaluate(const StepDesc& desc, const DimBindings& bindings) {
  StepDesc out = desc;
  for (Part& part : out.parts) {
    if (!holds_symbols(part.attributes)) continue;
    auto attributes = part.attributes.evaluate(bindings);
    if (!attributes.has_value()) return std::nullopt;
    part.attributes = std::move(*attributes);
  }
  for (OperandDesc& input : out.inputs) {
    if (!evaluate_operand(input, bindings)) return std::nullopt;
  }
  for (OperandDesc& output : out.outputs) {
    if (!evaluate_operand(output, bindings)) return std::nullopt;
  }
  return out;
}

bool is_static(const StepDesc& desc) {
  const auto fixed = [](const OperandDesc& operand) { return !operand.present || operand.type.shape.is_static(); };
  return std::all_of(desc.inputs.begin(), desc.inputs.end(), fixed) &&
         std::all_of(desc.outputs.begin(), desc.outputs.end(), fixed) &&
         std::none_of(desc.parts.begin(), desc.parts.end(), [](const Part& p) { return holds_symbols(p.attributes); });
}

DimBindings likely_sizes(const std::map<std::string, DimRange, std::less<>>& symbols, const DimBindings& wished) {
  DimBindings out = wished;
  for (const auto& [name, range] : symbols) {
    const bool batch = name == "N" || name == "n" || name.find("batch") != std::string::npos;
    out.emplace(name, std::clamp(batch ? 1 : usual_side, range.low, std::max(range.low, range.high)));
  }
  return out;
}

}  // namespace polyphase
