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

constexpr int64_t tiles_ahead = 6;  // whose places are fetched

class Block : private WinogradBlock {
 public:
  using WinogradBlock::WinogradBlock;

  void run(int64_t number) {
    if (!place(number)) return;
    place_outputs();
    fill_bias();
    if (plan_.input_pieces == 0) transform(0, count_);
    all_columns_ = ceil_div(plan_.format.columns, vw) * vw;
    weights_ = p_.weights + group_ * plan_.format.group_size +
               conv_winograd_line(s_, phase_[0], phase_[1], phase_[2]) * all_columns_;
    const int64_t last = std::min(PanelGrid(plan_.format.columns, vw).count(), ceil_div(n1_, panel_columns));
    for (first_panel_ = n0_ / panel_columns; first_panel_ < last; first_panel_ = end_panel_) {
      end_panel_ = std::min(first_panel_ + plan_.together, last);
      for (int64_t depth = 0; depth < depth_count_; ++depth) run_panels(depth);
    }
    if (plan_.brief.are_all || plan_.out_planar) return;
    for (int64_t depth = 0; depth < depth_count_; ++depth) {
      each_run([&](const TileRun& run) { end_tiles(run, depth); });
    }
  }

  // Piece `number` of all blocks' transformed inputs.
  void transform_piece(int64_t number) {
    if (!place(number / plan_.input_pieces * plan_.n_blocks)) return;
    const int64_t tiles = ceil_div(plan_.block, plan_.input_pieces);
    const int64_t first = number % plan_.input_pieces * tiles;
    transform(first, std::min(count_, first + tiles));
  }

 private:
  class WayOut;

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
      panel_sums_ = sums_ + tiles * plan_.max_outputs;
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
        const auto finish = finish_functions()[family.lengths[0]][family.lengths[1]];
        (this->*finish)(family, depth * depth_step_, f == 0, f + 1 == family_count_);
      });
    }
  }

  // A phase that no tap reaches holds the bias.
  void run_without_taps(int64_t depth) {
    const WayOut way(*this, depth * depth_step_);
    for (int64_t i = 0; i < count_ * tile_outputs(); ++i) {
      for (int j = 0; j < vectors_; ++j) way.put(places_[i], j * vw, broadcast(0.0F));
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

  using FinishFunction = void (Block::*)(const FilterFamily& family, int64_t offset, bool first, bool last) const;
  static const std::array<std::array<FinishFunction, winograd_length_count>, winograd_length_count>&
  finish_functions() {
    static constexpr auto table = [] {
      std::array<std::array<FinishFunction, winograd_length_count>, winograd_length_count> of = {};
      for (auto& of_h : of) of_h.fill(&Block::finish_fours);
      each_pair_of_lengths([&](auto h, auto w) { of[h.index][w.index] = &Block::finish<decltype(h), decltype(w)>; });
      return of;
    }();
    return table;
  }

  // The outputs of one family, added to those of the families before it, `offset` from the first depth's.
  template <class H, class W>
  void finish(const FilterFamily&, int64_t offset, bool first, bool last) const {
    const WayOut way(*this, offset);
    const int64_t row = vectors_ * vw;
    const int64_t apart = plan_.block * row;  // from one output's sums, or one point's products, to the next
    const float* products = panel_products_;
    float* sums = panel_sums_;
    for (int64_t i = 0; i < count_; ++i) {
      float* const* const tile = places_ + i * H::outputs * W::outputs;
      if (last) fetch_outputs(i + tiles_ahead, H::outputs * W::outputs, offset);
      for (int64_t lane = 0; lane < row; lane += vw) {
        VecF y[H::outputs * W::outputs];
        sum_products<H, W>(products + lane, apart, y);
        for (int k = 0; k < H::outputs * W::outputs; ++k)
          put(way, tile[k], lane, y[k], sums + lane + k * apart, first, last);
      }
      products += row;
      sums += row;
    }
  }

  // The same of four outputs in one direction or in both.
  void finish_fours(const FilterFamily& family, int64_t offset, bool first, bool last) const {
    const auto sum_rows =
        with_length_of_fours(family.lengths[1], [](auto w) { return sum_rows_of_fours<decltype(w)>; });
    const auto sum_columns =
        with_length_of_fours(family.lengths[0], [](auto h) { return sum_columns_of_fours<decltype(h)>; });
    const int points_h = family.points(0);
    const int outputs_w = plane_.outputs(1);
    const int64_t outputs = tile_outputs();
    const WayOut way(*this, offset);
    const int64_t row = vectors_ * vw;
    const int64_t apart = plan_.block * row;
    PointsOfFours rows;
    VecF y[winograd_most_outputs * winograd_most_outputs];
    for (int64_t i = 0; i < count_; ++i) {
      float* const* const tile = places_ + i * outputs;
      if (last) fetch_outputs(i + tiles_ahead, outputs, offset);
      for (int64_t lane = 0; lane < row; lane += vw) {
        sum_rows(panel_products_ + i * row + lane, apart, points_h, rows);
        sum_columns(rows, outputs_w, y);
#pragma GCC unroll 1
        for (int64_t k = 0; k < outputs; ++k)
          put(way, tile[k], lane, y[k], panel_sums_ + i * row + lane + k * apart, first, last);
      }
    }
  }

  // A vector of columns of an output: on its way, or to the sums of the families so far.
  POLYPHASE_INLINE static void put(const WayOut& way, float* out, int64_t lane, VecF y, float* sum, bool first,
                                   bool last) {
    const VecF value = first ? y : y + load(sum);
    if (last) {
      way.put(out, lane, value);
    } else {
      store(sum, value);
    }
  }

  // Stores that wait for memory would hold up those behind them.
  __attribute__((noinline)) void fetch_outputs(int64_t tile, int64_t outputs, int64_t offset) const {
    if (tile >= count_) return;
    float* const* const places = places_ + tile * outputs;
    for (int64_t i = 0; i < outputs; ++i) {
      if (places[i] == nullptr) continue;
      float* const to = places[i] + offset + column_;
      fetch_for_store(StoredResult(to, DType::f32), vectors_ * vw);
      if (endings_.adds) prefetch_to_load(endings_.added_to(to), vectors_ * vw);
    }
  }

  // One vector of columns of a tile, whose points' products lie `apart`.
  template <class H, class W>
  POLYPHASE_INLINE static void sum_products(const float* products, int64_t apart, VecF (&y)[H::outputs * W::outputs]) {
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
      for (int i = 0; i < H::outputs; ++i) y[i * W::outputs + j] = column[i];
    }
  }

  // Bias, ReLU and the way out for the columns of the present panel.
  class WayOut {
   public:
    WayOut(const Block& b, int64_t offset)
        : offset_(offset + b.column_),
          bias_(b.bias_ + b.column_ - b.n0_),
          lanes_(b.n1_ - b.column_),
          endings_(b.endings_) {}

    // Columns [lane, lane + vw) of one output, null where the image ends before it.
    POLYPHASE_INLINE void put(float* out, int64_t lane, VecF sum) const {
      const int64_t lanes = lanes_ - lane;
      if (out == nullptr || lanes <= 0) return;
      float* const to = out + offset_ + lane;
      VecF x[1] = {sum + load(bias_ + lane)};
      if (endings_.adds) {
        const float* const added = endings_.added_to(to);
        x[0] = x[0] + (lanes >= vw ? load(added) : load_first(added, static_cast<int>(lanes)));
      }
      activate(endings_, x);
      if (lanes >= vw) {
        store(to, x[0]);
      } else {
        store_first(to, x[0], static_cast<int>(lanes));
      }
    }

   private:
    int64_t offset_;
    const float* bias_;
    int64_t lanes_;
    TileEndings endings_;
  };

  // Other endings, while the results are in the caches: of each output of the tiles, as far as the image goes.
  __attribute__((noinline)) void end_tiles(const TileRun& run, int64_t depth) const {
    float* const* const tiles = places_ + run.first * tile_outputs();
    for (int i = 0; i < plane_.outputs(0); ++i) {
      for (int j = 0; j < plane_.outputs(1); ++j) {
        int64_t count = run.count;
        float* const* const places = tiles + i * plane_.outputs(1) + j;
        while (count > 0 && places[(count - 1) * tile_outputs()] == nullptr) --count;
        if (count == 0) continue;
        const int64_t q[3] = {run.q[0] + depth, run.q[1] + plane_.steps_h(i, j) * plane_.h.output_step(),
                              run.q[2] + plane_.steps_w(i, j) * plane_.w.output_step()};
        ResultPlace place = {run.batch, group_ * s_.out_channels + n0_, {}};
        for (int a = 0; a < 3; ++a) place.axis[a] = out_axes_[a].output_of(phase_[a], q[a]);
        const int64_t pixels = run.step * out_axes_[2].phases();
        apply_endings(plan_.endings, p_.operands, places[0] + depth * depth_step_ + n0_, n1_ - n0_, place, true,
                      {count, pixels * images_.out_strides.axis[2], pixels});
      }
    }
  }

  const TileEndings endings_ = {plan_.brief, p_.out, p_.operands};
  const float* weights_ = nullptr;  // of the group and phase
  int64_t all_columns_ = 0;         // of their panels
  int64_t first_panel_ = 0;         // of those together
  int64_t end_panel_ = 0;
  int64_t column_ = 0;  // of the present panel
  int vectors_ = 0;
  float* panel_products_ = nullptr;
  float* panel_sums_ = nullptr;
};

// Turns channels of the channels-last result to where the image lies. Endings that were left are applied there, where
// their operands' pixels lie beside each other as the result's do.
class Turned {
 public:
  Turned(const ConvWinogradPlan& plan, const ConvPointers& pointers, int64_t image, int64_t first_channel,
         int64_t channels)
      : plan_(plan),
        p_(pointers),
        image_(image),
        first_channel_(first_channel),
        channels_(channels),
        to_(StoredResult(pointers.out, plan.shape.types.out) +
            (image * plan.out.batch + first_channel * plan.out.channel)) {}

  // `count` points of the whole image, from `point` on, which lie plan.out.axis[2] apart from `offset` on.
  void put(float* pixels, int64_t point, int64_t offset, int64_t count) const {
    const StoredResult line = to_ + offset;
    if (line.wide()) {
      transpose_to_rows(pixels, channels_, line.floats(), plan_.out.channel, count, channels_,
                        plan_.past_caches && plan_.brief.are_all);
      for (int64_t c = 0; c < channels_; ++c) end(c, point, line.floats() + c * plan_.out.channel, count);
    } else {
      turn_to_narrow_rows(
          pixels, channels_, {line, plan_.out.channel, plan_.out.axis[2], plan_.past_caches, !plan_.brief.are_all},
          count, channels_, [&](int64_t c, int64_t i, float* values, int64_t n) { end(c, point + i, values, n); });
    }
  }

 private:
  void end(int64_t channel, int64_t point, float* values, int64_t count) const {
    if (plan_.brief.are_all) return;
    const ConvShape& s = plan_.shape;
    for (int64_t at = point; at < point + count;) {
      const int64_t line = at / s.out[2];
      const int64_t next = std::min(point + count, (line + 1) * s.out[2]);
      const ResultPlace place = {image_, first_channel_ + channel, {line / s.out[1], line % s.out[1], at % s.out[2]}};
      apply_endings(plan_.endings, p_.operands, values + (at - point), next - at, place, false);
      at = next;
    }
  }

  const ConvWinogradPlan& plan_;
  const ConvPointers& p_;
  int64_t image_;
  int64_t first_channel_;
  int64_t channels_;
  StoredResult to_;
};

// Block `tile` of points of the whole result.
void turn_result(const ConvWinogradPlan& plan, const ConvPointers& p, int64_t tile) {
  const ConvShape& s = plan.shape;
  const int64_t points = s.out_points();
  const int64_t channels = s.groups * s.out_channels;
  const int64_t blocks = ceil_div(points, plan.turn_points);
  const int64_t image = tile / blocks;
  const int64_t last = std::min(points, (tile % blocks + 1) * plan.turn_points);
  const Turned turned(plan, p, image, 0, channels);
  float* const from = p.shared + plan.result_at + image * points * channels;
  each_run_of_points(
      s.out, plan.out, tile % blocks * plan.turn_points, last,
      [&](int64_t point, int64_t offset, int64_t count) { turned.put(from + point * channels, point, offset, count); });
}

// Images that lie, or were copied, channels-last.
WinogradImages whole_images(const ConvWinogradPlan& plan, const ConvPointers& p) {
  const ConvShape& s = plan.shape;
  return {
      .in = plan.in_copied ? p.shared : p.in,
      .in_strides = plan.in_copied ? pixel_strides(s.in, s.groups * s.in_channels) : plan.in,
      .there = {{0, s.in[0]}, {0, s.in[1]}, {0, s.in[2]}},
      .out = plan.out_planar ? p.shared + plan.result_at : p.out,
      .out_strides = plan.out_planar ? pixel_strides(s.out, s.groups * s.out_channels) : plan.out,
  };
}

// The channels-last image of the points that a part reads.
void copy_window(const ConvWinogradPlan& plan, StoredImage image, const WinogradImages& images, float* to) {
  const ConvAxis::Span(&there)[3] = images.there;
  const int64_t count = there[2].to - there[2].from;
  if (count <= 0) return;
  for (int64_t d = there[0].from; d < there[0].to; ++d) {
    for (int64_t h = there[1].from; h < there[1].to; ++h) {
      copy_points(image + (d * plan.in.axis[0] + h * plan.in.axis[1] + there[2].from * plan.in.axis[2]),
                  plan.in.channel, plan.in.axis[2], plan.shape.in_channels, count, to, plan.shape.in_channels);
      to += images.in_strides.axis[1];
    }
  }
}

// Part `tile`, from image to image.
void run_part(const ConvWinogradPlan& plan, const ConvPointers& p, int64_t tile, std::byte* scratch) {
  const ConvShape& whole = plan.shape;
  ConvShape s = whole;
  s.batch = 1;
  s.groups = 1;
  int64_t first[3];
  WinogradImages images = {};
  int64_t extent[3];
  for (int a = 2; a >= 0; --a) {
    first[a] = tile % plan.parts[a] * plan.part[a];
    tile /= plan.parts[a];
    s.out[a] = std::min(plan.part[a], whole.out[a] - first[a]);
    s.pre[a] += s.transposed ? first[a] : -first[a] * s.stride[a];
    images.there[a] = ConvAxis(whole, a).reads(first[a], first[a] + s.out[a]);
    extent[a] = std::max<int64_t>(0, images.there[a].to - images.there[a].from);
  }
  const int64_t group = tile % whole.groups;
  const int64_t image = tile / whole.groups;
  auto* const floats = reinterpret_cast<float*>(scratch);
  images.in = floats;
  images.in_strides = pixel_strides(extent, s.in_channels);
  images.out = floats + plan.result_at;
  images.out_strides = pixel_strides(s.out, s.out_channels);
  const int64_t channel = group * s.in_channels;
  copy_window(plan, StoredImage(p.in, s.types.in) + (image * plan.in.batch + channel * plan.in.channel), images,
              floats);

  ConvPointers of_group = p;
  of_group.weights += group * plan.format.group_size;
  if (plan.has_bias) of_group.bias += group * s.out_channels;
  Block block(plan, s, of_group, images, scratch + plan.images_bytes);
  for (int64_t phase = 0; phase < plan.phases; ++phase) {
    for (int64_t i = 0; i < plan.blocks; ++i) block.run(i * plan.phases + phase);
  }

  const Turned turned(plan, p, image, group * s.out_channels, s.out_channels);
  float* pixels = images.out;
  for (int64_t d = first[0]; d < first[0] + s.out[0]; ++d) {
    for (int64_t h = first[1]; h < first[1] + s.out[1]; ++h) {
      turned.put(pixels, (d * whole.out[1] + h) * whole.out[2] + first[2],
                 d * plan.out.axis[0] + h * plan.out.axis[1] + first[2] * plan.out.axis[2], s.out[2]);
      pixels += images.out_strides.axis[1];
    }
  }
}

}  // namespace

void run_conv_winograd(const ConvWinogradPlan& plan, const ConvPointers& pointers, int phase, int64_t tile,
                       std::byte* scratch) {
  if (plan.parted) {
    run_part(plan, pointers, tile, scratch);
  } else if (plan.in_copied && phase-- == 0) {
    copy_channels_last(plan.shape, plan.in, pointers.in, pointers.shared, plan.shape.groups * plan.shape.in_channels,
                       plan.turn_points, tile);
  } else if (plan.input_pieces > 0 && phase-- == 0) {
    Block(plan, plan.shape, pointers, whole_images(plan, pointers), scratch).transform_piece(tile);
  } else if (phase == 1) {
    turn_result(plan, pointers, tile);
  } else {
    Block(plan, plan.shape, pointers, whole_images(plan, pointers), scratch).run(tile);
  }
}

}  // namespace polyphase::cpu::POLYPHASE_CLUSTER
