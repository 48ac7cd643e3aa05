// Computes one tile of convolution by overlap-add.
#include "backends/cpu/kernels/conv_overlap_run.h"

#include <algorithm>

#include "backends/cpu/kernels/apply_endings.h"
#include "backends/cpu/kernels/conv_pixels_run.h"
#include "backends/cpu/kernels/gemm_tile.h"
#include "backends/cpu/kernels/pixels_lines.h"
#include "backends/cpu/kernels/scratch_pieces.h"
#include "backends/cpu/simd/transpose.h"
#include "backends/cpu/simd/unrolled.h"

namespace polyphase::cpu::POLYPHASE_CLUSTER {
namespace {

class OverlapWork {
 public:
  OverlapWork(const ConvOverlapPlan& plan, const ConvPointers& pointers, std::byte* scratch)
      : plan_(plan), s_(plan.shape), f_(plan.format), p_(pointers), h_(s_, 1), w_(s_, 2) {
    ScratchPieces pieces(scratch);
    reached_ = pieces.next<float>(f_.padded_columns() * plan.column_pitch + lines_slack(vec_width) * 2);
    sums_ = pieces.next<float>(w_.phases() * plan.sum_pitch);
    line_ = pieces.next<float>(plan.line_floats);
    gathered_ = pieces.next<float>(f_.from_pixels ? plan.block * f_.padded_columns()
                                                  : plan.words * plan.run_floats + lines_slack(vec_width));
    taps_ = pieces.next<OverlapTap>(s_.kernel_points());
    phases_ = pieces.next<OverlapPhase>(w_.phases());
    if (f_.from_pixels) {
      pixels_ = pieces.next<const float*>(plan.block);
      products_ = pieces.next<float*>(plan.block);
      for (int64_t i = 0; i < plan.block; ++i) products_[i] = gathered_ + i * f_.padded_columns();
      return;
    }
    functions_ = float_pixels_tiles(static_cast<int>(f_.chunk));
    find_last();
  }

  void run(int64_t tile) {
    for (int a = 1; a >= 0; --a) {
      q0_[a] = plan_.first_q[a] + tile % plan_.blocks[a] * plan_.tile_q[a];
      q1_[a] = std::min(plan_.first_q[a] + plan_.q_count[a], q0_[a] + plan_.tile_q[a]);
      first_[a] = std::clamp<int64_t>(q0_[a] - plan_.behind[a], 0, s_.in[a + 1]);
      end_[a] = std::clamp(q1_[a] + plan_.ahead[a], first_[a], s_.in[a + 1]);
      tile /= plan_.blocks[a];
    }
    pitch_ = end_[1] - first_[1];
    place_.batch = tile / plan_.group_blocks;
    part_ = LinePart::of(w_, q0_[1], q1_[1]);
    if (part_.lo >= part_.hi) return;
    place_.axis[2] = w_.output_of(0, q0_[1]) + part_.lo;
    const int64_t first = tile % plan_.group_blocks * plan_.tile_groups;
    for (group_ = first; group_ < std::min(s_.groups, first + plan_.tile_groups); ++group_) run_group();
    if (plan_.past_caches) finish_streams();
  }

 private:
  // The image's last element, where others in front of it lie in ascending order.
  void find_last() {
    const ImageStrides& by = plan_.in;
    const bool is_ascending = by.batch >= 0 && by.channel >= 0 && by.axis[1] >= 0;
    if (!plan_.in_place || !is_ascending) return;
    last_ = (s_.batch - 1) * by.batch + (s_.groups * s_.in_channels - 1) * by.channel + (s_.in[1] - 1) * by.axis[1] +
            s_.in[2] - 1;
  }

  void run_group() {
    int64_t multiplied = first_[0];
    for (int64_t q = q0_[0]; q < q1_[0]; ++q) {
      for (; multiplied < std::min(q + 1 + plan_.ahead[0], end_[0]); multiplied += plan_.run_lines) {
        if (pitch_ <= 0) continue;
        const int64_t count = std::min(plan_.run_lines, end_[0] - multiplied);
        f_.from_pixels ? multiply_pixels(multiplied, count) : multiply(multiplied, count);
      }
      for (int64_t r = 0; r < h_.phases(); ++r) {
        const int64_t y = h_.output_of(r, q);
        if (y >= 0 && y < s_.out[1]) write_line(r, q, y);
      }
    }
  }

  // Where what a line's pixels reach lies, of the first column.
  float* reached(int64_t line) const {
    const int64_t at = line - first_[0];
    return reached_ + at / plan_.run_lines % plan_.runs * plan_.run_floats + at % plan_.run_lines * pitch_;
  }

  // A run of lines through all taps, some channels at a time.
  void multiply(int64_t line, int64_t count) {
    const int64_t pixels = count * pitch_;
    const int64_t at = place_.batch * plan_.in.batch + group_ * s_.in_channels * plan_.in.channel +
                       line * plan_.in.axis[1] + first_[1] * plan_.in.axis[2];
    float* const to = reached(line);
    for (int64_t c = 0; c < s_.in_channels; c += plan_.words) {
      const int64_t words = std::min(plan_.words, s_.in_channels - c);
      const int64_t first = at + c * plan_.in.channel;
      if (!plan_.in_place) {
        gather(first, words, pixels);
        multiply(gathered_, plan_.run_floats, c, words, pixels, to);
        continue;
      }
      // Only of whole vectors are there surely as many pixels.
      const int64_t rest = pixels % plan_.block;
      const int64_t end = first + (words - 1) * plan_.in.channel + ceil_div(pixels, vec_width) * vec_width;
      const int64_t apart = end > last_ + 1 ? rest : 0;
      multiply(p_.in + first, plan_.in.channel, c, words, pixels - apart, to);
      if (apart == 0) continue;
      gather(first + pixels - apart, words, apart);
      multiply(gathered_, plan_.run_floats, c, words, apart, to + pixels - apart);
    }
  }

  // A run of lines of a channels-last image, some pixels at a time.
  void multiply_pixels(int64_t line, int64_t count) {
    const int64_t step = plan_.in.axis[2];
    const float* from =
        p_.in + place_.batch * plan_.in.batch + group_ * s_.in_channels + line * plan_.in.axis[1] + first_[1] * step;
    float* to = reached(line);
    for (int64_t left = count * pitch_; left > 0; left -= plan_.block, to += plan_.block) {
      const int64_t pixels = std::min(plan_.block, left);
      for (int64_t i = 0; i < pixels; ++i, from += step) pixels_[i] = from;
      multiply_pixels(pixels);
      // Whole squares: there is room for them, and what lies behind the last pixel is not read.
      transpose(gathered_, f_.padded_columns(), to, plan_.column_pitch, ceil_div(pixels, vw) * vw, f_.padded_columns());
    }
  }

  // pixels_ by all columns into products_.
  void multiply_pixels(int64_t count) const {
    static constexpr float zeros[max_vectors * vw] = {};
    const int32_t tap = 0;
    const PanelGrid panels(f_.columns, vw);
    GemmTile t = {};
    t.taps = &tap;
    t.panel = p_.weights + group_ * f_.group_floats(s_);
    t.init = zeros;
    t.channels = s_.in_channels;
    t.segments = 1;
    t.last_lanes = vw;
    for (int64_t panel = 0; panel < panels.count(); ++panel) {
      const int vectors = panels.vectors_of(panel);
      const EvenTiles even(count, vectors);
      t.next_panel = t.panel;
      t.out_column = panel * panel_columns;
      t.row_tiles = panel == 0 ? even.tiles - 1 : 0;
      t.rows = pixels_;
      t.out = products_;
      t.tile = 0;
      t.tiles = even.longer;
      if (even.longer > 0) gemm_tile(even.rows + 1, vectors)(t);
      t.rows += even.longer * (even.rows + 1);
      t.out += even.longer * (even.rows + 1);
      t.tile = even.longer;
      t.tiles = even.tiles - even.longer;
      gemm_tile(even.rows, vectors)(t);
      t.panel += s_.in_channels * vectors * vw;
    }
  }

  // Lines of some channels from `c` on: the chunks of a register block while its pixels lie in the first-level cache,
  // or, of few channels, a chunk of all blocks after the other.
  void multiply(const float* lines, int64_t pitch, int64_t c, int64_t words, int64_t pixels, float* to) const {
    const float* const weights = p_.weights + group_ * f_.group_floats(s_) + c * f_.chunk;
    const int64_t at_once = plan_.words < s_.in_channels ? std::max<int64_t>(1, pixels / plan_.block) : 1;
    const bool is_copied = plan_.copies && lines != gathered_;
    const int64_t offset = 0;
    const int64_t parts = ceil_div(plan_.block, cache_line_floats);
    PixelsTile t = {};
    t.fetches_block = plan_.words < s_.in_channels || f_.chunks < parts;
    t.offsets = &offset;
    t.channel_pitch = pitch;
    t.sum_pitch = plan_.column_pitch;
    t.words = words;
    t.taps = 1;
    t.fetched_pitch = pitch;
    t.continues = c > 0;
    for (int64_t p = 0; p < pixels;) {
      const int64_t count = std::min(plan_.block, pixels - p);
      const int64_t vectors = ceil_div(count, vec_width);
      t.blocks = count < plan_.block ? 1 : std::min(at_once, (pixels - p) / plan_.block);
      t.lines = lines + p;
      if (is_copied) {
        copy_block(lines + p, pitch, words, vectors);
        t.lines = gathered_;
        t.channel_pitch = vectors * vec_width;
      }
      for (int64_t chunk = 0; chunk < f_.chunks; ++chunk) {
        // Each chunk fetches another part of the next block, or, of few, all of it.
        t.fetched = lines + p + plan_.block + cache_line_floats - 1;
        if (!t.fetches_block) t.fetched += chunk % parts * cache_line_floats;
        t.weights = weights + chunk * s_.in_channels * f_.chunk;
        t.sums = to + chunk * f_.chunk * plan_.column_pitch + p;
        functions_[vectors - 1](t);
      }
      p += t.blocks * count;
    }
  }

  // A block of pixels, its channels side by side: where they lie apart they may share sets of the first-level cache,
  // and every chunk fetches them again.
  void copy_block(const float* lines, int64_t pitch, int64_t words, int64_t vectors) const {
    float* to = gathered_;
    for (int64_t c = 0; c < words; ++c, lines += pitch) {
      for (int64_t v = 0; v < vectors; ++v, to += vec_width) store(to, load(lines + v * vec_width));
    }
  }

  // Pixels that do not lie side by side as floats, or behind which there may be no more memory, of some channels.
  void gather(int64_t at, int64_t words, int64_t count) const {
    const StoredImage image = StoredImage(p_.in, s_.types.in) + at;
    for (int64_t c = 0; c < words; ++c) {
      float* const to = gathered_ + c * plan_.run_floats;
      store(to + count / vec_width * vec_width, broadcast(0.0F));  // see PixelsCopy::clear_ends
      load_run(image + c * plan_.in.channel, plan_.in.axis[2], to, count);
    }
  }

  // What meets in the outputs of each phase of a line.
  void find_taps(const AxisTaps& lines, int64_t q) {
    OverlapTap* tap = taps_;
    for (int64_t r = 0; r < w_.phases(); ++r) {
      const AxisTaps along = w_.taps(r);
      const int64_t last_shift = along.first_shift + (along.count - 1) * along.shift_step;
      const int64_t lo = std::clamp(-along.first_shift, q0_[1], q1_[1]);
      phases_[r] = {tap, tap, lo, std::clamp(s_.in[2] - last_shift, lo, q1_[1])};
      for (int64_t i = 0; i < lines.count; ++i) {
        int64_t line = q + lines.first_shift + i * lines.shift_step;
        if (s_.pad_mode != PadMode::zero) line = padded_index(s_.pad_mode, line, s_.in[1]);
        if (line < 0 || line >= s_.in[1]) continue;
        const int64_t point = (lines.first_index + i * lines.index_step) * s_.kernel[2] + along.first_index;
        const float* const from = reached(line) - first_[1];
        for (int64_t k = 0; k < along.count; ++k) {
          const int64_t shift = along.first_shift + k * along.shift_step;
          const int64_t column = (point + k * along.index_step) * s_.out_channels;
          *tap++ = {from + column * plan_.column_pitch + shift, shift};
        }
      }
      phases_[r].end = tap;
    }
  }

  void write_line(int64_t phase, int64_t q, int64_t y) {
    find_taps(h_.taps(phase), q);
    place_.axis[1] = y;
    const bool is_staged = plan_.out.axis[2] != 1 || plan_.past_caches || is_narrow(s_.types.out);
    const int64_t length = part_.hi - part_.lo;
    const StoredResult out = StoredResult(p_.out, s_.types.out) +
                             (place_.batch * plan_.out.batch + group_ * s_.out_channels * plan_.out.channel +
                              y * plan_.out.axis[1] + place_.axis[2] * plan_.out.axis[2]);
    for (int64_t o = 0; o < s_.out_channels; ++o) {
      const int64_t channel = group_ * s_.out_channels + o;
      const float bias = plan_.has_bias ? p_.bias[channel] : 0.0F;
      for (int64_t r = 0; r < w_.phases(); ++r)
        add_up(phases_[r], o * plan_.column_pitch, bias, sums_ + r * plan_.sum_pitch - q0_[1]);
      const StoredResult to = out + o * plan_.out.channel;
      float* const values = plan_.turns ? line_ + o * length : is_staged ? line_ : to.floats();
      interleave_part(sums_, plan_.sum_pitch, values, w_.phases(), part_);
      if (plan_.endings.count > 0) {
        place_.channel = channel;
        apply_endings(plan_.endings, p_.operands, values, length, place_, false);
      }
      if (is_staged && !plan_.turns) store_line(values, to, plan_.out.axis[2], length, plan_.past_caches);
    }
    if (plan_.turns) transpose(line_, length, out.floats(), plan_.out.axis[2], s_.out_channels, length);
  }

  // The sums of one phase of the last axis into to[q]: vectors where all taps meet, which may write up to a vector
  // more, then the q at the image's borders, where some do.
  void add_up(const OverlapPhase& phase, int64_t column, float bias, float* to) const {
    int64_t q = phase.lo;
    constexpr int at_once = 4;
    for (; q + at_once * vec_width <= phase.hi; q += at_once * vec_width)
      add_vectors<at_once>(phase, column + q, bias, to + q);
    for (; q + vec_width <= phase.hi; q += vec_width) add_vectors<1>(phase, column + q, bias, to + q);
    if (q < phase.hi) {
      const auto lanes = static_cast<int>(phase.hi - q);
      add_vectors<1>(phase, column + q, bias, to + q, [lanes](const float* at) { return load_first(at, lanes); });
    }
    for (q = q0_[1]; q < phase.lo; ++q) to[q] = add_border(phase, column, q, bias);
    for (q = phase.hi; q < q1_[1]; ++q) to[q] = add_border(phase, column, q, bias);
  }

  template <int V, class Load = VecF (*)(const float*)>
  static POLYPHASE_INLINE void add_vectors(const OverlapPhase& phase, int64_t at, float bias, float* to,
                                           Load load = polyphase::cpu::POLYPHASE_CLUSTER::load) {
    VecF sums[V];
    const OverlapTap* tap = phase.first;
    const bool is_any = tap != phase.end;
    unrolled<V>([&](int v) POLYPHASE_INLINE_LAMBDA {
      sums[v] = is_any ? load(tap->from + at + v * vec_width) : broadcast(0.0F);
    });
    for (tap += is_any ? 1 : 0; tap != phase.end; ++tap) {
      unrolled<V>([&](int v) POLYPHASE_INLINE_LAMBDA { sums[v] = sums[v] + load(tap->from + at + v * vec_width); });
    }
    unrolled<V>([&](int v) POLYPHASE_INLINE_LAMBDA { store(to + v * vec_width, sums[v] + broadcast(bias)); });
  }

  float add_border(const OverlapPhase& phase, int64_t column, int64_t q, float bias) const {
    float sum = 0;
    for (const OverlapTap* tap = phase.first; tap != phase.end; ++tap) {
      int64_t x = q + tap->shift;
      if (s_.pad_mode != PadMode::zero) x = padded_index(s_.pad_mode, x, s_.in[2]);
      if (x >= 0 && x < s_.in[2]) sum += tap->from[column + x - tap->shift];
    }
    return sum + bias;
  }

  const ConvOverlapPlan& plan_;
  const ConvShape& s_;
  const ConvOverlapFormat& f_;
  const ConvPointers& p_;
  ConvAxis h_;
  ConvAxis w_;
  const PixelsTileFunction* functions_ = nullptr;  // by vectors, from one on
  float* reached_;
  float* sums_;
  float* line_;
  float* gathered_;                 // or the products of some pixels, [pixel][column]
  const float** pixels_ = nullptr;  // where those lie
  float** products_ = nullptr;      // and these
  OverlapTap* taps_;
  OverlapPhase* phases_;      // of the last axis
  int64_t last_ = INT64_MIN;  // of the image's elements: reading up to it needs no copy
  int64_t group_ = 0;
  int64_t q0_[2] = {};  // of the tile
  int64_t q1_[2] = {};
  int64_t first_[2] = {};  // input positions that it reads
  int64_t end_[2] = {};
  int64_t pitch_ = 0;  // pixels of a line
  LinePart part_ = {};
  ResultPlace place_ = {};
};

}  // namespace

void run_conv_overlap(const ConvOverlapPlan& plan, const ConvPointers& pointers, int, int64_t tile,
                      std::byte* scratch) {
  OverlapWork(plan, pointers, scratch).run(tile);
}

}  // namespace polyphase::cpu::POLYPHASE_CLUSTER
