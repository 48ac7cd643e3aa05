// Plans and packs transposed convolution by overlap-add.
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

// Lines of which a processor fetches what comes next by itself: of many at once, Zen 3 loses them, so that images in
// memory take five times as long; Emerald Rapids follows some eighty, and loses time by every sum that is put aside.
// There many chunks, which fetch the next block themselves, read all channels.
constexpr int64_t lines_fetched(int width, bool has_many_chunks) {
  if (width < 16) return 8;
  return has_many_chunks ? most_overlap_channels : 64;
}

// Channels so many floats apart share sets of the first-level cache, which has eight to twelve ways.
constexpr int64_t shared_sets = 1024;
constexpr int64_t least_ways = 8;

// Input positions in front of its own that a q reads.
int64_t positions_behind(const ConvAxis& axis) { return (axis.kernel - 1) * axis.dilation / axis.stride; }

// How lines are read: where channels share sets, many chunks read a run of them gathered, few some channels at a time.
void choose_reading(ConvOverlapPlan& plan) {
  const ConvShape& s = plan.shape;
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
  const int64_t columns = plan.format.chunks * plan.format.chunk;
  for (int a = 0; a < 2; ++a) {
    const ConvAxis axis(s, a + 1);
    plan.first_q[a] = axis.begin_q();
    plan.q_count[a] = axis.count_q();
    plan.behind[a] = positions_behind(axis);
  }
  // Lines that are too long to keep what their outputs read are cut in whole register blocks.
  int64_t kept_pixels = kept_floats / (columns * (plan.behind[0] + 1));
  if (!plan.in_place) kept_pixels = std::min(kept_pixels, plan.most_run);
  const int64_t least_pixels = std::max(8 * plan.block, lines_by_halo * plan.behind[1]);
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
  const int64_t lines = std::max({plan.q_count[0] / splits, lines_by_halo * plan.behind[0], least_lines});
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
  const int64_t columns = plan.format.chunks * plan.format.chunk;
  const int64_t line = std::clamp<int64_t>(s.in[2], 1, plan.tile_q[1] + plan.behind[1]);
  const bool joins = plan.blocks[1] == 1 && plan.first_q[1] <= plan.behind[1] &&
                     plan.first_q[1] + plan.q_count[1] >= s.in[2] && plan.in.axis[2] == 1 && plan.in.axis[1] == s.in[2];
  plan.run_lines = 1;
  const auto runs = [&](int64_t lines) { return ceil_div(plan.behind[0], lines) + 1; };
  while (joins && 2 * plan.run_lines * line <= plan.most_run && 2 * plan.run_lines <= plan.tile_q[0] + plan.behind[0] &&
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
  const bool is_plain = shape.products == Products::floats && shape.pad_mode == PadMode::zero;
  const bool has_channels = shape.in_channels >= least_overlap_channels && shape.in_channels <= most_overlap_channels;
  if (!shape.transposed || !is_flat || !is_plain || !has_channels) return false;
  for (int a = 0; a < 2; ++a) {
    if (positions_behind(ConvAxis(shape, a + 1)) > most_behind[a]) return false;
  }
  return shape.kernel_points() <= most_overlap_columns &&
         shape.kernel_points() * shape.out_channels <= most_overlap_columns;
}

// Register blocks of the size that pads the columns least, as few as can be.
ConvOverlapFormat::ConvOverlapFormat(const ConvShape& shape, int width) {
  columns = shape.kernel_points() * shape.out_channels;
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

ConvOverlapPlan plan_conv_overlap(const ConvShape& shape, const ImageStrides& in, const ImageStrides& out,
                                  const EndingProgram& endings, bool has_bias, int width) {
  ConvOverlapPlan plan = {};
  plan.shape = shape;
  plan.format = ConvOverlapFormat(shape, width);
  plan.in = in;
  plan.out = out;
  plan.endings = endings;
  plan.has_bias = has_bias;
  plan.past_caches = out.axis[2] == 1 && is_past_caches(shape) && shape.out[2] >= least_streamed;
  plan.width = width;
  plan.block = pixel_vectors(width, static_cast<int>(plan.format.chunk)) * width;
  choose_reading(plan);
  choose_tiles(plan);
  choose_run(plan);
  const int64_t columns = plan.format.chunks * plan.format.chunk;
  const int64_t phases = ConvAxis(shape, 2).phases();
  plan.sum_pitch = (ceil_div(plan.tile_q[1], width) + 4) * width;
  plan.line_floats = plan.tile_q[1] * phases;
  plan.scratch_bytes =
      scratch_piece_bytes<float>(columns * plan.column_pitch + lines_slack(width) * 2) +
      scratch_piece_bytes<float>(phases * plan.sum_pitch) + scratch_piece_bytes<float>(plan.line_floats) +
      scratch_piece_bytes<float>(plan.words * plan.run_floats + lines_slack(width)) +
      scratch_piece_bytes<OverlapTap>(shape.kernel_points()) + scratch_piece_bytes<OverlapPhase>(phases);
  return plan;
}

int64_t conv_overlap_tiles(const ConvOverlapPlan& plan, int) {
  const ConvShape& s = plan.shape;
  if (s.batch * s.out_points() * s.groups * s.out_channels == 0) return 0;
  return s.batch * plan.group_blocks * plan.blocks[0] * plan.blocks[1];
}

int64_t conv_overlap_packed_floats(const ConvShape& shape, int width) {
  return ConvOverlapFormat(shape, width).group_floats(shape) * shape.groups;
}

void pack_conv_overlap(const ConvShape& shape, int width, const float* weights, const WeightStrides& strides,
                       PackShare share, float* packed) {
  const ConvOverlapFormat f(shape, width);
  const PackRange groups(shape.groups, share);
  for (int64_t g = groups.begin; g < groups.end; ++g) {
    float* const group = packed + g * f.group_floats(shape);
    std::fill_n(group, f.group_floats(shape), 0.0F);
    for (int64_t column = 0; column < f.columns;) {
      const int64_t point = column / shape.out_channels;
      const int64_t channel = column % shape.out_channels;
      const int64_t chunk = column / f.chunk;
      const int64_t end = std::min((chunk + 1) * f.chunk, (point + 1) * shape.out_channels);
      const PanelTap tap = {point / shape.kernel[2] * strides.axis[1] + point % shape.kernel[2] * strides.axis[2], 0};
      write_panel_lines({.from = weights + g * strides.group_step(shape) + channel * strides.out_step(shape),
                         .to = group + chunk * f.chunk * shape.in_channels + column - chunk * f.chunk,
                         .lanes = end - column,
                         .filled = end - column,
                         .lane_step = strides.out_step(shape),
                         .channels = shape.in_channels,
                         .channel_step = strides.in_step(shape),
                         .line_step = f.chunk,
                         .taps = &tap,
                         .tap_count = 1});
      column = end;
    }
  }
}

}  // namespace polyphase::cpu
