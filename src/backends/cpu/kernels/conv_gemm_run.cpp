// Computes one tile of convolution as GEMM: row pointers, panels, endings, and the way out.
#include "backends/cpu/kernels/conv_gemm_run.h"

#include <algorithm>

#include "backends/cpu/kernels/apply_endings.h"
#include "backends/cpu/kernels/gemm_tile.h"
#include "backends/cpu/kernels/planar_input.h"
#include "backends/cpu/simd/transpose.h"

namespace polyphase::cpu::POLYPHASE_CLUSTER {
namespace {

constexpr int kW = kVecWidth;
constexpr int64_t kPanelColumns = 2 * kW;
constexpr int64_t kChunkDepth = 320;  // K of one pass over the rows: its part of a panel stays in the first-level cache
constexpr int64_t kChunkAbove = 512;  // K up to which one pass is enough

// One output row of the tile's outer phase, in coordinates of the output grid (q) and of the output itself.
struct Line {
  int64_t batch;
  int64_t q[2];
};

class Tile {
 public:
  Tile(const ConvGemmPlan& plan, const ConvPointers& pointers, std::byte* scratch)
      : plan_(plan), s_(plan.shape), p_(pointers), d_(s_, 0), h_(s_, 1), w_(s_, 2) {
    carve(scratch);
    in_ = plan.in_planar ? p_.shared : p_.in;
    in_strides_ = plan.in_planar ? converted_strides(s_) : plan.in;
    if (s_.groups * s_.in_channels == 1) in_strides_.channel = 1;
  }

  void run(int64_t tile) {
    if (!place(tile)) return;
    std::fill_n(zeros_, s_.in_channels, 0.0F);
    fill_bias();
    for (int64_t r = 0; r < plan_.format.column_groups; ++r) {
      column_group_ = r;
      if (!place_column_group()) continue;
      if (plan_.gathered) {
        gather_rows();
      } else {
        point_rows();
      }
      point_outputs();
      multiply();
    }
    if (plan_.out_planar) write_planar();
  }

 private:
  template <class T>
  T* take(std::byte*& at, int64_t count) {
    T* taken = reinterpret_cast<T*>(at);
    at += ceil_div(count * static_cast<int64_t>(sizeof(T)), 64) * 64;
    return taken;
  }

  void carve(std::byte* at) {
    zeros_ = take<float>(at, s_.in_channels);
    bias_ = take<float>(at, plan_.n_block + 3 * kW);
    lines_ = take<Line>(at, plan_.lines_per_tile);
    rows_ = take<const float*>(at, plan_.max_segments * plan_.max_rows);
    taps_ = take<int32_t>(at, plan_.max_segments);
    outs_ = take<float*>(at, plan_.max_rows);
    sums_at_ = take<float*>(at, plan_.max_rows);
    sums_ = take<float>(at, plan_.max_rows * kMaxVectors * kW);
    if (plan_.gathered) gather_ = take<float>(at, plan_.max_rows * plan_.max_segments * s_.in_channels);
    if (plan_.out_planar) staging_ = take<float>(at, 0);
    for (int64_t i = 0; i < plan_.max_rows; ++i) sums_at_[i] = sums_ + i * kMaxVectors * kW;
  }

  // Which rectangle of which phase the tile is; false if nothing lies there.
  bool place(int64_t tile) {
    const int64_t n_tile = tile % plan_.n_blocks;
    tile /= plan_.n_blocks;
    const int64_t phase = tile % plan_.outer_phases;
    tile /= plan_.outer_phases;
    const int64_t x_tile = tile % plan_.x_blocks;
    tile /= plan_.x_blocks;
    const int64_t line0 = tile % plan_.line_blocks * plan_.lines_per_tile;
    group_ = tile / plan_.line_blocks;
    n0_ = n_tile * plan_.n_block;
    n1_ = n_tile + 1 == plan_.n_blocks ? plan_.format.columns : n0_ + plan_.n_block;
    phase_[0] = phase / h_.phases();
    phase_[1] = phase % h_.phases();
    const int64_t origin = s_.transposed ? floor_mod(s_.pre[2], w_.stride) : 0;
    x0_ = std::max<int64_t>(0, x_tile * plan_.x_block - origin);
    x1_ = std::min(s_.out[2], (x_tile + 1) * plan_.x_block - origin);
    return x0_ < x1_ && n0_ < n1_ && place_lines(line0);
  }

  bool place_lines(int64_t line0) {
    const int64_t first[2] = {d_.first_q(phase_[0], 0), h_.first_q(phase_[1], 0)};
    const int64_t count[2] = {d_.first_q(phase_[0], s_.out[0]) - first[0], h_.first_q(phase_[1], s_.out[1]) - first[1]};
    const int64_t all = s_.batch * count[0] * count[1];
    line_count_ = std::min(plan_.lines_per_tile, all - line0);
    for (int64_t i = 0; i < line_count_; ++i) {
      const int64_t line = line0 + i;
      lines_[i] = {line / (count[0] * count[1]), {first[0] + line / count[1] % count[0], first[1] + line % count[1]}};
    }
    return line_count_ > 0;
  }

  void fill_bias() {
    const int64_t columns = plan_.n_block + 3 * kW;
    if (!plan_.has_bias) {
      std::fill_n(bias_, columns, 0.0F);
      return;
    }
    const float* from = p_.bias + group_ * s_.out_channels;
    int64_t channel = n0_ % s_.out_channels;
    for (int64_t i = 0; i < columns; ++i) {
      bias_[i] = n0_ + i < n1_ ? from[channel] : 0.0F;
      if (++channel == s_.out_channels) channel = 0;
    }
  }

  bool place_column_group() {
    if (plan_.format.stacked) {
      q0_ = floor_div(x0_ + s_.pre[2], w_.stride);
      q1_ = ceil_div(x1_ + s_.pre[2], w_.stride);
    } else {
      q0_ = w_.first_q(column_group_, x0_);
      q1_ = w_.first_q(column_group_, x1_);
    }
    row_count_ = line_count_ * (q1_ - q0_);
    taps_d_ = d_.taps(phase_[0]);
    taps_h_ = h_.taps(phase_[1]);
    taps_w_ = plan_.format.stacked ? w_.stacked_taps() : w_.taps(column_group_);
    return row_count_ > 0;
  }

  const float* input_line(const Line& line, int64_t tap_d, int64_t tap_h) const {
    const int64_t id = d_.in_step() * line.q[0] + taps_d_.first_shift + tap_d * taps_d_.shift_step;
    const int64_t ih = h_.in_step() * line.q[1] + taps_h_.first_shift + tap_h * taps_h_.shift_step;
    if (id < 0 || id >= s_.in[0] || ih < 0 || ih >= s_.in[1]) return nullptr;
    return in_ + line.batch * in_strides_.batch + id * in_strides_.axis[0] + ih * in_strides_.axis[1] +
           group_ * s_.in_channels;
  }

  // The q in [q0, q1) for which tap j of the last axis reads inside the input.
  void inside(int64_t tap, int64_t& from, int64_t& to) const {
    const int64_t shift = taps_w_.first_shift + tap * taps_w_.shift_step;
    from = std::clamp(ceil_div(-shift, w_.in_step()), q0_, q1_);
    to = std::clamp(ceil_div(s_.in[2] - shift, w_.in_step()), from, q1_);
  }

  // Fills the segments' row pointers; a segment that only reads zeros is left out.
  void point_rows() {
    segments_ = 0;
    for (int64_t i = 0; i < taps_d_.count; ++i) {
      for (int64_t j = 0; j < taps_h_.count; ++j) {
        bool any = false;
        for (int64_t l = 0; l < line_count_ && !any; ++l) any = input_line(lines_[l], i, j) != nullptr;
        if (!any) continue;
        for (int64_t k = 0; k < taps_w_.count; ++k) point_segment(i, j, k);
      }
    }
  }

  void point_segment(int64_t i, int64_t j, int64_t k) {
    int64_t from;
    int64_t to;
    inside(k, from, to);
    if (from == to) return;
    const int64_t shift = taps_w_.first_shift + k * taps_w_.shift_step;
    const int64_t pitch = w_.in_step() * in_strides_.axis[2];
    const float** at = rows_ + segments_ * row_count_;
    for (int64_t l = 0; l < line_count_; ++l) {
      const float* line = input_line(lines_[l], i, j);
      if (line == nullptr) {
        std::fill_n(at, q1_ - q0_, zeros_);
      } else {
        std::fill_n(at, from - q0_, zeros_);
        const float* first = line + (w_.in_step() * from + shift) * in_strides_.axis[2];
        for (int64_t q = from; q < to; ++q) at[q - q0_] = first + (q - from) * pitch;
        std::fill_n(at + (to - q0_), q1_ - to, zeros_);
      }
      at += q1_ - q0_;
    }
    taps_[segments_++] = static_cast<int32_t>((i * taps_h_.count + j) * taps_w_.count + k);
  }

  // Copies each row's taps side by side: one segment, whose channels are [tap][in channel].
  void gather_rows() {
    const int64_t taps = taps_d_.count * taps_h_.count * taps_w_.count;
    const int64_t depth = taps * s_.in_channels;
    segments_ = taps == 0 ? 0 : 1;
    taps_[0] = 0;
    std::fill_n(gather_, row_count_ * depth, 0.0F);
    for (int64_t i = 0; i < row_count_; ++i) rows_[i] = gather_ + i * depth;
    for (int64_t l = 0; l < line_count_; ++l) {
      for (int64_t i = 0; i < taps_d_.count; ++i) {
        for (int64_t j = 0; j < taps_h_.count; ++j) {
          const float* line = input_line(lines_[l], i, j);
          if (line == nullptr) continue;
          float* to = gather_ + l * (q1_ - q0_) * depth + (i * taps_h_.count + j) * taps_w_.count * s_.in_channels;
          for (int64_t k = 0; k < taps_w_.count; ++k) gather_tap(line, k, to + k * s_.in_channels, depth);
        }
      }
    }
  }

  void gather_tap(const float* line, int64_t k, float* to, int64_t depth) {
    int64_t from;
    int64_t end;
    inside(k, from, end);
    const int64_t shift = taps_w_.first_shift + k * taps_w_.shift_step;
    const int channels = static_cast<int>(s_.in_channels);
    for (int64_t q = from; q < end; ++q) {
      const float* source = line + (w_.in_step() * q + shift) * in_strides_.axis[2];
      float* target = to + (q - q0_) * depth;
      if (channels == 1) {
        *target = *source;
      } else {
        for (int c = 0; c < channels; c += kW) {
          store_first(target + c, load_first(source + c, std::min(kW, channels - c)), std::min(kW, channels - c));
        }
      }
    }
  }

  int64_t out_x(int64_t q) const { return w_.output_of(plan_.format.stacked ? 0 : column_group_, q); }
  bool whole_columns() const { return n1_ - n0_ == plan_.format.columns; }
  // Columns of the staging area beside each other at one output position (or at one q, for part of the stacked
  // columns).
  int64_t staging_pitch() const { return plan_.format.stacked && whole_columns() ? s_.out_channels : n1_ - n0_; }
  bool staged_by_q() const { return plan_.out_planar && plan_.format.stacked && !whole_columns(); }

  void point_outputs() {
    const int64_t width = q1_ - q0_;
    for (int64_t l = 0; l < line_count_; ++l) {
      const Line& line = lines_[l];
      float* row;
      int64_t pitch;  // from output position to output position
      if (plan_.out_planar) {
        row = staging_ + l * (staged_by_q() ? width : x1_ - x0_) * staging_pitch();
        pitch = staging_pitch();
      } else {
        row = p_.out + line.batch * plan_.out.batch + d_.output_of(phase_[0], line.q[0]) * plan_.out.axis[0] +
              h_.output_of(phase_[1], line.q[1]) * plan_.out.axis[1] + group_ * s_.out_channels;
        pitch = plan_.out.axis[2];
      }
      for (int64_t q = q0_; q < q1_; ++q) {
        const int64_t position = staged_by_q() ? q - q0_ : out_x(q) - (plan_.out_planar ? x0_ : 0);
        outs_[l * width + q - q0_] = row + position * pitch;
      }
    }
  }

  // The columns [lo, hi) of a row that lie inside the tile's outputs.
  void clip(int64_t row, int64_t& lo, int64_t& hi) const {
    lo = n0_;
    hi = n1_;
    if (!plan_.format.stacked) return;
    const int64_t x = out_x(q0_ + row % (q1_ - q0_));
    lo = std::max(lo, (x0_ - x) * s_.out_channels);
    hi = std::min(hi, (x1_ - x) * s_.out_channels);
  }

  void multiply() {
    const PanelGrid panels(plan_.format.columns, kW);
    const int64_t depth =
        plan_.gathered ? taps_d_.count * taps_h_.count * taps_w_.count * s_.in_channels : s_.in_channels;
    channels_ = depth;
    const float* base = p_.weights + group_ * plan_.format.group_size +
                        conv_gemm_offset(s_, plan_.format, phase_[0], phase_[1], column_group_);
    const int64_t all_taps = taps_d_.count * taps_h_.count * taps_w_.count;
    for (int64_t p = n0_ / kPanelColumns; p < panels.count() && p * kPanelColumns < n1_; ++p) {
      panel_ = base + p * kPanelColumns * all_taps * s_.in_channels;
      column_ = p * kPanelColumns;
      vectors_ = panels.vectors_of(p);
      multiply_panel();
    }
  }

  // K in chunks whose part of the panel stays in the first-level cache while all rows pass by.
  void multiply_panel() {
    if (row_count_ <= tile_rows(vectors_) || segments_ * channels_ <= kChunkAbove) {
      multiply_chunk(0, segments_, 0, channels_, true, true);
      return;
    }
    if (channels_ >= kChunkDepth) {
      const int64_t parts = ceil_div(channels_, kChunkDepth);
      const int64_t part = ceil_div(channels_, parts);
      for (int32_t s = 0; s < segments_; ++s) {
        for (int64_t c = 0; c < channels_; c += part) {
          multiply_chunk(s, s + 1, c, std::min(part, channels_ - c), s == 0 && c == 0,
                         s + 1 == segments_ && c + part >= channels_);
        }
      }
      return;
    }
    const int32_t chunks = static_cast<int32_t>(ceil_div(segments_ * channels_, kChunkDepth));
    const int32_t part = (segments_ + chunks - 1) / chunks;
    for (int32_t s = 0; s < segments_; s += part) {
      multiply_chunk(s, std::min(s + part, segments_), 0, channels_, s == 0, s + part >= segments_);
    }
  }

  void multiply_chunk(int32_t segment0, int32_t segment1, int64_t channel, int64_t channels, bool first, bool last) {
    GemmTile t = {};
    t.taps = taps_ + segment0;
    t.panel = panel_ + channel * vectors_ * kW;
    t.row_pitch = row_count_;
    t.tap_pitch = channels_ * vectors_ * kW;
    t.first_channel = channel;
    t.channels = channels;
    t.segments = segment1 - segment0;
    t.init_pitch = first ? 0 : kMaxVectors * kW;
    const int64_t tiles = ceil_div(row_count_, tile_rows(vectors_));
    const int64_t short_rows = row_count_ / tiles;
    const int64_t longer = row_count_ % tiles;
    int64_t row = 0;
    for (int64_t i = 0; i < tiles; ++i) {
      const int count = static_cast<int>(short_rows + (i < longer ? 1 : 0));
      t.rows = rows_ + segment0 * row_count_ + row;
      t.init = first ? bias_ + (column_ - n0_) : sums_at_[row];
      if (last) {
        finish(t, row, count);
      } else {
        t.out = sums_at_ + row;
        gemm_tile(count, vectors_)(t);
      }
      row += count;
    }
  }

  // Whether whole vectors of these rows and of the present panel may be stored where they belong.
  bool stores_directly(int64_t row, int count) const {
    const int64_t end = column_ + vectors_ * kW;
    if (end > n1_) return false;
    if (!plan_.format.stacked) return true;
    if (!plan_.out_planar && !plan_.run_contiguous) return false;
    for (int i = 0; i < count; ++i) {
      int64_t lo;
      int64_t hi;
      clip(row + i, lo, hi);
      if (lo > column_ || hi < end) return false;
    }
    return true;
  }

  void finish(GemmTile& t, int64_t row, int count) {
    const GemmTileFunction function = gemm_tile(count, vectors_);
    const bool endings_here = !plan_.out_planar || plan_.fast_endings;
    if (plan_.fast_endings && plan_.endings.count == 1) {
      const EndingStep& step = plan_.endings.steps[0];
      t.activation = step.kind == EndingKind::kRelu ? TileActivation::kRelu : TileActivation::kLeakyRelu;
      t.slope = step.alpha;
    }
    const int64_t out_column = plan_.out_planar && (staged_by_q() || !plan_.format.stacked) ? column_ - n0_ : column_;
    const int columns = vectors_ * kW;
    if (stores_directly(row, count)) {
      t.out = outs_ + row;
      t.out_column = out_column;
      function(t);
      if (endings_here && !plan_.fast_endings) {
        for (int i = 0; i < count; ++i) end_row(outs_[row + i] + out_column, row + i, column_, column_ + columns);
      }
      t.out_column = 0;
      return;
    }
    alignas(64) float buffer[kMaxRows * kMaxVectors * kW];
    float* at[kMaxRows];
    for (int i = 0; i < count; ++i) at[i] = buffer + i * columns;
    t.out = at;
    function(t);
    for (int i = 0; i < count; ++i) {
      int64_t lo;
      int64_t hi;
      clip(row + i, lo, hi);
      lo = std::max(lo, column_);
      hi = std::min(hi, column_ + columns);
      if (lo >= hi) continue;
      float* from = at[i] + (lo - column_);
      if (endings_here && !plan_.fast_endings) end_row(from, row + i, lo, hi);
      copy_row(from, outs_[row + i], out_column - column_, lo, hi);
    }
  }

  // Calls f(column, count, channel, pixel) for the pieces of columns [lo, hi) that lie in one output position each.
  template <class F>
  void each_pixel(int64_t lo, int64_t hi, F f) const {
    while (lo < hi) {
      const int64_t pixel = lo / s_.out_channels;
      const int64_t count = std::min(hi, (pixel + 1) * s_.out_channels) - lo;
      f(lo, count, lo - pixel * s_.out_channels, pixel);
      lo += count;
    }
  }

  ResultPlace place_of(const Line& line, int64_t channel, int64_t x) const {
    return {line.batch,
            group_ * s_.out_channels + channel,
            {d_.output_of(phase_[0], line.q[0]), h_.output_of(phase_[1], line.q[1]), x}};
  }

  // Applies the endings to the columns [lo, hi) of a row, which lie at `data`.
  void end_row(float* data, int64_t row, int64_t lo, int64_t hi) const {
    const Line& line = lines_[row / (q1_ - q0_)];
    const int64_t x = out_x(q0_ + row % (q1_ - q0_));
    each_pixel(lo, hi, [&](int64_t column, int64_t count, int64_t channel, int64_t pixel) {
      apply_endings(plan_.endings, p_.operands, data + (column - lo), count, place_of(line, channel, x + pixel), true);
    });
  }

  static void copy_run(const float* from, float* to, int64_t n) {
    int64_t i = 0;
    for (; i + kW <= n; i += kW) store(to + i, load(from + i));
    if (i < n) store_first(to + i, load_first(from + i, static_cast<int>(n - i)), static_cast<int>(n - i));
  }

  void copy_row(const float* from, float* to, int64_t shift, int64_t lo, int64_t hi) const {
    if (plan_.out_planar || plan_.run_contiguous || !plan_.format.stacked) {
      copy_run(from, to + lo + shift, hi - lo);
      return;
    }
    each_pixel(lo, hi, [&](int64_t column, int64_t count, int64_t channel, int64_t pixel) {
      copy_run(from + (column - lo), to + pixel * plan_.out.axis[2] + channel, count);
    });
  }

  // Turns the staged results to channels-first and applies the endings there, where they are still in the cache.
  void write_planar() {
    for (int64_t l = 0; l < line_count_; ++l) {
      if (!staged_by_q()) {
        const int64_t n0 = plan_.format.stacked ? 0 : n0_;
        const int64_t n1 = plan_.format.stacked ? s_.out_channels : n1_;
        write_run(l, staging_ + l * (x1_ - x0_) * staging_pitch(), x0_, x1_, n0, n1);
        continue;
      }
      for (int64_t q = q0_; q < q1_; ++q) {  // part of the stacked columns: some pixels of each q
        const float* from = staging_ + (l * (q1_ - q0_) + q - q0_) * staging_pitch();
        const int64_t first = out_x(q) + n0_ / s_.out_channels;
        const int64_t last = out_x(q) + n1_ / s_.out_channels;
        const int64_t x0 = std::max(first, x0_);
        const int64_t x1 = std::min(last, x1_);
        if (x0 < x1) write_run(l, from + (x0 - first) * s_.out_channels, x0, x1, 0, s_.out_channels);
      }
    }
  }

  void write_run(int64_t l, const float* from, int64_t x0, int64_t x1, int64_t channel0, int64_t channel1) {
    const ResultPlace place = place_of(lines_[l], channel0, x0);
    float* to = p_.out + place.batch * plan_.out.batch + place.channel * plan_.out.channel +
                place.axis[0] * plan_.out.axis[0] + place.axis[1] * plan_.out.axis[1] + x0 * plan_.out.axis[2];
    transpose(from, channel1 - channel0, to, plan_.out.channel, x1 - x0, channel1 - channel0);
    if (plan_.fast_endings) return;
    for (int64_t c = channel0; c < channel1; ++c) {
      apply_endings(plan_.endings, p_.operands, to + (c - channel0) * plan_.out.channel, x1 - x0,
                    place_of(lines_[l], c, x0), false);
    }
  }

  const ConvGemmPlan& plan_;
  const ConvShape& s_;
  const ConvPointers& p_;
  ConvAxis d_;
  ConvAxis h_;
  ConvAxis w_;
  const float* in_ = nullptr;
  ImageStrides in_strides_ = {};

  float* zeros_ = nullptr;
  float* bias_ = nullptr;
  Line* lines_ = nullptr;
  const float** rows_ = nullptr;
  int32_t* taps_ = nullptr;
  float** outs_ = nullptr;
  float** sums_at_ = nullptr;
  float* sums_ = nullptr;
  float* gather_ = nullptr;
  float* staging_ = nullptr;

  int64_t group_ = 0;
  int64_t phase_[2] = {};
  int64_t n0_ = 0, n1_ = 0, x0_ = 0, x1_ = 0;
  int64_t line_count_ = 0;
  int64_t column_group_ = 0;
  int64_t q0_ = 0, q1_ = 0;
  int64_t row_count_ = 0;
  AxisTaps taps_d_ = {}, taps_h_ = {}, taps_w_ = {};
  int32_t segments_ = 0;
  int64_t channels_ = 0;
  const float* panel_ = nullptr;
  int64_t column_ = 0;
  int vectors_ = 0;
};

}  // namespace

void run_conv_gemm(const ConvGemmPlan& plan, const ConvPointers& pointers, int phase, int64_t tile,
                   std::byte* scratch) {
  if (plan.in_planar && phase == 0) {
    convert_planar_input(plan.shape, plan.in, pointers.in, pointers.shared, plan.convert_points, tile);
    return;
  }
  Tile(plan, pointers, scratch).run(tile);
}

}  // namespace polyphase::cpu::POLYPHASE_CLUSTER
