// Plans convolution as GEMM: which phases are stacked, and how large the tiles are. Shape and vector width decide
// alone.
#include <algorithm>

#include "backends/cpu/kernels/conv_gemm.h"
#include "backends/cpu/kernels/scratch_pieces.h"

namespace polyphase::cpu {
namespace {

// Rows of a tile: enough to reuse a panel, little enough for the inner caches, which also hold what is turned on its
// way out.
constexpr int64_t rows_aimed = 288;
constexpr int64_t rows_aimed_planar = 144;
constexpr int64_t gemm_tiles_aimed = 40;     // below this, tiles get smaller so that every thread finds work
constexpr int64_t work_aimed = 400'000;      // multiply-adds below which a tile is not split further
constexpr int64_t table_entries = 6 * 1024;  // row pointers of a tile
constexpr int64_t gather_floats = 64 * 1024;
constexpr int64_t local_floats = 96 * 1024;
constexpr int64_t staging_floats = 48 * 1024;
constexpr int64_t summed_floats = 64 * 1024;  // partial sums of a tile
constexpr int64_t collide_above = 256;     // input channels below which a row's part is used up before it is pushed out
constexpr int64_t copy_work = 256;         // multiply-adds of an input element that pay for its copy
constexpr int64_t gather_below = 12;       // input channels under which a tap is too short for an inner loop of its own
constexpr int64_t heavy_floats = 1 << 20;  // of weights
constexpr int64_t join_below = 128;        // input channels from which changing segments costs nothing

// One vector alone leaves the multiply-adders waiting for the broadcasts.
double vector_cost(int64_t vectors) { return vectors == 1 ? 1.25 : static_cast<double>(vectors); }

bool stacking_pays(const ConvShape& shape, int width) {
  const int64_t s = shape.stride[2];
  if (!shape.transposed || shape.dilation[2] != 1 || s == 1) return false;
  const double apart = static_cast<double>(shape.kernel[2]) * vector_cost(ceil_div(shape.out_channels, width));
  const double together =
      static_cast<double>(ceil_div(shape.kernel[2], s)) * vector_cost(ceil_div(s * shape.out_channels, width));
  // Columns of stacked phases are split among tiles by whole pixels only, often not at all: then every block of rows
  // reads all the weights, which costs more than some empty lanes where they come from behind the inner caches.
  // Measured on Emerald Rapids (0.73 of the time over 47 geometries) and Zen 3 (0.85 over 24).
  const bool is_wide = width == 16;
  const bool is_heavy =
      shape.kernel_points() * shape.in_channels * shape.out_channels > (is_wide ? heavy_floats / 2 : heavy_floats);
  const double empty_lanes = is_heavy ? (is_wide ? 0.15 : 0.05) : 0;
  return together < (1 - empty_lanes) * apart;
}

int64_t most_taps(const ConvAxis& axis) {
  int64_t most = 0;
  for (int64_t r = 0; r < axis.phases(); ++r) {
    most = std::max(most, axis.taps(r).count);
    if (axis.dilation == 1) break;  // the first phase has most
  }
  return most;
}

int64_t most_lines(const ConvShape& shape) {
  int64_t lines = shape.batch;
  for (int a = 0; a < 2; ++a) lines *= ceil_div(shape.out[a], ConvAxis(shape, a).phases());
  return lines;
}

// Whether tiles may turn their own input: no taps beside each other along the outer axes, and the same lines in every
// outer phase.
bool turns_locally(const ConvShape& shape) {
  for (int a = 0; a < 2; ++a) {
    const ConvAxis axis(shape, a);
    if (axis.in_step() != 1) return false;
    for (int64_t r = 0; r < axis.phases(); ++r) {
      const AxisTaps taps = axis.taps(r);
      if (taps.count > 1 || (taps.count == 1 && taps.first_shift != axis.taps(0).first_shift)) return false;
    }
    if (axis.phases() > 1 && (axis.pre % axis.stride != 0 || axis.out % axis.stride != 0)) return false;
    if (axis.taps(0).count == 0) return false;
  }
  return ConvAxis(shape, 2).in_step() == 1;
}

void find_shifts(const ConvAxis& axis, int64_t (&shifts)[2]) {
  bool first = true;
  for (int64_t r = 0; r < axis.phases(); ++r) {
    const AxisTaps taps = axis.taps(r);
    if (taps.count == 0) continue;
    const int64_t last = taps.first_shift + (taps.count - 1) * taps.shift_step;
    shifts[0] = first ? taps.first_shift : std::min(shifts[0], taps.first_shift);
    shifts[1] = first ? last : std::max(shifts[1], last);
    first = false;
  }
}

// Whether the taps of every column group read pixels beside each other, and pixels are nothing but channels.
bool joins(const ConvShape& shape, const ConvGemmPlan& plan) {
  if (shape.groups > 1 || shape.in_channels >= join_below || plan.local) return false;
  if (!plan.in_planar && plan.in.axis[2] != shape.in_channels) return false;
  const ConvAxis w(shape, 2);
  if (plan.format.stacked) return w.stacked_taps().count > 1;
  for (int64_t r = 0; r < w.phases(); ++r) {
    const AxisTaps taps = w.taps(r);
    if (taps.count > 1 && taps.shift_step != 1) return false;
  }
  return most_taps(w) > 1;
}

// Rows of one whole line whose taps along the last axis do not all lie inside the image, though some may.
int64_t border_rows_of_line(const ConvShape& shape, const ConvGemmFormat& format) {
  const ConvAxis w(shape, 2);
  int64_t most = 0;
  for (int64_t r = 0; r < format.column_groups; ++r) {
    const AxisTaps taps = format.stacked ? w.stacked_taps() : w.taps(r);
    if (taps.count == 0) continue;
    const int64_t q0 = format.stacked ? floor_div(w.pre, w.stride) : w.first_q(r, 0);
    const int64_t q1 = format.stacked ? ceil_div(w.out + w.pre, w.stride) : w.first_q(r, w.out);
    const ConvAxis::Span inside = w.inside(taps, q0, q1);
    most = std::max(most, q1 - q0 - (inside.to - inside.from));
  }
  // What lies outside altogether is a row of zeros.
  const int64_t partly = 2 * ceil_div(std::max<int64_t>(most_taps(w), format.taps_w) - 1, w.in_step());
  return shape.pad_mode == PadMode::zero ? std::min(most, partly) : most;
}

double share_inside(const ConvShape& s, const ConvGemmFormat& format) {
  return ConvAxis(s, 0).share_inside(false) * ConvAxis(s, 1).share_inside(false) *
         ConvAxis(s, 2).share_inside(format.stacked);
}

// Whether a tile's rows can be sorted by which of their taps lie inside of the image: there are not too many of them.
bool can_sort(const ConvShape& s, const ConvGemmFormat& format) {
  constexpr int64_t most_rows = 512;
  constexpr int64_t most_segments = 64;
  constexpr int64_t least_channels = 16;
  const int64_t taps = most_taps(ConvAxis(s, 0)) * most_taps(ConvAxis(s, 1)) * format.taps_w;
  const int64_t rows = most_lines(s) * ceil_div(s.out[2], ConvAxis(s, 2).phases());
  return s.pad_mode == PadMode::zero && s.in_channels >= least_channels && taps <= most_segments && rows <= most_rows;
}

struct TileSizes {
  int64_t rows;
  int64_t n_block;
};

// Splits `plan` for the aimed rows and columns; idempotent.
void split(ConvGemmPlan& plan, TileSizes aim) {
  const ConvShape& s = plan.shape;
  const int64_t step = s.transposed ? s.stride[2] : 1;
  const int64_t line_rows = ceil_div(s.out[2], step);
  // Blocks begin where the first phase does, which may be before the line: all of them together have a row more then.
  const int64_t before = s.transposed ? floor_mod(s.pre[2], step) : 0;
  const int64_t all_rows = std::max<int64_t>(1, ceil_div(before + s.out[2], step));
  plan.x_block = ceil_div(all_rows, line_rows >= aim.rows ? ceil_div(all_rows, aim.rows) : 1) * step;
  plan.x_blocks = ceil_div(before + s.out[2], plan.x_block);
  const int64_t lines = most_lines(s);
  plan.lines_per_tile = std::max<int64_t>(1, std::min(aim.rows / std::max<int64_t>(line_rows, 1), lines));
  plan.line_blocks = ceil_div(lines, plan.lines_per_tile);
  plan.n_block = aim.n_block;
  plan.n_blocks =
      ceil_div(PanelGrid(plan.format.columns, plan.format.width).count() * 2 * plan.format.width, plan.n_block);
}

int64_t tile_count(const ConvGemmPlan& plan) {
  return plan.shape.groups * plan.line_blocks * plan.x_blocks * (plan.local ? 1 : plan.outer_phases) * plan.n_blocks;
}

// The unit in which columns may be split: whole panels, and whole pixels where the tile is transposed on its way out.
int64_t column_unit(const ConvGemmPlan& plan) {
  const int64_t panel = 2 * plan.format.width;
  return plan.format.stacked && plan.out_planar ? std::lcm(panel, plan.shape.out_channels) : panel;
}

void choose_tiles(ConvGemmPlan& plan) {
  const ConvShape& s = plan.shape;
  const int64_t unit = column_unit(plan);
  const int64_t step = s.transposed ? s.stride[2] : 1;
  const int64_t all = std::max<int64_t>(1, ceil_div(plan.format.columns, unit)) * unit;
  const int64_t depth = plan.max_segments * plan.max_depth;
  TileSizes aim = {plan.out_planar ? rows_aimed_planar : rows_aimed, all};
  aim.rows = std::min(aim.rows, std::max<int64_t>(1, table_entries / std::max<int64_t>(1, plan.max_segments)));
  const bool copied =
      plan.gathered || (plan.joined && 4 * border_rows_of_line(s, plan.format) > ceil_div(s.out[2], step));
  if (copied) aim.rows = std::min(aim.rows, std::max<int64_t>(12, gather_floats / std::max<int64_t>(1, depth)));
  const auto halve = [unit](int64_t columns) { return ceil_div(columns / unit, 2) * unit; };
  if (plan.local)
    aim.rows = std::min(aim.rows, std::max<int64_t>(24, local_floats / std::max<int64_t>(1, s.in_channels)));
  if (plan.out_planar) {
    const auto staging = [&] { return aim.rows * (plan.format.stacked ? aim.n_block : step * aim.n_block); };
    while (staging() > staging_floats && aim.n_block > std::max<int64_t>(unit, 64)) aim.n_block = halve(aim.n_block);
    while (staging() > staging_floats && aim.rows > 12) aim.rows = std::max<int64_t>(12, aim.rows / 2);
  }
  split(plan, aim);
  const int64_t groups_of_columns = plan.format.column_groups;
  const int64_t image = s.batch * s.in_points() * s.in_channels;
  const int64_t weights = s.kernel_points() * s.in_channels * s.out_channels;
  while (tile_count(plan) < gemm_tiles_aimed) {
    const int64_t rows = std::min(aim.rows, plan.lines_per_tile * ceil_div(s.out[2], step));
    if (rows * aim.n_block * groups_of_columns * depth < work_aimed) break;
    // Every block of columns reads the image again, every block of rows the weights.
    const bool few_pixels = image * plan.n_blocks <= weights * plan.line_blocks * plan.x_blocks;
    const bool by_columns = aim.n_block > (few_pixels ? unit : 4 * unit);
    if (by_columns || (rows <= 48 && aim.n_block > unit)) {
      aim.n_block = halve(aim.n_block);
    } else if (rows > (plan.sorts ? 96 : 24)) {
      aim.rows = ceil_div(rows, 2);
    } else {
      break;
    }
    split(plan, aim);
  }
}

void set_tiles(ConvGemmPlan& plan, const TileCut& cut) {
  const int64_t unit = column_unit(plan);
  plan.x_block = cut.x_block;
  plan.x_blocks = ceil_div(plan.shape.out[2], cut.x_block);
  plan.lines_per_tile = cut.lines;
  plan.line_blocks = ceil_div(most_lines(plan.shape), cut.lines);
  plan.n_block = std::max<int64_t>(1, ceil_div(plan.format.columns, unit)) * unit;
  plan.n_blocks = 1;
}

// What one row pointer leads to: a tap's channels, a line of taps, or all of them.
void choose_segments(ConvGemmPlan& plan, int64_t taps_w) {
  const ConvShape& s = plan.shape;
  const int64_t lines = most_taps(ConvAxis(s, 0)) * most_taps(ConvAxis(s, 1));
  const bool can_join = joins(s, plan);
  plan.parted = can_join && plan.sorts && taps_w * s.in_channels <= gemm_chunk_depth;
  plan.joined = can_join && !plan.parted;
  plan.gathered =
      !plan.local && !can_join && s.pad_mode == PadMode::zero && s.in_channels < gather_below && lines * taps_w > 1;
  plan.max_segments = plan.joined ? lines : plan.gathered ? 1 : lines * taps_w;
  plan.max_depth = s.in_channels * (plan.joined ? taps_w : plan.gathered ? lines * taps_w : 1);
}

// Whether pixels `pitch` elements apart push each other out of the first-level cache: the rows of a register tile then
// lie in two of its sets, whose ways they fill alone.
bool collides(const ConvShape& s, int64_t pitch) {
  return s.in_channels >= collide_above && ConvAxis(s, 2).in_step() * pitch % collision_floats == 0;
}

bool copying_pays(const ConvGemmPlan& plan) {
  const ConvShape& s = plan.shape;
  return !plan.in_planar && collides(s, plan.in.axis[2]) && s.kernel_points() * s.out_channels >= copy_work;
}

// The pieces of a worker's scratch, in the order in which the run carves them.
int64_t scratch_bytes(const ConvGemmPlan& plan) {
  const ConvShape& s = plan.shape;
  constexpr int64_t align = 64;
  const auto padded = [](int64_t bytes) { return ceil_div(bytes, align) * align; };
  const int64_t width = plan.format.width;
  const int64_t columns = plan.n_block + width;  // the last panel may hold three vectors
  const int64_t x_staging =
      plan.format.stacked ? plan.max_rows * columns : plan.lines_per_tile * plan.x_block * columns;
  return padded(plan.max_depth * 4) + padded((plan.n_block + 3 * width) * 4) + padded(plan.lines_per_tile * 32) +
         padded(plan.max_segments * plan.max_rows * 8) + padded(plan.max_segments * 4) + padded(plan.max_rows * 8) +
         padded(plan.max_rows * plan.panels_summed * 8) + padded(plan.max_rows * plan.panels_summed * 3 * width * 4) +
         (plan.gathered ? padded(plan.max_rows * plan.max_depth * 4) : 0) +
         padded(plan.border_rows * plan.max_segments * plan.max_depth * 4) +
         (plan.local ? padded(plan.lines_per_tile *
                              (plan.max_rows / plan.lines_per_tile + 1 + plan.local_shift[1] - plan.local_shift[0]) *
                              s.in_channels * 4)
                     : 0) +
         (plan.sorts ? row_order_bytes(plan.max_rows) : 0) + (plan.out_planar ? padded(x_staging * 4) : 0);
}

}  // namespace

ConvGemmFormat::ConvGemmFormat(const ConvShape& shape, int vector_width)
    : stacked(stacking_pays(shape, vector_width)), width(vector_width) {
  const ConvAxis w(shape, 2);
  column_groups = stacked ? 1 : w.phases();
  columns = stacked ? w.stride * shape.out_channels : shape.out_channels;
  taps_w = stacked ? w.stacked_taps().count : shape.kernel[2];
  group_size = shape.kernel[0] * shape.kernel[1] * taps_w * shape.in_channels * ceil_div(columns, width) * width;
}

namespace {

ConvGemmPlan plan_gemm(const ConvShape& shape, const ImageStrides& in, const ImageStrides& out,
                       const EndingProgram& endings, bool has_bias, int width, const TileCut* cut) {
  ConvGemmPlan plan = {};
  plan.shape = shape;
  plan.format = ConvGemmFormat(shape, width);
  plan.in = in;
  plan.out = out;
  plan.endings = endings;
  plan.has_bias = has_bias;
  const bool one_in = shape.groups * shape.in_channels == 1;
  const bool one_out = shape.groups * shape.out_channels == 1;
  plan.in_planar = in.channel != 1 && !one_in;
  plan.past_caches = is_past_caches(shape);
  plan.out_planar = (out.channel != 1 && !one_out) || is_narrow(shape.types.out);
  plan.run_contiguous = out.axis[2] == shape.out_channels;
  plan.run_endings = plan.run_contiguous && shape.groups == 1 && endings_run(endings, shape.out_channels);
  // Pixels hold the channels of groups side by side; weights that the second-level cache does not hold come first.
  constexpr int64_t held_weights = 128 * 1024;
  plan.groups_inside = conv_gemm_packed_floats(shape, width) <= held_weights;
  // Rows of stacked columns may end within a tile, and then pass through a buffer.
  plan.brief = register_endings(endings, out, shape, !plan.out_planar && !plan.format.stacked);
  plan.outer_phases = ConvAxis(shape, 0).phases() * ConvAxis(shape, 1).phases();
  const ConvAxis w(shape, 2);
  const int64_t taps_w = plan.format.stacked ? w.stacked_taps().count : most_taps(w);
  find_shifts(w, plan.local_shift);
  const int64_t halo = plan.local_shift[1] - plan.local_shift[0];
  plan.local = plan.in_planar && turns_locally(shape) && halo <= rows_aimed_planar / 4;
  if (!plan.local && cut == nullptr && can_sort(shape, plan.format)) {
    constexpr double most_inside = 0.85;  // of more there is little to gain
    plan.share_inside = share_inside(shape, plan.format);
    plan.sorts = plan.share_inside <= most_inside;
  }
  choose_segments(plan, taps_w);
  if (cut == nullptr) {
    choose_tiles(plan);
  } else {
    set_tiles(plan, *cut);
  }
  if (plan.local && plan.n_blocks > 2) {  // every block of columns would turn the same input again
    plan.local = false;
    choose_segments(plan, taps_w);
    choose_tiles(plan);
  }
  const int64_t step = shape.transposed ? w.stride : 1;
  plan.max_rows = plan.lines_per_tile * (plan.x_block / step + (plan.format.stacked ? 1 : 0));
  if (plan.joined)
    plan.border_rows = std::min(plan.max_rows, plan.lines_per_tile * border_rows_of_line(shape, plan.format));
  const int64_t panel_sums = plan.max_rows * 2 * plan.format.width;
  plan.panels_summed = std::clamp<int64_t>(summed_floats / std::max<int64_t>(1, panel_sums), 1,
                                           ceil_div(plan.n_block, 2 * plan.format.width));
  plan.copy_points = 64;
  plan.scratch_bytes = scratch_bytes(plan);
  plan.in_copied = !plan.local && (plan.in_planar || is_narrow(shape.types.in) || copying_pays(plan));
  const int64_t channels = shape.groups * shape.in_channels;
  plan.copy_pitch = collides(shape, channels) ? channels + cache_line_floats : channels;
  plan.shared_bytes = plan.in_copied ? shape.batch * shape.in_points() * plan.copy_pitch * 4 : 0;
  return plan;
}

}  // namespace

ConvGemmPlan plan_conv_gemm(const ConvShape& shape, const ImageStrides& in, const ImageStrides& out,
                            const EndingProgram& endings, bool has_bias, int width) {
  return plan_gemm(shape, in, out, endings, has_bias, width, nullptr);
}

ConvGemmPlan plan_conv_gemm_cut(const ConvShape& shape, const ImageStrides& in, const ImageStrides& out,
                                const EndingProgram& endings, bool has_bias, int width, const TileCut& cut) {
  return plan_gemm(shape, in, out, endings, has_bias, width, &cut);
}

int64_t conv_gemm_tiles(const ConvGemmPlan& plan, int phase) {
  const ConvShape& s = plan.shape;
  if (s.batch * s.out_points() * s.groups * s.out_channels == 0) return 0;
  if (plan.in_copied && phase == 0) return s.batch * ceil_div(s.in_points(), plan.copy_points);
  return tile_count(plan);
}

}  // namespace polyphase::cpu
