// From a node to the description that kernel rows judge.
#include "passes/describe.h"

#include <algorithm>
#include <map>

#include "graph/part_run.h"
#include "kernel/catalogue.h"
#include "kernel/concrete.h"
#include "passes/rewrite.h"

namespace polyphase {

StepDesc describe(const Node& node, const std::vector<Layout>& inputs, const std::vector<Layout>& outputs) {
  StepDesc desc;
  desc.name = node.name();
  desc.parts = node.parts();
  desc.anchor = node.anchor();
  for (std::size_t i = 0; i < node.inputs().size(); ++i) {
    OperandDesc operand;
    const Value* value = node.input(i);
    operand.present = value != nullptr;
    if (value != nullptr) {
      operand.type = value->type;
      operand.layout = inputs[i];
      operand.constant = is_constant(value);
      const Tensor* tensor = constant_of(value);
      operand.value = tensor == nullptr ? nullptr : &tensor->view();
    }
    desc.inputs.push_back(std::move(operand));
  }
  for (std::size_t i = 0; i < node.outputs().size(); ++i) {
    OperandDesc result;
    result.type = node.output(i)->type;
    result.layout = outputs[i];
    desc.outputs.push_back(std::move(result));
  }
  return desc;
}

StepDesc describe(const Node& node) {
  const bool spatial = node.op().layout == LayoutRule::spatial;
  const auto usual = [&](const Value& value, bool is_table) {
    const int rank = value.type.shape.rank();
    return spatial && !is_table ? Layout::channels_last(rank) : Layout::row_major(rank);
  };
  std::vector<Layout> inputs(node.inputs().size());
  std::vector<Layout> outputs;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (node.input(i) != nullptr) inputs[i] = usual(*node.input(i), is_constant(node.input(i)));
  }
  for (const auto& output : node.outputs()) outputs.push_back(usual(*output, false));
  return describe(node, inputs, outputs);
}

DimBindings likely_sizes_of(const Graph& graph, const Target& target) {
  std::map<std::string, DimRange, std::less<>> symbols;
  graph.collect_symbols(symbols);
  return target.likely == nullptr ? likely_sizes(symbols) : likely_sizes(symbols, *target.likely);
}

std::optional<double> cost_of_kernels(const StepDesc& step, const Target& target, const DimBindings& likely) {
  if (target.catalogue == nullptr) return std::nullopt;
  const auto concrete = evaluate(step, likely);
  std::optional<double> best;
  for (const RowAnswer& answer : target.catalogue->ask(step, concrete.has_value() ? *concrete : step, target)) {
    if (!answer.refusal.empty() || answer.row->reference) continue;
    if (!best.has_value() || answer.cost_seconds < *best) best = answer.cost_seconds;
  }
  return best;
}

namespace {

// The running value behind the first `count` parts, lying as the result does or, in front of the anchor, as the data.
std::optional<OperandDesc> running_value(const StepDesc& step, std::size_t count) {
  const Layout& layout = count <= step.anchor ? step.data().layout : step.outputs.front().layout;
  std::vector<OperandInfo> infos(step.inputs.size());
  for (std::size_t i = 0; i < infos.size(); ++i) {
    if (step.inputs[i].present) infos[i].type = &step.inputs[i].type;
  }
  const auto types = types_of_parts(step.parts, infos);
  if (!types.ok() || (*types)[count - 1].shape.rank() != layout.rank()) return std::nullopt;
  OperandDesc out;
  out.type = (*types)[count - 1];
  out.layout = layout;
  return out;
}

// The parts [begin, end) as a step of their own, which begins with `from` where it is not the first.
StepDesc piece_of(const StepDesc& step, std::size_t begin, std::size_t end, const OperandDesc& from,
                  const OperandDesc& to) {
  PartRun run = cut_parts(step.parts, step.anchor, begin, end);
  StepDesc out;
  out.name = step.name;
  out.parts = std::move(run.parts);
  out.anchor = run.anchor;
  out.outputs = {to};
  for (const int operand : run.operands) {
    if (operand == Part::absent) {
      out.inputs.emplace_back().present = false;
    } else {
      out.inputs.push_back(operand == Part::running ? from : step.inputs[static_cast<std::size_t>(operand)]);
    }
  }
  return out;
}

}  // namespace

std::optional<double> cost_in_pieces(const StepDesc& step, const Target& target, const DimBindings& likely) {
  std::optional<double> best = cost_of_kernels(step, target, likely);
  if (step.outputs.size() != 1) return best;
  const bool is_whole = best.has_value();
  const std::size_t end = step.parts.size();
  const auto keep_cheaper = [&](const std::optional<double>& first, const std::optional<double>& rest) {
    if (first.has_value() && rest.has_value() && (!best.has_value() || *first + *rest < *best)) best = *first + *rest;
  };
  if (step.begins_with_cast()) {
    if (const auto between = running_value(step, 1); between.has_value()) {
      keep_cheaper(cost_of_kernels(piece_of(step, 0, 1, {}, *between), target, likely),
                   cost_in_pieces(piece_of(step, 1, end, *between, step.outputs.front()), target, likely));
    }
  }
  if (is_whole && !step.ends_with_cast()) return best;
  for (std::size_t cut = is_whole ? end - 1 : step.anchor + 1; cut < end; ++cut) {
    const auto between = running_value(step, cut);
    if (!between.has_value()) continue;
    const auto first = cost_of_kernels(piece_of(step, 0, cut, {}, *between), target, likely);
    if (!first.has_value()) continue;
    keep_cheaper(first, cost_of_kernels(piece_of(step, cut, end, *between, step.outputs.front()), target, likely));
  }
  return best;
}

bool has_kernel_between_casts(const StepDesc& step, const Target& target) {
  if (has_kernel(step, target)) return true;
  const std::size_t begin = step.begins_with_cast() ? 1 : 0;
  const std::size_t end = step.parts.size() - (step.ends_with_cast() ? 1 : 0);
  if ((begin == 0 && end == step.parts.size()) || step.outputs.size() != 1) return false;
  const auto from = running_value(step, std::max<std::size_t>(1, begin));
  const auto to = running_value(step, end);
  return from.has_value() && to.has_value() && has_kernel(piece_of(step, begin, end, *from, *to), target);
}

bool has_kernel(const StepDesc& step, const Target& target) {
  if (target.catalogue == nullptr) return false;
  const std::vector<const Row*>& rows = target.catalogue->rows_for(step.anchor_part().op->name);
  return std::any_of(rows.begin(), rows.end(),
                     [&](const Row* row) { return !row->reference && refusal_of(*row, step, target).empty(); });
}

}  // namespace polyphase
