// Computes one tile of convolution by vectors along the pixels.
#include "backends/cpu/kernels/conv_pixels_run.h"

#include <algorithm>

#include "backends/cpu/kernels/apply_endings.h"
#include "backends/cpu/kernels/joined_run.h"
#include "backends/cpu/kernels/pixels_depthwise.h"
#include "backends/cpu/kernels/pixels_lines.h"
#include "backends/cpu/kernels/pixels_tile.h"
#include "backends/cpu/kernels/scratch_pieces.h"
#include "backends/cpu/simd/rows.h"
#include "backends/cpu/simd/transpose.h"

namespace polyphase::cpu::POLYPHASE_CLUSTER {
namespace {

// Register blocks of a run.
struct Blocks {
  int64_t count;
  int64_t vectors;  // of each
};

class PixelsWork {
 public:
  PixelsWork(const ConvPixelsPlan& plan, const ConvPointers& pointers, std::byte* scratch)
      : plan_(plan), s_(plan.shape), f_(plan.format), p_(pointers), d_(s_, 0), h_(s_, 1), w_(s_, 2), outputs_(w_) {
    ScratchPieces pieces(scratch);
    lines_ = pieces.next<float>(s_.in_words() * plan.channel_pitch + lines_slack(vec_width));
    sums_ = pieces.next<float>(f_.chunk * f_.chunks * plan.sum_pitch);
    bias_ = pieces.next<float>(f_.chunk * f_.chunks);
    line_ = pieces.next<float>(plan.line_floats);
    turned_ = pieces.next<float>(plan.turned_floats + lines_slack(vec_width));
    offsets_ = pieces.next<int64_t>(plan.max_taps);
    line_phases_ = h_.phases() / f_.line_phases;
    phases_ = pieces.next<PixelsPhase>(d_.phases() * line_phases_);
    functions_ = tiles_of(f_.chunk);
    taps_w_ = s_.transposed ? w_.stacked_taps() : w_.taps(0);
    if (!plan.depthwise) return;
    depthwise_phases_ = pieces.next<DepthwisePhase>(d_.phases() * h_.phases());
    depthwise_offsets_ = pieces.next<int64_t>(s_.kernel[0] * s_.kernel[1]);
    depthwise_weights_ = pieces.next<float>(s_.kernel[0] * s_.kernel[1] * outputs_.columns() * w_.phases());
  }

  void run(int64_t tile) {
    for (int a = 2; a >= 0; --a) {
      q0_[a] = plan_.first_q[a] + tile % plan_.blocks[a] * plan_.tile_q[a];
      q1_[a] = std::min(plan_.first_q[a] + plan_.q_count[a], q0_[a] + plan_.tile_q[a]);
      tile /= plan_.blocks[a];
    }
    const int64_t first = tile % plan_.group_blocks * plan_.tile_groups;
    place_.batch = tile / plan_.group_blocks;
    find_phases();
    if (plan_.depthwise) {
      place_.axis[2] = (q0_[2] - plan_.first_q[2]) * w_.phases();
      part_ = {0, std::min((q1_[2] - q0_[2]) * w_.phases(), w_.out - place_.axis[2]), 0, 0};
      find_depthwise_phases();
    } else {
      part_ = LinePart::of(w_, q0_[2], q1_[2]);
      place_.axis[2] = w_.output_of(0, q0_[2]) + part_.lo;
    }
    PixelsBlock block = input_block();
    for (group_ = first; group_ < std::min(s_.groups, first + plan_.tile_groups); ++group_) {
      block.image = StoredImage(p_.in, s_.types.in) +
                    (place_.batch * plan_.in.batch + group_ * s_.in_channels * plan_.in.channel);
      block.has_next = group_ + 1 < s_.groups;
      PixelsCopy(plan_, block, turned_).run(lines_);
      for (int64_t m = 0; m < f_.chunk * f_.chunks; ++m) {
        const bool is_real = plan_.has_bias && m < f_.columns;
        bias_[m] = is_real ? p_.bias[group_ * s_.out_channels + m % s_.out_channels] : 0.0F;
      }
      if (plan_.depthwise) {
        run_depthwise();
        continue;
      }
      for (int64_t r = 0; r < d_.phases() * line_phases_; ++r) run_phase(r / line_phases_, r % line_phases_);
    }
    if (plan_.past_caches) finish_streams();
  }

 private:
  const PixelsTileFunction* tiles_of(int64_t columns) const {
    const bool in_pairs = s_.products == Products::pairs;
    return (in_pairs ? plan_.pairs : float_pixels_tiles)(static_cast<int>(columns));
  }

  // What the tile's lines read, at the least shift of the first q.
  PixelsBlock input_block() const {
    PixelsBlock block = {};
    for (int a = 0; a < 2; ++a) {
      const int64_t step = (a == 0 ? d_ : h_).in_step();
      block.first[a] = q0_[a] * step + plan_.first_shift[a];
      block.extent[a] = (q1_[a] - 1 - q0_[a]) * step + plan_.tile_lines[a] - (plan_.tile_q[a] - 1) * step;
    }
    block.first[2] = q0_[2] * plan_.steps + plan_.first_shift[2];
    block.extent[2] = plan_.pitch;
    block.read = q1_[2] - q0_[2] + plan_.pitch - plan_.tile_q[2];
    return block;
  }

  void find_phases() {
    int64_t* offset = offsets_;
    int64_t rows = 0;  // of the kernel, in front of the phase's
    for (int64_t rd = 0; rd < d_.phases(); ++rd) {
      const AxisTaps taps_d = d_.taps(rd);
      for (int64_t rh = 0; rh < line_phases_; ++rh) {
        const AxisTaps taps_h = f_.line_taps(h_, rh);
        const int64_t lines = taps_d.count * taps_h.count;
        const int64_t taps = lines * taps_w_.count;
        phases_[rd * line_phases_ + rh] = {lines, taps, offset - offsets_, rows * s_.in_words() * f_.line_floats,
                                           words_at_once(lines, taps)};
        rows += lines;
        const int64_t others = taps_w_.count - 1;
        for (int64_t line = 0; line < lines; ++line, ++offset) {
          const int64_t depth = taps_d.first_shift + line / taps_h.count * taps_d.shift_step - plan_.first_shift[0];
          const int64_t at = taps_h.first_shift + line % taps_h.count * taps_h.shift_step - plan_.first_shift[1];
          *offset = (depth * plan_.tile_lines[1] + at) * plan_.pitch;
          int64_t* const rest = offset + (lines - line) + line * others;
          for (int64_t k = 0; k < others; ++k) {
            const int64_t pixel = (k + 1) * taps_w_.shift_step;
            rest[k] = *offset + pixel % plan_.steps * plan_.step_pitch + pixel / plan_.steps;
          }
        }
        offset += lines * others;
      }
    }
  }

  // All output lines of one phase of the outer axes, or of all phases of the middle one that are columns together.
  void run_phase(int64_t rd, int64_t rh) {
    const PixelsPhase& phase = phases_[rd * line_phases_ + rh];
    const int64_t last_h = rh + f_.line_phases - 1;
    const int64_t d0 = std::max(q0_[0], d_.first_q(rd, 0));
    const int64_t d1 = std::min(q1_[0], d_.first_q(rd, s_.out[0]));
    const int64_t h0 = std::max(q0_[1], h_.first_q(last_h, 0));
    const int64_t h1 = std::min(q1_[1], h_.first_q(rh, s_.out[1]));
    for (int64_t qd = d0; qd < d1; ++qd) {
      place_.axis[0] = d_.output_of(rd, qd);
      for (int64_t qh = h0; qh < h1; qh += plan_.run_lines) {
        const int64_t count = std::min(plan_.run_lines, h1 - qh);
        const int64_t line = (qd - q0_[0]) * d_.in_step() * plan_.tile_lines[1] + (qh - q0_[1]) * h_.in_step();
        compute_run(phase, lines_ + line * plan_.pitch, (count - 1) * plan_.pitch + q1_[2] - q0_[2]);
        if (part_.lo >= part_.hi) continue;
        for (int64_t r = rh; r <= last_h; ++r) {
          const int64_t first = std::max(qh, h_.first_q(r, 0));
          const int64_t end = std::min(qh + count, h_.first_q(r, s_.out[1]));
          write_lines(sums_ + (r - rh) * s_.out_channels * plan_.sum_pitch + (first - qh) * plan_.pitch,
                      h_.output_of(r, first), end - first);
        }
      }
    }
  }

  void find_depthwise_phases() {
    static_assert(sizeof(DepthwisePhase) == depthwise_phase_bytes);
    int64_t* offset = depthwise_offsets_;
    const float* weights = depthwise_weights_;
    for (int64_t r = 0; r < d_.phases() * h_.phases(); ++r) {
      const PixelsPhase& phase = phases_[r / f_.line_phases];
      const int64_t* const first = offset;
      offset = std::copy_n(offsets_ + phase.offsets, phase.lines, offset);
      depthwise_phases_[r] = {first, offset, weights};
      weights += phase.lines * outputs_.columns() * w_.phases();
    }
    by_line_ = {.phases = nullptr,
                .phase_count = h_.phases(),
                .phase = 0,
                .count = 0,
                .blocks = 0,
                .from = nullptr,
                .from_step = h_.in_step() * plan_.pitch,
                .length = part_.hi,
                .to = nullptr,
                .lead = outputs_.lead.end,
                .between = outputs_.between,
                .trail = outputs_.trail,
                .bias = 0,
                .half = s_.types.out == DType::f16};
    split_line(q1_[2] - q0_[2]);
  }

  // A group's, in the order in which they are used; none where a column does not reach a phase.
  void copy_weights() {
    const int64_t firsts = f_.firsts(0);
    const int64_t others = (taps_w_.count - 1) * f_.chunk;  // of a line of taps
    float* to = depthwise_weights_;
    for (int64_t r = 0; r < d_.phases() * h_.phases(); ++r) {
      const PixelsPhase& phase = phases_[r / f_.line_phases];
      const float* first = p_.weights + group_ * f_.group_size + phase.weights + r % f_.line_phases;
      const float* other = first + phase.lines * firsts;
      for (int64_t line = 0; line < phase.lines; ++line, first += firsts, other += others) {
        for (int64_t c = 0; c < outputs_.columns(); ++c, to += outputs_.count) {
          const auto [begin, end] = outputs_.reached(c);
          for (int64_t w = begin; w < end; ++w) {
            const int64_t tap = outputs_.tap(w, c);
            const float* const of_tap = tap == 0 ? first : other + (tap - 1) * f_.chunk;
            to[w] = of_tap[outputs_.uncropped(w) * f_.line_phases];
          }
        }
      }
    }
  }

  // All output lines of the tile in the order in which they lie, straight from the registers to there; with endings,
  // or where pixels lie apart or are of another type, by way of some lines that are held.
  void run_depthwise() {
    if (part_.lo >= part_.hi) return;
    copy_weights();
    if constexpr (joins_narrow) {
      if (leaves_narrow()) return run_depthwise<false>();
    }
    run_depthwise<true>();
  }

  // Whether a line of the image lies as it is computed: it is written where it belongs.
  bool is_row() const { return plan_.out_planar || plan_.out.axis[2] == 1; }

  bool is_held() const {
    const bool joins = !is_narrow(s_.types.out) || joins_narrow;
    return !is_row() || plan_.endings.count > 0 || !joins;
  }
  bool leaves_narrow() const { return is_narrow(s_.types.out) && !is_held(); }

  template <bool wide>
  void run_depthwise() {
    by_line_.bias = bias_[0];
    const int64_t length = part_.hi;
    const bool held = is_held();
    const bool joins = is_row() && plan_.out.axis[1] == length;
    const int64_t most = !joins ? 1 : held ? std::max<int64_t>(1, plan_.line_floats / length) : s_.out[1];
    const int64_t z1 = std::min(d_.output_of(0, q1_[0]), s_.out[0]);
    const int64_t y1 = std::min(h_.output_of(0, q1_[1]), s_.out[1]);
    const int64_t y0 = std::max<int64_t>(0, h_.output_of(0, q0_[1]));
    using Element = typename JoinedRun<wide>::Element;
    JoinedRun<wide> run;
    const std::byte* end = nullptr;  // of the run
    for (int64_t z = std::max<int64_t>(0, d_.output_of(0, q0_[0])); z < z1; ++z) {
      place_.axis[0] = z;
      const int64_t qd = floor_div(z + d_.crop(), d_.phases());
      by_line_.phases = depthwise_phases_ + (z + d_.crop() - qd * d_.phases()) * h_.phases();
      const float* const plane = lines_ + (qd - q0_[0]) * d_.in_step() * plan_.tile_lines[1] * plan_.pitch;
      StoredResult to = StoredResult(p_.out, s_.types.out) +
                        (place_.batch * plan_.out.batch + group_ * plan_.out.channel + z * plan_.out.axis[0] +
                         y0 * plan_.out.axis[1] + place_.axis[2] * plan_.out.axis[2]);
      for (int64_t y = y0; y < y1; y += most, to = to + most * plan_.out.axis[1]) {
        const int64_t qh = floor_div(y + h_.crop(), h_.phases());
        by_line_.phase = y + h_.crop() - qh * h_.phases();
        by_line_.from = plane + (qh - q0_[1]) * h_.in_step() * plan_.pitch;
        const int64_t count = std::min(most, y1 - y);
        if (held || to.data != end) {
          run.finish(by_line_.half);
          auto* const first = reinterpret_cast<Element*>(held ? reinterpret_cast<std::byte*>(line_) : to.data);
          run = JoinedRun<wide>(first, !held && plan_.past_caches);
        }
        end = held ? nullptr : (to + count * length).data;
        by_line_.count = count;
        by_line_.to = &run;
        sum_lines_(by_line_);
        if (held) {
          run.finish(by_line_.half);
          end_and_write(y, count, to);
        }
      }
    }
    run.finish(by_line_.half);
  }

  void end_and_write(int64_t first, int64_t count, StoredResult to) {
    const int64_t length = part_.hi - part_.lo;
    for (int64_t i = 0; i < count && plan_.endings.count > 0; ++i) end_line(line_ + i * length, 0, first + i);
    store_line(line_, to, plan_.out.axis[2], count * length, plan_.past_caches);
  }

  // As few register blocks as can be, all of one size; three vectors are not filled up to four.
  void split_line(int64_t count) {
    const int64_t vectors = ceil_div(count, vec_width);
    by_line_.blocks = vectors == 3 ? vectors : ceil_div(vectors, int64_t{depthwise_vectors});
    const DepthwiseFunction* functions = depthwise_functions<true>(w_.phases(), by_line_.between);
    if constexpr (joins_narrow) {
      if (leaves_narrow()) functions = depthwise_functions<false>(w_.phases(), by_line_.between);
    }
    sum_lines_ = functions[ceil_div(vectors, by_line_.blocks) - 1];
  }

  // All columns of `count` q into sums_[column][q].
  void compute_run(const PixelsPhase& phase, const float* lines, int64_t count) {
    if (count != split_) split(count);
    PixelsTile t = {};
    t.sum_pitch = plan_.sum_pitch;
    t.channel_pitch = plan_.channel_pitch;
    t.fetched_pitch = plan_.channel_pitch;
    for (int64_t c = 0; c < s_.in_words(); c += phase.words) {
      t.words = std::min(phase.words, s_.in_words() - c);
      const float* weights = p_.weights + group_ * f_.group_size + phase.weights;
      for (int64_t chunk = 0; chunk < f_.chunks; ++chunk) {
        t.init = bias_ + chunk * f_.chunk;
        const int64_t firsts = f_.firsts(chunk);
        const bool is_split = firsts > 0 && firsts < f_.chunk;
        const float* const line = lines + c * plan_.channel_pitch;
        float* const sums = sums_ + chunk * f_.chunk * plan_.sum_pitch;
        t.offsets = offsets_ + phase.offsets;
        t.taps = phase.taps;
        t.begun = c > 0 ? f_.chunk : 0;
        const float* of_chunk = weights;
        if (is_split) {
          t.taps = phase.lines;
          t.begun = c > 0 ? firsts : 0;
          t.ends = false;
          t.weights = weights + c * phase.lines * firsts;
          run_blocks(t, first_blocks_, first_functions_, line, sums);
          of_chunk += s_.in_words() * phase.lines * firsts;
          t.begun = c > 0 ? f_.chunk : firsts;
        }
        if (firsts < f_.chunk) {
          t.taps = phase.taps - phase.lines;
          t.offsets += phase.lines;
        }
        t.ends = c + phase.words >= s_.in_words();
        t.weights = of_chunk + c * t.taps * f_.chunk;
        run_blocks(t, blocks_, functions_, line, sums);
        weights += s_.in_words() * phase.lines * f_.chunk_floats(chunk);
      }
    }
  }

  // A run's register blocks, of one size or of two.
  using RunBlocks = Blocks[2];
  static void run_blocks(PixelsTile& t, const RunBlocks& sizes, const PixelsTileFunction* functions, const float* lines,
                         float* sums) {
    for (const Blocks& blocks : sizes) {
      if (blocks.count == 0) continue;
      t.blocks = blocks.count;
      t.lines = lines;
      t.fetched = lines + blocks.vectors * vec_width + 24;
      t.sums = sums;
      functions[blocks.vectors - 1](t);
      lines += blocks.count * blocks.vectors * vec_width;
      sums += blocks.count * blocks.vectors * vec_width;
    }
  }

  // As few register blocks as can be.
  void split(int64_t count) {
    split_ = count;
    const auto divide = [count](int64_t columns, RunBlocks& sizes) {
      const int64_t vectors = ceil_div(count, vec_width);
      const int64_t blocks = ceil_div(vectors, pixel_vectors(vec_width, static_cast<int>(columns)));
      sizes[0] = {vectors % blocks, vectors / blocks + 1};
      sizes[1] = {blocks - vectors % blocks, vectors / blocks};
    };
    divide(f_.chunk, blocks_);
    const int64_t apart = f_.first_columns % f_.chunk;
    if (apart == 0) return;
    divide(apart, first_blocks_);
    first_functions_ = tiles_of(apart);
  }

  // So many words that their lines stay in the first-level cache while the tiles go along them. Where some columns
  // have fewer taps than others, their number is part of the order of sums, which must not depend on the image's size.
  int64_t words_at_once(int64_t lines, int64_t taps) const {
    constexpr int64_t kept_floats = 5 * 1024;  // of 8192: weights and sums lie there as well
    constexpr int64_t usual_pitch = 256;
    const int64_t piece = words_per_piece(taps);
    const int64_t pitch = f_.first_columns < f_.chunk * f_.chunks ? usual_pitch : plan_.pitch;
    return piece * std::max<int64_t>(1, kept_floats / (piece * std::max<int64_t>(1, lines) * pitch));
  }

  // Interleaves the phases of the last axis, applies the endings along the lines of a run, and stores them in the
  // caller's layout.
  void write_lines(const float* from, int64_t first, int64_t count) {
    const int64_t s = w_.phases();
    const bool is_staged = !is_row() || plan_.past_caches || is_narrow(s_.types.out);
    const int64_t pitch = is_staged ? plan_.tile_q[2] * s : plan_.out.channel;
    const int64_t phase_pitch = f_.line_phases * s_.out_channels * plan_.sum_pitch;
    const int64_t length = part_.hi - part_.lo;
    StoredResult to =
        StoredResult(p_.out, s_.types.out) +
        (place_.batch * plan_.out.batch + group_ * s_.out_channels * plan_.out.channel +
         place_.axis[0] * plan_.out.axis[0] + first * plan_.out.axis[1] + place_.axis[2] * plan_.out.axis[2]);
    for (int64_t i = 0; i < count; ++i, to = to + h_.phases() * plan_.out.axis[1]) {
      const float* sums = from + i * plan_.pitch;
      float* line = is_staged ? line_ : to.floats();
      for (int64_t o = 0; o < s_.out_channels; ++o, sums += plan_.sum_pitch, line += pitch) {
        if (!is_staged && o + 1 < s_.out_channels) fetch_for_store(StoredResult(line + pitch, DType::f32), length);
        interleave_part(sums, phase_pitch, line, s, part_);
        if (plan_.endings.count > 0) end_line(line, o, first + i * h_.phases());
      }
      if (!is_row() && to.wide()) {
        transpose(line_, pitch, to.floats(), plan_.out.axis[2], s_.out_channels, length);
      } else if (is_staged) {
        for (int64_t o = 0; o < s_.out_channels; ++o)
          store_line(line_ + o * pitch, to + o * plan_.out.channel, plan_.out.axis[2], length, plan_.past_caches);
      }
    }
  }

  void end_line(float* line, int64_t channel, int64_t at) {
    place_.channel = group_ * s_.out_channels + channel;
    place_.axis[1] = at;
    apply_endings(plan_.endings, p_.operands, line, part_.hi - part_.lo, place_, false);
  }

  const ConvPixelsPlan& plan_;
  const ConvShape& s_;
  const ConvPixelsFormat& f_;
  const ConvPointers& p_;
  ConvAxis d_;
  ConvAxis h_;
  ConvAxis w_;
  OutputPhases outputs_;  // of depthwise lines
  AxisTaps taps_w_ = {};
  const PixelsTileFunction* functions_ = nullptr;  // by vectors, from one on
  DepthwiseFunction sum_lines_ = nullptr;
  DepthwisePhase* depthwise_phases_ = nullptr;
  int64_t* depthwise_offsets_ = nullptr;
  float* depthwise_weights_ = nullptr;
  DepthwiseLines by_line_ = {};
  const PixelsTileFunction* first_functions_ = nullptr;  // of the columns that have their first taps apart
  float* lines_;
  float* sums_;
  float* bias_;
  float* line_;
  float* turned_;  // plan.turned_floats
  int64_t* offsets_;
  PixelsPhase* phases_;
  int64_t line_phases_;  // of the middle axis that are summed one after the other
  int64_t split_ = 0;    // q that blocks_ are of
  Blocks blocks_[2] = {};
  Blocks first_blocks_[2] = {};
  int64_t group_ = 0;
  int64_t q0_[3] = {};  // of the tile
  int64_t q1_[3] = {};
  LinePart part_ = {};
  ResultPlace place_ = {};
};

}  // namespace

const PixelsTileFunction* float_pixels_tiles(int columns) { return pixels_tiles<Products::floats>(columns); }

void run_conv_pixels(const ConvPixelsPlan& plan, const ConvPointers& pointers, int, int64_t tile, std::byte* scratch) {
  PixelsWork(plan, pointers, scratch).run(tile);
}

}  // namespace polyphase::cpu::POLYPHASE_CLUSTER
