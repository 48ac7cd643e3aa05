// The row of grid_sample in FP32 and FP64.
#include "backends/cpu/kernels/grid_sample.h"
#include "backends/cpu/rows/row_list.h"
#include "ops/grid_rule.h"

namespace polyphase::cpu {
namespace {

std::string accepts_grid_sample(const StepDesc& desc, const Target&) {
  for (const OperandDesc& operand : desc.inputs) {
    if (operand.type.dtype != DType::f32 && operand.type.dtype != DType::f64) return "computes f32 and f64";
  }
  return needs_unfused(desc);
}

double cost_grid_sample(const StepDesc& desc, const Target&) {
  return moving_seconds(desc) + result_elements(desc) * 4e-9;
}

Plan plan_grid_sample(const PlanRequest& request, const Target&) {
  const TensorDesc& x = request.inputs[0];
  const TensorDesc& grid = request.inputs[1];
  const TensorDesc& y = request.outputs[0];
  GridSamplePlan plan{};
  plan.rule = grid_rule(request.desc.attributes());
  plan.dtype = x.dtype;
  plan.grid_dtype = grid.dtype;
  plan.batch = x.sizes[0];
  plan.channels = x.sizes[1];
  plan.spatial = x.rank - 2;
  plan.points = 1;
  for (std::size_t i = 0; i < 2; ++i) {
    plan.from_strides[i] = x.strides[i];
    plan.to_strides[i] = y.strides[i];
  }
  plan.grid_strides[0] = grid.strides[0];
  plan.grid_strides[4] = grid.strides[static_cast<std::size_t>(grid.rank - 1)];
  for (int i = 0; i < 3; ++i) {
    plan.in[i] = plan.out[i] = 1;
    if (i < 3 - plan.spatial) continue;
    const auto own = static_cast<std::size_t>(i + plan.spatial - 1);
    plan.in[i] = x.sizes[own];
    plan.out[i] = y.sizes[own];
    plan.points *= y.sizes[own];
    plan.from_strides[i + 2] = x.strides[own];
    plan.to_strides[i + 2] = y.strides[own];
    plan.grid_strides[i + 1] = grid.strides[own - 1];
  }
  plan.tiles = y.empty() ? 0 : plan.batch * ceil_div(plan.points, grid_points_per_tile);
  return Plan::of(plan);
}

}  // namespace

void add_grid_sample_rows(const ClusterKernels& kernels, RowList& rows) {
  Row row;
  row.name = "grid_points";
  row.op = "grid_sample";
  row.doc = "finds the places and weights of a few points, then sums all their channels";
  row.takes = Density::strided;
  row.accepts = accepts_grid_sample;
  row.cost = cost_grid_sample;
  row.plan = plan_grid_sample;
  row.tiles = [](const Plan& plan, int) { return plan.head<GridSamplePlan>().tiles; };
  row.run = kernels.grid_sample;
  rows.push_back(row);
}

}  // namespace polyphase::cpu
