// Computes one block of convolution by minimal filtering: transformed inputs, a product per point, outputs back.
#include "backends/cpu/kernels/conv_winograd_run.h"

#include <algorithm>
#include <array>

#include "backends/cpu/kernels/apply_endings.h"
#include "backends/cpu/kernels/planar_input.h"
#include "backends/cpu/kernels/winograd_unit.h"
#include "backends/cpu/simd/transpose.h"

namespace polyphase::cpu::POLYPHASE_CLUSTER {
namespace {

constexpr int vw = vec_width;
constexpr int64_t panel_columns = 2 * vw;
constexpr WinogradUnit float_unit = winograd_unit<Products::floats>();
constexpr int64_t tiles_ahead = 6;  // whose places are fetched
constexpr int64_t cache_line_floats = 16;
constexpr std::size_t lengths = std::size(winograd_lengths);

// Filters of the same lengths: their products are one matrix product.
struct FilterFamily {
  std::size_t h, w;  // of winograd_lengths
  int points_h, points_w;
  int64_t plane;  // words of a row: all filters of a plane one after the other
  int64_t depth;  // all that are summed
  int64_t pitch;  // from row to row
};

// Where the outputs of a tile go, of the first depth; null where the image ends before.
struct TilePlace {
  float* out[2][2];
};
static_assert(sizeof(TilePlace) == winograd_place_bytes);

// Tiles `first` and those behind it, whose first outputs lie `step` apart in one line of a phase's grid of outputs.
struct TileRun {
  int64_t first;
  int64_t count;
  int64_t batch;
  int64_t q[3];  // the first output of the first tile
  int64_t step;
};

class Block {
 public:
  Block(const ConvWinogradPlan& plan, const ConvPointers& pointers, std::byte* scratch)
      : plan_(plan),
        s_(plan.shape),
        p_(pointers),
        unit_(plan.pairs != nullptr ? *plan.pairs : float_unit),
        out_axes_{{s_, 0}, {s_, 1}, {s_, 2}} {
    const auto take = [&](int64_t bytes) {
      std::byte* const taken = scratch;
      scratch += ceil_div(bytes, 64) * 64;
      return taken;
    };
    inputs_ = reinterpret_cast<float*>(take(plan.input_words * 4));
    products_ = reinterpret_cast<float*>(take(plan.max_points * plan.block * max_vectors * vw * 4));
    sums_ = reinterpret_cast<float*>(take(4 * plan.block * max_vectors * vw * 4));
    bias_ = reinterpret_cast<float*>(take((plan.n_block + max_vectors * vw) * 4));
    zeros_ = reinterpret_cast<float*>(take((s_.in_channels + vw) * 4));
    places_ = reinterpret_cast<TilePlace*>(take(plan.block * winograd_place_bytes));
    const int64_t channels = s_.groups * s_.in_channels;
    in_ = plan.in_copied ? p_.shared : p_.in;
    in_strides_ = plan.in_copied ? copied_strides(s_, channels) : plan.in;
    out_ = plan.out_planar ? p_.shared + plan.result_at : p_.out;
    const int64_t c = s_.groups * s_.out_channels;
    out_strides_ = plan.out;
    if (plan.out_planar) out_strides_ = {s_.out_points() * c, 1, {s_.out[1] * s_.out[2] * c, s_.out[2] * c, c}};
  }

  void run(int64_t number) {
    const int64_t n_tile = number % plan_.n_blocks;
    n0_ = n_tile * plan_.n_block;
    n1_ = n_tile + 1 == plan_.n_blocks ? plan_.format.columns : n0_ + plan_.n_block;
    number /= plan_.n_blocks;
    int64_t phase = number % plan_.phases;
    number /= plan_.phases;
    const int64_t block = number % plan_.blocks;
    group_ = number / plan_.blocks;
    for (int a = 2; a >= 0; --a) {
      const int64_t phases = out_axes_[a].phases();
      phase_[a] = phase % phases;
      phase /= phases;
    }
    for (int a = 0; a < 3; ++a) axes_[a] = FilterAxis(s_, a, phase_[a]);
    if (n0_ >= n1_ || !place(block)) return;
    std::fill_n(zeros_, s_.in_channels + vw, 0.0F);
    fill_bias();
    list_families();
    transform_block();
    all_columns_ = ceil_div(plan_.format.columns, vw) * vw;
    weights_ = p_.weights + group_ * plan_.format.group_size +
               conv_winograd_line(s_, phase_[0], phase_[1], phase_[2]) * all_columns_;
    const PanelGrid panels(plan_.format.columns, vw);
    const int64_t last = std::min(panels.count(), ceil_div(n1_, panel_columns));
    for (int64_t panel = n0_ / panel_columns; panel < last; ++panel) {
      column_ = panel * panel_columns;
      vectors_ = panels.vectors_of(panel);
      for (int64_t depth = 0; depth < depth_count_; ++depth)
        family_count_ == 0 ? run_without_taps(depth) : run_panel(depth);
    }
    if (plan_.fast_endings || plan_.out_planar) return;
    for (int64_t depth = 0; depth < depth_count_; ++depth) {
      each_run([&](const TileRun& run) {
        for (int64_t i = 0; i < run.count; ++i) end_tile(run, i, depth);
      });
    }
  }

 private:
  // Which tiles the block has; false if none.
  bool place(int64_t block) {
    for (int a = 0; a < 3; ++a) {
      const ConvAxis& axis = out_axes_[a];
      first_q_[a] = axis.first_q(phase_[a], 0);
      end_q_[a] = axis.first_q(phase_[a], axis.out);
      tiles_[a] = axes_[a].tiles(outputs_along(a));
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
    depth_step_ = out_axes_[0].phases() * out_strides_.axis[0];
    if (count_ <= 0) return false;
    each_run([&](const TileRun& run) { place_outputs(run); });
    return true;
  }

  int64_t outputs_along(int a) const { return std::max<int64_t>(0, end_q_[a] - first_q_[a]); }

  // f(run) for the tiles of the block.
  template <class F>
  void each_run(F f) const {
    TileRun run = {};
    for (run.first = 0; run.first < count_; run.first += run.count) {
      int64_t at = first_tile_ + run.first;
      int64_t last = 0;  // along the line
      for (int a = 2; a >= 0; --a) {
        const int64_t tile = at % tiles_[a];
        run.q[a] = first_q_[a] + axes_[a].first_output(tile, outputs_along(a));
        at /= tiles_[a];
        if (a == 2) last = tile;
      }
      run.batch = at;
      const FilterAxis::Run along = axes_[2].run_of(last, outputs_along(2));
      run.step = along.step;
      run.count = std::min({along.tiles, tiles_[2] - last, count_ - run.first});
      f(run);
    }
  }

  __attribute__((noinline)) void place_outputs(const TileRun& run) const {
    const auto offset = [&](int a, int64_t q) { return out_axes_[a].output_of(phase_[a], q) * out_strides_.axis[a]; };
    float* const base = out_ + run.batch * out_strides_.batch + offset(0, run.q[0]) + group_ * s_.out_channels;
    float* lines[2];
    for (int i = 0; i < 2; ++i) {
      const int64_t h = run.q[1] + i * axes_[1].output_step();
      lines[i] = h < end_q_[1] ? base + offset(1, h) : nullptr;
    }
    TilePlace* place = places_ + run.first;
    for (int64_t t = 0; t < run.count; ++t, ++place) {
      for (int j = 0; j < 2; ++j) {
        const int64_t w = run.q[2] + t * run.step + j * axes_[2].output_step();
        const bool inside = w < end_q_[2];
        const int64_t at = inside ? offset(2, w) : 0;
        for (int i = 0; i < 2; ++i) place->out[i][j] = inside && lines[i] != nullptr ? lines[i] + at : nullptr;
      }
    }
  }

  void fill_bias() {
    const int64_t columns = plan_.n_block + max_vectors * vw;
    std::fill_n(bias_, columns, 0.0F);
    if (plan_.has_bias) std::copy_n(p_.bias + group_ * s_.out_channels + n0_, n1_ - n0_, bias_);
  }

  // Those that there are, in the order of the packed weights.
  void list_families() {
    family_count_ = 0;
    for (std::size_t h = 0; h < lengths; ++h) {
      if (winograd_lengths[h].outputs != axes_[1].outputs()) continue;
      for (std::size_t w = 0; w < lengths; ++w) {
        if (winograd_lengths[w].outputs != axes_[2].outputs()) continue;
        const int64_t filters = axes_[0].filters(1) * axes_[1].filters(winograd_lengths[h].taps) *
                                axes_[2].filters(winograd_lengths[w].taps);
        if (filters == 0) continue;
        const int64_t depth = filters * s_.in_words();
        const int64_t plane = depth / axes_[0].filters(1);
        const int64_t pitch = winograd_pitch(depth + (plan_.depths - 1) * plane, vw);
        families_[family_count_++] = {h,     w,    winograd_lengths[h].points(), winograd_lengths[w].points(), plane,
                                      depth, pitch};
      }
    }
  }

  void transform_block() {
    float* inputs = inputs_;
    for (int f = 0; f < family_count_; ++f) {
      const FilterFamily& family = families_[f];
      each_run([&](const TileRun& run) { transform_run(family, run, inputs + run.first * family.pitch); });
      inputs += family.points_h * family.points_w * plan_.block * family.pitch;
    }
  }

  // Products and outputs of the present panel; the outputs of several families are summed until the last is there.
  void run_panel(int64_t depth) {
    const float* weights = weights_;
    const float* inputs = inputs_;
    for (int f = 0; f < family_count_; ++f) {
      const FilterFamily& family = families_[f];
      const int points = family.points_h * family.points_w;
      multiply(family, inputs + depth * family.plane, weights + points * family.depth * column_);
      inputs += points * plan_.block * family.pitch;
      weights += points * family.depth * all_columns_;
      (this->*finish_functions()[family.h][family.w])(depth * depth_step_, f == 0, f + 1 == family_count_);
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

  // Offset of an input line or pixel along an axis; -1 outside, where the input is zero.
  int64_t input_offset(int a, int64_t at) const {
    if (s_.pad_mode != PadMode::zero) at = padded_index(s_.pad_mode, at, s_.in[a]);
    return at < 0 || at >= s_.in[a] ? -1 : at * in_strides_.axis[a];
  }

  // Rows `to` and those behind it of every point's matrix: the filters' transformed inputs one after the other.
  void transform_run(const FilterFamily& family, const TileRun& run, float* to) const {
    const int64_t planes = axes_[0].filters(1);
    const int64_t first_plane = axes_[0].first_input(run.q[0]);
    RunInputs inputs = {};
    inputs.image = in_ + run.batch * in_strides_.batch + group_ * s_.in_channels * in_strides_.channel;
    for (int64_t p = 0; p < planes + depth_count_ - 1; ++p) {
      const int64_t plane = input_offset(0, first_plane + p * axes_[0].point_step());
      axes_[1].each_filter(winograd_lengths[family.h].taps, run.q[1], [&](int64_t h) {
        inputs.has_zeros = false;
        for (int i = 0; i < family.points_h; ++i) {
          const int64_t line = plane < 0 ? -1 : input_offset(1, h + i * axes_[1].point_step());
          inputs.lines[i] = line < 0 ? -1 : plane + line;
          inputs.has_zeros = inputs.has_zeros || line < 0;
        }
        axes_[2].each_filter(winograd_lengths[family.w].taps, run.q[2], [&](int64_t w) {
          transform_line(family, run, inputs, w, to);
          to += s_.in_words();
        });
      });
    }
  }

  // Where the points of a filter lie along the height; -1: zeros.
  struct RunInputs {
    const float* image;
    int64_t lines[winograd_most_points];
    bool has_zeros;
  };

  // One filter of a run, whose first tile begins at input `w`: tiles inside of the image together, others one by one.
  void transform_line(const FilterFamily& family, const TileRun& run, const RunInputs& inputs, int64_t w,
                      float* to) const {
    const int64_t tile_step = run.step * out_axes_[2].in_step();
    const int64_t reach = (family.points_w - 1) * axes_[2].point_step();
    int64_t begin = 0;
    int64_t end = run.count;
    if (inputs.has_zeros) end = 0;
    while (begin < end && w + begin * tile_step < 0) ++begin;
    while (end > begin && w + (end - 1) * tile_step + reach >= s_.in[2]) --end;
    for (int64_t t = 0; t < run.count; ++t) {
      const int64_t count = t == begin && begin < end ? end - begin : 1;
      transform_tiles(family, inputs, w + t * tile_step, count, tile_step, to + t * family.pitch);
      t += count - 1;
    }
  }

  __attribute__((noinline)) void transform_tiles(const FilterFamily& family, const RunInputs& inputs, int64_t w,
                                                 int64_t count, int64_t tile_step, float* to) const {
    const float* from[winograd_most_points * winograd_most_points];
    for (int j = 0; j < family.points_w; ++j) {
      const int64_t pixel = input_offset(2, w + j * axes_[2].point_step());
      for (int i = 0; i < family.points_h; ++i) {
        const int64_t line = inputs.lines[i];
        from[i * family.points_w + j] = (line | pixel) < 0 ? zeros_ : inputs.image + line + pixel;
      }
    }
    unit_.transform[family.h][family.w]({.from = from,
                                         .step = tile_step * in_strides_.axis[2],
                                         .tiles = count,
                                         .channels = s_.in_channels,
                                         .to = to,
                                         .pitch = family.pitch,
                                         .apart = plan_.block * family.pitch});
  }

  // products_[point][tile][vectors * vw] of the present panel.
  void multiply(const FilterFamily& family, const float* inputs, const float* panel) const {
    const int64_t lanes = vectors_ * vw;
    for (int64_t point = 0; point < family.points_h * family.points_w; ++point) {
      unit_.multiply({.rows = inputs + point * plan_.block * family.pitch,
                      .pitch = family.pitch,
                      .panel = panel + point * family.depth * lanes,
                      .depth = family.depth,
                      .row_count = count_,
                      .vectors = vectors_,
                      .out = products_ + point * plan_.block * lanes});
    }
  }

  using FinishFunction = void (Block::*)(int64_t offset, bool first, bool last) const;
  static const std::array<std::array<FinishFunction, lengths>, lengths>& finish_functions() {
    static constexpr auto table = [] {
      std::array<std::array<FinishFunction, lengths>, lengths> of = {};
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
    const float* products = products_;
    float* sums = sums_;
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
        const float* const out = places_[tile].out[h][w];
        if (out == nullptr) continue;
        for (int64_t lane = 0; lane < vectors_ * vw; lane += cache_line_floats)
          prefetch_for_store(out + offset + column_ + lane);
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
        : offset_(offset + b.column_), bias_(b.bias_ + b.column_ - b.n0_), lanes_(b.n1_ - b.column_) {
      if (!b.plan_.fast_endings || b.plan_.endings.count == 0) return;
      const EndingStep& step = b.plan_.endings.steps[0];
      activation_ = step.kind == EndingKind::relu ? TileActivation::relu : TileActivation::leaky_relu;
      slope_ = broadcast(step.alpha);
    }

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
    TileActivation activation_ = TileActivation::none;
    VecF slope_ = broadcast(0.0F);
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

  const ConvWinogradPlan& plan_;
  const ConvShape& s_;
  const ConvPointers& p_;
  const WinogradUnit& unit_;
  const ConvAxis out_axes_[3];
  const float* in_ = nullptr;
  ImageStrides in_strides_ = {};
  float* out_ = nullptr;
  ImageStrides out_strides_ = {};

  float* inputs_ = nullptr;    // of each family [point][tile][plane][filter h, w][word], rows winograd_pitch apart
  float* products_ = nullptr;  // [point][tile][column of the panel]
  float* sums_ = nullptr;      // [output][tile][column of the panel], of the families so far
  float* bias_ = nullptr;
  float* zeros_ = nullptr;
  TilePlace* places_ = nullptr;

  FilterAxis axes_[3];
  FilterFamily families_[lengths * lengths];
  int family_count_ = 0;
  int64_t phase_[3] = {};
  int64_t first_q_[3] = {};
  int64_t end_q_[3] = {};
  int64_t tiles_[3] = {};
  int64_t first_tile_ = 0;
  int64_t group_ = 0;
  const float* weights_ = nullptr;  // of the group and phase
  int64_t all_columns_ = 0;         // of their panels
  int64_t n0_ = 0, n1_ = 0;
  int64_t count_ = 0;  // of tiles
  int64_t depth_count_ = 1;
  int64_t depth_step_ = 0;  // of the output, from one of them to the next
  int64_t column_ = 0;
  int vectors_ = 0;
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
