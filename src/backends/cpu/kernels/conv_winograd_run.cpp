// Computes one block of convolution by minimal filtering: transformed inputs, a product per point, outputs back.
#include "backends/cpu/kernels/conv_winograd_run.h"

#include <algorithm>
#include <array>

#include "backends/cpu/kernels/apply_endings.h"
#include "backends/cpu/kernels/planar_input.h"
#include "backends/cpu/kernels/stored_image.h"
#include "backends/cpu/kernels/winograd_block.h"
#include "backends/cpu/simd/transpose.h"

namespace polyphase::cpu::POLYPHASE_CLUSTER {
namespace {

constexpr int vw = vec_width;
constexpr int64_t panel_columns = 2 * vw;
constexpr int64_t tiles_ahead = 6;  // whose places are fetched

class Block : private WinogradBlock {
 public:
  using WinogradBlock::WinogradBlock;

  void run(int64_t number) {
    if (!place(number)) return;
    fill_bias();
    transform_block();
    all_columns_ = ceil_div(plan_.format.columns, vw) * vw;
    weights_ = p_.weights + group_ * plan_.format.group_size +
               conv_winograd_line(s_, phase_[0], phase_[1], phase_[2]) * all_columns_;
    const int64_t last = std::min(PanelGrid(plan_.format.columns, vw).count(), ceil_div(n1_, panel_columns));
    for (first_panel_ = n0_ / panel_columns; first_panel_ < last; first_panel_ = end_panel_) {
      end_panel_ = std::min(first_panel_ + plan_.together, last);
      for (int64_t depth = 0; depth < depth_count_; ++depth) run_panels(depth);
    }
    if (plan_.fast_endings || plan_.out_planar) return;
    for (int64_t depth = 0; depth < depth_count_; ++depth) {
      each_run([&](const TileRun& run) {
        for (int64_t i = 0; i < run.count; ++i) end_tile(run, i, depth);
      });
    }
  }

 private:
  void fill_bias() {
    const int64_t columns = plan_.n_block + max_vectors * vw;
    std::fill_n(bias_, columns, 0.0F);
    if (plan_.has_bias) std::copy_n(p_.bias + group_ * s_.out_channels + n0_, n1_ - n0_, bias_);
  }

  // f() for each of the present panels.
  template <class F>
  void each_panel(F f) {
    for (int64_t panel = first_panel_; panel < end_panel_; ++panel) {
      column_ = panel * panel_columns;
      vectors_ = PanelGrid(plan_.format.columns, vw).vectors_of(panel);
      const int64_t tiles = (panel - first_panel_) * plan_.block * max_vectors * vw;
      panel_products_ = products_ + tiles * plan_.max_points;
      panel_sums_ = sums_ + tiles * winograd_most_outputs;
      f();
    }
  }

  // Products and outputs of the present panels; the outputs of several families are summed until the last is there.
  void run_panels(int64_t depth) {
    if (family_count_ == 0) return each_panel([&] { run_without_taps(depth); });
    const float* weights = weights_;
    const float* inputs = inputs_;
    for (int f = 0; f < family_count_; ++f) {
      const FilterFamily& family = families_[f];
      multiply(family, inputs + depth * family.plane, weights);
      inputs += family.points() * plan_.block * family.pitch;
      weights += family.points() * family.depth * all_columns_;
      each_panel([&] {
        (this->*finish_functions()[family.h][family.w])(depth * depth_step_, f == 0, f + 1 == family_count_);
      });
    }
  }

  // A phase that no tap reaches holds the bias.
  void run_without_taps(int64_t depth) {
    const WayOut way(*this, depth * depth_step_);
    for (int64_t i = 0; i < count_; ++i) {
      for (int j = 0; j < vectors_; ++j) {
        for (int h = 0; h < axes_[1].outputs(); ++h) {
          for (int w = 0; w < axes_[2].outputs(); ++w) way.put(places_[i].out[h][w], j * vw, broadcast(0.0F));
        }
      }
    }
  }

  // [point][tile][vectors * vw] of the present panels.
  void multiply(const FilterFamily& family, const float* inputs, const float* weights) {
    const PanelGrid panels(plan_.format.columns, vw);
    const int64_t points = family.points();
    const auto point_of = [&](int64_t panel, int64_t point) {
      return weights + (points * panel * panel_columns + point * panels.vectors_of(panel) * vw) * family.depth;
    };
    for (int64_t point = 0; point < points; ++point) {
      each_panel([&] {
        const int64_t panel = column_ / panel_columns;
        unit_.multiply({.rows = inputs + point * plan_.block * family.pitch,
                        .pitch = family.pitch,
                        .panel = point_of(panel, point),
                        .depth = family.depth,
                        .row_count = count_,
                        .vectors = vectors_,
                        .out = panel_products_ + point * plan_.block * vectors_ * vw,
                        .next = panel + 1 < end_panel_ ? point_of(panel + 1, point)
                                : point + 1 < points   ? point_of(first_panel_, point + 1)
                                                       : point_of(end_panel_, 0)});
      });
    }
  }

  using FinishFunction = void (Block::*)(int64_t offset, bool first, bool last) const;
  static const std::array<std::array<FinishFunction, winograd_length_count>, winograd_length_count>&
  finish_functions() {
    static constexpr auto table = [] {
      std::array<std::array<FinishFunction, winograd_length_count>, winograd_length_count> of = {};
      each_filter_length([&](auto h) {
        each_filter_length([&](auto w) { of[h.index][w.index] = &Block::finish<decltype(h), decltype(w)>; });
      });
      return of;
    }();
    return table;
  }

  // The outputs of one family, added to those of the families before it, `offset` from the first depth's.
  template <class H, class W>
  void finish(int64_t offset, bool first, bool last) const {
    const WayOut way(*this, offset);
    const int64_t row = vectors_ * vw;
    const int64_t apart = plan_.block * row;  // from one output's sums, or one point's products, to the next
    const float* products = panel_products_;
    float* sums = panel_sums_;
    for (int64_t i = 0; i < count_; ++i) {
      const TilePlace& tile = places_[i];
      if (last) fetch_outputs<H, W>(i + tiles_ahead, offset);
      for (int64_t lane = 0; lane < row; lane += vw) {
        VecF y[H::outputs][W::outputs];
        sum_products<H, W>(products + lane, apart, y);
        for (int h = 0; h < H::outputs; ++h) {
          for (int w = 0; w < W::outputs; ++w) {
            float* const sum = sums + lane + (h * W::outputs + w) * apart;
            const VecF value = first ? y[h][w] : y[h][w] + load(sum);
            if (last) {
              way.put(tile.out[h][w], lane, value);
            } else {
              store(sum, value);
            }
          }
        }
      }
      products += row;
      sums += row;
    }
  }

  // Stores that wait for memory would hold up those behind them.
  template <class H, class W>
  POLYPHASE_INLINE void fetch_outputs(int64_t tile, int64_t offset) const {
    if (tile >= count_) return;
    for (int h = 0; h < H::outputs; ++h) {
      for (int w = 0; w < W::outputs; ++w) {
        float* const out = places_[tile].out[h][w];
        if (out != nullptr) fetch_for_store(StoredResult(out + offset + column_, DType::f32), vectors_ * vw);
      }
    }
  }

  // One vector of columns of a tile, whose points' products lie `apart`.
  template <class H, class W>
  POLYPHASE_INLINE static void sum_products(const float* products, int64_t apart, VecF (&y)[H::outputs][W::outputs]) {
    VecF rows[H::points][W::outputs];
    for (int i = 0; i < H::points; ++i) {
      VecF m[W::points];
      for (int j = 0; j < W::points; ++j) m[j] = load(products + (i * W::points + j) * apart);
      transform_products<W>(m, rows[i]);
    }
    for (int j = 0; j < W::outputs; ++j) {
      VecF m[H::points];
      VecF column[H::outputs];
      for (int i = 0; i < H::points; ++i) m[i] = rows[i][j];
      transform_products<H>(m, column);
      for (int i = 0; i < H::outputs; ++i) y[i][j] = column[i];
    }
  }

  // Bias, ReLU and the way out for the columns of the present panel.
  class WayOut {
   public:
    WayOut(const Block& b, int64_t offset)
        : offset_(offset + b.column_),
          bias_(b.bias_ + b.column_ - b.n0_),
          lanes_(b.n1_ - b.column_),
          activation_(activation_of(b.plan_.endings)),
          slope_(broadcast(b.plan_.endings.steps[0].alpha)) {}

    // Columns [lane, lane + vw) of one output, null where the image ends before it.
    POLYPHASE_INLINE void put(float* out, int64_t lane, VecF sum) const {
      const int64_t lanes = lanes_ - lane;
      if (out == nullptr || lanes <= 0) return;
      const VecF x = sum + load(bias_ + lane);
      const VecF zero = broadcast(0.0F);
      const VecF value = activation_ == TileActivation::none   ? x
                         : activation_ == TileActivation::relu ? max(zero, x)
                                                               : select(less(x, zero), x * slope_, x);
      if (lanes >= vw) {
        store(out + offset_ + lane, value);
      } else {
        store_first(out + offset_ + lane, value, static_cast<int>(lanes));
      }
    }

   private:
    int64_t offset_;
    const float* bias_;
    int64_t lanes_;
    TileActivation activation_;
    VecF slope_;
  };

  // Other endings, while the results are in the caches.
  __attribute__((noinline)) void end_tile(const TileRun& run, int64_t t, int64_t depth) const {
    const TilePlace& tile = places_[run.first + t];
    for (int i = 0; i < axes_[1].outputs(); ++i) {
      for (int j = 0; j < axes_[2].outputs(); ++j) {
        if (tile.out[i][j] == nullptr) continue;
        const int64_t q[3] = {run.q[0] + depth, run.q[1] + i * axes_[1].output_step(),
                              run.q[2] + t * run.step + j * axes_[2].output_step()};
        ResultPlace place = {run.batch, group_ * s_.out_channels + n0_, {}};
        for (int a = 0; a < 3; ++a) place.axis[a] = out_axes_[a].output_of(phase_[a], q[a]);
        apply_endings(plan_.endings, p_.operands, tile.out[i][j] + depth * depth_step_ + n0_, n1_ - n0_, place, true);
      }
    }
  }

  const float* weights_ = nullptr;  // of the group and phase
  int64_t all_columns_ = 0;         // of their panels
  int64_t first_panel_ = 0;         // of those together
  int64_t end_panel_ = 0;
  int64_t column_ = 0;  // of the present panel
  int vectors_ = 0;
  float* panel_products_ = nullptr;
  float* panel_sums_ = nullptr;
};

// Block `tile` of points of the channels-last result, turned to where the image lies. Endings that were left are
// applied there, where their operands' pixels lie beside each other as the result's do.
void turn_result(const ConvWinogradPlan& plan, const ConvPointers& p, int64_t tile) {
  const ConvShape& s = plan.shape;
  const int64_t points = s.out_points();
  const int64_t channels = s.groups * s.out_channels;
  const int64_t blocks = ceil_div(points, plan.turn_points);
  const int64_t image = tile / blocks;
  const int64_t last = std::min(points, (tile % blocks + 1) * plan.turn_points);
  float* const from = p.shared + plan.result_at + image * points * channels;
  const StoredResult to = StoredResult(p.out, s.types.out) + image * plan.out.batch;
  const auto end = [&](int64_t channel, int64_t point, float* values, int64_t count) {
    if (plan.fast_endings) return;
    for (int64_t at = point; at < point + count;) {
      const int64_t line = at / s.out[2];
      const int64_t next = std::min(point + count, (line + 1) * s.out[2]);
      const ResultPlace place = {image, channel, {line / s.out[1], line % s.out[1], at % s.out[2]}};
      apply_endings(plan.endings, p.operands, values + (at - point), next - at, place, false);
      at = next;
    }
  };
  const auto turn = [&](int64_t point, int64_t offset, int64_t count) {
    float* const pixels = from + point * channels;
    const StoredResult line = to + offset;
    if (line.wide()) {
      transpose_to_rows(pixels, channels, line.floats(), plan.out.channel, count, channels,
                        plan.past_caches && plan.fast_endings);
      for (int64_t c = 0; c < channels; ++c) end(c, point, line.floats() + c * plan.out.channel, count);
    } else {
      turn_to_narrow_rows(
          pixels, channels, {line, plan.out.channel, plan.out.axis[2], plan.past_caches, !plan.fast_endings}, count,
          channels, [&](int64_t c, int64_t i, float* values, int64_t n) { end(c, point + i, values, n); });
    }
  };
  each_run_of_points(s.out, plan.out, tile % blocks * plan.turn_points, last, turn);
}

}  // namespace

void run_conv_winograd(const ConvWinogradPlan& plan, const ConvPointers& pointers, int phase, int64_t tile,
                       std::byte* scratch) {
  if (plan.in_copied && phase-- == 0) {
    copy_channels_last(plan.shape, plan.in, pointers.in, pointers.shared, plan.shape.groups * plan.shape.in_channels,
                       plan.turn_points, tile);
  } else if (phase == 1) {
    turn_result(plan, pointers, tile);
  } else {
    Block(plan, pointers, scratch).run(tile);
  }
}

}  // namespace polyphase::cpu::POLYPHASE_CLUSTER
