// Catalogue: the ordered table of rows of one device. For each operator the last row is its reference loop, so every
// legal model runs.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "kernel/row.h"
#include "ops/registry.h"

namespace polyphase {

// One row's answer to a step: `refusal` empty means accepted at `cost_seconds`.
struct RowAnswer {
  const Row* row = nullptr;
  std::string refusal;
  double cost_seconds = 0;
  bool measured = false;  // else `cost_seconds` is the row's own estimate
};

// Why the row does not take the step, by its own rule and by the strides it takes; empty: it does.
std::string refusal_of(const Row& row, const StepDesc& desc, const Target& target);

class Catalogue {
 public:
  // Rows in order of preference among equals; a reference row for every registered operator that has reference loops is
  // added last, behind that of plugins for every operator of one.
  Catalogue(const std::vector<const Row*>& rows, const Registry& registry);

  const std::vector<const Row*>& rows_for(std::string_view op) const;
  // The row by its name and operator, as an engine file stores it; null: unknown here.
  const Row* find(std::string_view op, std::string_view name) const;
  // Asks every row of the anchor's operator whether it takes the step, and at what cost for the concrete sizes of
  // `likely` (the step itself if its sizes are known); in order. Costs are measured where the target has times and they
  // decide something: between several rows of the operator, or between orders of axes.
  std::vector<RowAnswer> ask(const StepDesc& desc, const StepDesc& likely, const Target& target) const;
  // The accepting rows by cost: the cheapest, and up to two more that share its packing, so that a step whose sizes
  // vary may run the best of them; where costs are measured the cheapest alone, since a run only has estimates.
  // Reference rows only if no other accepts. Empty: none accepts (only possible for fused steps).
  std::vector<RowAnswer> choose(const StepDesc& desc, const StepDesc& likely, const Target& target) const;

 private:
  std::map<std::string, std::vector<const Row*>, std::less<>> by_op_;
};

// The row that runs OpDef::reference as one tile: for any unfused step.
extern const Row reference_row;
// The row that runs the kernel of a plugin's operator.
extern const Row plugin_row;

}  // namespace polyphase
