// Computes one tile of convolution as GEMM: row pointers, panels, endings, and the way out.
#include "backends/cpu/kernels/conv_gemm_run.h"

#include <algorithm>
#include <bit>

#include "backends/cpu/kernels/apply_endings.h"
#include "backends/cpu/kernels/conv_gemm_block.h"
#include "backends/cpu/kernels/gemm_tile.h"
#include "backends/cpu/kernels/planar_input.h"
#include "backends/cpu/simd/transpose.h"

namespace polyphase::cpu::POLYPHASE_CLUSTER {
namespace {

constexpr int64_t chunk_above = 512;  // K up to which one pass is enough

class GemmWork : private GemmBlock {
 public:
  using GemmBlock::GemmBlock;
  void run(int64_t tile) {
    if (!place(tile)) return;
    std::fill_n(zeros_, plan_.max_depth, 0.0F);
    fill_bias();
    if (!plan_.local) {
      run_phase();
      return;
    }
    convert_local();
    for (int64_t phase = 0; phase < plan_.outer_phases; ++phase) {
      phase_[0] = phase / h_.phases();
      phase_[1] = phase % h_.phases();
      if (place_lines()) run_phase();
    }
  }

 private:
  // Everything that the tile owns of one outer phase.
  void run_phase() {
    for (int64_t r = 0; r < plan_.format.column_groups; ++r) {
      column_group_ = r;
      if (!place_column_group()) continue;
      weights_ = p_.weights + group_ * plan_.format.group_size +
                 conv_gemm_offset(s_, plan_.format, phase_[0], phase_[1], column_group_);
      panel_pitch_ = panel_columns * taps_d_.count * taps_h_.count * taps_w_.count * s_.in_channels;
      if (plan_.local) {
        point_local_rows();
      } else if (plan_.joined) {
        point_joined_rows();
      } else if (plan_.gathered) {
        gather_rows();
      } else {
        point_rows();
      }
      point_outputs();
      if (reads_outside_ && plan_.sorts && row_count_ > tile_rows(2))
        order_.sort(rows_, outs_, row_count_, segments_, zeros_);
      multiply();
    }
    if (plan_.out_planar) write_planar();
  }

  // K in chunks whose part of a panel stays in the first-level cache while all rows pass by; the rows' part stays in
  // the second while the panels of a group pass by. Few rows pass by panel after panel, in the same chunks, so that a
  // pixel has the same bits in an image and in a part of it.
  void multiply() {
    const PanelGrid panels(plan_.format.columns, vw);
    const int64_t first = n0_ / panel_columns;
    const int64_t last = std::min(panels.count(), ceil_div(n1_, panel_columns));
    const int64_t depth = segments_ * channels_;
    const int64_t together = row_count_ == 1              ? std::min<int64_t>(row_panels, plan_.panels_summed)
                             : row_count_ <= tile_rows(2) ? 1
                                                          : plan_.panels_summed;
    if (depth <= chunk_above) {
      const Chunk all = {0, segments_, 0, channels_, true, true};
      multiply_panels(first, last, all, first, all);
    } else {
      for (int64_t p = first; p < last; p += together) {
        const int64_t end = std::min(p + together, last);
        const int64_t next_panel = end < last ? end : first;
        if (row_count_ > 1 && row_count_ <= tile_rows(panels.vectors_of(p))) {
          multiply_few_rows(p, next_panel);
        } else {
          multiply_chunks(p, end, next_panel);
        }
      }
    }
    if (!plan_.brief.are_all && !plan_.out_planar) end_lines();
  }

  // Part of K: segments and channels.
  struct Chunk {
    int32_t segment0, segment1;
    int64_t channel, channels;
    bool first, last;
  };

  // f(chunk, next) for each chunk, with the one that follows it; the first follows the last.
  template <class F>
  void each_chunk(F f) const {
    const int64_t parts = ceil_div(channels_, gemm_chunk_depth);
    const int64_t part = ceil_div(channels_, parts);
    const int32_t together = parts > 1 ? 1 : segments_in_chunk();
    for (int64_t c = 0; c < channels_; c += part) {
      for (int32_t s = 0; s < segments_; s += together) {
        const int32_t end = std::min(s + together, segments_);
        const Chunk chunk = {
            s, end, c, std::min(part, channels_ - c), s == 0 && c == 0, end == segments_ && c + part >= channels_};
        Chunk next = chunk;
        next.segment0 = end < segments_ ? end : 0;
        if (end == segments_) next.channel = c + part < channels_ ? c + part : 0;
        f(chunk, next);
      }
    }
  }

  // `next_panel`: the one behind them.
  void multiply_chunks(int64_t panel0, int64_t panel1, int64_t next_panel) {
    each_chunk([&](const Chunk& chunk, const Chunk& next) {
      multiply_panels(panel0, panel1, chunk, chunk.last ? next_panel : panel0, next);
    });
  }

  // A panel with the rows of one register tile, whose sums are the first of sums_at_. What multiply_panel would find
  // anew for each chunk costs such rows 5 to 7 %.
  void multiply_few_rows(int64_t panel, int64_t next_panel) {
    column_ = panel * panel_columns;
    vectors_ = PanelGrid(plan_.format.columns, vw).vectors_of(panel);
    const int count = static_cast<int>(row_count_);
    const GemmTileFunction function = gemm_tile(count, vectors_);
    each_chunk([&](const Chunk& chunk, const Chunk& next) {
      GemmTile t = tile_of(panel, chunk);
      t.skipped = outside(chunk, 0, count);
      if (!chunk.first && !chunk.last && skips_all(t)) return;
      t.init = chunk.first ? bias_ + (column_ - n0_) : sums_at_[0];
      t.next_panel = panel_at(chunk.last ? next_panel : panel, taps_[next.segment0], next);
      t.next_share = t.segments * t.channels * vw;
      if (chunk.last) {
        set_way_out(t);
        finish(t, function, 0, count);
      } else {
        t.out = sums_at_;
        function(t);
      }
    });
  }

  // Behind them chunk `behind` of `next_panel` is multiplied.
  void multiply_panels(int64_t panel0, int64_t panel1, const Chunk& chunk, int64_t next_panel, const Chunk& behind) {
    int64_t p = panel0;
    if (row_count_ == 1) {
      for (; p + row_panels <= panel1 && all_of_two_vectors(p); p += row_panels) multiply_row(p, panel0, chunk);
    }
    for (; p < panel1; ++p) {
      const bool is_last = p + 1 == panel1;
      multiply_panel(p, panel0, chunk, is_last ? next_panel : p + 1, is_last ? behind : chunk);
    }
  }

  bool all_of_two_vectors(int64_t panel) const {
    return PanelGrid(plan_.format.columns, vw).vectors_of(panel + row_panels - 1) == 2;
  }

  int32_t segments_in_chunk() const {
    const auto chunks = static_cast<int32_t>(ceil_div(segments_ * channels_, gemm_chunk_depth));
    const auto together = plan_.parted ? static_cast<int32_t>(taps_w_.count) : 1;
    return (segments_ / together + chunks - 1) / chunks * together;
  }

  // Where the channels of a chunk begin in one tap of a panel.
  const float* panel_at(int64_t panel, int32_t tap, const Chunk& chunk) const {
    const int vectors = PanelGrid(plan_.format.columns, vw).vectors_of(panel);
    return weights_ + panel * panel_pitch_ + (tap * channels_ + chunk.channel) * vectors * vw;
  }

  // Of the panel that column_ and vectors_ tell of.
  GemmTile tile_of(int64_t panel, const Chunk& chunk) const {
    return {.rows = rows_ + chunk.segment0 * row_count_,
            .taps = taps_ + chunk.segment0,
            .panel = panel_at(panel, 0, chunk),
            .next_panel = nullptr,
            .next_share = 0,
            .init = nullptr,
            .out = nullptr,
            .row_pitch = row_count_,
            .init_pitch = chunk.first ? 0 : max_vectors * vw,
            .tap_pitch = channels_ * vectors_ * vw,
            .out_column = 0,
            .first_channel = chunk.channel,
            .channels = chunk.channels,
            .segments = chunk.segment1 - chunk.segment0,
            .last_lanes = vw,
            .endings = {}};
  }

  // Some panels of two vectors with the only row.
  void multiply_row(int64_t panel, int64_t first_panel, const Chunk& chunk) {
    alignas(64) float sums[row_panels * panel_columns];
    vectors_ = 2;
    sum_row(tile_of(panel, chunk), panel_pitch_, sums);
    for (int64_t k = 0; k < row_panels; ++k) {
      column_ = (panel + k) * panel_columns;
      float* const of_panel = sums + k * panel_columns;
      const auto kept = [&] { return sums_at_[(panel + k - first_panel) * plan_.max_rows]; };
      const float* const before = chunk.first ? bias_ + (column_ - n0_) : kept();
      float* const to = chunk.last ? of_panel : kept();
      for (int64_t i = 0; i < panel_columns; i += vw) store(to + i, load(of_panel + i) + load(before + i));
      if (!chunk.last) continue;
      GemmTile t = tile_of(panel, chunk);
      t.segments = 0;  // they are multiplied
      t.init = of_panel;
      set_way_out(t);
      finish(t, gemm_tile(1, vectors_), 0, 1);
    }
  }

  // The sums of panel `first_panel` stand first in the scratch. What comes behind is fetched meanwhile, rows by the
  // first panel, weights by all: what comes from behind the second-level cache would be waited for.
  void multiply_panel(int64_t panel, int64_t first_panel, const Chunk& chunk, int64_t next_panel, const Chunk& next) {
    const PanelGrid panels(plan_.format.columns, vw);
    column_ = panel * panel_columns;
    vectors_ = panels.vectors_of(panel);
    GemmTile t = tile_of(panel, chunk);
    const int64_t sums = (panel - first_panel) * plan_.max_rows;  // among sums_at_, where a chunk is not all
    const EvenTiles even(row_count_, vectors_);
    const int64_t share = t.segments * t.channels * vw;  // of what comes next, fetched by each register tile
    const float* const following = panel_at(next_panel, segments_ > 0 ? taps_[next.segment0] : 0, next);
    // Of one tap, the next tile's rows lie behind each other, mostly.
    const bool fetch_rows = panel == first_panel && t.segments == 1 && t.channels == channels_ && !order_.sorts();
    const bool may_skip = !chunk.first && !chunk.last;
    if (chunk.last) set_way_out(t);
    t.init = bias_ + (column_ - n0_);
    const GemmTileFunction short_tile = gemm_tile(even.rows, vectors_);
    const GemmTileFunction longer_tile = even.longer > 0 ? gemm_tile(even.rows + 1, vectors_) : short_tile;
    t.next_panel = following;
    t.next_share = share;
    if (fetch_rows) t.row_tiles = even.tiles - 1;
    // Tiles of as many rows run in one call, where nothing is asked of each and one bias is added to all.
    const bool together = chunk.first && chunk.last && !plan_.format.stacked && !reads_outside_;
    int64_t row = 0;
    if (order_.sorts()) order_.cut(tile_rows(vectors_));
    const int32_t tiles = order_.sorts() ? order_.tiles() : even.tiles;
    for (int32_t i = 0; i < tiles; i += t.tiles) {
      const bool is_longer = i < even.longer;
      int count = even.rows + (is_longer ? 1 : 0);
      GemmTileFunction function = is_longer ? longer_tile : short_tile;
      if (order_.sorts()) {
        count = order_.rows_of(i);
        function = gemm_tile(count, vectors_);
      }
      t.tile = i;
      if (together) t.tiles = (is_longer ? even.longer : even.tiles) - i;
      t.skipped = order_.sorts() ? of_chunk(order_.outside(i), chunk) : outside(chunk, row, count);
      if (!may_skip || !skips_all(t)) {
        t.rows = rows_ + chunk.segment0 * row_count_ + row;
        if (!chunk.first) t.init = sums_at_[sums + row];
        if (chunk.last) {
          finish(t, function, row, count);
        } else {
          t.out = sums_at_ + sums + row;
          function(t);
        }
      }
      row += t.tiles * count;
    }
  }

  // Which of a chunk's taps, up to 64 of them, lie outside of the image for all of some rows, whose sums then stay as
  // they are: small images, dilated filters.
  __attribute__((noinline)) uint64_t outside(const Chunk& chunk, int64_t row, int count) const {
    uint64_t taps = 0;
    if (!reads_outside_ || chunk.segment1 - chunk.segment0 > 64) return taps;
    for (int32_t s = chunk.segment0; s < chunk.segment1; ++s) {
      const float* const* const rows = rows_ + s * row_count_ + row;
      const bool all = std::all_of(rows, rows + count, [this](const float* each) { return each == zeros_; });
      if (all) taps |= uint64_t{1} << static_cast<unsigned>(s - chunk.segment0);
    }
    return taps;
  }
  static uint64_t of_chunk(uint64_t taps, const Chunk& chunk) {
    const int32_t count = chunk.segment1 - chunk.segment0;
    const uint64_t all = count < 64 ? (uint64_t{1} << static_cast<unsigned>(count)) - 1 : ~uint64_t{0};
    return taps >> static_cast<unsigned>(chunk.segment0) & all;
  }
  static bool skips_all(const GemmTile& t) { return std::popcount(t.skipped) == t.segments; }

  // The present panel's columns [lo, hi) of a row that belong to the tile; `directly` if they are all, and follow each
  // other where they go.
  struct Part {
    int64_t lo;
    int64_t hi;
    bool directly;
  };

  void find_parts(int64_t row, int count, Part* parts) const {
    const int64_t end = std::min(column_ + vectors_ * vw, n1_);
    const bool follow = plan_.out_planar || plan_.run_contiguous;
    int64_t q = q0_ + row % (q1_ - q0_);
    for (int i = 0; i < count; ++i) {
      Part& part = parts[i];
      if (order_.sorts()) q = q0_ + order_.row(row + i) % (q1_ - q0_);
      clip(q, part.lo, part.hi);
      part.lo = std::max(part.lo, column_);
      part.hi = std::min(part.hi, end);
      part.directly = follow && part.lo == column_ && part.hi == end;
      if (++q == q1_) q = q0_;
    }
  }

  // Where the present panel's results go, and what happens to them before.
  void set_way_out(GemmTile& t) const {
    t.endings = endings_;
    t.last_lanes = static_cast<int32_t>(std::min<int64_t>(vw, n1_ - column_ - (vectors_ - 1) * vw));
    if (!plan_.format.stacked) t.out_column = out_column();
  }
  int64_t out_column() const {
    return plan_.out_planar && (staged_by_q() || !plan_.format.stacked) ? column_ - n0_ : column_;
  }

  void finish(GemmTile& t, GemmTileFunction function, int64_t row, int count) {
    if (plan_.format.stacked) return finish_stacked(t, function, row, count);
    t.out = outs() + row;
    function(t);
  }

  // Of the rows in the order in which they are multiplied.
  float* const* outs() const { return order_.sorts() ? order_.outs() : outs_; }

  // Rows at the ends of a line, of which the tile has some columns only, go through a buffer.
  void finish_stacked(GemmTile& t, GemmTileFunction function, int64_t row, int count) {
    const int64_t out_column = this->out_column();
    alignas(64) float buffer[max_rows * max_vectors * vw];
    float* at[max_rows];
    Part parts[max_rows];
    find_parts(row, count, parts);
    for (int i = 0; i < count; ++i)
      at[i] = parts[i].directly ? outs()[row + i] + out_column : buffer + i * max_vectors * vw;
    t.out = at;
    function(t);
    for (int i = 0; i < count; ++i) {
      const Part& part = parts[i];
      if (part.directly || part.lo >= part.hi) continue;
      copy_row(buffer + i * max_vectors * vw + (part.lo - column_), outs()[row + i], out_column - column_, part.lo,
               part.hi);
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

  // Applies the endings to what the column group stored channels-last, while it is still in the caches.
  void end_lines() const {
    const int64_t width = q1_ - q0_;
    for (int64_t l = 0; l < line_count_; ++l) {
      float* const* outs = outs_ + l * width;
      if (!plan_.format.stacked) {
        end_pixels(outs[0], lines_[l], out_x(q0_), width, w_.phases());
      } else if (whole_columns()) {
        end_pixels(outs[0] + (x0_ - out_x(q0_)) * plan_.out.axis[2], lines_[l], x0_, x1_ - x0_, 1);
      } else {
        for (int64_t i = 0; i < width; ++i) end_row(outs[i], lines_[l], l * width + i);
      }
    }
  }

  // Pixels x, x + step, … of a line, the first of which lies at `data`.
  void end_pixels(float* data, const Line& line, int64_t x, int64_t count, int64_t step) const {
    if (plan_.run_endings && step == 1 && whole_columns()) {
      apply_endings(plan_.endings, p_.operands, data, count * s_.out_channels, place_of(line, 0, x), true);
      return;
    }
    const int64_t channel = plan_.format.stacked ? 0 : n0_;
    const int64_t channels = plan_.format.stacked ? s_.out_channels : n1_ - n0_;
    apply_endings(plan_.endings, p_.operands, data + channel, channels, place_of(line, channel, x), true,
                  {count, step * plan_.out.axis[2], step});
  }

  // Part of the stacked columns of one row, whose first pixel lies at `data`.
  void end_row(float* data, const Line& line, int64_t row) const {
    int64_t lo;
    int64_t hi;
    const int64_t q = q0_ + row % (q1_ - q0_);
    clip(q, lo, hi);
    const int64_t x = out_x(q);
    each_pixel(lo, hi, [&](int64_t, int64_t count, int64_t channel, int64_t pixel) {
      apply_endings(plan_.endings, p_.operands, data + pixel * plan_.out.axis[2] + channel, count,
                    place_of(line, channel, x + pixel), true);
    });
  }

  static void copy_run(const float* from, float* to, int64_t n) {
    int64_t i = 0;
    for (; i + vw <= n; i += vw) store(to + i, load(from + i));
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
    const bool follow = lines_follow();
    for (int64_t l = 0; l < line_count_; ++l) {
      if (!staged_by_q()) {
        const int64_t n0 = plan_.format.stacked ? 0 : n0_;
        const int64_t n1 = plan_.format.stacked ? s_.out_channels : n1_;
        const int64_t first = l;
        while (follow && l + 1 < line_count_ && is_next(lines_[l], lines_[l + 1])) ++l;
        const int64_t width = x1_ - x0_;
        write_run(first, staging_ + first * width * staging_pitch(), x0_, x0_ + (l + 1 - first) * width, n0, n1);
        continue;
      }
      for (int64_t q = q0_; q < q1_; ++q) {  // part of the stacked columns: some pixels of each q
        float* from = staging_ + (l * (q1_ - q0_) + q - q0_) * staging_pitch();
        const int64_t first = out_x(q) + n0_ / s_.out_channels;
        const int64_t last = out_x(q) + n1_ / s_.out_channels;
        const int64_t x0 = std::max(first, x0_);
        const int64_t x1 = std::min(last, x1_);
        if (x0 < x1) write_run(l, from + (x0 - first) * s_.out_channels, x0, x1, 0, s_.out_channels);
      }
    }
  }

  // Whether the lines of an image lie one behind the other in the output, as they do where they are staged: then they
  // are written as one. Endings are applied line by line.
  bool lines_follow() const {
    return plan_.brief.are_all && h_.phases() == 1 && x0_ == 0 && x1_ == s_.out[2] &&
           plan_.out.axis[1] == s_.out[2] * plan_.out.axis[2];
  }
  static bool is_next(const Line& line, const Line& other) {
    return other.batch == line.batch && other.q[0] == line.q[0] && other.q[1] == line.q[1] + 1;
  }

  void write_run(int64_t l, float* from, int64_t x0, int64_t x1, int64_t channel0, int64_t channel1) {
    const ResultPlace place = place_of(lines_[l], channel0, x0);
    const int64_t at = place.batch * plan_.out.batch + place.channel * plan_.out.channel +
                       place.axis[0] * plan_.out.axis[0] + place.axis[1] * plan_.out.axis[1] + x0 * plan_.out.axis[2];
    if (is_narrow(s_.types.out)) {
      const auto end = [&](int64_t c, int64_t x, float* values, int64_t count) {
        apply_endings(plan_.endings, p_.operands, values, count, place_of(lines_[l], channel0 + c, x0 + x), false);
      };
      const NarrowRows rows = {StoredResult(p_.out, s_.types.out) + at, plan_.out.channel, plan_.out.axis[2],
                               plan_.past_caches, !plan_.brief.are_all};
      return turn_to_narrow_rows(from, channel1 - channel0, rows, x1 - x0, channel1 - channel0, end);
    }
    float* to = p_.out + at;
    transpose_to_rows(from, channel1 - channel0, to, plan_.out.channel, x1 - x0, channel1 - channel0,
                      plan_.past_caches && plan_.brief.are_all);
    if (plan_.brief.are_all) return;
    for (int64_t c = channel0; c < channel1; ++c) {
      apply_endings(plan_.endings, p_.operands, to + (c - channel0) * plan_.out.channel, x1 - x0,
                    place_of(lines_[l], c, x0), false);
    }
  }

  const float* weights_ = nullptr;  // of the column group
  int64_t panel_pitch_ = 0;         // from one of its panels to the next
  const TileEndings endings_ = {plan_.brief, p_.out, p_.operands};
};

}  // namespace

void run_conv_gemm(const ConvGemmPlan& plan, const ConvPointers& pointers, int phase, int64_t tile,
                   std::byte* scratch) {
  if (plan.in_copied && phase == 0) {
    copy_channels_last(plan.shape, plan.in, pointers.in, pointers.shared, plan.copy_pitch, plan.copy_points, tile);
    return;
  }
  GemmWork(plan, pointers, scratch).run(tile);
}

}  // namespace polyphase::cpu::POLYPHASE_CLUSTER
