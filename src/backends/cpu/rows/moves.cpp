// Rows that only move elements: one kernel, strided_copy, planned from what each operator means.
#include <algorithm>
#include <array>
#include <cstring>

#include "backends/cpu/kernels/strided_copy.h"
#include "backends/cpu/rows/row_list.h"
#include "ops/pick.h"

namespace polyphase::cpu {
namespace {

using Boxes = std::vector<CopyBox>;
using Sizes = std::vector<int64_t>;

Sizes sizes_of(const TensorDesc& desc) { return {desc.size_span().begin(), desc.size_span().end()}; }
Sizes strides_of(const TensorDesc& desc) { return {desc.stride_span().begin(), desc.stride_span().end()}; }

// The result element by element from an operand of the same logical sizes.
Boxes boxes_identity(const PlanRequest& request) {
  return {{0, sizes_of(request.outputs[0]), strides_of(request.inputs[0]), strides_of(request.outputs[0])}};
}

Boxes boxes_transpose(const PlanRequest& request) {
  const auto& order = request.desc.attributes().get<std::vector<int64_t>>("order");
  CopyBox box{0, sizes_of(request.outputs[0]), {}, strides_of(request.outputs[0])};
  for (const int64_t axis : order)
    box.from_strides.push_back(request.inputs[0].strides[static_cast<std::size_t>(axis)]);
  return {box};
}

Boxes boxes_slice(const PlanRequest& request) {
  const auto start = integers_of(request.desc.attributes().get<std::vector<Dim>>("start"));
  const auto& step = request.desc.attributes().get<std::vector<int64_t>>("step");
  CopyBox box{0, sizes_of(request.outputs[0]), {}, strides_of(request.outputs[0])};
  for (std::size_t i = 0; i < start.size(); ++i) {
    box.from_offset += start[i] * request.inputs[0].strides[i];
    box.from_strides.push_back(step[i] * request.inputs[0].strides[i]);
  }
  return {box};
}

Boxes boxes_expand(const PlanRequest& request) {
  const TensorDesc& x = request.inputs[0];
  CopyBox box{0, sizes_of(request.outputs[0]), {}, strides_of(request.outputs[0])};
  box.from_strides.assign(box.sizes.size(), 0);
  const std::size_t lead = box.sizes.size() - static_cast<std::size_t>(x.rank);
  for (std::size_t i = 0; i < static_cast<std::size_t>(x.rank); ++i) {
    if (x.sizes[i] != 1) box.from_strides[lead + i] = x.strides[i];
  }
  return {box};
}

// Both sides are dense and row-major: one run of elements.
Boxes boxes_reshape(const PlanRequest& request) { return {{0, {request.outputs[0].element_count()}, {1}, {1}}}; }

Boxes boxes_concat(const PlanRequest& request) {
  const auto axis = static_cast<std::size_t>(request.desc.attributes().get<int64_t>("axis"));
  Boxes boxes;
  int64_t place = 0;
  for (const int operand : request.desc.anchor_part().operands) {
    const TensorDesc& x = request.inputs[static_cast<std::size_t>(operand)];
    CopyBox box{operand, sizes_of(x), strides_of(x), strides_of(request.outputs[0])};
    box.to_offset = place * request.outputs[0].strides[axis];
    place += x.sizes[axis];
    boxes.push_back(std::move(box));
  }
  return boxes;
}

// Each axis of size n and r repeats is walked as (r, n): r with operand stride 0. What is 1 needs no walk.
Boxes boxes_tile(const PlanRequest& request) {
  const TensorDesc& x = request.inputs[0];
  const TensorDesc& y = request.outputs[0];
  CopyBox box;
  box.input = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(x.rank); ++i) {
    const int64_t repeats = x.sizes[i] == 0 ? 0 : y.sizes[i] / x.sizes[i];
    const auto walk = [&box](int64_t size, int64_t from_stride, int64_t to_stride) {
      if (size == 1) return;
      box.sizes.push_back(size);
      box.from_strides.push_back(from_stride);
      box.to_strides.push_back(to_stride);
    };
    walk(repeats, 0, x.sizes[i] * y.strides[i]);
    walk(x.sizes[i], x.strides[i], y.strides[i]);
  }
  return {box};
}

// depth_to_space of (N, C, H, W): the result's (n, c, h·b + p, w·b + q) comes from channel (p·b + q)·C' + c (dcr) or
// c·b² + p·b + q (crd).
Boxes boxes_depth_space(const PlanRequest& request, bool to_space) {
  const int64_t b = request.desc.attributes().get<int64_t>("block");
  const TensorDesc& deep = to_space ? request.inputs[0] : request.outputs[0];
  const TensorDesc& wide = to_space ? request.outputs[0] : request.inputs[0];
  const int64_t channels = wide.sizes[1];
  const bool crd = to_space && request.desc.attributes().get<std::string>("mode") == "crd";
  const int64_t phase = (crd ? 1 : channels) * deep.strides[1];
  const Sizes sizes = {deep.sizes[0], channels, deep.sizes[2], b, deep.sizes[3], b};
  const Sizes deep_strides = {
      deep.strides[0], (crd ? b * b : 1) * deep.strides[1], deep.strides[2], b * phase, deep.strides[3], phase};
  const Sizes wide_strides = {wide.strides[0], wide.strides[1],     b * wide.strides[2],
                              wide.strides[2], b * wide.strides[3], wide.strides[3]};
  return {{0, sizes, to_space ? deep_strides : wide_strides, to_space ? wide_strides : deep_strides}};
}
Boxes boxes_depth_to_space(const PlanRequest& request) { return boxes_depth_space(request, true); }
Boxes boxes_space_to_depth(const PlanRequest& request) { return boxes_depth_space(request, false); }

// A run of result places of one axis whose operand places go up, down, or stay.
struct Segment {
  int64_t to;
  int64_t count;
  int64_t from;
  int64_t step;
  bool constant;
};

std::vector<Segment> segments_of(const std::vector<int64_t>& source) {
  std::vector<Segment> segments;
  for (std::size_t i = 0; i < source.size(); ++i) {
    const bool constant = source[i] == picks_constant;
    if (!segments.empty()) {
      Segment& last = segments.back();
      const int64_t step = source[i] - source[i - 1];
      const bool continues = last.constant == constant &&
                             (constant || (step >= -1 && step <= 1 && (last.count == 1 || step == last.step)));
      if (continues) {
        if (!constant && last.count == 1) last.step = step;
        ++last.count;
        continue;
      }
    }
    segments.push_back({static_cast<int64_t>(i), 1, source[i], 0, constant});
  }
  return segments;
}

Boxes boxes_pad(const PlanRequest& request) {
  const TensorDesc& x = request.inputs[0];
  const TensorDesc& y = request.outputs[0];
  const auto& mode = request.desc.attributes().get<std::string>("mode");
  const auto pre = integers_of(request.desc.attributes().get<std::vector<Dim>>("pre"));
  std::vector<std::vector<Segment>> segments;
  for (std::size_t axis = 0; axis < pre.size(); ++axis) {
    std::vector<int64_t> source(static_cast<std::size_t>(y.sizes[axis]));
    for (std::size_t i = 0; i < source.size(); ++i)
      source[i] = padded_source(static_cast<int64_t>(i), pre[axis], x.sizes[axis], mode);
    segments.push_back(segments_of(source));
    if (segments.back().empty()) return {};
  }
  Boxes boxes;
  std::vector<std::size_t> at(segments.size(), 0);
  for (;;) {
    CopyBox box;
    box.input = 0;
    for (std::size_t axis = 0; axis < segments.size(); ++axis) {
      const Segment& segment = segments[axis][at[axis]];
      if (segment.constant) box.input = -1;
      box.sizes.push_back(segment.count);
      box.to_strides.push_back(y.strides[axis]);
      box.to_offset += segment.to * y.strides[axis];
      box.from_strides.push_back(segment.step * x.strides[axis]);
      if (!segment.constant) box.from_offset += segment.from * x.strides[axis];
    }
    boxes.push_back(std::move(box));
    std::size_t axis = segments.size();
    while (axis > 0 && ++at[axis - 1] == segments[axis - 1].size()) at[--axis] = 0;
    if (axis == 0) return boxes;
  }
}

uint64_t fill_bits(const StepDesc& desc) {
  const Attributes& attributes = desc.attributes();
  uint64_t bits = 0;
  if (desc.anchor_part().op->name == "pad") {
    store_double(reinterpret_cast<std::byte*>(&bits), desc.outputs[0].type.dtype, attributes.get<double>("value"));
  }
  return bits;
}

template <Boxes (*boxes_of)(const PlanRequest&)>
Plan plan_moves(const PlanRequest& request, const Target&) {
  const int element_bytes = static_cast<int>(size_bytes(request.outputs[0].dtype));
  const Boxes boxes = boxes_of(request);
  CopyPlan head{element_bytes, 0, 0, 0, fill_bits(request.desc)};
  const std::vector<CopyRegion> regions = plan_copy_regions(boxes, element_bytes, head.tiles);
  head.region_count = static_cast<int32_t>(regions.size());
  Plan plan = Plan::of(head);
  const std::size_t at = plan.append(std::span<const CopyRegion>(regions));
  plan.head<CopyPlan>().regions_at = static_cast<int64_t>(at);
  return plan;
}

int64_t move_tiles(const Plan& plan, int) { return plan.head<CopyPlan>().tiles; }

std::string accepts_any(const StepDesc& desc, const Target&) { return needs_unfused(desc); }

std::string accepts_row_major(const StepDesc& desc, const Target&) {
  const bool row_major = desc.inputs[0].layout.is_row_major() && desc.outputs[0].layout.is_row_major();
  return row_major ? needs_unfused(desc) : "needs row-major tensors";
}

std::string accepts_tile(const StepDesc& desc, const Target&) {
  int walks = 0;
  for (const Dim& repeats : desc.attributes().get<std::vector<Dim>>("repeats")) walks += repeats == Dim(1) ? 0 : 1;
  for (const Dim& size : desc.data().type.shape) walks += size == Dim(1) ? 0 : 1;
  if (walks > max_rank) return "takes at most 8 axes and repeats that are not 1";
  return needs_unfused(desc);
}

std::string accepts_depth_space(const StepDesc& desc, const Target&) {
  if (desc.outputs[0].type.shape.rank() != 4) return "takes (N, C, H, W) only";
  return needs_unfused(desc);
}

double cost_moves(const StepDesc& desc, const Target&) { return moving_seconds(desc); }

// A copy that turns channels-first into channels-last or back goes through registers, whole vectors of channels at a
// time; vectors of which some lanes are empty are read or written in parts. Measured on AVX2 as steps of their own,
// with images from wherever the step before left them; AVX-512 was not measured.
double cost_copy(const StepDesc& desc, const Target& target) {
  const Shape& shape = desc.outputs[0].type.shape;
  const bool turns = !(desc.inputs[0].layout == desc.outputs[0].layout) && shape.rank() >= 3;
  if (!turns || target.cluster >= Cluster::avx512) return moving_seconds(desc);
  constexpr double bytes_in_caches = 8e6;
  const double elements = result_elements(desc);
  const std::int64_t channels = std::max<std::int64_t>(1, shape[1].constant().value_or(1));
  const int width = vector_width(target.cluster);
  const double points = elements / static_cast<double>(channels);
  const double whole = points * static_cast<double>(channels - channels % width);
  const double partial = channels % width == 0 ? 0 : points * static_cast<double>(width);
  const double per_float = desc.outputs[0].layout.is_row_major() ? 0.42e-9 : 0.26e-9;
  const double bytes = 2 * elements * static_cast<double>(size_bytes(desc.outputs[0].type.dtype));
  return per_float * whole + 0.55e-9 * partial + 0.063e-9 * std::max(0.0, bytes - bytes_in_caches) + 300e-9;
}

template <Boxes (*boxes_of)(const PlanRequest&)>
Row move_row(const ClusterKernels& kernels, std::string_view op, decltype(Row::accepts) accepts, Density takes) {
  Row row;
  row.name = "strided_copy";
  row.op = op;
  row.doc = "moves boxes of elements: rows by memcpy, fills, transposes in registers";
  row.takes = takes;
  row.accepts = accepts;
  row.cost = cost_moves;
  row.plan = plan_moves<boxes_of>;
  row.tiles = move_tiles;
  row.run = kernels.strided_copy;
  return row;
}

}  // namespace

void add_move_rows(const ClusterKernels& kernels, RowList& rows) {
  rows.push_back(move_row<boxes_identity>(kernels, "identity", accepts_any, Density::strided));
  rows.back().cost = cost_copy;
  rows.push_back(move_row<boxes_transpose>(kernels, "transpose", accepts_any, Density::strided));
  rows.push_back(move_row<boxes_slice>(kernels, "slice", accepts_any, Density::strided));
  rows.push_back(move_row<boxes_expand>(kernels, "expand", accepts_any, Density::strided));
  rows.push_back(move_row<boxes_reshape>(kernels, "reshape", accepts_row_major, Density::dense));
  rows.push_back(move_row<boxes_concat>(kernels, "concat", accepts_any, Density::strided));
  rows.push_back(move_row<boxes_tile>(kernels, "tile", accepts_tile, Density::strided));
  rows.push_back(move_row<boxes_depth_to_space>(kernels, "depth_to_space", accepts_depth_space, Density::strided));
  rows.push_back(move_row<boxes_space_to_depth>(kernels, "space_to_depth", accepts_depth_space, Density::strided));
  rows.push_back(move_row<boxes_pad>(kernels, "pad", accepts_any, Density::strided));
}

}  // namespace polyphase::cpu
