// Rows of max_pool and avg_pool: in FP32 and bf16 on vectors of its own, in any wide dtype by runs of numbers. And of
// max_pool_indices: where max_pool finds its elements.
#include <algorithm>
#include <limits>

#include "backends/cpu/kernels/pool.h"
#include "backends/cpu/rows/row_list.h"

namespace polyphase::cpu {
namespace {

std::string accepts_pool(const StepDesc& desc, const Target&) {
  const bool in_bf16 = desc.data().type.dtype == DType::bf16;
  if (std::string refusal = in_bf16 ? "" : needs_f32(desc); !refusal.empty()) return refusal;
  return needs_unfused(desc);
}

double cost_pool(const StepDesc& desc, const Target& target) {
  double taps = 1;
  for (const int64_t k : desc.attributes().get<std::vector<int64_t>>("kernel")) taps *= static_cast<double>(k);
  const double lanes = desc.outputs[0].layout.is_channels_last() && target.cluster != Cluster::scalar ? 8 : 1;
  return moving_seconds(desc) + result_elements(desc) * taps * 0.5e-9 / lanes;
}

double cost_pool_places(const StepDesc& desc, const Target& target) { return cost_pool(desc, target) * 2; }

std::string accepts_number_pool(const StepDesc& desc, const Target&) {
  if (std::string refusal = needs_wide(desc); !refusal.empty()) return refusal;
  return needs_unfused(desc);
}

double cost_number_pool(const StepDesc& desc, const Target& target) { return cost_pool(desc, target) * 4; }

int64_t least_integer(DType dtype) {
  if (is_float(dtype) || !is_signed(dtype)) return 0;
  const int bits = dtype == DType::i4 ? 4 : 8 * static_cast<int>(size_bytes(dtype));
  return -(int64_t{1} << (bits - 2)) * 2;
}

bool pools_by_lines(const PoolPlan& plan) {
  const bool dense = plan.from_strides[4] == 1 && plan.to_strides[4] == 1;
  return dense && plan.kernel[2] <= pool_span / 2 && plan.dilation[2] <= pool_span / 2 / plan.kernel[2];
}

// Windows over (N, C, spatial) of a pooling, or of the places of one.
PoolPlan pool_windows(const PlanRequest& request) {
  const TensorDesc& x = request.inputs[0];
  const TensorDesc& y = request.outputs[0];
  const Attributes& attributes = request.desc.attributes();
  PoolPlan plan{};
  plan.dtype = x.dtype;
  plan.least = least_integer(x.dtype);
  plan.batch = x.sizes[0];
  plan.channels = x.sizes[1];
  std::fill_n(plan.in, 3, 1);
  std::fill_n(plan.out, 3, 1);
  std::fill_n(plan.kernel, 3, 1);
  std::fill_n(plan.stride, 3, 1);
  std::fill_n(plan.dilation, 3, 1);
  std::fill_n(plan.padded, 3, 1);
  const auto pre = integers_of(attributes.get<std::vector<Dim>>("pre"));
  const auto post = integers_of(attributes.get<std::vector<Dim>>("post"));
  const auto spatial = static_cast<std::size_t>(x.rank - 2);
  for (std::size_t i = 0; i < spatial; ++i) {
    const std::size_t axis = 3 - spatial + i;
    plan.in[axis] = x.sizes[i + 2];
    plan.out[axis] = y.sizes[i + 2];
    plan.kernel[axis] = attributes.get<std::vector<int64_t>>("kernel")[i];
    plan.stride[axis] = attributes.get<std::vector<int64_t>>("stride")[i];
    plan.dilation[axis] = attributes.get<std::vector<int64_t>>("dilation")[i];
    plan.pre[axis] = pre[i];
    plan.padded[axis] = x.sizes[i + 2] + pre[i] + post[i];
    plan.from_strides[axis + 2] = x.strides[i + 2];
    plan.to_strides[axis + 2] = y.strides[i + 2];
  }
  for (std::size_t i = 0; i < 2; ++i) {
    plan.from_strides[i] = x.strides[i];
    plan.to_strides[i] = y.strides[i];
  }
  plan.channels_inside = x.strides[1] == 1 && y.strides[1] == 1 ? 1 : 0;
  plan.lines_inside = pools_by_lines(plan) ? 1 : 0;
  return plan;
}

Plan plan_pool(const PlanRequest& request, const Target&) {
  PoolPlan plan = pool_windows(request);
  plan.average = request.desc.anchor_part().op->name == "avg_pool" ? 1 : 0;
  plan.include_pad = plan.average != 0 && request.desc.attributes().get<bool>("include_pad") ? 1 : 0;
  const int64_t rows = plan.channels_inside != 0 ? plan.out[1] : plan.channels;
  plan.tiles = request.outputs[0].empty() ? 0 : plan.batch * plan.out[0] * rows;
  return Plan::of(plan);
}

Plan plan_pool_places(const PlanRequest& request, const Target&) {
  PoolPlacesPlan plan{};
  plan.windows = pool_windows(request);
  // Places are counted in 32 bits by lanes.
  if (plan.windows.in[0] * plan.windows.in[1] * plan.windows.in[2] > std::numeric_limits<int32_t>::max())
    plan.windows.lines_inside = 0;
  plan.by_columns = request.desc.attributes().get<bool>("column_major") ? 1 : 0;
  const int64_t planes = plan.windows.batch * plan.windows.channels;
  const int64_t rows = plan.windows.out[0] * plan.windows.out[1];
  plan.windows.tiles = request.outputs[0].empty() ? 0 : planes * ceil_div(rows, pool_rows_at_once);
  return Plan::of(plan);
}

std::string accepts_pool_places(const StepDesc& desc, const Target&) {
  if (desc.inputs[0].type.dtype != DType::f32)
    return "computes in f32 only, found " + std::string(name_of(desc.inputs[0].type.dtype));
  return needs_plain(desc);
}

// Lanes are channels, of any stride.
Plan plan_number_pool(const PlanRequest& request, const Target& target) {
  Plan plan = plan_pool(request, target);
  auto& head = plan.head<PoolPlan>();
  head.tiles = request.outputs[0].empty() ? 0 : head.batch * head.out[0] * head.out[1];
  return plan;
}

}  // namespace

void add_pool_rows(const ClusterKernels& kernels, RowList& rows) {
  for (const std::string_view op : {"max_pool", "avg_pool"}) {
    Row row;
    row.name = "window_pool";
    row.op = op;
    row.doc = "walks the window of each result; lanes are channels where those lie inside";
    row.takes = Density::strided;
    row.accepts = accepts_pool;
    row.cost = cost_pool;
    row.plan = plan_pool;
    row.tiles = [](const Plan& plan, int) { return plan.head<PoolPlan>().tiles; };
    row.run = kernels.pool;
    rows.push_back(row);
    row.name = "number_pool";
    row.doc = "any dtype: the extremes, or FP64 sums, of runs of channels";
    row.accepts = accepts_number_pool;
    row.cost = cost_number_pool;
    row.plan = plan_number_pool;
    row.run = kernels.number_pool;
    rows.push_back(row);
  }
  Row row;
  row.name = "window_search";
  row.op = "max_pool_indices";
  row.doc = "searches each window in order; lanes are neighbours of a line";
  row.accepts = accepts_pool_places;
  row.cost = cost_pool_places;
  row.plan = plan_pool_places;
  row.tiles = [](const Plan& plan, int) { return plan.head<PoolPlacesPlan>().windows.tiles; };
  row.run = kernels.pool_places;
  rows.push_back(row);
}

}  // namespace polyphase::cpu
