// choose_kernels: lower without its last part.
#include "lower/draft.h"
#include "lower/lower.h"

namespace polyphase {
namespace {

ChosenStep chosen(const Draft& draft, const DraftStep& step) {
  ChosenStep out;
  out.node = step.name;
  out.kind = step.kind;
  for (const Part& part : step.parts) out.operation += (out.operation.empty() ? "" : " + ") + part.op->name;
  for (const int input : step.inputs) {
    if (input >= 0) out.operands.push_back(draft.value(input).type);
  }
  for (const int output : step.outputs) out.results.push_back(draft.value(output).type);
  for (const RowAnswer& answer : step.rows) out.rows.emplace_back(answer.row->name);
  out.reference = step.settled() && step.rows.front().row->reference;
  if (!out.reference) return out;
  const auto asked = describe(draft, step);
  for (const Row* row : draft.target.catalogue->rows_for(step.op().name)) {
    if (row->reference) continue;
    std::string refusal = refusal_of(*row, asked->desc, draft.target);
    if (!refusal.empty()) out.refusals.push_back(std::string(row->name) + ": " + std::move(refusal));
  }
  return out;
}

}  // namespace

Result<std::vector<ChosenStep>> choose_kernels(const Graph& graph, const Target& target, const LowerOptions& options) {
  CHECK(target.catalogue != nullptr);
  TRY(Draft draft, make_draft(graph, target, options));
  TRY_VOID(settle(draft));
  TRY_VOID(place(draft));
  std::vector<ChosenStep> out;
  for (const int step : draft.order()) out.push_back(chosen(draft, draft.step(step)));
  return out;
}

}  // namespace polyphase
