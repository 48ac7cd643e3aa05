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

// Of four outputs: what each point takes of the taps, (1, a, a²) / Π (a - b) over all other points b; the last point is
// infinity.
constexpr float fours_of_two_taps[5][3] = {{32.0F / 27, 0, 0},
                                           {-32.0F / 27, -8.0F / 9, 0},
                                           {-32.0F / 81, 8.0F / 27, 0},
                                           {32.0F / 81, 16.0F / 27, 0},
                                           {0, 1, 0}};
constexpr float fours_of_three_taps[6][3] = {{64.0F / 81, 0, 0},
                                             {-128.0F / 243, -32.0F / 81, -8.0F / 27},
                                             {-128.0F / 243, 32.0F / 81, -8.0F / 27},
                                             {32.0F / 243, 16.0F / 81, 8.0F / 27},
                                             {32.0F / 243, -16.0F / 81, 8.0F / 27},
                                             {0, 0, 1}};

// As transform_taps, two or three of four outputs.
void transform_taps_of_fours(const WinogradLength& length, const float* from, int64_t apart, float* to,
                             int64_t to_apart, int64_t count) {
  for (int point = 0; point < length.points(); ++point) {
    const float* const share = length.taps == 2 ? fours_of_two_taps[point] : fours_of_three_taps[point];
    float* const u = to + point * to_apart;
    for (int64_t i = 0; i < count; ++i) {
      float sum = share[0] * from[i];
      for (int tap = 1; tap < length.taps; ++tap) sum += share[tap] * from[tap * apart + i];
      u[i] = sum;
    }
  }
}

// The points of one direction from its taps, `count` floats each: from[tap * apart], to[point * to_apart].
void transform_taps(const WinogradLength& length, const float* from, int64_t apart, float* to, int64_t to_apart,
                    int64_t count) {
  const int taps = length.taps;
  const int points = length.points();
  if (length.outputs == 4 && taps > 1) return transform_taps_of_fours(length, from, apart, to, to_apart, count);
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
      if (taps > 1) u[(points - 1) * to_apart + i] = last;
      if (taps == 1) {
        for (int point = 1; point < points; ++point) u[point * to_apart + i] = last;
      }
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
          to = pack_phase(FilterAxis(shape_, 0, d), FilterPlane(shape_, h, w), to);
        }
      }
    }
  }

 private:
  // What a family is packed from: its filters in every plane of taps.
  struct Family {
    const FilterAxis& d;
    const FilterPlane& plane;
    const FilterPlane::Family& of_plane;
    int64_t filters() const { return d.taps() * of_plane.filters; }
    const WinogradLength& length(int direction) const { return winograd_lengths[of_plane.lengths[direction]]; }
  };

  // Returns where the next phase begins.
  float* pack_phase(const FilterAxis& d, const FilterPlane& plane, float* to) {
    const int64_t all_columns = ceil_div(format_.columns, format_.width) * format_.width;
    if (d.taps() == 0) return to;
    plane.each_family([&](const FilterPlane::Family& of_plane) {
      const Family family = {d, plane, of_plane};
      const int64_t words = of_plane.points() * family.filters() * shape_.in_words();
      pack_family(family, to + words * first_);
      to += words * all_columns;
    });
    return to;
  }

  void pack_family(const Family& family, float* panel) {
    const int64_t filters_w = family.plane.w.filters(*family.of_plane.w);
    for (int64_t c = 0; c < shape_.in_channels; c += channels_at_once) {
      const int64_t channels = std::min(channels_at_once, shape_.in_channels - c);
      for (int64_t f = 0; f < family.filters(); ++f) {
        const int64_t in_plane = f % family.of_plane.filters;
        gather(family, {f / family.of_plane.filters, in_plane / filters_w, in_plane % filters_w}, c, channels);
        if (shape_.products == Products::pairs) {
          transform_to_pairs(family, channels, panel + (f * shape_.in_words() + c / 2) * lanes_);
        } else {
          transform(family, channels, panel + (f * shape_.in_channels + c) * lanes_, points_apart(family));
        }
      }
    }
  }

  // taps_[tap of direction 0][of direction 1][channel][lane] of one filter.
  void gather(const Family& family, const std::array<int64_t, 3>& filter, int64_t channel, int64_t channels) {
    const int64_t block = channels * lanes_;
    const FilterPlane& plane = family.plane;
    const int taps_h = family.length(0).taps;
    const int taps_w = family.length(1).taps;
    taps_.resize(static_cast<std::size_t>(taps_h * taps_w * block));
    std::array<PanelTap, winograd_most_taps * winograd_most_taps> found;
    int64_t count = 0;
    for (int i = 0; i < taps_h; ++i) {
      for (int j = 0; j < taps_w; ++j) {
        const int64_t from =
            family.d.kernel_index(family.d.family(0), filter[0], 0) * strides_.axis[0] +
            plane.h.kernel_index(*family.of_plane.h, filter[1], plane.steps_h(i, j)) * strides_.axis[1] +
            plane.w.kernel_index(*family.of_plane.w, filter[2], plane.steps_w(i, j)) * strides_.axis[2];
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
  int64_t points_apart(const Family& family) const { return family.filters() * shape_.in_words() * lanes_; }

  // Rows of taps become rows of points, then each row's taps become its points.
  void transform(const Family& family, int64_t channels, float* to, int64_t apart) {
    const int64_t block = channels * lanes_;
    const WinogradLength& h = family.length(0);
    const WinogradLength& w = family.length(1);
    const int64_t row = w.taps * block;
    rows_.resize(static_cast<std::size_t>(h.points() * row));
    transform_taps(h, taps_.data(), row, rows_.data(), row, row);
    for (int i = 0; i < h.points(); ++i)
      transform_taps(w, rows_.data() + i * row, block, to + i * w.points() * apart, apart, block);
  }

  // As well, then two channels at a time in bf16; an odd last channel has zeros beside it.
  void transform_to_pairs(const Family& family, int64_t channels, float* to) {
    const int64_t points = family.of_plane.points();
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
  std::vector<float> rows_;    // [point of direction 0][tap of direction 1][channel][lane]
  std::vector<float> points_;  // [point][channel][lane]
};

}  // namespace

void pack_conv_winograd(const ConvShape& shape, int width, const float* weights, const WeightStrides& strides,
                        PackShare share, float* packed) {
  WinogradPacker packer(shape, width, weights, strides);
  const PackRange panels(packer.panel_count(), share);
  for (int64_t panel = panels.begin; panel < panels.end; ++panel) packer.panel(panel, packed);
}

}  // namespace polyphase::cpu
