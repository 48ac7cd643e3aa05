// The row of matmul in FP32 for any operands; conv_rows.cpp has those for constant weights.
#include <algorithm>

#include "backends/cpu/rows/matmul_walk.h"
#include "backends/cpu/rows/row_list.h"

namespace polyphase::cpu {
namespace {

std::string accepts_matmul(const StepDesc& desc, const Target&) {
  if (std::string refusal = needs_f32(desc); !refusal.empty()) return refusal;
  return needs_plain(desc);
}

double cost_matmul(const StepDesc& desc, const Target& target) {
  const Shape& b = desc.inputs[1].type.shape;
  const int64_t width = vector_width(target.cluster);
  const int64_t columns = b.rank() == 1 ? 1 : b[b.rank() - 1].constant().value_or(1);
  const int64_t inner = b[std::max(b.rank() - 2, 0)].constant().value_or(1);
  const int64_t computed = ceil_div(std::max<int64_t>(columns, 1), 2 * width) * 2 * width;
  const double filled = static_cast<double>(std::max<int64_t>(columns, 1)) / static_cast<double>(computed);
  const double products = result_elements(desc) * static_cast<double>(inner) / std::max(filled, 1e-3);
  return moving_seconds(desc) + products / (static_cast<double>(width) * 2.5e9);
}

int64_t size_of(const TensorDesc& desc, int back) { return desc.sizes[static_cast<std::size_t>(desc.rank - back)]; }
int64_t stride_of(const TensorDesc& desc, int back) { return desc.strides[static_cast<std::size_t>(desc.rank - back)]; }

// The stride of each axis before the last `matrix` ones, lined up with `rank` axes of the batch; 0 where it is
// broadcast.
void line_up(const TensorDesc& desc, int matrix, int rank, int64_t* strides) {
  for (int axis = 0; axis < desc.rank - matrix; ++axis) {
    const auto i = static_cast<std::size_t>(axis);
    strides[rank - (desc.rank - matrix) + axis] = desc.sizes[i] == 1 ? 0 : desc.strides[i];
  }
}

}  // namespace

MatmulPlan walk_matmul(const PlanRequest& request, int64_t tile_rows, int64_t tile_columns) {
  const TensorDesc& a = request.inputs[0];
  const TensorDesc& b = request.inputs[1];
  const TensorDesc& y = request.outputs[0];
  const int y_matrix = (a.rank > 1 ? 1 : 0) + (b.rank > 1 ? 1 : 0);
  MatmulPlan plan{};
  plan.rows = a.rank > 1 ? size_of(a, 2) : 1;
  plan.inner = size_of(a, 1);
  plan.columns = b.rank > 1 ? size_of(b, 1) : 1;
  plan.a_row = a.rank > 1 ? stride_of(a, 2) : 0;
  plan.b_row = b.rank > 1 ? stride_of(b, 2) : stride_of(b, 1);
  plan.y_row = a.rank > 1 ? stride_of(y, y_matrix) : 0;
  plan.batch_rank = y.rank - y_matrix;
  plan.batches = 1;
  for (int axis = 0; axis < plan.batch_rank; ++axis) {
    plan.batch_sizes[axis] = y.sizes[static_cast<std::size_t>(axis)];
    plan.batches *= plan.batch_sizes[axis];
  }
  line_up(a, std::min(a.rank, 2), plan.batch_rank, plan.a_batch);
  line_up(b, std::min(b.rank, 2), plan.batch_rank, plan.b_batch);
  line_up(y, y_matrix, plan.batch_rank, plan.y_batch);
  plan.tile_rows = tile_rows;
  plan.tile_columns = tile_columns;
  plan.row_tiles = ceil_div(plan.rows, plan.tile_rows);
  plan.column_tiles = ceil_div(plan.columns, plan.tile_columns);
  return plan;
}

namespace {

Plan plan_matmul(const PlanRequest& request, const Target& target) {
  return Plan::of(walk_matmul(request, 96, 2 * vector_width(target.cluster)));
}

Workspace matmul_workspace(const Plan& plan) {
  const MatmulPlan& p = plan.head<MatmulPlan>();
  const int64_t inner = std::min(p.inner, MatmulPlan::inner_block);
  return {0, static_cast<std::size_t>(inner * p.tile_columns) * sizeof(float)};
}

int64_t matmul_tiles(const Plan& plan, int) {
  const MatmulPlan& p = plan.head<MatmulPlan>();
  return p.batches * p.row_tiles * p.column_tiles;
}

}  // namespace

void add_matmul_rows(const ClusterKernels& kernels, RowList& rows) {
  Row row;
  row.name = "matmul_columns";
  row.op = "matmul";
  row.doc = "some rows of the result in registers, two vectors wide; no operand is packed ahead";
  row.takes = Density::pitched;
  row.accepts = accepts_matmul;
  row.cost = cost_matmul;
  row.plan = plan_matmul;
  row.workspace = matmul_workspace;
  row.tiles = matmul_tiles;
  row.run = kernels.matmul;
  rows.push_back(row);
}

}  // namespace polyphase::cpu
