// Reports: which kernel runs each step and why, what it computes and moves, and where values lie.
#include "api/report.h"

#include <algorithm>

#include "api/state.h"

namespace polyphase::api {
namespace {

double elements(const Shape& shape) { return static_cast<double>(shape.element_count().constant().value_or(0)); }

double product_from(const Shape& shape, int axis) {
  double product = 1;
  for (int i = axis; i < shape.rank(); ++i) product *= static_cast<double>(shape[i].constant().value_or(0));
  return product;
}

// Arithmetic of one part by its definition: 2 per multiply-add, 1 per element of anything else.
double flops_of(const StepDesc& desc, const Part& part) {
  const auto operand = [&](std::size_t i) -> const Shape* {
    const int index = i < part.operands.size() ? part.operands[i] : -1;
    return index < 0 ? nullptr : &desc.inputs[static_cast<std::size_t>(index)].type.shape;
  };
  const Shape& result = desc.outputs.front().type.shape;
  const Shape* weights = operand(1);
  if (part.op->name == "conv" && weights != nullptr) return 2 * elements(result) * product_from(*weights, 1);
  if (part.op->name == "conv_transpose" && weights != nullptr) {
    const Shape& data = desc.data().type.shape;
    return 2 * elements(data) * product_from(*weights, 1);
  }
  if (part.op->name == "matmul" && operand(0) != nullptr) {
    const Shape& left = *operand(0);
    return 2 * elements(result) *
           (left.rank() == 0 ? 1 : static_cast<double>(left[left.rank() - 1].constant().value_or(0)));
  }
  if (part.op->moves_elements) return 0;
  return elements(result);
}

double bytes_of(const StepPlan& plan) {
  double bytes = 0;
  for (const OperandDesc& input : plan.desc.inputs) {
    if (input.present) bytes += elements(input.type.shape) * static_cast<double>(size_bytes(input.type.dtype));
  }
  for (const OperandDesc& output : plan.desc.outputs)
    bytes += elements(output.type.shape) * static_cast<double>(size_bytes(output.type.dtype));
  return bytes;
}

StepReport report_step(const Program& program, std::size_t index, const StepPlan& plan, RowTimes* times) {
  const ProgramStep& step = program.steps[index];
  StepReport out;
  out.step = static_cast<int>(index);
  if (plan.row == nullptr) return out;
  out.row = plan.row->name;
  out.reference = plan.row->reference;
  Target target = program.target;
  target.times = times;
  for (const RowAnswer& answer : target.catalogue->ask(step.desc, plan.desc, target)) {
    out.rows.push_back(
        {std::string(answer.row->name), answer.refusal, answer.cost_seconds, answer.row == plan.row, answer.measured});
  }
  for (const Part& part : plan.desc.parts) out.flops += flops_of(plan.desc, part);
  out.bytes = bytes_of(plan);
  return out;
}

// The rows by their own rules alone: the sizes that decide among them are not known.
StepReport report_unknown(const Program& program, std::size_t index) {
  const ProgramStep& step = program.steps[index];
  StepReport out;
  out.step = static_cast<int>(index);
  out.sizes_unknown = true;
  if (step.rows.empty()) return out;  // bind, branch
  out.reference = step.rows.front()->reference;
  for (const Row* row : program.target.catalogue->rows_for(step.desc.anchor_part().op->name))
    out.rows.push_back({std::string(row->name), refusal_of(*row, step.desc, program.target), 0, false, false});
  return out;
}

}  // namespace

Report report_of(const polyphase::Session& session, const LevelPlans& plans, RowTimes* times) {
  const Program& program = session.program();
  Report out;
  for (std::size_t i = 0; i < program.steps.size(); ++i) {
    const auto level = static_cast<std::size_t>(program.steps[i].level);
    const StepPlan* plan = level < plans.size() && plans[level] != nullptr ? plans[level]->steps[i].get() : nullptr;
    out.steps.push_back(plan != nullptr ? report_step(program, i, *plan, times) : report_unknown(program, i));
  }
  for (const auto& plan : plans) {
    if (plan == nullptr) continue;
    for (const PlacedRoot& root : plan->arena_roots) {
      const auto value = static_cast<std::size_t>(root.value);
      const auto sizes = plan->places[value].desc.size_span();
      out.placed.push_back({root.value,
                            {sizes.begin(), sizes.end()},
                            root.size_bytes,
                            root.offset_bytes,
                            program.values[value].first_step,
                            program.values[value].last_step,
                            plan->level});
    }
    for (const PlacedWorkspace& own : plan->workspaces)
      out.workspaces.push_back({-1, {}, own.size_bytes, own.offset_bytes, own.step, own.step, plan->level});
    out.arena_bytes += plan->arena_bytes;
    out.lower_bound_bytes += plan->lower_bound_bytes;
    out.scratch_bytes =
        std::max<std::uint64_t>(out.scratch_bytes, plan->scratch_bytes * static_cast<std::size_t>(session.threads()));
  }
  out.constant_bytes = program.constant_bytes;
  return out;
}

Result<Report> Session::explain(const std::vector<std::vector<std::int64_t>>& input_sizes) const {
  return without_throwing([&]() -> Result<Report> {
    polyphase::Session& session = Access::session_of(*this);
    TRY(const auto plan, session.plan_for(input_sizes));
    return report_of(session, {plan}, Access::state(state_->engine).times.get());
  });
}

}  // namespace polyphase::api
