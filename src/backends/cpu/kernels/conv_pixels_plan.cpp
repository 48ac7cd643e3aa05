// Plans and packs convolution by vectors along the pixels.
#include <algorithm>
#include <vector>

#include "backends/cpu/kernels/blocked_sum.h"
#include "backends/cpu/kernels/conv_pixels.h"
#include "backends/cpu/kernels/panel_lines.h"
#include "backends/cpu/kernels/scratch_pieces.h"

namespace polyphase::cpu {
namespace {

constexpr int64_t scratch_floats = 96 * 1024;         // of a tile's lines, and of the sums of a line of q
constexpr int64_t kept_line_floats = 5 * 1024;        // of a tile's lines that stay in the first-level cache
constexpr int64_t kept_depthwise_floats = 16 * 1024;  // those that neighbouring tiles read as well are fewer
constexpr int64_t kept_sum_floats = 12 * 1024;        // and of a run's sums, which joined lines fill better
constexpr int64_t held_floats = 1024;                 // of lines on their way out
constexpr int64_t few_lines = 4;
constexpr int64_t pixels_tiles_aimed = 24;
constexpr double least_tile_work = 8192;  // vector instructions: much beside what beginning a tile costs

AxisTaps last_axis_taps(const ConvShape& shape) {
  const ConvAxis w(shape, 2);
  return shape.transposed ? w.stacked_taps() : w.taps(0);
}

// Whether the phases of the middle axis, joined, take less than one after the other, of so many columns each: a vector
// that is loaded takes as long as three products, of pairs as one at most, and a kernel that the stride does not divide
// is filled up.
bool joining_lines_pays(const ConvShape& shape, int64_t columns) {
  constexpr int64_t load = 3;
  const ConvAxis h(shape, 1);
  if (h.kernel % h.stride == 0) return true;
  if (shape.in_channels == 1 || shape.products == Products::pairs) return false;
  return ceil_div(h.kernel, h.stride) * (load + columns * h.stride) < h.kernel * (load + columns);
}

}  // namespace

bool conv_pixels_takes(const ConvShape& shape) {
  if (shape.transposed) return shape.dilation[2] == 1;
  return shape.stride[2] == 1 || (shape.stride[2] <= most_pixels_steps && shape.products == Products::floats &&
                                  shape.pad_mode == PadMode::zero);
}

ConvPixelsFormat::ConvPixelsFormat(const ConvShape& shape, int width) {
  columns = ConvAxis(shape, 2).phases() * shape.out_channels;
  const ConvAxis h(shape, 1);
  const bool may_join = shape.transposed && h.dilation == 1 && columns * h.stride <= pixel_columns(width);
  line_phases = may_join && joining_lines_pays(shape, columns) ? h.stride : 1;
  kernel_lines = line_phases > 1 ? ceil_div(h.kernel, line_phases) : h.kernel;
  columns *= line_phases;
  chunks = ceil_div(columns, pixel_columns(width));
  chunk = ceil_div(columns, chunks);
  taps_w = last_axis_taps(shape).count;
  const int64_t phases = ConvAxis(shape, 2).phases();
  first_columns = columns;
  if (shape.transposed) first_columns = (shape.kernel[2] - phases * (taps_w - 1)) * line_phases * shape.out_channels;
  // Half a cycle for a product, and for each column's sums a store, a load and an addition.
  const int64_t apart = first_columns % chunk;
  const int64_t outer_phases = ConvAxis(shape, 0).phases() * ConvAxis(shape, 1).phases();
  const int64_t lines = ceil_div(shape.kernel[0] * shape.kernel[1], outer_phases);
  splits = (chunk - apart) * lines * shape.in_words() > 6 * apart + 8;
  line_floats = 0;
  for (int64_t i = 0; i < chunks; ++i) line_floats += chunk_floats(i);
  group_size = shape.kernel[0] * kernel_lines * shape.in_words() * line_floats;
}

namespace {

// Chooses the sizes of a tile, one after the other.
class PixelsPlanner {
 public:
  explicit PixelsPlanner(ConvPixelsPlan& plan) : plan_(plan), s_(plan.shape) {
    for (int a = 0; a < 3; ++a) {
      const ConvAxis axis(s_, a);
      plan.first_q[a] = axis.begin_q();
      plan.q_count[a] = axis.count_q();
      plan.tile_q[a] = 1;
      if (a < 2) find_shifts(axis, a);
    }
    const ConvAxis w(s_, 2);
    const AxisTaps taps = last_axis_taps(s_);
    plan.first_shift[2] = taps.first_shift;
    reach_ = (taps.count - 1) * taps.shift_step / w.in_step();
    if (plan.depthwise) {
      const OutputPhases phases(w);
      plan.q_count[2] = std::max<int64_t>(1, ceil_div(w.out, w.phases()));
      plan.first_shift[2] = phases.first_shift;
      reach_ = phases.columns() - 1;
    }
    plan.steps = w.in_step();
    plan.tile_groups = 1;
  }

  void choose() {
    choose_width();
    // Four times as many lines as a line of q reads: then the halo is little beside them.
    const int64_t wide = floats(lines(0, 1) * lines(1, 4 * halo_[1]), plan_.tile_q[2]);
    const int64_t most = std::clamp(wide, plan_.depthwise ? kept_depthwise_floats : kept_line_floats, scratch_floats);
    for (const int a : {1, 0}) {
      grow(plan_.tile_q[a], plan_.q_count[a], [&] { return tile_floats() <= most; });
      plan_.tile_q[a] = even_pieces(plan_.q_count[a], plan_.tile_q[a]);
    }
    grow(plan_.tile_groups, s_.groups, [&] { return work() <= 8 * least_tile_work; });
    plan_.tile_groups = even_pieces(s_.groups, plan_.tile_groups);
    for (int a = 0; a < 3; ++a) plan_.blocks[a] = ceil_div(plan_.q_count[a], plan_.tile_q[a]);
    for (int a = 0; a < 2; ++a) plan_.tile_lines[a] = lines(a, plan_.tile_q[a]);
    plan_.group_blocks = ceil_div(s_.groups, plan_.tile_groups);
    choose_run();
  }

 private:
  void find_shifts(const ConvAxis& axis, int a) {
    int64_t least = 0;
    int64_t most = 0;
    bool found = false;
    for (int64_t r = 0; r < axis.phases(); ++r) {
      const AxisTaps taps = axis.taps(r);
      if (taps.count == 0) continue;
      const int64_t last = taps.first_shift + (taps.count - 1) * taps.shift_step;
      least = found ? std::min(least, taps.first_shift) : taps.first_shift;
      most = found ? std::max(most, last) : last;
      found = true;
    }
    plan_.first_shift[a] = least;
    halo_[a] = most - least + 1;
  }

  // Input lines (depths) that so many q of an outer axis read.
  int64_t lines(int a, int64_t q) const { return (q - 1) * ConvAxis(s_, a).in_step() + halo_[a]; }
  int64_t floats(int64_t lines, int64_t q) const { return s_.in_words() * lines * plan_.steps * (q + reach_); }
  int64_t tile_floats() const { return floats(lines(0, plan_.tile_q[0]) * lines(1, plan_.tile_q[1]), plan_.tile_q[2]); }

  // Long lines are cut where their halos stay short beside them, or where a few of them would not fit, in whole
  // register blocks.
  void choose_width() {
    const int64_t block = pixel_vectors(plan_.width, static_cast<int>(plan_.format.chunk)) * plan_.width;
    const int64_t few = lines(1, std::min<int64_t>(few_lines, plan_.q_count[1]));
    const int64_t a_pixel = s_.in_words() * plan_.steps * lines(0, 1) * few;
    const int64_t wide = a_pixel * std::max<int64_t>(512, 16 * reach_);
    const int64_t columns = plan_.format.chunk * plan_.format.chunks;
    const int64_t most = std::min(std::clamp(wide, kept_line_floats, scratch_floats) / a_pixel - reach_,
                                  std::max(scratch_floats / columns, block));
    const int64_t q = plan_.q_count[2];
    plan_.tile_q[2] = q;
    if (q <= most) return;
    plan_.tile_q[2] = even_pieces(ceil_div(q, block), most / block) * block;
  }

  // Doubles a size of the tile while it fits and enough tiles are left, or tiles would be next to nothing.
  template <class Fits>
  void grow(int64_t& size, int64_t count, Fits fits) {
    while (size < count) {
      const int64_t before = size;
      const bool is_small = work() < least_tile_work;
      size = std::min(2 * size, count);
      if (fits() && (is_small || tiles() >= pixels_tiles_aimed)) continue;
      size = before;
      return;
    }
  }

  int64_t tiles() const {
    int64_t count = s_.batch * ceil_div(s_.groups, plan_.tile_groups);
    for (int a = 0; a < 3; ++a) count *= ceil_div(plan_.q_count[a], plan_.tile_q[a]);
    return count;
  }

  double work() const {
    const int64_t phases = ConvAxis(s_, 0).phases() * ConvAxis(s_, 1).phases();
    const int64_t products = s_.kernel[0] * s_.kernel[1] * plan_.format.taps_w * s_.in_words();
    const int64_t of_vector = plan_.format.columns / plan_.format.line_phases * (products + 4 * phases);
    return static_cast<double>(of_vector * ceil_div(plan_.tile_q[2], plan_.width)) *
           static_cast<double>(plan_.tile_q[0] * plan_.tile_q[1] * plan_.tile_groups);
  }

  void choose_run() {
    plan_.step_pitch = plan_.tile_q[2] + reach_;
    plan_.pitch = plan_.steps * plan_.step_pitch;
    constexpr int64_t line = 16;  // floats of a line of the cache; channels an odd number of them apart share no sets
    const int64_t of_channel = plan_.tile_lines[0] * plan_.tile_lines[1] * plan_.pitch;
    plan_.channel_pitch = (ceil_div(of_channel, line) / 2 * 2 + 1) * line;
    plan_.run_lines = 1;
    const int64_t columns = plan_.format.chunk * plan_.format.chunks;
    const int64_t run = std::clamp<int64_t>(kept_sum_floats / (columns * plan_.pitch), 1, plan_.tile_q[1]);
    const int64_t alone = run * ceil_div(plan_.tile_q[2], plan_.width);
    const int64_t joined = ceil_div((run - 1) * plan_.pitch + plan_.tile_q[2], plan_.width);
    if (ConvAxis(s_, 1).in_step() == 1 && plan_.steps == 1 && 10 * joined <= 11 * alone) plan_.run_lines = run;
    plan_.sum_pitch = ceil_div((plan_.run_lines - 1) * plan_.pitch + plan_.tile_q[2], plan_.width) * plan_.width;
  }

  ConvPixelsPlan& plan_;
  const ConvShape& s_;
  int64_t halo_[2] = {};
  int64_t reach_;  // pixels of a piece of a line that lie behind those of the last q
};

// Of the kernel alone: the order of sums must not depend on the image's size.
bool is_depthwise(const ConvShape& shape, int width) {
  const int64_t phases = ConvAxis(shape, 2).phases();
  return shape.in_channels == 1 && shape.out_channels == 1 && phases > 1 && phases <= most_depthwise_phases(width) &&
         shape.kernel_points() <= 2 * sum_piece;
}

int64_t depthwise_bytes(const ConvShape& shape) {
  const int64_t outer_phases = ConvAxis(shape, 0).phases() * ConvAxis(shape, 1).phases();
  const int64_t lines = shape.kernel[0] * shape.kernel[1];
  const int64_t columns = OutputPhases(ConvAxis(shape, 2)).columns();
  return scratch_piece_bytes<std::byte>(outer_phases * depthwise_phase_bytes) + scratch_piece_bytes<int64_t>(lines) +
         scratch_piece_bytes<float>(lines * columns * ConvAxis(shape, 2).phases());
}

// Outputs that lie behind each other and are written one after the other.
int64_t longest_run(const ConvPixelsPlan& plan) {
  const ConvShape& s = plan.shape;
  if (!plan.depthwise || plan.blocks[2] > 1 || plan.out.axis[1] != s.out[2]) return s.out[2];
  return std::min(s.out[1], plan.tile_q[1] * ConvAxis(s, 1).phases()) * s.out[2];
}

}  // namespace

ConvPixelsPlan plan_conv_pixels(const ConvShape& shape, const ImageStrides& in, const ImageStrides& out,
                                const EndingProgram& endings, bool has_bias, int width) {
  ConvPixelsPlan plan = {};
  plan.shape = shape;
  plan.format = ConvPixelsFormat(shape, width);
  plan.in = in;
  plan.out = out;
  plan.endings = endings;
  plan.has_bias = has_bias;
  plan.in_planar = in.channel != 1 || shape.groups * shape.in_channels == 1;
  plan.out_planar = out.channel != 1;
  plan.width = width;
  plan.depthwise = is_depthwise(shape, width);
  PixelsPlanner(plan).choose();
  const bool is_row = plan.out_planar || out.axis[2] == 1;
  plan.past_caches = is_row && is_past_caches(shape) && longest_run(plan) >= least_streamed;
  const int64_t columns = plan.format.chunk * plan.format.chunks;
  plan.line_floats = shape.out_channels * plan.tile_q[2] * ConvAxis(shape, 2).phases();
  if (plan.depthwise) plan.line_floats = std::max(plan.line_floats, held_floats);
  const bool from_lines = plan.in_planar && in.axis[2] == 1 && shape.pad_mode == PadMode::zero;
  plan.turned_floats = shape.products == Products::pairs && !from_lines ? 2 * shape.in_words() * plan.pitch : 0;
  plan.max_taps = shape.kernel[0] * shape.kernel[1] * plan.format.taps_w;
  plan.scratch_bytes = scratch_piece_bytes<float>(shape.in_words() * plan.channel_pitch + lines_slack(width)) +
                       scratch_piece_bytes<float>(columns * plan.sum_pitch) + scratch_piece_bytes<float>(columns) +
                       scratch_piece_bytes<float>(plan.line_floats) +
                       scratch_piece_bytes<float>(plan.turned_floats + lines_slack(width)) +
                       scratch_piece_bytes<int64_t>(plan.max_taps) +
                       scratch_piece_bytes<PixelsPhase>(ConvAxis(shape, 0).phases() * ConvAxis(shape, 1).phases() /
                                                        plan.format.line_phases) +
                       (plan.depthwise ? depthwise_bytes(shape) : 0);
  return plan;
}

int64_t conv_pixels_tiles(const ConvPixelsPlan& plan, int) {
  const ConvShape& s = plan.shape;
  if (s.batch * s.out_points() * s.groups * s.out_channels == 0) return 0;
  return s.batch * plan.group_blocks * plan.blocks[0] * plan.blocks[1] * plan.blocks[2];
}

int64_t conv_pixels_packed_floats(const ConvShape& shape, int width) {
  return ConvPixelsFormat(shape, width).group_size * shape.groups;
}

namespace {

// The panels of one outer phase: chunks of columns by [word][tap].
class PixelsPacker {
 public:
  PixelsPacker(const ConvShape& shape, int width, const float* weights, const WeightStrides& strides)
      : shape_(shape), format_(shape, width), weights_(weights), strides_(strides) {}

  const ConvPixelsFormat& format() const { return format_; }

  // Returns where the next phase begins.
  float* phase(int64_t group, const AxisTaps& d, const AxisTaps& h, float* to) {
    const int64_t lines = d.count * h.count;
    for (int64_t chunk = 0; chunk < format_.chunks; ++chunk) {
      const int64_t firsts = format_.firsts(chunk);
      const bool is_whole = firsts == format_.chunk;
      const int64_t others = (format_.taps_w - 1) * lines + (is_whole ? lines : 0);
      const int64_t apart = is_whole ? 0 : lines * firsts;  // floats of a word
      const int64_t words = shape_.in_words();
      const bool in_pairs = shape_.products == Products::pairs;
      const int64_t channels = in_pairs ? 2 * words : words;
      const int64_t floats = channels * lines * format_.chunk_floats(chunk);
      wide_.resize(static_cast<std::size_t>(in_pairs ? floats : 0));
      float* const panel = in_pairs ? wide_.data() : to;
      std::fill_n(panel, floats, 0.0F);
      float* const rest = panel + channels * apart;
      const int64_t first = chunk * format_.chunk;
      const int64_t end = std::min(first + format_.chunk, format_.columns);
      for (int64_t column = first; column < end;) {
        const int64_t channel = column % shape_.out_channels;
        const int64_t run = std::min(end, column - channel + shape_.out_channels) - column;
        const int64_t r = column / shape_.out_channels;
        AxisTaps of_line = h;
        of_line.first_index += r % format_.line_phases;
        find_taps(d, of_line, r / format_.line_phases, firsts);
        if (!is_whole) columns(group, channel, run, first_taps_, lines * firsts, panel + column - first);
        columns(group, channel, run, taps_, others * format_.chunk, rest + column - first);
        column += run;
      }
      if (in_pairs) {
        auto* const pairs = reinterpret_cast<uint32_t*>(to);
        pair_channels(panel, words, apart, pairs);
        pair_channels(rest, words, others * format_.chunk, pairs + words * apart);
      }
      to += words * lines * format_.chunk_floats(chunk);
    }
    return to;
  }

 private:
  // Those of a phase of the last axis: its column is that many kernel points further than the first phase's.
  void find_taps(const AxisTaps& d, const AxisTaps& h, int64_t r, int64_t firsts) {
    const AxisTaps w = last_axis_taps(shape_);
    const bool is_whole = firsts == format_.chunk;
    const int64_t lines = d.count * h.count;
    taps_.clear();
    first_taps_.clear();
    for (int64_t i = 0; i < lines * w.count; ++i) {
      const int64_t line = i / w.count;
      const int64_t tap = i % w.count;
      const int64_t along = w.first_index + tap * w.index_step + r;
      const int64_t across = h.first_index + line % h.count * h.index_step;
      if (along >= shape_.kernel[2] || across >= shape_.kernel[1]) continue;
      const int64_t from = (d.first_index + line / h.count * d.index_step) * strides_.axis[0] +
                           across * strides_.axis[1] + along * strides_.axis[2];
      if (tap == 0) {
        (is_whole ? taps_ : first_taps_).push_back({from, line * firsts});
      } else {
        taps_.push_back({from, ((is_whole ? lines : 0) + line * (w.count - 1) + tap - 1) * format_.chunk});
      }
    }
    for (std::vector<PanelTap>* taps : {&taps_, &first_taps_})
      std::sort(taps->begin(), taps->end(), [](const PanelTap& a, const PanelTap& b) { return a.from < b.from; });
  }

  void columns(int64_t group, int64_t channel, int64_t count, const std::vector<PanelTap>& taps, int64_t line_step,
               float* to) const {
    const int64_t lane_step = strides_.out_step(shape_);
    write_panel_lines({.from = weights_ + group * strides_.group_step(shape_) + channel * lane_step,
                       .to = to,
                       .lanes = count,
                       .filled = count,
                       .lane_step = lane_step,
                       .channels = shape_.in_channels,
                       .channel_step = strides_.in_step(shape_),
                       .line_step = line_step,
                       .taps = taps.data(),
                       .tap_count = static_cast<int64_t>(taps.size())});
  }

  const ConvShape& shape_;
  const ConvPixelsFormat format_;
  const float* weights_;
  const WeightStrides strides_;
  std::vector<PanelTap> taps_;
  std::vector<PanelTap> first_taps_;  // where they lie apart
  std::vector<float> wide_;           // a chunk's, before they are paired
};

}  // namespace

void pack_conv_pixels(const ConvShape& shape, int width, const float* weights, const WeightStrides& strides,
                      PackShare share, float* packed) {
  PixelsPacker packer(shape, width, weights, strides);
  const ConvAxis d(shape, 0);
  const ConvAxis h(shape, 1);
  const PackRange groups(shape.groups, share);
  for (int64_t g = groups.begin; g < groups.end; ++g) {
    float* to = packed + g * packer.format().group_size;
    for (int64_t rd = 0; rd < d.phases(); ++rd) {
      for (int64_t rh = 0; rh < h.phases() / packer.format().line_phases; ++rh)
        to = packer.phase(g, d.taps(rd), packer.format().line_taps(h, rh), to);
    }
  }
}

}  // namespace polyphase::cpu
