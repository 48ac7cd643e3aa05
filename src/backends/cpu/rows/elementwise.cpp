// The row of elementwise chains: any of the operators that ending_program.cpp knows, with elementwise endings.
#include <algorithm>

#include "backends/cpu/kernels/elementwise.h"
#include "backends/cpu/rows/ending_program.h"
#include "backends/cpu/rows/row_list.h"

namespace polyphase::cpu {
namespace {

constexpr std::string_view operators[] = {"abs",        "acos",
                                          "acosh",      "add",
                                          "asin",       "asinh",
                                          "atan",       "atanh",
                                          "ceil",       "celu",
                                          "clip",       "cos",
                                          "cosh",       "div",
                                          "elu",        "erf",
                                          "exp",        "floor",
                                          "gelu",       "hard_sigmoid",
                                          "hard_swish", "leaky_relu",
                                          "log",        "max",
                                          "min",        "mish",
                                          "mul",        "neg",
                                          "pow",        "prelu",
                                          "reciprocal", "relu",
                                          "round",      "selu",
                                          "sigmoid",    "sign",
                                          "silu",       "sin",
                                          "sinh",       "softplus",
                                          "softsign",   "sqrt",
                                          "sub",        "tan",
                                          "tanh",       "thresholded_relu"};

std::string accepts_elementwise(const StepDesc& desc, const Target&) {
  if (std::string refusal = needs_f32(desc); !refusal.empty()) return refusal;
  if (!desc.beginnings().empty()) return "takes no beginnings";
  if (!ending_step(desc.anchor_part(), false).has_value()) return "has no step for " + desc.anchor_part().op->name;
  if (desc.inputs.size() > ElementwisePlan::max_operands) return "takes at most 8 operands";
  if (desc.outputs.size() != 1) return "gives one result";
  // An ending must not broadcast the chain: the anchor's result has the shape of the step's.
  std::vector<DimCheck> unused;
  std::vector<OperandInfo> infos;
  for (const int operand : desc.anchor_part().operands)
    infos.push_back({&desc.inputs[static_cast<std::size_t>(operand)].type, nullptr});
  const auto anchor = infer_types(*desc.anchor_part().op, desc.attributes(), infos, unused);
  if (!anchor.ok() || !(anchor->front().shape == desc.outputs[0].type.shape))
    return "an ending broadcasts the chain's value";
  return refuse_endings(desc);
}

// The anchor's step costs a pass over memory; costly functions more.
double cost_elementwise(const StepDesc& desc, const Target& target) {
  double per_element = 0;
  for (const Part& part : desc.parts) {
    const auto step = ending_step(part, running_operand(part) == 1);
    if (!step.has_value()) continue;
    const bool lane_by_lane = step->kind >= EndingKind::tan || step->kind == EndingKind::power;
    per_element += lane_by_lane ? 20e-9 : (step->kind >= EndingKind::sigmoid ? 0.6e-9 : 0.1e-9);
  }
  return moving_seconds(desc) + result_elements(desc) * per_element * (target.cluster == Cluster::scalar ? 6 : 1);
}

struct ChainAxis {
  int64_t size;
  int64_t to;
  int64_t from[ElementwisePlan::max_operands];
};

// Axes sorted by the result's strides; neighbours that continue each other in the result and in every operand become
// one.
std::vector<ChainAxis> merged_axes(const PlanRequest& request) {
  const TensorDesc& y = request.outputs[0];
  std::vector<ChainAxis> axes;
  for (int i = 0; i < y.rank; ++i) {
    const auto at = static_cast<std::size_t>(i);
    if (y.sizes[at] == 1) continue;
    ChainAxis axis{y.sizes[at], y.strides[at], {}};
    for (std::size_t k = 0; k < request.inputs.size(); ++k) {
      const TensorDesc& x = request.inputs[k];
      const int own = i - (y.rank - x.rank);  // operands broadcast by their trailing axes
      if (own >= 0 && x.sizes[static_cast<std::size_t>(own)] != 1)
        axis.from[k] = x.strides[static_cast<std::size_t>(own)];
    }
    axes.push_back(axis);
  }
  std::stable_sort(axes.begin(), axes.end(), [](const ChainAxis& a, const ChainAxis& b) { return a.to > b.to; });
  std::vector<ChainAxis> out;
  for (const ChainAxis& axis : axes) {
    bool continues = !out.empty() && out.back().to == axis.to * axis.size;
    for (std::size_t k = 0; continues && k < request.inputs.size(); ++k)
      continues = out.back().from[k] == axis.from[k] * axis.size;
    if (!continues) {
      out.push_back(axis);
      continue;
    }
    const int64_t size = out.back().size * axis.size;
    out.back() = axis;
    out.back().size = size;
  }
  if (out.empty()) out.push_back({y.empty() ? 0 : 1, 1, {}});
  return out;
}

void set_steps(const StepDesc& desc, ElementwisePlan& plan) {
  for (const Part& part : desc.parts) {
    const bool anchor = plan.step_count == 0;
    const auto step = ending_step(part, !anchor && running_operand(part) == 1);
    CHECK(step.has_value());
    plan.steps[plan.step_count++] = *step;
  }
  plan.first_operand = desc.anchor_part().operands.front();
}

Plan plan_elementwise(const PlanRequest& request, const Target&) {
  ElementwisePlan plan{};
  set_steps(request.desc, plan);
  plan.operand_count = static_cast<int32_t>(request.inputs.size());
  const std::vector<ChainAxis> axes = merged_axes(request);
  plan.rank = static_cast<int32_t>(axes.size());
  int64_t rows = 1;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    plan.sizes[i] = axes[i].size;
    plan.to_strides[i] = axes[i].to;
    for (std::size_t k = 0; k < request.inputs.size(); ++k) plan.from_strides[k][i] = axes[i].from[k];
    if (i + 1 < axes.size()) rows *= axes[i].size;
  }
  constexpr int64_t tile_elements = 16 * 1024;
  const int64_t last = axes.back().size;
  plan.chunk = std::min(last, tile_elements);
  plan.chunks = last == 0 ? 0 : ceil_div(last, plan.chunk);
  plan.rows_per_tile = std::max<int64_t>(1, tile_elements / std::max<int64_t>(1, last));
  plan.tiles = request.outputs[0].empty() ? 0 : plan.chunks * ceil_div(rows, plan.rows_per_tile);
  return Plan::of(plan);
}

}  // namespace

void add_elementwise_rows(const ClusterKernels& kernels, RowList& rows) {
  for (const std::string_view op : operators) {
    Row row;
    row.name = "elementwise_chain";
    row.op = op;
    row.doc = "elementwise steps over blocks that stay in the innermost cache; operands broadcast by strides of 0";
    row.exactness = Exactness::exact;
    row.takes = Density::strided;
    row.in_place = true;
    row.accepts = accepts_elementwise;
    row.cost = cost_elementwise;
    row.plan = plan_elementwise;
    row.tiles = [](const Plan& plan, int) { return reinterpret_cast<const ElementwisePlan*>(plan.bytes())->tiles; };
    row.run = kernels.elementwise;
    rows.push_back(row);
  }
}

}  // namespace polyphase::cpu
