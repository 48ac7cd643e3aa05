// Plans depthwise separable convolution: the tiles of the depthwise kernel, which the product takes over.
#include "backends/cpu/kernels/conv_separable.h"

#include <algorithm>

#include "backends/cpu/kernels/scratch_pieces.h"

namespace polyphase::cpu {
namespace {

// Pixels that lie so far apart that they push each other out of the first-level cache are moved further.
int64_t pixel_step_of(int64_t channels) {
  return channels % collision_floats == 0 ? channels + cache_line_floats : channels;
}

}  // namespace

ConvSeparablePlan plan_conv_separable(const SeparablePart& depthwise, const SeparablePart& pointwise,
                                      const ImageStrides& in, const ImageStrides& out, int width) {
  const ConvShape& s = depthwise.shape;
  const auto plan_depthwise = [&](const ImageStrides& between) {
    return plan_conv_depthwise(s, in, between, depthwise.endings, depthwise.has_bias, width);
  };
  ConvSeparablePlan plan = {};
  const TileCut cut = [&] {
    const ConvDepthwisePlan any = plan_depthwise({0, 1, {0, 0, s.groups}});
    return TileCut{any.lines_per_tile, any.x_block};
  }();
  plan.pixel_step = pixel_step_of(s.groups);
  plan.line_step = std::min(cut.x_block, std::max<int64_t>(1, s.out[2])) * plan.pixel_step;
  const int64_t plane = s.out[1] * plan.line_step;
  const ImageStrides between = {s.out[0] * plane, 1, {plane, plan.line_step, plan.pixel_step}};
  plan.depthwise = plan_depthwise(between);
  plan.pointwise = plan_conv_gemm_cut(pointwise.shape, between, out, pointwise.endings, pointwise.has_bias, width, cut);
  plan.image_at = scratch_piece_bytes<std::byte>(std::max(plan.depthwise.scratch_bytes, plan.pointwise.scratch_bytes));
  plan.scratch_bytes = plan.image_at + scratch_piece_bytes<float>(cut.lines * plan.line_step);
  return plan;
}

int64_t conv_separable_tiles(const ConvSeparablePlan& plan) { return conv_gemm_tiles(plan.pointwise, 0); }

float* separable_image(const ConvSeparablePlan& plan, int64_t tile, std::byte* scratch) {
  const ConvDepthwisePlan& d = plan.depthwise;
  const int64_t first =
      tile / d.x_blocks * d.lines_per_tile * plan.line_step + tile % d.x_blocks * d.x_block * plan.pixel_step;
  // As numbers: the place may lie outside of any memory.
  return reinterpret_cast<float*>(reinterpret_cast<std::uintptr_t>(scratch + plan.image_at) -
                                  static_cast<std::uintptr_t>(first) * sizeof(float));
}

int64_t conv_separable_pointwise_at(const ConvShape& depthwise, int width) {
  return ceil_div(conv_depthwise_packed_floats(depthwise, width), cache_line_floats) * cache_line_floats;
}

}  // namespace polyphase::cpu
