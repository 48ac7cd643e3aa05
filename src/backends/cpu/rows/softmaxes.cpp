// Rows of softmax and log_softmax in FP32.
#include <algorithm>

#include "backends/cpu/kernels/softmax.h"
#include "backends/cpu/rows/row_list.h"

namespace polyphase::cpu {
namespace {

std::string accepts_softmax(const StepDesc& desc, const Target&) {
  if (std::string refusal = needs_f32(desc); !refusal.empty()) return refusal;
  if (!(desc.inputs[0].layout == desc.outputs[0].layout)) return "needs one layout for operand and result";
  return needs_unfused(desc);
}

double cost_softmax(const StepDesc& desc, const Target&) { return moving_seconds(desc) + result_elements(desc) * 1e-9; }

Plan plan_softmax(const PlanRequest& request, const Target& target) {
  const TensorDesc& x = request.inputs[0];
  const auto axis = static_cast<std::size_t>(request.desc.attributes().get<int64_t>("axis"));
  SoftmaxPlan plan{};
  plan.logarithm = request.desc.anchor_part().op->name == "log_softmax" ? 1 : 0;
  plan.length = x.sizes[axis];
  // Dense in any order of axes: what lies inside the axis, and what lies outside.
  plan.inner = x.sizes[axis] == 1 ? 1 : x.strides[axis];
  const int64_t count = x.element_count();
  plan.outer = count == 0 ? 0 : count / plan.length / plan.inner;
  plan.width = vector_width(target.cluster);
  constexpr int64_t tile_elements = 4096;  // so many that finding a tile costs little beside it
  plan.rows = std::max<int64_t>(1, tile_elements / std::max<int64_t>(1, plan.length));
  plan.tiles = plan.inner == 1 ? ceil_div(plan.outer, plan.rows) : plan.outer * ceil_div(plan.inner, plan.width);
  return Plan::of(plan);
}

}  // namespace

void add_softmax_rows(const ClusterKernels& kernels, RowList& rows) {
  for (const std::string_view op : {"softmax", "log_softmax"}) {
    Row row;
    row.name = "stable_softmax";
    row.op = op;
    row.doc = "takes out the largest element, then exponentials and their sum; lanes along the axis or across it";
    row.takes = Density::dense;
    row.in_place = true;
    row.accepts = accepts_softmax;
    row.cost = cost_softmax;
    row.plan = plan_softmax;
    row.tiles = [](const Plan& plan, int) { return plan.head<SoftmaxPlan>().tiles; };
    row.run = kernels.softmax;
    rows.push_back(row);
  }
}

}  // namespace polyphase::cpu
