// The rows of resize, in FP32 and in any float dtype: per-axis lists of places and weights, made at plan time from the
// operator's own rules.
#include <algorithm>

#include "backends/cpu/kernels/resample.h"
#include "backends/cpu/rows/row_list.h"
#include "ops/resize_axis.h"

namespace polyphase::cpu {
namespace {

std::string refuse_resample(const StepDesc& desc) {
  const Shape& x = desc.inputs[0].type.shape;
  const Shape& y = desc.outputs[0].type.shape;
  if (x.rank() < 3 || x.rank() > 5) return "takes (N, C, one to three spatial axes)";
  const auto& scales = desc.attributes().get<std::vector<double>>("scales");
  for (int i = 0; i < 2; ++i) {
    if (!(x[i] == y[i]) || (!scales.empty() && scales[static_cast<std::size_t>(i)] != 1))
      return "resizes spatial axes only";
  }
  if (desc.attributes().get<std::string>("coordinate") == "tf_crop_and_resize") return "does not extrapolate";
  return needs_unfused(desc);
}

std::string accepts_resample(const StepDesc& desc, const Target&) {
  if (std::string refusal = needs_f32(desc); !refusal.empty()) return refusal;
  return refuse_resample(desc);
}

std::string accepts_number_resample(const StepDesc& desc, const Target&) {
  if (std::string refusal = needs_wide(desc); !refusal.empty()) return refusal;
  if (!is_float(desc.inputs[0].type.dtype)) return "computes floats";
  return refuse_resample(desc);
}

double cost_resample(const StepDesc& desc, const Target&) {
  const std::string& mode = desc.attributes().get<std::string>("mode");
  return moving_seconds(desc) + result_elements(desc) * (mode == "nearest" ? 0.2e-9 : (mode == "linear" ? 1e-9 : 4e-9));
}

Plan plan_resample(const PlanRequest& request, const Target&) {
  const TensorDesc& x = request.inputs[0];
  const TensorDesc& y = request.outputs[0];
  ResamplePlan head{};
  head.dtype = x.dtype;
  head.batch = x.sizes[0];
  head.channels = x.sizes[1];
  for (std::size_t i = 0; i < 2; ++i) {
    head.from_strides[i] = x.strides[i];
    head.to_strides[i] = y.strides[i];
  }
  const auto spatial = static_cast<std::size_t>(x.rank - 2);
  std::vector<ResampleTap> lists[3];
  for (std::size_t axis = 0; axis < 3; ++axis) {
    head.out[axis] = 1;
    head.taps[axis] = 1;
    lists[axis] = {{0, 1.0F, 1.0}};
    if (axis + spatial < 3) continue;
    const std::size_t own = axis + spatial - 1;  // the tensor's axis
    const ResizeAxis rule = resize_axis(request.desc.attributes(), own, x.sizes[own], y.sizes[own]);
    head.out[axis] = y.sizes[own];
    head.to_strides[axis + 2] = y.strides[own];
    std::vector<std::vector<WeightedPlace>> sources;
    std::size_t longest = 1;
    for (int64_t place = 0; place < y.sizes[own]; ++place) {
      sources.push_back(resize_sources(request.desc.attributes(), rule, place));
      longest = std::max(longest, sources.back().size());
    }
    head.taps[axis] = static_cast<int32_t>(longest);
    lists[axis].clear();
    for (const auto& source : sources) {
      for (std::size_t k = 0; k < longest; ++k) {
        const WeightedPlace entry = k < source.size() ? source[k] : WeightedPlace{0, 0.0};
        lists[axis].push_back({entry.place * x.strides[own], static_cast<float>(entry.weight), entry.weight});
      }
    }
  }
  head.channels_inside = x.strides[1] == 1 && y.strides[1] == 1 ? 1 : 0;
  head.tiles = y.empty() ? 0 : head.batch * head.out[0] * (head.channels_inside != 0 ? head.out[1] : head.channels);
  Plan plan = Plan::of(head);
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const std::size_t at = plan.append(std::span<const ResampleTap>(lists[axis]));
    plan.head<ResamplePlan>().taps_at[axis] = static_cast<int64_t>(at);
  }
  return plan;
}

// Lanes are channels, of any stride.
Plan plan_number_resample(const PlanRequest& request, const Target& target) {
  Plan plan = plan_resample(request, target);
  auto& head = plan.head<ResamplePlan>();
  head.tiles = request.outputs[0].empty() ? 0 : head.batch * head.out[0] * head.out[1];
  return plan;
}

double cost_number_resample(const StepDesc& desc, const Target& target) { return cost_resample(desc, target) * 4; }

}  // namespace

void add_resample_rows(const ClusterKernels& kernels, RowList& rows) {
  Row row;
  row.name = "weighted_resample";
  row.op = "resize";
  row.doc = "sums the operand's places of each result by per-axis weights";
  row.takes = Density::strided;
  row.accepts = accepts_resample;
  row.cost = cost_resample;
  row.plan = plan_resample;
  row.tiles = [](const Plan& plan, int) { return reinterpret_cast<const ResamplePlan*>(plan.bytes())->tiles; };
  row.run = kernels.resample;
  rows.push_back(row);
  row.name = "number_resample";
  row.doc = "any float dtype: FP64 sums of runs of channels";
  row.accepts = accepts_number_resample;
  row.cost = cost_number_resample;
  row.plan = plan_number_resample;
  row.run = kernels.number_resample;
  rows.push_back(row);
}

}  // namespace polyphase::cpu
