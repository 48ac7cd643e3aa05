// From symbolic steps to concrete ones: sizes put in for symbols, likely sizes to choose kernels by, strides judged.
#pragma once

#include <optional>
#include <vector>

#include "kernel/step_desc.h"

namespace polyphase {

// How strides (in elements, by logical axis) lie around a layout. What cannot be proved counts as strided.
Density density_of(const Shape& shape, const Layout& layout, const std::vector<Dim>& strides);

// The step with every size a number; nothing if a symbol is unbound or a size overflows.
std::optional<StepDesc> evaluate(const StepDesc& desc, const DimBindings& bindings);
bool is_static(const StepDesc& desc);

// A value for every symbol, to estimate costs with: as `wished` has it, else 1 if its name is a batch's, else a usual
// image side; always inside the range.
DimBindings likely_sizes(const std::map<std::string, DimRange, std::less<>>& symbols, const DimBindings& wished = {});

}  // namespace polyphase
