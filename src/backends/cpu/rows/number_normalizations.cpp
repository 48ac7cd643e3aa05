// Rows of normalisations and softmaxes in FP64, for what the FP32 rows do not take.
#include "backends/cpu/kernels/number_normalize.h"

#include <algorithm>

#include "backends/cpu/rows/row_list.h"

namespace polyphase::cpu {
namespace {

using NumberPlan = NumberNormalizePlan;

bool is(const StepDesc& desc, std::string_view op) { return desc.anchor_part().op->name == op; }

std::string accepts_number_normalize(const StepDesc& desc, const Target&) {
  if (is(desc, "batch_norm")) return needs_unfused(desc);  // the only row
  if (std::string refusal = needs_wide(desc); !refusal.empty()) return refusal;
  return needs_unfused(desc);
}

double cost_number_normalize(const StepDesc& desc, const Target&) {
  return moving_seconds(desc) * 4 + result_elements(desc) * 3e-9;
}

// Lays the axes of x out as the plan's, outer ones first.
struct Axes {
  NumberPlan& plan;
  const PlanRequest& request;
  int rank = 0;

  void add(int64_t size, int64_t x_stride, int64_t y_stride) {
    plan.sizes[rank] = size;
    plan.strides[NumberPlan::x][rank] = x_stride;
    plan.to_strides[rank] = y_stride;
    ++rank;
  }
  void add_axis(int axis) {
    const auto i = static_cast<std::size_t>(axis);
    add(request.inputs[0].sizes[i], request.inputs[0].strides[i], request.outputs[0].strides[i]);
  }
  // The last added axis goes along the parameters of the channels, `step` of them at a time.
  void goes_along_channels(int64_t step) const {
    for (int k = 1; k < NumberPlan::operand_count; ++k) {
      if (plan.input[k] >= 0)
        plan.strides[k][rank - 1] = step * request.inputs[static_cast<std::size_t>(plan.input[k])].strides[0];
    }
  }
};

void set_channel_axes(Axes& axes, int64_t channels_per_group) {
  const TensorDesc& x = axes.request.inputs[0];
  const TensorDesc& y = axes.request.outputs[0];
  axes.add_axis(0);
  axes.add(x.sizes[1] / channels_per_group, channels_per_group * x.strides[1], channels_per_group * y.strides[1]);
  axes.goes_along_channels(channels_per_group);
  axes.plan.outer_rank = axes.rank;
  axes.add(channels_per_group, x.strides[1], y.strides[1]);
  axes.goes_along_channels(1);
  for (int axis = 2; axis < x.rank; ++axis) axes.add_axis(axis);
}

void set_layer_axes(Axes& axes, int first) {
  const TensorDesc& x = axes.request.inputs[0];
  for (int axis = 0; axis < x.rank; ++axis) {
    if (axis == first) axes.plan.outer_rank = axes.rank;
    axes.add_axis(axis);
    for (int k = 1; k < 3 && axis >= first; ++k) {
      if (axes.plan.input[k] < 0) continue;
      const TensorDesc& own = axes.request.inputs[static_cast<std::size_t>(axes.plan.input[k])];
      const int at = axis - (x.rank - own.rank);
      if (at >= 0 && own.sizes[static_cast<std::size_t>(at)] != 1)
        axes.plan.strides[k][axis] = own.strides[static_cast<std::size_t>(at)];
    }
  }
}

Plan plan_number_normalize(const PlanRequest& request, const Target&) {
  const Attributes& attributes = request.desc.attributes();
  const TensorDesc& x = request.inputs[0];
  NumberPlan plan{};
  plan.epsilon = attributes.get<double>("epsilon");
  plan.given_moments = is(request.desc, "batch_norm") ? 1 : 0;
  for (int k = 0; k < NumberPlan::operand_count; ++k) {
    plan.input[k] = request.desc.anchor_operand(static_cast<std::size_t>(k));
    if (plan.input[k] >= 0 && !request.desc.inputs[static_cast<std::size_t>(plan.input[k])].present) plan.input[k] = -1;
    if (plan.input[k] >= 0) plan.dtypes[k] = request.inputs[static_cast<std::size_t>(plan.input[k])].dtype;
  }
  Axes axes{plan, request};
  if (is(request.desc, "layer_norm")) {
    plan.keeps_mean = attributes.get<bool>("centre") ? 0 : 1;
    set_layer_axes(axes, static_cast<int>(attributes.get<int64_t>("axis")));
  } else {
    const bool grouped = is(request.desc, "group_norm");
    set_channel_axes(axes, grouped ? x.sizes[1] / attributes.get<int64_t>("groups") : 1);
  }
  plan.inner_rank = axes.rank - plan.outer_rank;
  plan.count = plan.tiles = 1;
  for (int axis = 0; axis < axes.rank; ++axis) (axis < plan.outer_rank ? plan.tiles : plan.count) *= plan.sizes[axis];
  if (request.outputs[0].empty()) plan.tiles = 0;
  return Plan::of(plan);
}

std::string accepts_number_softmax(const StepDesc& desc, const Target&) {
  if (std::string refusal = needs_wide(desc); !refusal.empty()) return refusal;
  if (!is_float(desc.inputs[0].type.dtype)) return "computes floats";
  if (!(desc.inputs[0].layout == desc.outputs[0].layout)) return "needs one layout for operand and result";
  return needs_unfused(desc);
}

double cost_number_softmax(const StepDesc& desc, const Target&) {
  return moving_seconds(desc) * 4 + result_elements(desc) * 20e-9;
}

Plan plan_number_softmax(const PlanRequest& request, const Target&) {
  const TensorDesc& x = request.inputs[0];
  const auto axis = static_cast<std::size_t>(request.desc.attributes().get<int64_t>("axis"));
  NumberSoftmaxPlan plan{};
  plan.dtype = x.dtype;
  plan.logarithm = is(request.desc, "log_softmax") ? 1 : 0;
  plan.length = x.sizes[axis];
  // Dense in any order of axes: what lies inside the axis, and what lies outside.
  const int64_t inner = x.sizes[axis] == 1 ? 1 : x.strides[axis];
  const int64_t count = x.element_count();
  const int64_t outer = count == 0 ? 0 : count / plan.length / inner;
  plan.step = inner;
  plan.lane = inner == 1 ? plan.length : 1;
  plan.lane_count = inner == 1 ? outer : inner;
  plan.lane_blocks = std::max<int64_t>(1, ceil_div(plan.lane_count, NumberSoftmaxPlan::lanes));
  plan.block_stride = plan.length * inner;
  plan.tiles = count == 0 ? 0 : plan.lane_blocks * (inner == 1 ? 1 : outer);
  return Plan::of(plan);
}

}  // namespace

void add_number_normalize_rows(const ClusterKernels& kernels, RowList& rows) {
  for (const std::string_view op : {"batch_norm", "instance_norm", "group_norm", "layer_norm"}) {
    Row row;
    row.name = "number_normalize";
    row.op = op;
    row.doc = "any float dtype and layout, computed in FP64 group by group";
    row.takes = Density::strided;
    row.accepts = accepts_number_normalize;
    row.cost = cost_number_normalize;
    row.plan = plan_number_normalize;
    row.tiles = [](const Plan& plan, int) { return plan.head<NumberPlan>().tiles; };
    row.run = kernels.number_normalize;
    rows.push_back(row);
  }
  for (const std::string_view op : {"softmax", "log_softmax"}) {
    Row row;
    row.name = "number_softmax";
    row.op = op;
    row.doc = "any float dtype, computed in FP64; lanes are neighbours across the axis";
    row.takes = Density::dense;
    row.accepts = accepts_number_softmax;
    row.cost = cost_number_softmax;
    row.plan = plan_number_softmax;
    row.tiles = [](const Plan& plan, int) { return plan.head<NumberSoftmaxPlan>().tiles; };
    row.run = kernels.number_softmax;
    rows.push_back(row);
  }
}

}  // namespace polyphase::cpu
