// Plans and packs depthwise convolution.
#include <algorithm>
#include <vector>

#include "backends/cpu/kernels/conv_depthwise.h"
#include "backends/cpu/kernels/panel_lines.h"

namespace polyphase::cpu {
namespace {

constexpr int64_t tile_line_floats = 16 * 1024;  // output of a tile's line: stays in the first levels of the cache
constexpr int64_t tile_floats = 32 * 1024;
constexpr int64_t fetched_floats = 1 << 20;  // of an input from which fetching ahead pays
constexpr int64_t depthwise_tiles_aimed = 16;

}  // namespace

ConvDepthwisePlan plan_conv_depthwise(const ConvShape& shape, const ImageStrides& in, const ImageStrides& out,
                                      const EndingProgram& endings, bool has_bias, int width) {
  ConvDepthwisePlan plan = {};
  plan.shape = shape;
  plan.in = in;
  plan.out = out;
  plan.endings = endings;
  plan.has_bias = has_bias;
  plan.channels = shape.groups * shape.out_channels;
  plan.pitch = ceil_div(plan.channels, width) * width;
  plan.in_copied = (in.channel != 1 && shape.groups != 1) || shape.out_channels != 1 || is_narrow(shape.types.in);
  plan.fetches_ahead = ConvAxis(shape, 1).in_step() == 1 && ConvAxis(shape, 2).in_step() == 1 &&
                       shape.batch * shape.in_points() * plan.channels >= fetched_floats;
  plan.past_caches = is_past_caches(shape);
  plan.out_planar = (out.channel != 1 && plan.channels != 1) || is_narrow(shape.types.out);
  constexpr bool adds_images = false;  // which hardly any network does behind one channel's filters
  plan.brief = register_endings(endings, out, shape, adds_images);
  plan.run_endings = out.axis[2] == plan.channels && endings_run(endings, plan.channels);
  const int64_t step = ConvAxis(shape, 2).phases();
  const int64_t pixels = std::max<int64_t>(step * 16, tile_line_floats / std::max<int64_t>(1, plan.channels));
  plan.x_blocks = std::max<int64_t>(1, ceil_div(shape.out[2], pixels));
  plan.x_block = ceil_div(std::max<int64_t>(1, shape.out[2]), plan.x_blocks * 16) * 16;
  plan.x_blocks = ceil_div(shape.out[2], plan.x_block);
  const int64_t lines = shape.batch * shape.out[0] * shape.out[1];
  const int64_t tile_lines = tile_floats / std::max<int64_t>(1, std::min(plan.x_block, shape.out[2]) * plan.channels);
  plan.lines_per_tile = std::max<int64_t>(1, std::min(tile_lines, lines * plan.x_blocks / depthwise_tiles_aimed));
  plan.line_blocks = ceil_div(lines, plan.lines_per_tile);
  plan.convert_points = 64;
  plan.max_taps = shape.kernel[0] * shape.kernel[1];
  plan.scratch_bytes = ceil_div(plan.max_taps * 16, 64) * 64 + ceil_div(plan.pitch * 4, 64) * 64 +
                       (plan.out_planar ? plan.x_block * plan.channels * 4 : 0);
  plan.shared_bytes = plan.in_copied ? shape.batch * shape.in_points() * plan.channels * 4 : 0;
  return plan;
}

int64_t conv_depthwise_tiles(const ConvDepthwisePlan& plan, int phase) {
  const ConvShape& s = plan.shape;
  if (s.batch * s.out_points() * plan.channels == 0) return 0;
  if (plan.in_copied && phase == 0) return s.batch * ceil_div(s.in_points(), plan.convert_points);
  return plan.line_blocks * plan.x_blocks;
}

int64_t conv_depthwise_packed_floats(const ConvShape& shape, int width) {
  return shape.kernel_points() * ceil_div(shape.groups * shape.out_channels, width) * width;
}

void pack_conv_depthwise(const ConvShape& shape, int width, const float* weights, const WeightStrides& strides,
                         PackShare share, float* packed) {
  const int64_t channels = shape.groups * shape.out_channels;
  const int64_t pitch = ceil_div(channels, width) * width;
  const int64_t* k = shape.kernel;
  std::vector<PanelTap> taps;
  for (int64_t i = 0; i < shape.kernel_points(); ++i) {
    taps.push_back(
        {i / (k[1] * k[2]) * strides.axis[0] + i / k[2] % k[1] * strides.axis[1] + i % k[2] * strides.axis[2],
         i * pitch});
  }
  std::sort(taps.begin(), taps.end(), [](const PanelTap& a, const PanelTap& b) { return a.from < b.from; });
  // Channels at even distances are one run; those of a transposed convolution may be even in each group only.
  const bool is_even = !shape.transposed || shape.out_channels == 1 || shape.groups == 1 ||
                       strides.first == shape.out_channels * strides.second;
  const int64_t run = is_even ? pitch : shape.out_channels;
  const PackRange vectors(pitch / width, share);
  for (int64_t c = vectors.begin * width; c < vectors.end * width;) {
    const int64_t end = std::min(vectors.end * width, c < channels ? (c / run + 1) * run : pitch);
    const int64_t group = c / shape.out_channels;
    const float* from = weights;
    if (c < channels)
      from += shape.transposed ? group * strides.first + c % shape.out_channels * strides.second : c * strides.first;
    write_panel_lines({.from = from,
                       .to = packed + c,
                       .lanes = end - c,
                       .filled = std::clamp<int64_t>(channels - c, 0, end - c),
                       .lane_step = shape.transposed && shape.out_channels > 1 ? strides.second : strides.first,
                       .channels = 1,
                       .channel_step = 0,
                       .line_step = 0,
                       .taps = taps.data(),
                       .tap_count = shape.kernel_points()});
    c = end;
  }
}

}  // namespace polyphase::cpu
