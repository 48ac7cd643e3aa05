// Rows of roi_align and random.
#include <algorithm>

#include "backends/cpu/kernels/conv_shape.h"
#include "backends/cpu/rows/row_list.h"
#include "ops/elements.h"
#include "ops/random.h"
#include "ops/region.h"

namespace polyphase::cpu {
namespace {

// ---------------------------------------------------------------- roi_align

constexpr int64_t region_channels_at_once = 32;

// A tile is one region and up to 32 channels: the places and weights of a sample serve all of them.
struct RegionPlan {
  RegionSettings settings;
  int64_t images;
  int64_t channels;
  int64_t regions;
  bool wide_indices;
};

std::string accepts_regions(const StepDesc& desc, const Target&) {
  for (const OperandDesc& operand : desc.inputs) {
    if (!operand.layout.is_row_major()) return "takes row-major operands only";
  }
  if (!desc.outputs[0].layout.is_row_major()) return "gives a row-major result only";
  if (desc.inputs[0].type.dtype != DType::f32)
    return "computes in f32 only, found " + std::string(name_of(desc.inputs[0].type.dtype));
  return needs_unfused(desc);
}

Plan plan_regions(const PlanRequest& request, const Target&) {
  const TensorDesc& x = request.inputs[0];
  RegionPlan plan{};
  plan.settings = region_settings(request.desc.attributes(), x.sizes[2], x.sizes[3]);
  plan.images = x.sizes[0];
  plan.channels = x.sizes[1];
  plan.regions = request.outputs[0].empty() ? 0 : request.outputs[0].sizes[0];
  plan.wide_indices = request.inputs[2].dtype == DType::i64;
  return Plan::of(plan);
}

Fault run_regions(const Plan& plan, const Pointers& pointers, int, int64_t tile, std::byte*) {
  const RegionPlan& p = plan.head<RegionPlan>();
  const RegionSettings& s = p.settings;
  const int64_t blocks = ceil_div(p.channels, region_channels_at_once);
  const int64_t region = tile / blocks;
  const int64_t channel = tile % blocks * region_channels_at_once;
  const int64_t channels = std::min(region_channels_at_once, p.channels - channel);
  const int64_t image = p.wide_indices ? reinterpret_cast<const int64_t*>(pointers.inputs[2])[region]
                                       : reinterpret_cast<const int32_t*>(pointers.inputs[2])[region];
  if (image < 0 || image >= p.images) return "a region names an image that is not there";
  const float* corners = reinterpret_cast<const float*>(pointers.inputs[1]) + region * 4;
  const double wide[4] = {corners[0], corners[1], corners[2], corners[3]};
  const RegionGrid grid = region_grid(s, wide);
  if (!grid.is_usable) return "a region is not finite, or far too large";
  const int64_t plane = s.image_height * s.image_width;
  const int64_t cells = s.height * s.width;
  const float* x = reinterpret_cast<const float*>(pointers.inputs[0]) + (image * p.channels + channel) * plane;
  float* y = reinterpret_cast<float*>(pointers.outputs[0]) + (region * p.channels + channel) * cells;
  double joined[region_channels_at_once];
  for (int64_t cell = 0; cell < cells; ++cell) {
    join_samples(s, grid, cell / s.width, cell % s.width, x, plane, channels, joined);
    for (int64_t c = 0; c < channels; ++c) y[c * cells + cell] = static_cast<float>(joined[c]);
  }
  return nullptr;
}

// ---------------------------------------------------------------- random

constexpr int64_t numbers_per_tile = 1 << 13;

// The plan points into the session's own StepDesc, which outlives it.
struct NoisePlan {
  const Attributes* attributes;
  DType dtype;
  int64_t count;
};

Fault run_noise(const Plan& plan, const Pointers& pointers, int, int64_t tile, std::byte*) {
  const NoisePlan& p = plan.head<NoisePlan>();
  const int64_t end = std::min(p.count, (tile + 1) * numbers_per_tile);
  for (int64_t at = tile * numbers_per_tile; at < end; at += block_elements) {
    double numbers[block_elements];
    const int64_t count = std::min(block_elements, end - at);
    draw(*p.attributes, at, count, numbers);
    write_block(pointers.outputs[0] + at * static_cast<int64_t>(size_bytes(p.dtype)), p.dtype, 1, count, numbers);
  }
  return nullptr;
}

Row noise_row() {
  Row row;
  row.name = "counted_noise";
  row.op = "random";
  row.doc = "draws tile by tile, each number from its place";
  row.accepts = [](const StepDesc& desc, const Target&) {
    return desc.outputs[0].layout.is_row_major() ? needs_unfused(desc) : std::string("gives a row-major result only");
  };
  row.cost = [](const StepDesc& desc, const Target&) { return moving_seconds(desc) + result_elements(desc) * 2e-8; };
  row.plan = [](const PlanRequest& request, const Target&) {
    return Plan::of(
        NoisePlan{&request.desc.attributes(), request.outputs[0].dtype, request.outputs[0].element_count()});
  };
  row.tiles = [](const Plan& plan, int) { return ceil_div(plan.head<NoisePlan>().count, numbers_per_tile); };
  row.run = run_noise;
  return row;
}

}  // namespace

void add_region_rows(const ClusterKernels&, RowList& rows) {
  Row row;
  row.name = "sampled_regions";
  row.op = "roi_align";
  row.doc = "one sample's places and weights for 32 channels";
  row.accepts = accepts_regions;
  row.cost = [](const StepDesc& desc, const Target&) { return moving_seconds(desc) + result_elements(desc) * 2e-8; };
  row.plan = plan_regions;
  row.tiles = [](const Plan& plan, int) {
    return plan.head<RegionPlan>().regions * ceil_div(plan.head<RegionPlan>().channels, region_channels_at_once);
  };
  row.run = run_regions;
  rows.push_back(row);
  rows.push_back(noise_row());
}

}  // namespace polyphase::cpu
