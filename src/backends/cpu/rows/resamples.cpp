// The rows of resize, in FP32 and in any float dtype: per-axis lists of places and weights, made at plan time from the
// operator's own rules.
#include <algorithm>
#include <optional>

#include "backends/cpu/kernels/resample.h"
#include "backends/cpu/rows/row_list.h"
#include "ops/resize_axis.h"

namespace polyphase::cpu {
namespace {

constexpr int64_t elements_of_tile = 16 * 1024;  // channels-first; more keep a core no busier

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
  return moving_seconds(desc) +
         result_elements(desc) * (mode == "nearest" ? 0.1e-9 : (mode == "linear" ? 0.4e-9 : 1e-9));
}

using Sources = std::vector<std::vector<WeightedPlace>>;  // by result place of an axis

// All lists as long as the longest: where there are fewer places, the last is there more than once, with halves of its
// weight, so that no other place is read whose infinity would become a NaN.
Sources sources_of(const Attributes& attributes, const ResizeAxis& axis) {
  Sources sources;
  std::size_t longest = 1;
  for (int64_t place = 0; place < axis.out; ++place) {
    std::vector<WeightedPlace> found = resize_sources(attributes, axis, place);
    const auto weighs = [](const WeightedPlace& entry) { return entry.weight != 0; };
    if (std::any_of(found.begin(), found.end(), weighs))
      std::erase_if(found, [&](const WeightedPlace& entry) { return !weighs(entry); });
    longest = std::max(longest, found.size());
    sources.push_back(std::move(found));
  }
  for (auto& places : sources) {
    while (places.size() < longest) {
      places.back().weight /= 2;
      places.push_back(places.back());
    }
  }
  return sources;
}

// Where vectors of results read the operand's last axis: the place of lane 0, and each tap's lanes from there.
struct LanePicks {
  std::vector<int64_t> first;
  std::vector<int32_t> lanes;
  std::vector<float> weights;
};

// Nothing if the places of one vector of results lie further apart than a vector.
std::optional<LanePicks> lane_picks(const Sources& sources, int64_t in_width, int64_t width) {
  LanePicks picks;
  const auto count = static_cast<int64_t>(sources.size());
  for (int64_t x = 0; x < count; x += width) {
    const int64_t end = std::min(count, x + width);
    int64_t least = in_width;
    int64_t most = 0;
    for (int64_t i = x; i < end; ++i) {
      for (const WeightedPlace& entry : sources[static_cast<std::size_t>(i)]) {
        least = std::min(least, entry.place);
        most = std::max(most, entry.place);
      }
    }
    const int64_t first = std::max<int64_t>(0, std::min(least, in_width - width));
    if (most - first >= width) return std::nullopt;
    picks.first.push_back(first);
    for (std::size_t tap = 0; tap < sources[0].size(); ++tap) {
      for (int64_t lane = 0; lane < width; ++lane) {
        const WeightedPlace& entry = sources[static_cast<std::size_t>(std::min(x + lane, end - 1))][tap];
        picks.lanes.push_back(static_cast<int32_t>(entry.place - first));
        picks.weights.push_back(static_cast<float>(entry.weight));
      }
    }
  }
  return picks;
}

// How lines of results are made, where both tensors' last axes are dense.
void plan_lines(Plan& plan, const Sources& last, int64_t in_width, int width) {
  const auto picks = lane_picks(last, in_width, width);
  const std::size_t first_at = picks ? plan.append(std::span<const int64_t>(picks->first)) : 0;
  const std::size_t lanes_at = picks ? plan.append(std::span<const int32_t>(picks->lanes)) : 0;
  const std::size_t weights_at = picks ? plan.append(std::span<const float>(picks->weights)) : 0;
  auto& head = plan.head<ResamplePlan>();
  head.lines = true;
  head.picks = picks.has_value();
  head.first_at = static_cast<int64_t>(first_at);
  head.lanes_at = static_cast<int64_t>(lanes_at);
  head.weights_at = static_cast<int64_t>(weights_at);
  const auto is_copy = [](const auto& places) { return places.size() == 1 && places.front().weight == 1; };
  head.copies_last = std::all_of(last.begin(), last.end(), is_copy);
  head.keeps_last = head.copies_last && static_cast<int64_t>(last.size()) == in_width;
  for (std::size_t x = 0; x < last.size(); ++x)
    head.keeps_last = head.keeps_last && last[x].front().place == static_cast<int64_t>(x);
  head.scratch_bytes = (in_width + 2 * width) * static_cast<int64_t>(sizeof(float));
}

Plan plan_resample(const PlanRequest& request, const Target& target) {
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
  Sources last;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    head.out[axis] = 1;
    head.taps[axis] = 1;
    lists[axis] = {{0, 1.0F, 1.0}};
    if (axis + spatial < 3) continue;
    const std::size_t own = axis + spatial - 1;  // the tensor's axis
    const ResizeAxis rule = resize_axis(request.desc.attributes(), own, x.sizes[own], y.sizes[own]);
    head.out[axis] = y.sizes[own];
    head.to_strides[axis + 2] = y.strides[own];
    last = sources_of(request.desc.attributes(), rule);
    head.taps[axis] = last.empty() ? 1 : static_cast<int32_t>(last.front().size());
    lists[axis].clear();
    for (const auto& source : last) {
      for (const WeightedPlace& entry : source)
        lists[axis].push_back({entry.place * x.strides[own], static_cast<float>(entry.weight), entry.weight});
    }
  }
  const auto inner = static_cast<std::size_t>(x.rank - 1);
  head.in_width = x.sizes[inner];
  const int width = vector_width(target.cluster);
  const bool turns = head.channels >= width && y.strides[1] != 1 && y.strides[inner] == 1;
  head.channels_inside = x.strides[1] == 1 && (y.strides[1] == 1 || turns) ? 1 : 0;
  if (head.channels_inside != 0 && y.strides[1] != 1) {
    head.turned = std::min(head.out[2], std::max<int64_t>(1, elements_of_tile / head.channels / width) * width);
    head.scratch_bytes = head.turned * head.channels * static_cast<int64_t>(sizeof(float));
  }
  head.line_block =
      std::clamp<int64_t>(elements_of_tile / std::max<int64_t>(1, head.out[2]), 1, std::max<int64_t>(1, head.out[1]));
  head.line_blocks = ceil_div(head.out[1], head.line_block);
  const int64_t of_plane = head.channels_inside != 0 ? head.out[1] : head.channels * head.line_blocks;
  head.tiles = y.empty() ? 0 : head.batch * head.out[0] * of_plane;
  Plan plan = Plan::of(head);
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const std::size_t at = plan.append(std::span<const ResampleTap>(lists[axis]));
    plan.head<ResamplePlan>().taps_at[axis] = static_cast<int64_t>(at);
  }
  if (!y.empty() && head.channels_inside == 0 && x.strides[inner] == 1 && y.strides[inner] == 1)
    plan_lines(plan, last, head.in_width, width);
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
  row.tiles = [](const Plan& plan, int) { return plan.head<ResamplePlan>().tiles; };
  row.workspace = [](const Plan& plan) {
    return Workspace{0, static_cast<std::size_t>(plan.head<ResamplePlan>().scratch_bytes)};
  };
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
