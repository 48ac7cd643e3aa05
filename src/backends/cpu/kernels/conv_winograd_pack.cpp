// Packs weights into the panels of conv_winograd: taps gathered line by line, then transformed.
#include <algorithm>
#include <array>
#include <vector>

#include "backends/cpu/kernels/conv_winograd.h"
#include "backends/cpu/kernels/panel_lines.h"

namespace polyphase::cpu {
namespace {

constexpr int64_t channels_at_once = 32;  // whose gathered taps stay in the first-level cache
constexpr int64_t step = 4;               // lanes of one step; every line is some of them

// The points of one axis from its taps, `count` floats each: from[tap * apart], to[point * to_apart].
void transform_taps(int taps, const float* from, int64_t apart, float* to, int64_t to_apart, int64_t count) {
  for (int64_t first = 0; first < count; first += step) {
    const float* g = from + first;
    float* u = to + first;
    for (int64_t i = 0; i < step; ++i) {
      const float last = g[(taps - 1) * apart + i];
      if (taps == 2) u[to_apart + i] = g[i] + last;
      if (taps == 3) {
        const float ends = g[i] + last;
        u[to_apart + i] = (ends + g[apart + i]) * 0.5F;
        u[2 * to_apart + i] = (ends - g[apart + i]) * 0.5F;
      }
      u[0 + i] = g[i];
      if (taps > 1) u[taps * to_apart + i] = last;
    }
  }
}

class WinogradPacker {
 public:
  WinogradPacker(const ConvShape& shape, int width, const float* weights, const WeightStrides& strides)
      : shape_(shape), format_(shape, width), panels_(format_.columns, width), weights_(weights), strides_(strides) {}

  int64_t panel_count() const { return shape_.groups * panels_.count(); }

  void panel(int64_t number, float* packed) {
    const int64_t at = number % panels_.count();
    group_ = number / panels_.count();
    first_ = at * 2 * format_.width;
    lanes_ = panels_.vectors_of(at) * format_.width;
    filled_ = std::min(lanes_, format_.columns - first_);
    float* const to = packed + group_ * format_.group_size;
    const int64_t all_columns = ceil_div(format_.columns, format_.width) * format_.width;
    for (int64_t d = 0; d < ConvAxis(shape_, 0).phases(); ++d) {
      for (int64_t h = 0; h < ConvAxis(shape_, 1).phases(); ++h) {
        for (int64_t w = 0; w < ConvAxis(shape_, 2).phases(); ++w) {
          const FilterAxis axes[3] = {{shape_, 0, d}, {shape_, 1, h}, {shape_, 2, w}};
          pack_phase(axes, to + conv_winograd_line(shape_, d, h, w) * all_columns);
        }
      }
    }
  }

 private:
  void pack_phase(const FilterAxis (&axes)[3], float* to) {
    const int64_t filters = axes[0].filters() * axes[1].filters() * axes[2].filters();
    const int64_t depth = filters * shape_.in_channels;
    const int64_t points = axes[1].points() * axes[2].points();
    float* const panel = to + points * depth * first_;
    for (int64_t f = 0; f < filters; ++f) {
      const int64_t at[3] = {f / (axes[1].filters() * axes[2].filters()), f / axes[2].filters() % axes[1].filters(),
                             f % axes[2].filters()};
      for (int64_t c = 0; c < shape_.in_channels; c += channels_at_once) {
        const int64_t channels = std::min(channels_at_once, shape_.in_channels - c);
        gather(axes, at, c, channels);
        transform(axes, channels, panel + (f * shape_.in_channels + c) * lanes_, depth * lanes_);
      }
    }
  }

  // taps_[tap h][tap w][channel][lane] of one filter.
  void gather(const FilterAxis (&axes)[3], const int64_t (&filter)[3], int64_t channel, int64_t channels) {
    const int64_t block = channels * lanes_;
    taps_.assign(static_cast<std::size_t>(axes[1].taps() * axes[2].taps() * block), 0.0F);
    std::array<PanelTap, 9> found;
    int64_t count = 0;
    for (int i = 0; i < axes[1].taps(); ++i) {
      const int64_t h = axes[1].kernel_index(filter[1], i);
      for (int j = 0; j < axes[2].taps(); ++j) {
        const int64_t w = axes[2].kernel_index(filter[2], j);
        if (h < 0 || w < 0) continue;
        const int64_t from =
            axes[0].kernel_index(filter[0], 0) * strides_.axis[0] + h * strides_.axis[1] + w * strides_.axis[2];
        found[static_cast<std::size_t>(count++)] = {from, (i * axes[2].taps() + j) * block};
      }
    }
    std::sort(found.begin(), found.begin() + count,
              [](const PanelTap& a, const PanelTap& b) { return a.from < b.from; });
    const bool transposed = shape_.transposed;
    const int64_t lane_step = transposed ? strides_.second : strides_.first;
    const int64_t channel_step = transposed ? strides_.first : strides_.second;
    const int64_t before = group_ * (transposed ? shape_.in_channels : shape_.out_channels) * strides_.first;
    write_panel_lines({.from = weights_ + before + first_ * lane_step + channel * channel_step,
                       .to = taps_.data(),
                       .lanes = lanes_,
                       .filled = filled_,
                       .lane_step = lane_step,
                       .channels = channels,
                       .channel_step = channel_step,
                       .line_step = lanes_,
                       .taps = found.data(),
                       .tap_count = count});
  }

  // Rows of taps become rows of points, then each row's taps become its points, which lie `apart` in the panel.
  void transform(const FilterAxis (&axes)[3], int64_t channels, float* to, int64_t apart) {
    const int64_t block = channels * lanes_;
    const int taps_w = axes[2].taps();
    const int points_h = axes[1].points();
    rows_.resize(static_cast<std::size_t>(points_h * taps_w * block));
    transform_taps(axes[1].taps(), taps_.data(), taps_w * block, rows_.data(), taps_w * block, taps_w * block);
    for (int i = 0; i < points_h; ++i)
      transform_taps(taps_w, rows_.data() + i * taps_w * block, block, to + i * axes[2].points() * apart, apart, block);
  }

  const ConvShape& shape_;
  const ConvWinogradFormat format_;
  const PanelGrid panels_;
  const float* weights_;
  const WeightStrides strides_;
  int64_t group_ = 0;
  int64_t first_ = 0;   // column of the panel
  int64_t lanes_ = 0;   // of the panel
  int64_t filled_ = 0;  // of them that the weights have
  std::vector<float> taps_;
  std::vector<float> rows_;  // [point h][tap w][channel][lane]
};

}  // namespace

void pack_conv_winograd(const ConvShape& shape, int width, const float* weights, const WeightStrides& strides,
                        PackShare share, float* packed) {
  WinogradPacker packer(shape, width, weights, strides);
  const PackRange panels(packer.panel_count(), share);
  for (int64_t panel = panels.begin; panel < panels.end; ++panel) packer.panel(panel, packed);
}

}  // namespace polyphase::cpu
