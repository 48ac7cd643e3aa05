// The tiles of one block of conv_winograd: which outputs they own, where those go, and their transformed inputs.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>

#include "backends/cpu/kernels/conv_gemm.h"
#include "backends/cpu/kernels/conv_winograd.h"
#include "backends/cpu/kernels/gemm_tile.h"
#include "backends/cpu/kernels/planar_input.h"
#include "backends/cpu/kernels/winograd_unit.h"

namespace polyphase::cpu::POLYPHASE_CLUSTER {

inline constexpr WinogradUnit float_unit = winograd_unit<Products::floats>();
// Steps of points along an axis that is filtered twice, and one more.
inline constexpr int most_steps = 2 * (winograd_most_points - 1) + winograd_most_points;
inline constexpr std::size_t winograd_length_count = std::size(winograd_lengths);

// A family of filters in a block.
struct FilterFamily : FilterPlane::Family {
  int lines, pixels;  // of the image, that the points of a filter are from
  int64_t plane;      // words of a row: all filters of a plane one after the other
  int64_t depth;      // all that are summed
  int64_t pitch;      // from row to row
};

// Tiles `first` and those behind it, whose first outputs lie `step` apart in one line of a phase's grid of outputs.
struct TileRun {
  int64_t first;
  int64_t count;
  int64_t batch;
  int64_t q[3];  // the first output of the first tile
  int64_t step;
};

// Channels-last images: the input, or those of its points that are there, and the result.
struct WinogradImages {
  const float* in;  // its first point that is there
  ImageStrides in_strides;
  ConvAxis::Span there[3];
  float* out;
  ImageStrides out_strides;
};

// The base of the block, which multiplies and stores; nothing here computes a result. `shape` is the plan's, or that of
// a part.
class WinogradBlock {
 public:
  WinogradBlock(const ConvWinogradPlan& plan, const ConvShape& shape, const ConvPointers& pointers,
                const WinogradImages& images, std::byte* scratch)
      : plan_(plan),
        s_(shape),
        p_(pointers),
        images_(images),
        unit_(plan.pairs != nullptr ? *plan.pairs : float_unit),
        out_axes_{{s_, 0}, {s_, 1}, {s_, 2}} {
    const auto take = [&](int64_t bytes) {
      std::byte* const taken = scratch;
      scratch += ceil_div(bytes, 64) * 64;
      return taken;
    };
    if (plan.input_pieces == 0) inputs_ = reinterpret_cast<float*>(take(plan.input_words * 4));
    const int64_t products = plan.together * plan.block * max_vectors * vec_width;
    products_ = reinterpret_cast<float*>(take(plan.max_points * products * 4));
    sums_ = reinterpret_cast<float*>(take(plan.max_outputs * products * 4));
    bias_ = reinterpret_cast<float*>(take((plan.n_block + max_vectors * vec_width) * 4));
    zeros_ = reinterpret_cast<float*>(take((s_.in_channels + vec_width) * 4));
    std::fill_n(zeros_, s_.in_channels + vec_width, 0.0F);
    places_ = reinterpret_cast<float**>(take(plan.block * plan.max_outputs * int64_t{sizeof(float*)}));
  }

 protected:
  // What block `number` of the plan is; false if there is nothing in it.
  bool place(int64_t number) {
    const int64_t n_tile = number % plan_.n_blocks;
    n0_ = n_tile * plan_.n_block;
    n1_ = n_tile + 1 == plan_.n_blocks ? plan_.format.columns : n0_ + plan_.n_block;
    number /= plan_.n_blocks;
    const int64_t plan_phase = number % plan_.phases;
    int64_t phase = plan_phase;
    number /= plan_.phases;
    const int64_t block = number % plan_.blocks;
    group_ = number / plan_.blocks;
    for (int a = 2; a >= 0; --a) {
      const int64_t phases = out_axes_[a].phases();
      phase_[a] = phase % phases;
      phase /= phases;
    }
    depth_axis_ = FilterAxis(s_, 0, phase_[0]);
    plane_ = FilterPlane(s_, phase_[1], phase_[2]);
    if (plan_.input_pieces > 0) {
      const int64_t of_inputs = (group_ * plan_.blocks + block) * plan_.phases + plan_phase;
      inputs_ = p_.shared + plan_.inputs_at + of_inputs * plan_.input_words;
    }
    if (n0_ >= n1_ || !place_tiles(block)) return false;
    list_families();
    return true;
  }

  void place_outputs() {
    each_run([&](const TileRun& run) { place_outputs(run); });
  }

  const FilterAxis& filters_along(int a) const { return a == 0 ? depth_axis_ : a == 1 ? plane_.h : plane_.w; }
  int64_t tile_outputs() const { return plane_.outputs(0) * plane_.outputs(1); }
  int64_t outputs_along(int a) const { return std::max<int64_t>(0, end_q_[a] - first_q_[a]); }

  // f(run) for the tiles of the block, or [first, end) of them.
  template <class F>
  void each_run(F f) const {
    each_run(0, count_, f);
  }
  template <class F>
  void each_run(int64_t first, int64_t end, F f) const {
    TileRun run = {};
    for (run.first = first; run.first < end; run.first += run.count) {
      int64_t at = first_tile_ + run.first;
      int64_t last = 0;  // along the line
      for (int a = 2; a >= 0; --a) {
        const int64_t tile = at % tiles_[a];
        run.q[a] = first_q_[a] + filters_along(a).first_output(tile, outputs_along(a));
        at /= tiles_[a];
        if (a == 2) last = tile;
      }
      run.batch = at;
      const FilterAxis::Run along = plane_.w.run_of(last, outputs_along(2));
      run.step = along.step;
      run.count = std::min({along.tiles, tiles_[2] - last, end - run.first});
      f(run);
    }
  }

  // Tiles [first, end), of all families.
  void transform(int64_t first, int64_t end) {
    float* inputs = inputs_;
    for (int f = 0; f < family_count_; ++f) {
      const FilterFamily& family = families_[f];
      each_run(first, end, [&](const TileRun& run) { transform_run(family, run, inputs + run.first * family.pitch); });
      inputs += family.points() * plan_.block * family.pitch;
    }
  }

 private:
  bool place_tiles(int64_t block) {
    for (int a = 0; a < 3; ++a) {
      const ConvAxis& axis = out_axes_[a];
      first_q_[a] = axis.first_q(phase_[a], 0);
      end_q_[a] = axis.first_q(phase_[a], axis.out);
      tiles_[a] = filters_along(a).tiles(outputs_along(a));
    }
    const int64_t plane = tiles_[1] * tiles_[2];
    first_tile_ = block * plan_.block;
    int64_t end = s_.batch * tiles_[0] * plane;
    if (plan_.depths > 1) {  // tiles of the first depth
      const int64_t groups = plan_.blocks / plan_.plane_blocks / s_.batch;
      const int64_t layer = block / plan_.plane_blocks;
      const int64_t depth = layer % groups * plan_.depths;
      depth_count_ = std::min(plan_.depths, tiles_[0] - depth);
      if (depth_count_ <= 0) return false;
      const int64_t before = (layer / groups * tiles_[0] + depth) * plane;
      first_tile_ = before + block % plan_.plane_blocks * plan_.block;
      end = before + plane;
    }
    count_ = std::min(plan_.block, end - first_tile_);
    depth_step_ = out_axes_[0].phases() * images_.out_strides.axis[0];
    return count_ > 0;
  }

  __attribute__((noinline)) void place_outputs(const TileRun& run) const {
    const ImageStrides& strides = images_.out_strides;
    const int64_t outputs = tile_outputs();
    const auto offset = [&](int a, int64_t q) { return out_axes_[a].output_of(phase_[a], q) * strides.axis[a]; };
    float* const base = images_.out + run.batch * strides.batch + offset(0, run.q[0]) + group_ * s_.out_channels;
    for (int i = 0; i < plane_.outputs(0); ++i) {
      for (int j = 0; j < plane_.outputs(1); ++j) {
        const int64_t h = run.q[1] + plane_.steps_h(i, j) * plane_.h.output_step();
        float* const line = h < end_q_[1] ? base + offset(1, h) : nullptr;
        int64_t w = run.q[2] + plane_.steps_w(i, j) * plane_.w.output_step();
        float** place = places_ + run.first * outputs + i * plane_.outputs(1) + j;
        for (int64_t t = 0; t < run.count; ++t, place += outputs, w += run.step)
          *place = line != nullptr && w < end_q_[2] ? line + offset(2, w) : nullptr;
      }
    }
  }

  // In the order of the packed weights.
  void list_families() {
    family_count_ = 0;
    if (depth_axis_.taps() == 0) return;
    plane_.each_family([&](const FilterPlane::Family& family) {
      const int last_h = family.points(0) - 1;
      const int last_w = family.points(1) - 1;
      const int64_t plane = family.filters * s_.in_words();
      families_[family_count_++] = {family,
                                    static_cast<int>(plane_.steps_h(last_h, last_w)) + 1,
                                    static_cast<int>(plane_.steps_w(last_h, last_w)) + 1,
                                    plane,
                                    depth_axis_.taps() * plane,
                                    winograd_pitch((depth_axis_.taps() + plan_.depths - 1) * plane, vec_width)};
    });
  }

  // Offset of an input line or pixel along an axis; -1 outside, where the input is zero.
  int64_t input_offset(int a, int64_t at) const {
    if (s_.pad_mode != PadMode::zero) at = padded_index(s_.pad_mode, at, s_.in[a]);
    const ConvAxis::Span& there = images_.there[a];
    return at < there.from || at >= there.to ? -1 : (at - there.from) * images_.in_strides.axis[a];
  }

  // Rows `to` and those behind it of every point's matrix: the filters' transformed inputs one after the other.
  void transform_run(const FilterFamily& family, const TileRun& run, float* to) const {
    const int64_t planes = depth_axis_.taps();
    const int64_t first_plane = depth_axis_.first_input(run.q[0]);
    RunInputs inputs = {};
    const ImageStrides& strides = images_.in_strides;
    inputs.image = images_.in + run.batch * strides.batch + group_ * s_.in_channels * strides.channel;
    for (int64_t p = 0; p < planes + depth_count_ - 1; ++p) {
      const int64_t plane = input_offset(0, first_plane + p * depth_axis_.point_step());
      plane_.h.each_filter(*family.h, run.q[1], [&](int64_t h) {
        inputs.has_zeros = false;
        for (int i = 0; i < family.lines; ++i) {
          const int64_t line = plane < 0 ? -1 : input_offset(1, h + i * plane_.h.point_step());
          inputs.lines[i] = line < 0 ? -1 : plane + line;
          inputs.has_zeros = inputs.has_zeros || line < 0;
        }
        plane_.w.each_filter(*family.w, run.q[2], [&](int64_t w) {
          transform_line(family, run, inputs, w, to);
          to += s_.in_words();
        });
      });
    }
  }

  // Where the lines of a filter's points begin; -1: zeros.
  struct RunInputs {
    const float* image;
    int64_t lines[most_steps];
    bool has_zeros;
  };

  // One filter of a run, whose first tile begins at input `w`: tiles inside of the image together, others one by one.
  void transform_line(const FilterFamily& family, const TileRun& run, const RunInputs& inputs, int64_t w,
                      float* to) const {
    const int64_t tile_step = run.step * out_axes_[2].in_step();
    const int64_t reach = (family.pixels - 1) * plane_.w.point_step();
    int64_t begin = 0;
    int64_t end = run.count;
    if (inputs.has_zeros) end = 0;
    const ConvAxis::Span& there = images_.there[2];
    while (begin < end && w + begin * tile_step < there.from) ++begin;
    while (end > begin && w + (end - 1) * tile_step + reach >= there.to) --end;
    for (int64_t t = 0; t < run.count; ++t) {
      const int64_t count = t == begin && begin < end ? end - begin : 1;
      transform_tiles(family, inputs, w + t * tile_step, count, tile_step, to + t * family.pitch);
      t += count - 1;
    }
  }

  __attribute__((noinline)) void transform_tiles(const FilterFamily& family, const RunInputs& inputs, int64_t w,
                                                 int64_t count, int64_t tile_step, float* to) const {
    const float* from[winograd_most_points * winograd_most_points];
    int64_t pixels[most_steps];
    for (int i = 0; i < family.pixels; ++i) pixels[i] = input_offset(2, w + i * plane_.w.point_step());
    const int points_w = family.points(1);
    for (int i = 0; i < family.points(0); ++i) {
      for (int j = 0; j < points_w; ++j) {
        const int64_t line = inputs.lines[plane_.steps_h(i, j)];
        const int64_t pixel = pixels[plane_.steps_w(i, j)];
        from[i * points_w + j] = (line | pixel) < 0 ? zeros_ : inputs.image + line + pixel;
      }
    }
    unit_.transform[family.lengths[0]][family.lengths[1]]({.lengths = {family.lengths[0], family.lengths[1]},
                                                           .from = from,
                                                           .step = tile_step * images_.in_strides.axis[2],
                                                           .tiles = count,
                                                           .channels = s_.in_channels,
                                                           .to = to,
                                                           .pitch = family.pitch,
                                                           .apart = plan_.block * family.pitch});
  }

 protected:
  const ConvWinogradPlan& plan_;
  const ConvShape& s_;
  const ConvPointers& p_;
  const WinogradImages& images_;
  const WinogradUnit& unit_;
  const ConvAxis out_axes_[3];

  float* inputs_ = nullptr;    // of each family [point][tile][plane][filter h, w][word], rows winograd_pitch apart
  float* products_ = nullptr;  // [panel of those together][point][tile][column of the panel]
  float* sums_ = nullptr;      // [panel of those together][output][tile][column of the panel], of the families so far
  float* bias_ = nullptr;
  float* zeros_ = nullptr;
  // Where the outputs of each tile go, of the first depth: [tile][output in both directions]; null where the image ends
  // before.
  float** places_ = nullptr;

  FilterAxis depth_axis_;
  FilterPlane plane_;
  FilterFamily families_[FilterAxis::most_families * FilterAxis::most_families];
  int family_count_ = 0;
  int64_t phase_[3] = {};
  int64_t first_q_[3] = {};
  int64_t end_q_[3] = {};
  int64_t tiles_[3] = {};
  int64_t first_tile_ = 0;
  int64_t group_ = 0;
  int64_t n0_ = 0, n1_ = 0;
  int64_t count_ = 0;  // of tiles
  int64_t depth_count_ = 1;
  int64_t depth_step_ = 0;  // of the output, from one of them to the next
};

}  // namespace polyphase::cpu::POLYPHASE_CLUSTER
