// Plans and packs convolution by overlap-add.
#include <algorithm>

#include "backends/cpu/kernels/blocked_sum.h"
#include "backends/cpu/kernels/conv_overlap.h"
#include "backends/cpu/kernels/conv_pixels.h"
#include "backends/cpu/kernels/panel_lines.h"
#include "backends/cpu/kernels/scratch_pieces.h"

namespace polyphase::cpu {
namespace {

constexpr int64_t least_overlap_channels = 8;   // fewer are too little beside storing what they come to
constexpr int64_t most_overlap_channels = 256;  // whose products are one piece of a sum (blocked_sum.h)
static_assert(most_overlap_channels == 2 * sum_piece);
constexpr int64_t near_floats = 256 * 1024;     // of an image that the caches hold near
constexpr int64_t most_overlap_columns = 256;   // whose sums of a run of lines stay in the second-level cache
constexpr int64_t most_behind[] = {100, 4096};  // lines and pixels that are kept for taps that lie apart
constexpr int64_t kept_floats = 48 * 1024;      // of what is reached: half of a small second-level cache
constexpr int64_t run_pixels = 4096;            // which the processor foresees, channel by channel
constexpr int64_t gathered_floats = 64 * 1024;  // that are read again: another half of that cache
constexpr int64_t least_chunks_of_copy = 3;     // that read a block, from which on a copy of it pays
constexpr int64_t lines_by_halo = 6;            // of a tile, for each that it shares with the one in front of it
constexpr int64_t overlap_tiles_aimed = 24;
constexpr double least_overlap_work = 8192;  // vector instructions: much beside what beginning a tile costs

// Lines of many chunks, which fetch the next block themselves, are all read at once. Of few chunks, a processor fetches
// what comes next by itself: of many lines, Zen 3 loses them, so that images in memory take five times as long; Emerald
// Rapids follows some eighty, and loses time by every sum that is put aside.
constexpr int64_t lines_fetched(int width, bool has_many_chunks) {
  if (has_many_chunks) return most_overlap_channels;
  return width < 16 ? 8 : 64;
}

// Channels so many floats apart share sets of the first-level cache, which has eight to twelve ways.
constexpr int64_t shared_sets = 1024;
constexpr int64_t least_ways = 8;

// Input positions around its own that a q reads.
struct Reach {
  int64_t behind;
  int64_t ahead;

  explicit Reach(const ConvAxis& axis)
      : behind(axis.transposed ? (axis.kernel - 1) * axis.dilation / axis.stride : axis.pre),
        ahead(axis.transposed ? 0 : (axis.kernel - 1) * axis.dilation - axis.pre) {}

  // Also of a convolution that pads by elements of the image.
  Reach(const ConvAxis& axis, PadMode mode) : Reach(axis) {
    if (mode == PadMode::zero) return;
    const AxisTaps taps = axis.taps(0);
    const Reach inside = *this;
    for (int64_t q = 0; q < axis.out; ++q) {
      if (q >= inside.behind && q + inside.ahead < axis.in) {  // reads no padding, like those up to the other border
        q = std::max(q, axis.in - inside.ahead - 1);
        continue;
      }
      for (int64_t t = 0; t < taps.count; ++t) {
        const int64_t at = padded_index(mode, q + taps.first_shift + t * taps.shift_step, axis.in);
        behind = std::max(behind, q - at);
        ahead = std::max(ahead, at - q);
      }
    }
  }
};

// How lines are read: where channels share sets, many chunks read a run of them gathered, few some channels at a time.
void choose_reading(ConvOverlapPlan& plan) {
  const ConvShape& s = plan.shape;
  plan.words = s.in_channels;
  plan.most_run = run_pixels;
  if (plan.format.from_pixels) return;
  const bool has_many_chunks = plan.format.chunks >= least_chunks_of_copy;
  const bool collides = plan.in.channel % shared_sets == 0;
  const bool is_far = s.in_channels * s.in_points() > near_floats;
  plan.in_place = plan.in.axis[2] == 1 && s.types.in == DType::f32 && !(collides && has_many_chunks);
  int64_t most = s.in_channels;
  if (collides && !has_many_chunks) {
    most = least_ways;
  } else if (!collides && is_far) {
    most = lines_fetched(plan.width, has_many_chunks);
  }
  plan.words = even_pieces(s.in_channels, most);
  plan.copies = plan.in_place && has_many_chunks && plan.words == s.in_channels;
  plan.most_run = plan.in_place ? run_pixels : std::min(run_pixels, gathered_floats / plan.words);
}

void choose_tiles(ConvOverlapPlan& plan) {
  const ConvShape& s = plan.shape;
  const int64_t columns = plan.format.padded_columns();
  for (int a = 0; a < 2; ++a) {
    const ConvAxis axis(s, a + 1);
    const Reach reach(axis, s.pad_mode);
    plan.first_q[a] = axis.begin_q();
    plan.q_count[a] = axis.count_q();
    plan.behind[a] = reach.behind;
    plan.ahead[a] = reach.ahead;
  }
  // Lines that are too long to keep what their outputs read are cut in whole register blocks.
  int64_t kept_pixels = kept_floats / (columns * (plan.halo(0) + 1));
  const bool is_gathered = !plan.in_place && !plan.format.from_pixels;
  if (is_gathered) kept_pixels = std::min(kept_pixels, plan.most_run);
  const int64_t least_pixels = std::max((plan.format.from_pixels ? 2 : 8) * plan.block, lines_by_halo * plan.halo(1));
  plan.tile_q[1] = plan.q_count[1];
  if (plan.q_count[1] > std::max(least_pixels, kept_pixels)) {
    const int64_t most = ceil_div(std::max(least_pixels, kept_pixels), plan.block);
    plan.tile_q[1] = std::min(plan.q_count[1], even_pieces(ceil_div(plan.q_count[1], plan.block), most) * plan.block);
  }
  plan.blocks[1] = ceil_div(plan.q_count[1], plan.tile_q[1]);
  const double line_work =
      static_cast<double>(columns * (s.in_channels + 4)) * static_cast<double>(ceil_div(plan.tile_q[1], plan.width));
  const int64_t others = std::max<int64_t>(1, s.batch * s.groups * plan.blocks[1]);
  const int64_t splits = std::clamp<int64_t>(overlap_tiles_aimed / others, 1, plan.q_count[0]);
  const auto least_lines = static_cast<int64_t>(least_overlap_work / line_work) + 1;
  const int64_t lines = std::max({plan.q_count[0] / splits, lines_by_halo * plan.halo(0), least_lines});
  plan.tile_q[0] = even_pieces(plan.q_count[0], lines);
  plan.blocks[0] = ceil_div(plan.q_count[0], plan.tile_q[0]);
  plan.tile_groups = 1;
  if (plan.blocks[0] * plan.blocks[1] == 1 && s.groups > 1) {
    const auto enough =
        static_cast<int64_t>(least_overlap_work / (line_work * static_cast<double>(plan.q_count[0]))) + 1;
    plan.tile_groups = even_pieces(s.groups, enough);
  }
  plan.group_blocks = ceil_div(s.groups, plan.tile_groups);
}

void choose_run(ConvOverlapPlan& plan) {
  const ConvShape& s = plan.shape;
  const int64_t columns = plan.format.padded_columns();
  const int64_t line = std::clamp<int64_t>(s.in[2], 1, plan.tile_q[1] + std::max<int64_t>(0, plan.halo(1)));
  const bool is_one_run =
      plan.in.axis[1] == s.in[2] * plan.in.axis[2] && (plan.in.axis[2] == 1 || plan.format.from_pixels);
  const bool joins = is_one_run && plan.blocks[1] == 1 && plan.first_q[1] <= plan.behind[1] &&
                     plan.first_q[1] + plan.q_count[1] + plan.ahead[1] >= s.in[2];
  plan.run_lines = 1;
  const auto runs = [&](int64_t lines) { return ceil_div(plan.halo(0), lines) + 1; };
  while (joins && 2 * plan.run_lines * line <= plan.most_run && 2 * plan.run_lines <= plan.tile_q[0] + plan.halo(0) &&
         columns * runs(2 * plan.run_lines) * 2 * plan.run_lines * line <= kept_floats) {
    plan.run_lines *= 2;
  }
  plan.runs = runs(plan.run_lines);
  plan.run_floats = ceil_div(plan.run_lines * line, plan.width) * plan.width;
  // Columns an odd number of lines of the cache apart share no sets.
  plan.column_pitch = (ceil_div(plan.runs * plan.run_floats, cache_line_floats) / 2 * 2 + 1) * cache_line_floats;
}

}  // namespace

bool conv_overlap_takes(const ConvShape& shape) {
  const bool is_flat = shape.in[0] == 1 && shape.out[0] == 1 && shape.kernel[0] == 1 && shape.pre[0] == 0;
  const bool is_plain = shape.products == Products::floats && shape.pad_mode != PadMode::wrap;
  const bool has_channels = shape.in_channels >= least_overlap_channels && shape.in_channels <= most_overlap_channels;
  const bool has_steps = shape.transposed || (shape.stride[1] == 1 && shape.stride[2] == 1);
  if (!has_steps || !is_flat || !is_plain || !has_channels) return false;
  for (int a = 0; a < 2; ++a) {
    const ConvAxis axis(shape, a + 1);
    const Reach reach(axis);
    if (reach.behind + reach.ahead > most_behind[a]) return false;
    // What lies further from the image than a kernel reaches would have to be kept for long.
    const int64_t kernel = (axis.kernel - 1) * axis.dilation;
    const int64_t post = axis.out + kernel - axis.pre - axis.in;
    if (shape.pad_mode != PadMode::zero && std::max(axis.pre, post) > kernel) return false;
  }
  return shape.kernel_points() <= most_overlap_columns &&
         shape.kernel_points() * shape.out_channels <= most_overlap_columns;
}

// Register blocks of the size that pads the columns least, as few as can be; or vectors.
ConvOverlapFormat::ConvOverlapFormat(const ConvShape& shape, int width, bool of_pixels) : from_pixels(of_pixels) {
  columns = shape.kernel_points() * shape.out_channels;
  if (from_pixels) {
    chunk = width;
    chunks = std::max<int64_t>(1, ceil_div(columns, width));
    return;
  }
  const int64_t least = std::max<int64_t>(1, ceil_div(columns, pixel_columns(width)));
  chunks = least;
  chunk = std::max<int64_t>(1, ceil_div(columns, chunks));
  for (int64_t count = least; count <= 2 * least; ++count) {
    const int64_t size = ceil_div(columns, count);
    if (size * count >= chunk * chunks) continue;
    chunks = count;
    chunk = size;
  }
}

namespace {

// Pixels whose products are turned at a time: they and what they are multiplied to stay in the first-level cache, by
// whole register tiles of any number of vectors and whole vectors of pixels.
int64_t turned_pixels(const ConvOverlapPlan& plan) {
  constexpr int64_t kept = 6 * 1024;
  const int64_t tiles = plan.width == 16 ? 48 : 24;
  constexpr int64_t most = 96;
  const int64_t wider = std::max<int64_t>(plan.shape.in_channels, plan.format.padded_columns());
  return std::clamp(kept / wider / tiles * tiles, tiles, most);
}

ConvOverlapPlan plan_overlap(const ConvShape& shape, const ImageStrides& in, const ImageStrides& out,
                             const EndingProgram& endings, bool has_bias, int width, bool from_pixels) {
  ConvOverlapPlan plan = {};
  plan.shape = shape;
  plan.format = ConvOverlapFormat(shape, width, from_pixels);
  plan.in = in;
  plan.out = out;
  plan.endings = endings;
  plan.has_bias = has_bias;
  plan.past_caches = out.axis[2] == 1 && is_past_caches(shape) && shape.out[2] >= least_streamed;
  plan.width = width;
  plan.block = from_pixels ? turned_pixels(plan) : pixel_vectors(width, static_cast<int>(plan.format.chunk)) * width;
  choose_reading(plan);
  choose_tiles(plan);
  choose_run(plan);
  const int64_t phases = ConvAxis(shape, 2).phases();
  plan.sum_pitch = (ceil_div(plan.tile_q[1], width) + 4) * width;
  plan.turns = out.channel == 1 && out.axis[2] != 1 && shape.out_channels > 1 && shape.types.out == DType::f32;
  plan.line_floats = (plan.turns ? shape.out_channels : 1) * plan.tile_q[1] * phases;
  const int64_t multiplied =
      from_pixels ? plan.block * plan.format.padded_columns() : plan.words * plan.run_floats + lines_slack(width);
  plan.scratch_bytes =
      scratch_piece_bytes<float>(plan.format.padded_columns() * plan.column_pitch + lines_slack(width) * 2) +
      scratch_piece_bytes<float>(phases * plan.sum_pitch) + scratch_piece_bytes<float>(plan.line_floats) +
      scratch_piece_bytes<float>(multiplied) + scratch_piece_bytes<OverlapTap>(shape.kernel_points()) +
      scratch_piece_bytes<OverlapPhase>(phases) + 2 * scratch_piece_bytes<float*>(from_pixels ? plan.block : 0);
  return plan;
}

}  // namespace

ConvOverlapPlan plan_conv_overlap(const ConvShape& shape, const ImageStrides& in, const ImageStrides& out,
                                  const EndingProgram& endings, bool has_bias, int width) {
  return plan_overlap(shape, in, out, endings, has_bias, width, false);
}

ConvOverlapPlan plan_conv_overlap_last(const ConvShape& shape, const ImageStrides& in, const ImageStrides& out,
                                       const EndingProgram& endings, bool has_bias, int width) {
  return plan_overlap(shape, in, out, endings, has_bias, width, true);
}

int64_t conv_overlap_tiles(const ConvOverlapPlan& plan, int) {
  const ConvShape& s = plan.shape;
  if (s.batch * s.out_points() * s.groups * s.out_channels == 0) return 0;
  return s.batch * plan.group_blocks * plan.blocks[0] * plan.blocks[1];
}

int64_t conv_overlap_packed_floats(const ConvShape& shape, int width) {
  return ConvOverlapFormat(shape, width, false).group_floats(shape) * shape.groups;
}

int64_t conv_overlap_last_packed_floats(const ConvShape& shape, int width) {
  return ConvOverlapFormat(shape, width, true).group_floats(shape) * shape.groups;
}

namespace {

void pack_overlap(const ConvShape& shape, int width, const float* weights, const WeightStrides& strides,
                  PackShare share, float* packed, bool from_pixels) {
  const ConvOverlapFormat f(shape, width, from_pixels);
  const PanelGrid panels(f.columns, width);
  const PackRange groups(shape.groups, share);
  for (int64_t g = groups.begin; g < groups.end; ++g) {
    float* const group = packed + g * f.group_floats(shape);
    std::fill_n(group, f.group_floats(shape), 0.0F);
    for (int64_t column = 0; column < f.columns;) {
      const int64_t point = column / shape.out_channels;
      const int64_t channel = column % shape.out_channels;
      // The block of columns that lie beside each other.
      int64_t first = column / f.chunk * f.chunk;
      int64_t length = f.chunk;
      if (from_pixels) {
        const int64_t panel = std::min(column / (2 * width), panels.count() - 1);
        first = panel * 2 * width;
        length = panels.vectors_of(panel) * width;
      }
      const int64_t end = std::min({first + length, (point + 1) * shape.out_channels});
      const PanelTap tap = {point / shape.kernel[2] * strides.axis[1] + point % shape.kernel[2] * strides.axis[2], 0};
      write_panel_lines({.from = weights + g * strides.group_step(shape) + channel * strides.out_step(shape),
                         .to = group + first * shape.in_channels + column - first,
                         .lanes = end - column,
                         .filled = end - column,
                         .lane_step = strides.out_step(shape),
                         .channels = shape.in_channels,
                         .channel_step = strides.in_step(shape),
                         .line_step = length,
                         .taps = &tap,
                         .tap_count = 1});
      column = end;
    }
  }
}

}  // namespace

void pack_conv_overlap(const ConvShape& shape, int width, const float* weights, const WeightStrides& strides,
                       PackShare share, float* packed) {
  pack_overlap(shape, width, weights, strides, share, packed, false);
}

void pack_conv_overlap_last(const ConvShape& shape, int width, const float* weights, const WeightStrides& strides,
                            PackShare share, float* packed) {
  pack_overlap(shape, width, weights, strides, share, packed, true);
}

}  // namespace polyphase::cpu
