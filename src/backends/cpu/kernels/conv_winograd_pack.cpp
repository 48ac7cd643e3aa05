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
void transform_taps(int taps, int points, const float* from, int64_t apart, float* to, int64_t to_apart,
                    int64_t count) {
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
      u[i] = g[i];
      if (points > 1) u[(points - 1) * to_apart + i] = last;
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
    float* to = packed + group_ * format_.group_size;
    for (int64_t d = 0; d < ConvAxis(shape_, 0).phases(); ++d) {
      for (int64_t h = 0; h < ConvAxis(shape_, 1).phases(); ++h) {
        for (int64_t w = 0; w < ConvAxis(shape_, 2).phases(); ++w) {
          const FilterAxis axes[3] = {{shape_, 0, d}, {shape_, 1, h}, {shape_, 2, w}};
          to = pack_phase(axes, to);
        }
      }
    }
  }

 private:
  // Filters of the same lengths: their products are one matrix product.
  struct Family {
    const FilterAxis (&axes)[3];
    int taps[3];
    int64_t filters;
  };

  // Returns where the next phase begins.
  float* pack_phase(const FilterAxis (&axes)[3], float* to) {
    const int64_t all_columns = ceil_div(format_.columns, format_.width) * format_.width;
    for (int taps_h = 1; taps_h <= FilterAxis::most_taps; ++taps_h) {
      for (int taps_w = 1; taps_w <= FilterAxis::most_taps; ++taps_w) {
        const int64_t filters = axes[0].filters(1) * axes[1].filters(taps_h) * axes[2].filters(taps_w);
        if (filters == 0) continue;
        const Family family = {axes, {1, taps_h, taps_w}, filters};
        const int64_t words = axes[1].points(taps_h) * axes[2].points(taps_w) * filters * shape_.in_words();
        pack_family(family, to + words * first_);
        to += words * all_columns;
      }
    }
    return to;
  }

  void pack_family(const Family& family, float* panel) {
    const int64_t filters_h = family.axes[1].filters(family.taps[1]);
    const int64_t filters_w = family.axes[2].filters(family.taps[2]);
    for (int64_t c = 0; c < shape_.in_channels; c += channels_at_once) {
      const int64_t channels = std::min(channels_at_once, shape_.in_channels - c);
      for (int64_t f = 0; f < family.filters; ++f) {
        const int64_t at[3] = {f / (filters_h * filters_w), f / filters_w % filters_h, f % filters_w};
        gather(family, at, c, channels);
        if (shape_.products == Products::pairs) {
          transform_to_pairs(family, channels, panel + (f * shape_.in_words() + c / 2) * lanes_);
        } else {
          transform(family, channels, panel + (f * shape_.in_channels + c) * lanes_, points_apart(family));
        }
      }
    }
  }

  // taps_[tap h][tap w][channel][lane] of one filter.
  void gather(const Family& family, const int64_t (&filter)[3], int64_t channel, int64_t channels) {
    const int64_t block = channels * lanes_;
    const auto index = [&](int a, int tap) { return family.axes[a].kernel_index(family.taps[a], filter[a], tap); };
    taps_.resize(static_cast<std::size_t>(family.taps[1] * family.taps[2] * block));
    std::array<PanelTap, FilterAxis::most_taps * FilterAxis::most_taps> found;
    int64_t count = 0;
    for (int i = 0; i < family.taps[1]; ++i) {
      for (int j = 0; j < family.taps[2]; ++j) {
        const int64_t from =
            index(0, 0) * strides_.axis[0] + index(1, i) * strides_.axis[1] + index(2, j) * strides_.axis[2];
        found[static_cast<std::size_t>(count)] = {from, count * block};
        ++count;
      }
    }
    std::sort(found.begin(), found.begin() + count,
              [](const PanelTap& a, const PanelTap& b) { return a.from < b.from; });
    const int64_t lane_step = strides_.out_step(shape_);
    const int64_t channel_step = strides_.in_step(shape_);
    const float* const from = weights_ + group_ * strides_.group_step(shape_);
    write_panel_lines({.from = from + first_ * lane_step + channel * channel_step,
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

  // Words from point to point of the packed panel.
  int64_t points_apart(const Family& family) const { return family.filters * shape_.in_words() * lanes_; }

  // Rows of taps become rows of points, then each row's taps become its points.
  void transform(const Family& family, int64_t channels, float* to, int64_t apart) {
    const int64_t block = channels * lanes_;
    const int taps_w = family.taps[2];
    const int points_h = family.axes[1].points(family.taps[1]);
    const int points_w = family.axes[2].points(taps_w);
    const int64_t row = taps_w * block;
    rows_.resize(static_cast<std::size_t>(points_h * row));
    transform_taps(family.taps[1], points_h, taps_.data(), row, rows_.data(), row, row);
    for (int i = 0; i < points_h; ++i)
      transform_taps(taps_w, points_w, rows_.data() + i * row, block, to + i * points_w * apart, apart, block);
  }

  // As well, then two channels at a time in bf16; an odd last channel has zeros beside it.
  void transform_to_pairs(const Family& family, int64_t channels, float* to) {
    const auto points =
        static_cast<int64_t>(family.axes[1].points(family.taps[1])) * family.axes[2].points(family.taps[2]);
    const int64_t words = ceil_div(channels, 2);
    const int64_t apart = 2 * words * lanes_;
    points_.assign(static_cast<std::size_t>(points * apart), 0.0F);
    transform(family, channels, points_.data(), apart);
    for (int64_t point = 0; point < points; ++point) {
      pair_channels(points_.data() + point * apart, words, lanes_,
                    reinterpret_cast<uint32_t*>(to + point * points_apart(family)));
    }
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
  std::vector<float> rows_;    // [point h][tap w][channel][lane]
  std::vector<float> points_;  // [point h][point w][channel][lane]
};

}  // namespace

void pack_conv_winograd(const ConvShape& shape, int width, const float* weights, const WeightStrides& strides,
                        PackShare share, float* packed) {
  WinogradPacker packer(shape, width, weights, strides);
  const PackRange panels(packer.panel_count(), share);
  for (int64_t panel = panels.begin; panel < panels.end; ++panel) packer.panel(panel, packed);
}

}  // namespace polyphase::cpu
