// The table of rows, and the reference row at its end.
#include "kernel/catalogue.h"

#include <algorithm>

#include "base/check.h"
#include "kernel/concrete.h"
#include "kernel/row_times.h"

namespace polyphase {

std::string_view name_of(Density density) {
  constexpr std::string_view names[] = {"dense", "pitched", "strided"};
  return names[static_cast<std::size_t>(density)];
}

bool StepDesc::begins_with_cast() const {
  return anchor >= 1 && parts.front().op->name == "cast" && parts.front().attributes.get<DType>("to") == DType::f32 &&
         is_narrow(data().type.dtype);
}

bool StepDesc::ends_with_cast() const {
  return anchor + 1 < parts.size() && parts.back().op->name == "cast" && is_narrow(outputs.front().type.dtype);
}

int StepDesc::anchor_operand(std::size_t i) const {
  const Part& part = parts[anchor];
  return i < part.operands.size() && part.operands[i] >= 0 ? part.operands[i] : -1;
}

const OperandDesc& StepDesc::anchor_input(std::size_t i) const {
  const int operand = anchor_operand(i);
  CHECK(operand >= 0 && inputs[static_cast<std::size_t>(operand)].present);
  return inputs[static_cast<std::size_t>(operand)];
}

namespace {

struct ReferenceOperand {
  TensorDesc desc;
  bool present;
};

// The plan points at the operator and attributes of the session's own StepDesc, which outlives it.
struct ReferencePlan {
  const Part* part;
  std::size_t input_count;
  std::size_t output_count;
  std::size_t operands_at;
};

constexpr std::size_t max_operands = 64;

std::string accepts_reference(const StepDesc& desc, const Target&) {
  if (desc.parts.size() != 1) return "the reference loops take no beginnings or endings";
  if (desc.anchor_part().op->reference == nullptr) return "the operator has no reference loops";
  if (desc.inputs.size() > max_operands || desc.outputs.size() > max_operands) return "more than 64 operands";
  return {};
}

double cost_reference(const StepDesc& desc, const Target&) {
  double elements = 1;
  for (const OperandDesc& output : desc.outputs)
    elements += static_cast<double>(output.type.shape.element_count().constant().value_or(1 << 20));
  return elements * 1e-6;  // always beyond any real kernel
}

Plan plan_reference(const PlanRequest& request, const Target&) {
  std::vector<ReferenceOperand> operands;
  for (std::size_t i = 0; i < request.inputs.size(); ++i)
    operands.push_back({request.inputs[i], request.desc.inputs[i].present});
  for (const TensorDesc& output : request.outputs) operands.push_back({output, true});
  Plan plan = Plan::of(ReferencePlan{&request.desc.anchor_part(), request.inputs.size(), request.outputs.size(), 0});
  const std::size_t at = plan.append(std::span<const ReferenceOperand>(operands));
  plan.head<ReferencePlan>().operands_at = at;
  return plan;
}

Fault run_reference(const Plan& plan, const Pointers& pointers, int, std::int64_t, std::byte*) {
  const auto& head = plan.head<ReferencePlan>();
  const auto* operands = reinterpret_cast<const ReferenceOperand*>(plan.bytes() + head.operands_at);
  TensorView inputs[max_operands];
  TensorView outputs[max_operands];
  std::size_t used = 0;
  for (const int operand : head.part->operands) {
    if (operand >= 0 && operands[operand].present) {
      inputs[used] = TensorView(operands[operand].desc, const_cast<std::byte*>(pointers.inputs[operand]));
    }
    ++used;
  }
  for (std::size_t i = 0; i < head.output_count; ++i)
    outputs[i] = TensorView(operands[head.input_count + i].desc, pointers.outputs[i]);
  const auto done =
      polyphase::run_reference(*head.part->op, {head.part->attributes, {inputs, used}, {outputs, head.output_count}});
  return done.ok() ? nullptr : "the data breaks the operator's rules (an index or a size lies out of range)";
}

}  // namespace

const Row reference_row = {
    .name = "reference",
    .op = "",
    .doc = "the operator's plain loops, one thread, double accumulation",
    .exactness = Exactness::exact,
    .reference = true,
    .takes = Density::strided,
    .accepts = accepts_reference,
    .cost = cost_reference,
    .packing = {},
    .plan = plan_reference,
    .workspace = nullptr,
    .phases = nullptr,
    .tiles = [](const Plan&, int) -> std::int64_t { return 1; },
    .run = run_reference,
};

Catalogue::Catalogue(const std::vector<const Row*>& rows, const Registry& registry) {
  for (const Row* row : rows) by_op_[std::string(row->op)].push_back(row);
  for (const auto& [name, op] : registry.all()) {
    if (op->custom != nullptr) by_op_[name].push_back(&plugin_row);
    if (op->reference != nullptr) by_op_[name].push_back(&reference_row);
  }
}

const std::vector<const Row*>& Catalogue::rows_for(std::string_view op) const {
  static const std::vector<const Row*> none;
  const auto found = by_op_.find(op);
  return found == by_op_.end() ? none : found->second;
}

const Row* Catalogue::find(std::string_view op, std::string_view name) const {
  for (const Row* row : rows_for(op)) {
    if (row->name == name) return row;
  }
  return nullptr;
}

std::string refusal_of(const Row& row, const StepDesc& desc, const Target& target) {
  std::string refusal = row.accepts(desc, target);
  if (!refusal.empty() || row.takes == Density::strided) return refusal;
  std::vector<int> packed;
  if (!row.packing.format.empty()) packed = row.packing.inputs(desc);
  for (std::size_t i = 0; i < desc.inputs.size(); ++i) {
    const OperandDesc& input = desc.inputs[i];
    if (!input.present || input.density <= row.takes) continue;
    if (std::find(packed.begin(), packed.end(), static_cast<int>(i)) != packed.end()) continue;
    return "operand " + std::to_string(i) + " is a " + std::string(name_of(input.density)) + " view";
  }
  for (std::size_t i = 0; i < desc.outputs.size(); ++i) {
    if (desc.outputs[i].density > row.takes) {
      return "result " + std::to_string(i) + " is a " + std::string(name_of(desc.outputs[i].density)) + " window";
    }
  }
  return {};
}

namespace {

// The result has the operand's axes in another order.
bool turns(const StepDesc& desc) {
  const Part& first = desc.parts.front();
  if (first.operands.empty() || first.operands.front() < 0 || !desc.data().present) return false;
  const Layout& from = desc.data().layout;
  const Layout& to = desc.outputs.front().layout;
  return from.order().size() == to.order().size() && !(from == to);
}

// Times cost time, so only where they decide something: between several rows, or between orders of axes.
bool has_a_choice(const std::vector<const Row*>& rows, const StepDesc& desc) {
  const auto kernels = std::count_if(rows.begin(), rows.end(), [](const Row* row) { return !row->reference; });
  return kernels > 1 || turns(desc);
}

// Times for all that take the step, or for none.
void measure(std::vector<RowAnswer>& answers, const StepDesc& likely, const Target& target) {
  std::vector<RowAnswer*> taking;
  std::vector<const Row*> rows;
  for (RowAnswer& answer : answers) {
    if (!answer.refusal.empty() || answer.row->reference) continue;
    taking.push_back(&answer);
    rows.push_back(answer.row);
  }
  if (rows.empty() || !is_static(likely)) return;
  const std::vector<double> seconds = target.times->seconds(likely, rows, target);
  for (std::size_t i = 0; i < seconds.size(); ++i) {
    taking[i]->cost_seconds = seconds[i];
    taking[i]->measured = true;
  }
}

}  // namespace

std::vector<RowAnswer> Catalogue::ask(const StepDesc& desc, const StepDesc& likely, const Target& target) const {
  std::vector<RowAnswer> answers;
  const std::vector<const Row*>& rows = rows_for(desc.anchor_part().op->name);
  for (const Row* row : rows) {
    RowAnswer answer{row, refusal_of(*row, desc, target), 0};
    if (answer.refusal.empty()) answer.cost_seconds = row->cost(likely, target);
    answers.push_back(std::move(answer));
  }
  if (target.times != nullptr && has_a_choice(rows, desc)) measure(answers, likely, target);
  return answers;
}

std::vector<RowAnswer> Catalogue::choose(const StepDesc& desc, const StepDesc& likely, const Target& target) const {
  constexpr std::size_t max_choices = 3;
  std::vector<RowAnswer> answers = ask(desc, likely, target);
  std::erase_if(answers, [](const RowAnswer& answer) { return !answer.refusal.empty(); });
  std::stable_sort(answers.begin(), answers.end(), [](const RowAnswer& a, const RowAnswer& b) {
    if (a.row->reference != b.row->reference) return b.row->reference;
    return a.cost_seconds < b.cost_seconds;
  });
  if (answers.empty()) return answers;
  if (answers.front().measured) answers.resize(1);
  const Row* best = answers.front().row;
  std::erase_if(answers, [&](const RowAnswer& answer) {
    return answer.row != best && (answer.row->reference || answer.row->packing.format != best->packing.format);
  });
  if (answers.size() > max_choices) answers.resize(max_choices);
  return answers;
}

}  // namespace polyphase
