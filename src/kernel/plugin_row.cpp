// The row of every plugin's operator: its kernel, tile by tile, on tensors that lie row-major without gaps.
#include "kernel/catalogue.h"
#include "ops/custom.h"

namespace polyphase {
namespace {

// Behind the head stand the descriptions of the operands in the part's order, then of the results. The plan points at
// the part of the session's own StepDesc, which outlives it.
struct PluginPlan {
  const Part* part = nullptr;
  std::size_t input_count = 0;
  std::size_t output_count = 0;
  std::uint64_t absent = 0;
  CustomPlan division;
  bool refused = false;  // the rule or the plugin's own plan; the reference says what it was
  std::size_t descs_at = 0;
};

constexpr std::size_t max_operands = 64;

bool lies_plainly(const OperandDesc& operand) { return !operand.present || operand.layout.is_row_major(); }

std::string accepts_plugin(const StepDesc& desc, const Target&) {
  if (desc.parts.size() != 1) return "a plugin's kernel takes no beginnings or endings";
  if (desc.inputs.size() > max_operands || desc.outputs.size() > max_operands) return "more than 64 operands";
  for (const auto* side : {&desc.inputs, &desc.outputs}) {
    for (const OperandDesc& operand : *side) {
      if (!lies_plainly(operand)) return "a plugin's kernel takes row-major tensors only";
    }
  }
  return {};
}

double cost_plugin(const StepDesc& desc, const Target&) {
  double elements = 1;
  for (const OperandDesc& output : desc.outputs)
    elements += static_cast<double>(output.type.shape.element_count().constant().value_or(1 << 20));
  return elements * 1e-8;
}

Plan plan_plugin(const PlanRequest& request, const Target&) {
  const Part& part = request.desc.anchor_part();
  PluginPlan head;
  head.part = &part;
  std::vector<TensorDesc> descs;
  for (const int operand : part.operands) {
    const bool present = operand >= 0 && request.desc.inputs[static_cast<std::size_t>(operand)].present;
    if (!present) head.absent |= std::uint64_t{1} << descs.size();
    descs.push_back(present ? request.inputs[static_cast<std::size_t>(operand)] : TensorDesc());
  }
  head.input_count = descs.size();
  head.output_count = request.outputs.size();
  descs.insert(descs.end(), request.outputs.begin(), request.outputs.end());
  std::vector<TensorView> views;
  for (const TensorDesc& desc : descs) views.emplace_back(desc, nullptr);
  const std::span<const TensorView> all(views);
  auto division = part.op->custom->plan(
      *part.op, {part.attributes, all.first(head.input_count), all.subspan(head.input_count), head.absent});
  head.refused = !division.ok();
  if (division.ok()) head.division = *division;
  Plan plan = Plan::of(head);
  const std::size_t at = plan.append(std::span<const TensorDesc>(descs));
  plan.head<PluginPlan>().descs_at = at;
  return plan;
}

// An operand that occurs twice in the node stands once among the step's.
const std::byte* operand_at(const Pointers& pointers, const PluginPlan& head, std::size_t i) {
  const int operand = head.part->operands[i];
  return operand < 0 ? nullptr : pointers.inputs[operand];
}

Fault run_plugin(const Plan& plan, const Pointers& pointers, int, std::int64_t tile, std::byte* scratch) {
  constexpr Fault refusal = "the plugin's kernel reports an error, which it does not when it is asked again";
  const PluginPlan& head = plan.head<PluginPlan>();
  if (head.refused) return refusal;
  const auto* descs = reinterpret_cast<const TensorDesc*>(plan.bytes() + head.descs_at);
  TensorView inputs[max_operands];
  TensorView outputs[max_operands];
  for (std::size_t i = 0; i < head.input_count; ++i)
    inputs[i] = TensorView(descs[i], const_cast<std::byte*>(operand_at(pointers, head, i)));
  for (std::size_t i = 0; i < head.output_count; ++i)
    outputs[i] = TensorView(descs[head.input_count + i], pointers.outputs[i]);
  const CustomCall call{head.part->attributes, {inputs, head.input_count}, {outputs, head.output_count}, head.absent};
  const OpDef& op = *head.part->op;
  return op.custom->run(op, call, head.division, tile, scratch).ok() ? nullptr : refusal;
}

}  // namespace

const Row plugin_row = {
    .name = "plugin",
    .op = "",
    .doc = "the kernel of a plugin's operator",
    .exactness = Exactness::exact,
    .accepts = accepts_plugin,
    .cost = cost_plugin,
    .packing = {},
    .plan = plan_plugin,
    .workspace =
        [](const Plan& plan) {
          return Workspace{0, plan.head<PluginPlan>().division.scratch_bytes};
        },
    .phases = nullptr,
    .tiles = [](const Plan& plan, int) { return plan.head<PluginPlan>().division.tiles; },
    .run = run_plugin,
};

}  // namespace polyphase
