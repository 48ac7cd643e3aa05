// Plans and packs convolution with few output channels.
#include <algorithm>
#include <vector>

#include "backends/cpu/kernels/conv_pixels.h"
#include "backends/cpu/kernels/panel_lines.h"

namespace polyphase::cpu {
namespace {

constexpr int64_t scratch_floats = 96 * 1024;
constexpr int64_t pixels_tiles_aimed = 24;

AxisTaps last_axis_taps(const ConvShape& shape) {
  const ConvAxis w(shape, 2);
  return shape.transposed ? w.stacked_taps() : w.taps(0);
}

int64_t reach(const ConvShape& shape) {
  const AxisTaps taps = last_axis_taps(shape);
  return (taps.count - 1) * taps.shift_step;
}

}  // namespace

bool conv_pixels_takes(const ConvShape& shape) {
  return shape.transposed ? shape.dilation[2] == 1 : shape.stride[2] == 1;
}

ConvPixelsFormat::ConvPixelsFormat(const ConvShape& shape, int width) {
  columns = ConvAxis(shape, 2).phases() * shape.out_channels;
  chunks = ceil_div(columns, pixel_columns(width));
  chunk = ceil_div(columns, chunks);
  taps_w = last_axis_taps(shape).count;
  group_size = shape.kernel[0] * shape.kernel[1] * taps_w * shape.in_channels * chunks * chunk;
}

ConvPixelsPlan plan_conv_pixels(const ConvShape& shape, const ImageStrides& in, const ImageStrides& out,
                                const EndingProgram& endings, bool has_bias, int width) {
  ConvPixelsPlan plan = {};
  plan.shape = shape;
  plan.format = ConvPixelsFormat(shape, width);
  plan.in = in;
  plan.out = out;
  plan.endings = endings;
  plan.has_bias = has_bias;
  plan.in_planar = in.channel != 1 || shape.groups * shape.in_channels == 1;
  plan.out_planar = out.channel != 1;
  plan.width = width;
  for (int a = 1; a < 3; ++a) {
    const int64_t s = shape.transposed ? shape.stride[a] : 1;
    const int64_t pre = shape.transposed ? shape.pre[a] : 0;
    plan.first_q[a - 1] = floor_div(pre, s);
    plan.q_count[a - 1] = ceil_div(shape.out[a] + pre, s) - plan.first_q[a - 1];
  }
  const ConvAxis d(shape, 0);
  const ConvAxis h(shape, 1);
  plan.d_lines = ceil_div(shape.out[0], d.phases());
  plan.shift_h[0] = 0;
  plan.shift_h[1] = 0;
  for (int64_t r = 0; r < h.phases(); ++r) {
    const AxisTaps taps = h.taps(r);
    if (taps.count == 0) continue;
    const int64_t last = taps.first_shift + (taps.count - 1) * taps.shift_step;
    plan.shift_h[0] = r == 0 ? taps.first_shift : std::min(plan.shift_h[0], taps.first_shift);
    plan.shift_h[1] = r == 0 ? last : std::max(plan.shift_h[1], last);
  }
  for (int64_t r = 0; r < d.phases(); ++r) plan.max_taps_d = std::max(plan.max_taps_d, d.taps(r).count);
  const int64_t q = std::max<int64_t>(1, plan.q_count[1]);
  const int64_t most = pixel_vectors(width, static_cast<int>(plan.format.chunk));
  const int64_t blocks = ceil_div(ceil_div(q, width), most);
  plan.vectors = static_cast<int32_t>(ceil_div(ceil_div(q, width), blocks));
  const int64_t halo = plan.shift_h[1] - plan.shift_h[0] + 1;
  const auto in_lines = [&](int64_t lines) { return (lines - 1) * h.in_step() + halo; };
  const auto floats = [&](int64_t lines, int64_t pixels) {
    return shape.in_channels * plan.max_taps_d * in_lines(lines) * (pixels + reach(shape));
  };
  while (plan.vectors > 1 && floats(1, plan.vectors * width) > scratch_floats) --plan.vectors;
  plan.x_block = plan.vectors * width;
  while (plan.x_block < q && floats(1, 2 * plan.x_block) <= scratch_floats / 2) plan.x_block *= 2;
  plan.x_blocks = ceil_div(q, plan.x_block);
  plan.lines_per_tile = 1;
  const int64_t others = plan.x_blocks * shape.batch * shape.groups * d.phases() * plan.d_lines;
  while (plan.lines_per_tile < plan.q_count[0] && floats(2 * plan.lines_per_tile, plan.x_block) <= scratch_floats &&
         others * ceil_div(plan.q_count[0], 2 * plan.lines_per_tile) >= pixels_tiles_aimed) {
    plan.lines_per_tile *= 2;
  }
  plan.line_blocks = ceil_div(plan.q_count[0], plan.lines_per_tile);
  plan.in_lines = in_lines(plan.lines_per_tile);
  plan.pitch = plan.x_block + reach(shape) + width;
  const int64_t copy = shape.in_channels * plan.max_taps_d * plan.in_lines * plan.pitch;
  const int64_t sums = plan.format.chunk * plan.format.chunks * plan.x_block;
  const int64_t line = shape.out_channels * plan.x_block * ConvAxis(shape, 2).phases();
  plan.max_taps = shape.kernel[0] * shape.kernel[1] * plan.format.taps_w;
  plan.scratch_bytes = (copy + sums + line + 48) * 4 + ceil_div(plan.max_taps * 8, 64) * 64;
  return plan;
}

int64_t conv_pixels_tiles(const ConvPixelsPlan& plan, int) {
  const ConvShape& s = plan.shape;
  if (s.batch * s.out_points() * s.groups * s.out_channels == 0) return 0;
  return s.batch * s.groups * ConvAxis(s, 0).phases() * plan.d_lines * plan.line_blocks * plan.x_blocks;
}

int64_t conv_pixels_packed_floats(const ConvShape& shape, int width) {
  return ConvPixelsFormat(shape, width).group_size * shape.groups;
}

namespace {

// The panels of one outer phase: chunks of columns by [in channel][tap].
class PixelsPacker {
 public:
  PixelsPacker(const ConvShape& shape, int width, const float* weights, const WeightStrides& strides)
      : shape_(shape), format_(shape, width), weights_(weights), strides_(strides) {}

  const ConvPixelsFormat& format() const { return format_; }

  // Returns where the next phase begins.
  float* phase(int64_t group, const AxisTaps& d, const AxisTaps& h, float* to) {
    const int64_t taps = d.count * h.count * format_.taps_w;
    const int64_t chunk_floats = shape_.in_channels * taps * format_.chunk;
    for (int64_t chunk = 0; chunk < format_.chunks; ++chunk, to += chunk_floats) {
      const int64_t first = chunk * format_.chunk;
      const int64_t end = std::min(first + format_.chunk, format_.columns);
      std::fill_n(to, chunk_floats, 0.0F);
      for (int64_t column = first; column < end;) {
        const int64_t r = column / shape_.out_channels;
        const int64_t run = std::min(end, (r + 1) * shape_.out_channels) - column;
        find_taps(d, h, r);
        columns(group, column % shape_.out_channels, run, taps, to + column - first);
        column += run;
      }
    }
    return to;
  }

 private:
  // Those of a phase of the last axis: its column is that many kernel points further than the first phase's.
  void find_taps(const AxisTaps& d, const AxisTaps& h, int64_t r) {
    const AxisTaps w = last_axis_taps(shape_);
    taps_.clear();
    for (int64_t i = 0; i < d.count * h.count * w.count; ++i) {
      const int64_t along = w.first_index + i % w.count * w.index_step + r;
      if (along >= shape_.kernel[2]) continue;
      const int64_t from = (d.first_index + i / (h.count * w.count) * d.index_step) * strides_.axis[0] +
                           (h.first_index + i / w.count % h.count * h.index_step) * strides_.axis[1] +
                           along * strides_.axis[2];
      taps_.push_back({from, i * format_.chunk});
    }
    std::sort(taps_.begin(), taps_.end(), [](const PanelTap& a, const PanelTap& b) { return a.from < b.from; });
  }

  void columns(int64_t group, int64_t channel, int64_t count, int64_t taps, float* to) const {
    const int64_t lane_step = strides_.out_step(shape_);
    write_panel_lines({.from = weights_ + group * strides_.group_step(shape_) + channel * lane_step,
                       .to = to,
                       .lanes = count,
                       .filled = count,
                       .lane_step = lane_step,
                       .channels = shape_.in_channels,
                       .channel_step = strides_.in_step(shape_),
                       .line_step = taps * format_.chunk,
                       .taps = taps_.data(),
                       .tap_count = static_cast<int64_t>(taps_.size())});
  }

  const ConvShape& shape_;
  const ConvPixelsFormat format_;
  const float* weights_;
  const WeightStrides strides_;
  std::vector<PanelTap> taps_;
};

}  // namespace

void pack_conv_pixels(const ConvShape& shape, int width, const float* weights, const WeightStrides& strides,
                      PackShare share, float* packed) {
  PixelsPacker packer(shape, width, weights, strides);
  const ConvAxis d(shape, 0);
  const ConvAxis h(shape, 1);
  const PackRange groups(shape.groups, share);
  for (int64_t g = groups.begin; g < groups.end; ++g) {
    float* to = packed + g * packer.format().group_size;
    for (int64_t rd = 0; rd < d.phases(); ++rd) {
      for (int64_t rh = 0; rh < h.phases(); ++rh) to = packer.phase(g, d.taps(rd), h.taps(rh), to);
    }
  }
}

}  // namespace polyphase::cpu
