// settle: a kernel for every step. A fused step that no row takes whole is cut where the pieces cost least, and casts
// at its ends are cut off where that costs less than the kernels that take them; a step that only the reference loops
// take in its layouts is tried in others, with copies around it.
#include <algorithm>

#include "graph/part_run.h"
#include "lower/draft.h"

namespace polyphase {

namespace {

// What an impossible choice costs; beyond any real one.
constexpr double never = 1e30;

// Sizes for cost estimates: a guess of the symbols may make an expression negative, which no row should see.
StepDesc likely_desc(const StepDesc& desc, const DimBindings& likely) {
  auto out = evaluate(desc, likely);
  if (!out.has_value()) return desc;
  const auto mend = [](OperandDesc& operand) {
    for (int axis = 0; axis < operand.type.shape.rank(); ++axis) {
      const auto size = operand.type.shape[axis].constant();
      if (!size.has_value() || *size < 0) operand.type.shape[axis] = Dim(1);
    }
  };
  for (OperandDesc& input : out->inputs) mend(input);
  for (OperandDesc& output : out->outputs) mend(output);
  return std::move(*out);
}

double cost_of(const std::vector<RowAnswer>& rows) { return rows.empty() ? never : rows.front().cost_seconds; }
bool only_reference(const std::vector<RowAnswer>& rows) { return rows.empty() || rows.front().row->reference; }

}  // namespace

std::unique_ptr<Asked> describe(const Draft& draft, const DraftStep& step) {
  auto asked = std::make_unique<Asked>();
  asked->constants.resize(step.inputs.size());
  asked->desc.name = step.name;
  asked->desc.parts = step.parts;
  asked->desc.anchor = step.anchor;
  for (std::size_t i = 0; i < step.inputs.size(); ++i) {
    asked->desc.inputs.push_back(draft.operand(step.inputs[i], &asked->constants[i]));
  }
  for (const int output : step.outputs) asked->desc.outputs.push_back(draft.operand(output, nullptr));
  return asked;
}

std::vector<RowAnswer> ask(const Draft& draft, const DraftStep& step) {
  const auto asked = describe(draft, step);
  return draft.target.catalogue->choose(asked->desc, likely_desc(asked->desc, draft.likely), draft.target);
}

namespace {

// ---------------------------------------------------------------- layouts

std::optional<Layout> layout_in(std::string_view order, int rank) {
  return order == "row-major" ? Layout::row_major(rank) : Layout::channels_last(rank);
}

// The step with every operand and result of rank >= 3 in that order, as if copies stood around it.
struct Converted {
  std::vector<RowAnswer> rows;
  double cost = never;
};

double copy_cost(const Draft& draft, const DraftValue& value, const Layout& layout) {
  Draft trial(draft.registry, draft.target);
  trial.likely = draft.likely;
  trial.blocks.emplace_back();
  const int from = trial.add_value("", value.type, value.layout);
  const int to = trial.add_value("", value.type, layout);
  return cost_of(ask(trial, trial.step(trial.add_copy(from, to, 0, -1, ""))));
}

Converted try_layouts(const Draft& draft, const DraftStep& step, std::string_view order) {
  Converted out;
  auto asked = describe(draft, step);
  double copies = 0;
  const auto convert = [&](OperandDesc& operand, int value) {
    if (!operand.present || operand.constant) return;
    const Layout wanted = *layout_in(order, operand.type.shape.rank());
    if (operand.layout == wanted && operand.density == Density::dense) return;
    copies += copy_cost(draft, draft.value(value), wanted);
    operand.layout = wanted;
    operand.density = Density::dense;
  };
  for (std::size_t i = 0; i < step.inputs.size(); ++i) convert(asked->desc.inputs[i], step.inputs[i]);
  for (std::size_t i = 0; i < step.outputs.size(); ++i) convert(asked->desc.outputs[i], step.outputs[i]);
  out.rows = draft.target.catalogue->choose(asked->desc, likely_desc(asked->desc, draft.likely), draft.target);
  if (!out.rows.empty()) out.cost = cost_of(out.rows) + copies;
  return out;
}

void convert_layouts(Draft& draft, int id, std::string_view order) {
  const int block = draft.step(id).block;
  const std::string name = draft.step(id).name;
  const std::vector<int> inputs = draft.step(id).inputs;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    TensorView constant;
    const OperandDesc operand = draft.operand(inputs[i], &constant);
    if (!operand.present || operand.constant) continue;
    const Layout wanted = *layout_in(order, draft.value(inputs[i]).type.shape.rank());
    if (draft.value(inputs[i]).layout == wanted) continue;
    const int copy = draft.add_value(draft.value(inputs[i]).name + ".copy", draft.value(inputs[i]).type, wanted);
    draft.add_copy(inputs[i], copy, block, id, name);
    draft.set_input(id, i, copy);
  }
  const std::vector<int>& steps = draft.blocks[static_cast<std::size_t>(block)].steps;
  const auto next = std::find(steps.begin(), steps.end(), id) + 1;
  const int after = next == steps.end() ? -1 : *next;
  const std::vector<int> outputs = draft.step(id).outputs;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const Layout wanted = *layout_in(order, draft.value(outputs[i]).type.shape.rank());
    if (draft.value(outputs[i]).layout == wanted) continue;
    const int direct = draft.add_value(draft.value(outputs[i]).name + ".direct", draft.value(outputs[i]).type, wanted);
    draft.set_output(id, i, direct);
    draft.add_copy(direct, outputs[i], block, after, name);
  }
  draft.remark(draft.step(id), "runs in " + std::string(order) + " between copies");
}

// ---------------------------------------------------------------- cuts

// The result of each part.
Result<std::vector<Type>> running_types(const Draft& draft, const DraftStep& step) {
  std::vector<OperandInfo> infos(step.inputs.size());
  for (std::size_t i = 0; i < infos.size(); ++i) {
    if (step.inputs[i] >= 0) infos[i].type = &draft.value(step.inputs[i]).type;
  }
  return types_of_parts(step.parts, infos);
}

// Parts [begin, end) as a step of their own, between `from` (the running value before; -1: none) and `to`.
DraftStep piece(const DraftStep& step, std::size_t begin, std::size_t end, int from, const std::vector<int>& to) {
  PartRun run = cut_parts(step.parts, step.anchor, begin, end);
  DraftStep out;
  out.name = step.name;
  out.block = step.block;
  out.parts = std::move(run.parts);
  out.anchor = run.anchor;
  out.outputs = to;
  for (const int operand : run.operands) {
    const bool is_input = operand != Part::running && operand != Part::absent;
    out.inputs.push_back(is_input                   ? step.inputs[static_cast<std::size_t>(operand)]
                         : operand == Part::running ? from
                                                    : -1);
  }
  return out;
}

// Where a step may be cut, its begin and end among them: anywhere, or only between it and the casts at its ends.
std::vector<std::size_t> cuts_of(const StepDesc& desc, bool anywhere) {
  std::vector<std::size_t> cuts;
  const std::size_t end = desc.parts.size();
  for (std::size_t at = 0; at <= end; ++at) {
    const bool at_cast = (at == 1 && desc.begins_with_cast()) || (at + 1 == end && desc.ends_with_cast());
    if (anywhere || at == 0 || at == end || at_cast) cuts.push_back(at);
  }
  return cuts;
}

// Least total cost over all ways to cut the parts into runs; best[i] is the cost of the parts before cuts[i], last[i]
// which cut its last run begins with.
Result<void> split(Draft& draft, int id, const std::vector<std::size_t>& cuts) {
  const DraftStep whole = draft.step(id);
  TRY(const std::vector<Type> types, running_types(draft, whole));
  const bool widens = describe(draft, whole)->desc.begins_with_cast();
  std::vector<int> between;  // the running value after part i
  for (std::size_t i = 0; i + 1 < types.size(); ++i) {
    const int lies_as = widens && i == 0 ? whole.inputs[static_cast<std::size_t>(whole.parts.front().operands.front())]
                                         : whole.outputs.front();
    const Layout layout = draft.value(lies_as).layout;
    const bool alike = types[i].shape.rank() == layout.rank();
    between.push_back(draft.add_value(whole.name + ".part" + std::to_string(i), types[i], alike ? layout : Layout()));
  }
  const std::size_t n = whole.parts.size();
  const auto run_of = [&](std::size_t begin, std::size_t end) {
    return piece(whole, begin, end, begin == 0 ? -1 : between[begin - 1],
                 end == n ? whole.outputs : std::vector<int>{between[end - 1]});
  };
  std::vector<double> best(cuts.size(), never);
  std::vector<std::size_t> last(cuts.size(), 0);
  best[0] = 0;
  for (std::size_t i = 1; i < cuts.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      // A run of one part always goes: at worst by its reference loops.
      const double cost = cost_of(ask(draft, run_of(cuts[j], cuts[i])));
      const double own = cuts[i] == cuts[j] + 1 ? std::min(cost, never / 100) : cost;
      if (best[j] + own < best[i]) {
        best[i] = best[j] + own;
        last[i] = j;
      }
    }
  }
  std::vector<std::size_t> ends;
  for (std::size_t i = cuts.size() - 1; i > 0; i = last[i]) ends.push_back(cuts[i]);
  if (ends.size() == 1) return {};
  if (!draft.step(id).settled())
    draft.remark(whole, "no kernel takes it whole: cut into " + std::to_string(ends.size()) + " steps");
  std::vector<int> added;
  std::size_t begin = 0;
  for (auto end = ends.rbegin(); end != ends.rend(); ++end) {
    added.push_back(draft.add_step(run_of(begin, *end), id));
    begin = *end;
  }
  draft.remove_step(id);
  draft.value(whole.outputs.front()).writer = added.back();
  for (const int step : added) TRY_VOID(settle_step(draft, step));
  return {};
}

Error no_kernel(const DraftStep& step) {
  return Error{ErrorCode::unsupported, "operator " + step.op().name + " has no kernel for these types.",
               "Use f32 tensors, or keep the node out of the model."}
      .at_node(step.name);
}

}  // namespace

Result<void> settle_step(Draft& draft, int id) {
  std::vector<RowAnswer> rows = ask(draft, draft.step(id));
  if (only_reference(rows)) {
    std::string_view better;
    Converted best;
    best.cost = cost_of(rows);
    for (const std::string_view order : {"row-major", "channels-last"}) {
      Converted converted = try_layouts(draft, draft.step(id), order);
      if (!only_reference(converted.rows) && converted.cost < best.cost) {
        best = std::move(converted);
        better = order;
      }
    }
    if (!better.empty()) {
      convert_layouts(draft, id, better);
      rows = ask(draft, draft.step(id));
      // The copies are steps too.
    }
  }
  if (rows.empty()) {
    if (draft.step(id).bare()) return no_kernel(draft.step(id));
    return split(draft, id, cuts_of(describe(draft, draft.step(id))->desc, true));
  }
  draft.step(id).rows = std::move(rows);
  if (draft.step(id).bare()) return {};
  const auto cuts = cuts_of(describe(draft, draft.step(id))->desc, false);
  return cuts.size() > 2 ? split(draft, id, cuts) : Result<void>{};
}

Result<void> settle(Draft& draft) {
  for (bool again = true; again;) {
    again = false;
    for (const int id : draft.order()) {
      const DraftStep& step = draft.step(id);
      if (step.removed || step.is_view || step.settled()) continue;
      if (step.kind != StepKind::kernel && step.kind != StepKind::copy) continue;
      TRY_VOID(settle_step(draft, id));
      again = true;
    }
  }
  return {};
}

}  // namespace polyphase
