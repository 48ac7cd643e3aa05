// Packs weights into the panels of conv_gemm.
#include <algorithm>
#include <vector>

#include "backends/cpu/kernels/conv_gemm.h"
#include "backends/cpu/kernels/panel_lines.h"

namespace polyphase::cpu {
namespace {

// A column group of one outer phase.
struct Phase {
  int64_t begin;  // of its panels in a group
  int64_t taps;
};

// A point of the kernel, and which tap it is.
struct PackPoint {
  int64_t from;    // in the weights
  int64_t column;  // where its phase's columns begin: not 0 only where the phases of the last axis are stacked
  Phase phase;
  int64_t tap;
};

class GemmPacker {
 public:
  GemmPacker(const ConvShape& shape, int width, const float* weights, const WeightStrides& strides)
      : shape_(shape), format_(shape, width), panels_(format_.columns, width), weights_(weights), strides_(strides) {
    const ConvAxis d(shape, 0);
    const ConvAxis h(shape, 1);
    for (int64_t rd = 0; rd < d.phases(); ++rd) {
      for (int64_t rh = 0; rh < h.phases(); ++rh) {
        for (int64_t r = 0; r < ConvAxis(shape, 2).phases(); ++r) add_points(rd, rh, r);
      }
    }
    std::sort(points_.begin(), points_.end(), [](const PackPoint& a, const PackPoint& b) { return a.from < b.from; });
    taps_.resize(points_.size());
  }

  int64_t panel_count() const { return shape_.groups * panels_.count(); }

  void panel(int64_t number, float* packed) {
    const int64_t group = number / panels_.count();
    const int64_t at = number % panels_.count();
    float* const to = packed + group * format_.group_size;
    const int64_t first = at * 2 * format_.width;
    const int64_t lanes = panels_.vectors_of(at) * format_.width;
    const int64_t end = std::min(first + lanes, format_.columns);
    if (!format_.stacked) return columns(group, first, lanes, {0, first, end}, to);
    clear(first, lanes, to);
    for (int64_t column = first; column < end;) {
      const int64_t phase = column / shape_.out_channels * shape_.out_channels;
      const Run run = {phase, column, std::min(end, phase + shape_.out_channels)};
      columns(group, first, lanes, run, to);
      column = run.end;
    }
  }

 private:
  // Columns [begin, end) of a panel; those of their phase begin at `phase`.
  struct Run {
    int64_t phase;
    int64_t begin;
    int64_t end;
  };

  void add_points(int64_t rd, int64_t rh, int64_t r) {
    const ConvAxis axis(shape_, 2);
    const AxisTaps d = ConvAxis(shape_, 0).taps(rd);
    const AxisTaps h = ConvAxis(shape_, 1).taps(rh);
    const AxisTaps w = format_.stacked ? axis.stacked_taps() : axis.taps(r);
    const Phase phase = {conv_gemm_offset(shape_, format_, rd, rh, format_.stacked ? 0 : r),
                         d.count * h.count * w.count};
    if (r == 0 || !format_.stacked) phases_.push_back(phase);
    for (int64_t i = 0; i < phase.taps; ++i) {
      const int64_t along = w.first_index + i % w.count * w.index_step + (format_.stacked ? r : 0);
      if (along >= shape_.kernel[2]) continue;
      const int64_t from = (d.first_index + i / (h.count * w.count) * d.index_step) * strides_.axis[0] +
                           (h.first_index + i / w.count % h.count * h.index_step) * strides_.axis[1] +
                           along * strides_.axis[2];
      points_.push_back({from, format_.stacked ? r * shape_.out_channels : 0, phase, i});
    }
  }

  // Where stacked phases lack taps, and columns at the end of a panel, are no weights.
  void clear(int64_t first, int64_t lanes, float* to) const {
    for (const Phase& phase : phases_) {
      const int64_t lines = phase.taps * shape_.in_channels;
      std::fill_n(to + phase.begin + lines * first, lines * lanes, 0.0F);
    }
  }

  void columns(int64_t group, int64_t first, int64_t lanes, const Run& run, float* to) {
    const int64_t lines = shape_.in_channels * lanes;
    int64_t count = 0;
    for (const PackPoint& point : points_) {
      if (point.column != run.phase) continue;
      const int64_t panel = point.phase.begin + point.phase.taps * shape_.in_channels * first;
      taps_[static_cast<std::size_t>(count++)] = {point.from, panel + point.tap * lines + run.begin - first};
    }
    const int64_t channel = run.begin - run.phase;
    const float* from = weights_ + group * strides_.group_step(shape_);
    write_panel_lines({.from = from + channel * strides_.out_step(shape_),
                       .to = to,
                       .lanes = format_.stacked ? run.end - run.begin : lanes,
                       .filled = run.end - run.begin,
                       .lane_step = strides_.out_step(shape_),
                       .channels = shape_.in_channels,
                       .channel_step = strides_.in_step(shape_),
                       .line_step = lanes,
                       .taps = taps_.data(),
                       .tap_count = count});
  }

  const ConvShape& shape_;
  const ConvGemmFormat format_;
  const PanelGrid panels_;
  const float* weights_;
  const WeightStrides strides_;
  std::vector<Phase> phases_;
  std::vector<PackPoint> points_;  // as they lie in the weights
  std::vector<PanelTap> taps_;
};

}  // namespace

int64_t conv_gemm_packed_floats(const ConvShape& shape, int width) {
  return ConvGemmFormat(shape, width).group_size * shape.groups;
}

void pack_conv_gemm(const ConvShape& shape, int width, const float* weights, const WeightStrides& strides,
                    PackShare share, float* packed) {
  GemmPacker packer(shape, width, weights, strides);
  const PackRange panels(packer.panel_count(), share);
  for (int64_t panel = panels.begin; panel < panels.end; ++panel) packer.panel(panel, packed);
}

}  // namespace polyphase::cpu
