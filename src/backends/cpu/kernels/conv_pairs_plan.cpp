// Plans and packs convolution in bf16.
#include <algorithm>
#include <vector>

#include "backends/cpu/kernels/conv_pairs.h"
#include "backends/cpu/kernels/panel_lines.h"
#include "backends/cpu/kernels/scratch_pieces.h"

namespace polyphase::cpu {
namespace {

constexpr int64_t most_border = 4096;              // pixels of zeros around an image of one pixel
constexpr int64_t tile_result_floats = 96 * 1024;  // results of a tile
constexpr int64_t most_tile_columns = 64;          // that share a reading of the rows
constexpr int64_t most_held_phases = 4;            // of lines
constexpr int64_t copied_elements = 16 * 1024;     // of a copying tile
constexpr int64_t pairs_tiles_aimed = 16;
constexpr int64_t run_results = 1024;             // of a channel that are stored as one run
constexpr int64_t strip_image_bytes = 1 << 20;    // that larger images are not copied as a whole
constexpr int64_t strip_copy_bytes = 640 * 1024;  // that a strip holds of it
constexpr int64_t large_weights_bytes = 1 << 20;  // that the caches nearby do not hold beside the rest
constexpr int64_t rows_of_large_weights = 384;    // for which they are read once
constexpr int64_t rows_of_step = 256;             // of a strip: fewer are not worth beginning with
constexpr int64_t most_step_lines = 8;
constexpr double least_useful = 0.85;      // rows of lines that are not joined, for strips
constexpr double most_strip_copies = 2.5;  // of an element, by strips that overlap

PairsAxis axis_of(const ConvShape& shape, int a) {
  const ConvAxis axis(shape, a);
  PairsAxis out = {};
  if (shape.transposed) {
    out.begin = floor_div(shape.pre[a], shape.stride[a]);
    out.end = shape.out[a] == 0 ? out.begin : floor_div(shape.out[a] - 1 + shape.pre[a], shape.stride[a]) + 1;
  } else {
    out.end = shape.out[a];
  }
  bool any = false;
  for (int64_t phase = 0; phase < axis.phases(); ++phase) {
    const AxisTaps taps = axis.taps(phase);
    if (taps.count == 0) continue;
    const int64_t last = taps.first_shift + (taps.count - 1) * taps.shift_step;
    out.least_shift = any ? std::min(out.least_shift, taps.first_shift) : taps.first_shift;
    out.greatest_shift = any ? std::max(out.greatest_shift, last) : last;
    any = true;
  }
  const int64_t step = axis.in_step();
  out.reached_begin = std::clamp(ceil_div(-out.greatest_shift, step), out.begin, out.end);
  out.reached_end = std::clamp(ceil_div(shape.in[a] - out.least_shift, step), out.reached_begin, out.end);
  if (!any || shape.in[a] == 0) {
    out.reached_end = out.reached_begin;
  } else if (shape.pad_mode != PadMode::zero) {
    out.reached_begin = out.begin;
    out.reached_end = out.end;
  }
  return out;
}

// Channels-last, without gaps.
bool is_dense(const ConvShape& s, const ImageStrides& in) {
  int64_t stride = s.in_channels;
  for (int a = 2; a >= 0; --a) {
    if (s.in[a] > 1 && in.axis[a] != stride) return false;
    stride *= s.in[a];
  }
  return in.channel == 1 && (s.batch == 1 || in.batch == stride);
}

bool all_reached(const PairsAxis& axis) { return axis.reached_begin == axis.begin && axis.reached_end == axis.end; }

// Rows that are needed, of all that matrix units compute when each run of them is padded to whole blocks.
double useful(int64_t needed, int64_t run) {
  constexpr int64_t half_block = pair_row_block / 2;
  return static_cast<double>(needed) / static_cast<double>(ceil_div(run, half_block) * half_block);
}

// Where the taps of a phase begin in the weights, in ascending order; gathered they lie `room` floats apart.
void find_pair_taps(const AxisTaps (&taps)[3], const WeightStrides& strides, int64_t room,
                    std::vector<PanelTap>& found) {
  found.clear();
  const auto offset = [&](int a, int64_t tap) {
    return (taps[a].first_index + tap * taps[a].index_step) * strides.axis[a];
  };
  for (int64_t d = 0; d < taps[0].count; ++d) {
    for (int64_t h = 0; h < taps[1].count; ++h) {
      for (int64_t w = 0; w < taps[2].count; ++w)
        found.push_back({offset(0, d) + offset(1, h) + offset(2, w), static_cast<int64_t>(found.size()) * room});
    }
  }
  std::sort(found.begin(), found.end(), [](const PanelTap& a, const PanelTap& b) { return a.from < b.from; });
}

}  // namespace

bool conv_pairs_stays_inside(const ConvPairsPlan& plan) {
  const ConvShape& s = plan.shape;
  if (s.groups != 1 || s.in_channels % 2 != 0 || s.pad_mode != PadMode::zero) return false;
  for (int a = 1; a < 3; ++a) {
    const PairsAxis& axis = plan.axes[a];
    const int64_t step = ConvAxis(s, a).in_step();
    if (axis.begin >= axis.end || step * axis.begin + axis.least_shift < 0) return false;
    if (step * (axis.end - 1) + axis.greatest_shift >= s.in[a]) return false;
  }
  return true;
}

PairsStack stack_pairs(const ConvShape& shape) {
  constexpr int64_t most_stacked_phases = 64;
  PairsStack stack = {};
  if (!shape.transposed || shape.phases(most_stacked_phases) > most_stacked_phases || shape.stride[2] > pair_columns)
    return stack;
  int64_t plain_taps = 1;
  int64_t taps = 1;
  for (int a = 0; a < 3; ++a) {
    if (shape.dilation[a] != 1 || shape.out[a] == 0) return stack;
    const ConvAxis axis(shape, a);
    plain_taps *= shape.kernel[a];
    taps *= axis.stacked_taps().count;
    stack.strides[a] = shape.stride[a];
    stack.first_q[a] = floor_div(shape.pre[a], shape.stride[a]);
  }
  stack.channels = shape.out_channels;
  // Products of whole registers, for the outputs of one q.
  const int64_t plain = plain_taps * ceil_div(shape.out_channels, pair_columns);
  const int64_t stacked = taps * ceil_div(stack.column_groups(), stack.groups_of_panel());
  stack.is_on = 4 * stacked <= 3 * plain;
  return stack;
}

ConvShape stacked_shape(const ConvShape& shape, const PairsStack& stack) {
  if (!stack.is_on) return shape;
  ConvShape out = shape;
  out.transposed = false;
  out.out_channels = ceil_div(stack.column_groups(), stack.groups_of_panel()) * pair_columns;
  for (int a = 0; a < 3; ++a) {
    const int64_t taps = ConvAxis(shape, a).stacked_taps().count;
    out.kernel[a] = taps;
    out.stride[a] = 1;
    out.pre[a] = taps - 1 - stack.first_q[a];
    out.out[a] = floor_div(shape.out[a] - 1 + shape.pre[a], shape.stride[a]) + 1 - stack.first_q[a];
  }
  return out;
}

ConvPairsFormat::ConvPairsFormat(const ConvShape& shape)
    : channels(ceil_div(shape.in_channels, 2) * 2),
      columns(ceil_div(shape.out_channels, pair_columns) * pair_columns),
      group_size(shape.kernel_points() * channels * columns) {}

const char* conv_pairs_refuses(const ConvShape& shape) {
  int64_t border = 1;
  for (int a = 0; a < 3; ++a) {
    const int64_t dilated = shape.dilation[a] > most_border ? most_border : (shape.kernel[a] - 1) * shape.dilation[a];
    const int64_t reach = shape.transposed ? ceil_div(dilated, shape.stride[a]) : dilated;
    border *= 1 + 2 * reach;
    if (border > most_border) return "taps reach too far for a copy of the image with zeros around it";
  }
  return "";
}

namespace {

int64_t span_of(const PairsAxis& axis) { return axis.greatest_shift - axis.least_shift; }

// `results`: whose sums a tile may hold, q of all phases that it holds.
void cut_into_strips(ConvPairsPlan& plan, int64_t results) {
  const ConvShape& s = plan.shape;
  const ConvAxis d(s, 0);
  const ConvAxis h(s, 1);
  const ConvAxis w(s, 2);
  const int64_t width = plan.axes[2].end - plan.axes[2].begin;
  const int64_t height = plan.axes[1].end - plan.axes[1].begin;
  int64_t planes = 1;  // that an output reads
  for (int64_t phase = 0; phase < d.phases(); ++phase) planes = std::max(planes, d.taps(phase).count);
  const bool large_weights = plan.format.group_size * static_cast<int64_t>(sizeof(uint16_t)) > large_weights_bytes;
  const int64_t rows = large_weights ? rows_of_large_weights : rows_of_step;
  const int64_t step_lines = std::clamp<int64_t>(rows / width, 1, std::min(height, most_step_lines));
  const int64_t ring = h.in_step() * (step_lines - 1) + span_of(plan.axes[1]) + 1;
  const int64_t pixel_bytes = planes * ring * plan.format.channels * static_cast<int64_t>(sizeof(uint16_t));
  const int64_t fitting = (strip_copy_bytes / pixel_bytes - span_of(plan.axes[2])) / w.in_step();
  if (fitting < 2 * pair_row_block) return;
  const auto whole_rows = [](int64_t q) { return ceil_div(q, pair_row_block / 2) * (pair_row_block / 2); };
  const int64_t strip_q = whole_rows(even_pieces(width, fitting));
  const int64_t strips = ceil_div(width, strip_q);
  const int64_t line_walks = h.phases() / plan.line_phases;
  const int64_t images = std::max<int64_t>(1, s.batch * s.groups * s.out[0] * line_walks * strips);
  const int64_t lines = even_pieces(height, ceil_div(height, ceil_div(pairs_tiles_aimed, images)));
  const auto copies = [](int64_t own, int64_t span) {
    return 1 + static_cast<double>(span) / static_cast<double>(own);
  };
  const double copied = copies(lines * h.in_step(), span_of(plan.axes[1])) *
                        copies(strip_q * w.in_step(), span_of(plan.axes[2])) * static_cast<double>(line_walks) *
                        static_cast<double>(s.kernel[0]) / static_cast<double>(d.in_step());
  if (copied > most_strip_copies) return;
  plan.in_strips = true;
  plan.ring_lines = ring;
  plan.strip_q = strip_q;
  plan.strip_pixels = w.in_step() * (strip_q - 1) + span_of(plan.axes[2]) + 1;
  plan.q_per_tile = std::min(strip_q, whole_rows(even_pieces(strip_q, std::max(results / step_lines, pair_row_block))));
  plan.q_blocks = strips;
  plan.step_lines = step_lines;
  plan.lines_per_tile = lines;
  plan.ring_elements = planes * ring * plan.strip_pixels * plan.format.channels;
}

}  // namespace

ConvPairsPlan plan_conv_pairs(const ConvShape& image, const ImageStrides& in, const ImageStrides& out,
                              const EndingProgram& endings, bool has_bias, const PairUnit* unit) {
  ConvPairsPlan plan = {};
  plan.image = image;
  plan.stack = stack_pairs(image);
  plan.shape = stacked_shape(image, plan.stack);
  const ConvShape& shape = plan.shape;
  plan.format = ConvPairsFormat(shape);
  plan.unit = unit;
  plan.in = in;
  plan.out = out;
  plan.endings = endings;
  plan.has_bias = has_bias;
  plan.out_planar = out.channel != 1 || image.groups * image.out_channels == 1;
  for (int a = 0; a < 3; ++a) plan.axes[a] = axis_of(shape, a);
  const ConvAxis h(shape, 1);
  const ConvAxis w(shape, 2);
  plan.taps_joined = w.taps(0).shift_step == 1 || shape.kernel[2] == 1;
  for (int64_t r = 1; r < w.phases(); ++r) plan.taps_joined &= w.taps(r).count < 2 || w.taps(r).shift_step == 1;

  const PairsAxis& x = plan.axes[2];
  plan.first_pixel = w.in_step() * x.reached_begin + x.least_shift;
  plan.pixels = x.reached_begin == x.reached_end
                    ? 0
                    : w.in_step() * (x.reached_end - 1) + x.greatest_shift + 1 - plan.first_pixel;
  plan.in_place = shape.types.in == DType::bf16 && conv_pairs_stays_inside(plan) && is_dense(shape, in);
  if (plan.in_place) {
    plan.first_pixel = 0;
    plan.pixels = shape.in[2];
  }
  const PairsAxis& y = plan.axes[1];
  const int64_t width = x.end - x.begin;
  const int64_t height = y.end - y.begin;
  const int64_t line_elements = std::max<int64_t>(1, plan.pixels * plan.format.channels);
  plan.copy_lines = std::max<int64_t>(1, copied_elements / line_elements);

  plan.columns_per_tile = std::min(plan.format.columns, most_tile_columns);
  plan.column_blocks = ceil_div(plan.format.columns, plan.columns_per_tile);
  plan.line_phases = h.phases() <= most_held_phases ? h.phases() : 1;
  const int64_t phases = w.phases();
  const int64_t fitting =
      std::max<int64_t>(1, tile_result_floats / (plan.columns_per_tile * phases * plan.line_phases));
  if (shape.pad_mode == PadMode::zero) {
    plan.lines = shape.in[1];
  } else {
    plan.first_line = h.in_step() * y.begin + y.least_shift;
    plan.lines = y.begin == y.end ? 0 : h.in_step() * (y.end - 1) + y.greatest_shift + 1 - plan.first_line;
  }
  const bool joins = w.in_step() == 1 && h.in_step() == 1 && all_reached(x) && all_reached(y) && height > 1 &&
                     useful(width * height, plan.pixels * height) > useful(width, width);
  const bool has_strips = !joins || (width >= pair_row_block && useful(width, width) >= least_useful);
  if (has_strips && !plan.in_place && width > 0 && height > 0 &&
      plan.copied_lines() * line_elements * static_cast<int64_t>(sizeof(uint16_t)) > strip_image_bytes)
    cut_into_strips(plan, fitting);
  if (!plan.in_strips) {
    plan.lines_joined = joins;
    if (plan.lines_joined && !plan.in_place) {
      plan.first_line = y.reached_begin + y.least_shift;
      plan.lines = y.reached_end - 1 + y.greatest_shift + 1 - plan.first_line;
    }
    const int64_t images =
        shape.batch * shape.groups * shape.out[0] * (h.phases() / plan.line_phases) * plan.column_blocks;
    const int64_t splits = ceil_div(pairs_tiles_aimed, std::max<int64_t>(1, images));
    plan.q_per_tile = plan.lines_joined ? width : std::min(width, ceil_div(fitting, pair_row_block) * pair_row_block);
    plan.q_per_tile = std::max<int64_t>(1, plan.q_per_tile);
    plan.q_blocks = ceil_div(width, plan.q_per_tile);
    const int64_t pitch = plan.lines_joined ? plan.pixels : plan.q_per_tile;
    plan.lines_per_tile =
        std::clamp<int64_t>(std::min(fitting / pitch, ceil_div(height, splits)), 1, std::max<int64_t>(1, height));
    plan.step_lines = plan.lines_per_tile;
  }
  plan.line_pitch = plan.lines_joined ? plan.pixels : plan.q_per_tile;
  plan.line_blocks = ceil_div(height, plan.lines_per_tile);

  const bool is_row = plan.out_planar && out.axis[2] == 1;
  const bool lines_meet = is_row && !plan.stack.is_on && out.axis[1] == shape.out[2] && plan.q_per_tile >= width &&
                          plan.line_phases == h.phases();
  const int64_t line_results = plan.q_per_tile * phases;
  plan.run_lines =
      lines_meet ? std::clamp<int64_t>(run_results / line_results, 1, plan.step_lines * plan.line_phases) : 1;
  // An odd number of vectors: rows do not lie in the same sets of the caches.
  plan.run_pitch = (ceil_div(plan.run_lines * line_results + pair_results_room, pair_columns) | 1) * pair_columns;
  plan.turned_narrow = is_row && shape.types.out == DType::bf16 && endings.count == 0 && !plan.stack.is_on;
  plan.interleaved =
      plan.stack.is_on ? std::max(plan.q_per_tile * plan.stack.strides[2], plan.stack.channels) + pair_columns : 0;
  // Runs of outputs that go past the caches, or pixels.
  const int64_t run = plan.out_planar ? plan.run_lines * line_results * (plan.stack.is_on ? plan.stack.strides[2] : 1)
                                      : std::min(plan.columns_per_tile, shape.out_channels);
  plan.past_caches = (is_row || !plan.out_planar) && is_past_caches(image) && run >= least_streamed;
  plan.brief = brief_endings(endings);
  plan.brief.are_all = plan.brief.are_all && !plan.out_planar;
  plan.endings_join = std::none_of(endings.steps, endings.steps + endings.count,
                                   [](const EndingStep& step) { return takes_operand(step.kind); });

  // Matrix units read and write whole blocks of rows: what follows the last row must be there.
  const int64_t depth = plan.format.channels * shape.kernel[2];
  const int64_t spare = pair_row_block * w.in_step() * plan.format.channels + depth;
  plan.shared_bytes =
      plan.in_strips ? 0
                     : scratch_piece_bytes<uint16_t>(plan.copied_lines() * plan.pixels * plan.format.channels + spare);
  if (plan.in_strips) plan.ring_elements += spare;
  plan.tail_elements = plan.in_place ? matrix_rows * plan.format.channels * shape.kernel_points() : 0;
  if (plan.in_place) plan.shared_bytes = 0;
  plan.sum_positions = (plan.line_phases * plan.step_lines * plan.line_pitch + pair_row_block) * phases;
  plan.most_segments = shape.kernel[0] * shape.kernel[1] * (plan.taps_joined ? 1 : shape.kernel[2]);
  plan.scratch_bytes = scratch_piece_bytes<float>(pairs_gathered_floats) +
                       3 * scratch_piece_bytes<int64_t>(plan.most_segments) +
                       scratch_piece_bytes<float>(plan.sum_positions * plan.columns_per_tile) +
                       scratch_piece_bytes<float>(plan.out_planar ? pair_columns * plan.run_pitch : 0) +
                       scratch_piece_bytes<float>(plan.interleaved) +
                       scratch_piece_bytes<uint16_t>(plan.ring_elements + plan.tail_elements);
  return plan;
}

int64_t conv_pairs_tiles(const ConvPairsPlan& plan, int phase) {
  const ConvShape& s = plan.shape;
  if (s.batch * s.groups * s.out_channels * s.out_points() == 0) return 0;
  if (phase == 0) return plan.pixels == 0 || plan.in_place ? 0 : ceil_div(plan.copied_lines(), plan.copy_lines);
  return s.batch * s.groups * s.out[0] * (ConvAxis(s, 1).phases() / plan.line_phases) * plan.line_blocks *
         plan.q_blocks * plan.tile_column_blocks();
}

int64_t conv_pairs_packed_bytes(const ConvShape& shape) {
  return ConvPairsFormat(stacked_shape(shape, stack_pairs(shape))).group_size * shape.groups *
         static_cast<int64_t>(sizeof(uint16_t));
}

namespace {

// The weights of a stacked_shape, [group][column][channel][tap d][tap h][tap w]; taps outside of the kernel are zeros.
std::vector<float> stack_weights(const ConvShape& shape, const PairsStack& stack, const float* weights,
                                 const WeightStrides& strides) {
  const ConvShape flat = stacked_shape(shape, stack);
  const AxisTaps taps[3] = {ConvAxis(shape, 0).stacked_taps(), ConvAxis(shape, 1).stacked_taps(),
                            ConvAxis(shape, 2).stacked_taps()};
  const int64_t points = flat.kernel_points();
  const auto size = static_cast<std::size_t>(shape.groups * flat.out_channels * shape.in_channels * points);
  std::vector<float> out(size, 0.0F);
  const auto index = [&](int a, int64_t phase, int64_t tap) {
    return phase + taps[a].first_index + tap * taps[a].index_step;
  };
  for (int64_t group = 0; group < shape.groups; ++group) {
    for (int64_t i = 0; i < stack.column_groups() * stack.strides[2]; ++i) {
      const int64_t columns = i / stack.strides[2];  // of a group
      const int64_t phase[3] = {columns / stack.strides[1] % stack.strides[0], columns % stack.strides[1],
                                i % stack.strides[2]};
      const int64_t channel = columns / (stack.strides[0] * stack.strides[1]);
      const int64_t column = columns / stack.groups_of_panel() * pair_columns +
                             columns % stack.groups_of_panel() * stack.strides[2] + phase[2];
      const float* const from = weights + group * strides.group_step(shape) + channel * strides.out_step(shape);
      float* to = out.data() + (group * flat.out_channels + column) * shape.in_channels * points;
      for (int64_t c = 0; c < shape.in_channels; ++c) {
        for (int64_t d = 0; d < flat.kernel[0]; ++d) {
          for (int64_t h = 0; h < flat.kernel[1]; ++h) {
            for (int64_t w = 0; w < flat.kernel[2]; ++w, ++to) {
              const int64_t at[3] = {index(0, phase[0], d), index(1, phase[1], h), index(2, phase[2], w)};
              if (at[0] >= shape.kernel[0] || at[1] >= shape.kernel[1] || at[2] >= shape.kernel[2]) continue;
              *to = from[c * strides.in_step(shape) + at[0] * strides.axis[0] + at[1] * strides.axis[1] +
                         at[2] * strides.axis[2]];
            }
          }
        }
      }
    }
  }
  return out;
}

void pack_pairs(const ConvShape& shape, const float* weights, const WeightStrides& strides, PackShare share,
                uint16_t* packed) {
  constexpr int64_t channels_at_once = 32;  // whose gathered taps stay in the caches
  const ConvPairsFormat f(shape);
  const ConvAxis axes[3] = {{shape, 0}, {shape, 1}, {shape, 2}};
  const PackRange panels(shape.groups * f.panels(), share);
  std::vector<PanelTap> found;
  std::vector<float> wide;  // [tap][channel][column]
  for (int64_t i = panels.begin; i < panels.end; ++i) {
    const int64_t group = i / f.panels();
    const int64_t first = i % f.panels() * pair_columns;
    const float* from = weights + group * strides.group_step(shape) + first * strides.out_step(shape);
    const int64_t room = channels_at_once * pair_columns;  // of a tap
    int64_t phase[3];
    for (phase[0] = 0; phase[0] < axes[0].phases(); ++phase[0]) {
      for (phase[1] = 0; phase[1] < axes[1].phases(); ++phase[1]) {
        for (phase[2] = 0; phase[2] < axes[2].phases(); ++phase[2]) {
          const AxisTaps taps[3] = {axes[0].taps(phase[0]), axes[1].taps(phase[1]), axes[2].taps(phase[2])};
          const int64_t count = taps[0].count * taps[1].count * taps[2].count;
          find_pair_taps(taps, strides, room, found);
          uint16_t* to =
              packed + group * f.group_size + conv_pairs_offset(shape, f, phase) + first * count * f.channels;
          for (int64_t c = 0; c < shape.in_channels; c += channels_at_once) {
            const int64_t channels = std::min(channels_at_once, shape.in_channels - c);
            wide.assign(static_cast<std::size_t>(count * room), 0.0F);
            write_panel_lines({.from = from + c * strides.in_step(shape),
                               .to = wide.data(),
                               .lanes = pair_columns,
                               .filled = std::min(pair_columns, shape.out_channels - first),
                               .lane_step = strides.out_step(shape),
                               .channels = channels,
                               .channel_step = strides.in_step(shape),
                               .line_step = pair_columns,
                               .taps = found.data(),
                               .tap_count = count});
            for (int64_t tap = 0; tap < count; ++tap) {
              pair_channels(wide.data() + tap * room, ceil_div(channels, 2), pair_columns,
                            reinterpret_cast<uint32_t*>(to + (tap * f.channels + c) * pair_columns));
            }
          }
        }
      }
    }
  }
}

}  // namespace

void pack_conv_pairs(const ConvShape& shape, const float* weights, const WeightStrides& strides, PackShare share,
                     uint16_t* packed) {
  const PairsStack stack = stack_pairs(shape);
  if (!stack.is_on) return pack_pairs(shape, weights, strides, share, packed);
  const std::vector<float> stacked = stack_weights(shape, stack, weights, strides);
  const ConvShape flat = stacked_shape(shape, stack);
  pack_pairs(flat, stacked.data(),
             {.first = flat.in_channels * flat.kernel_points(),
              .second = flat.kernel_points(),
              .axis = {flat.kernel[1] * flat.kernel[2], flat.kernel[2], 1}},
             share, packed);
}

}  // namespace polyphase::cpu
