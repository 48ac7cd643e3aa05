// Plans convolution by minimal filtering: which short filters, and which blocks.
#include <algorithm>
#include <array>

#include "backends/cpu/kernels/conv_winograd.h"
#include "backends/cpu/kernels/winograd_parts.h"

namespace polyphase::cpu {
namespace {

constexpr int64_t most_tiles = 96;    // of a block: more read the weights no less often where it matters
constexpr int64_t most_together = 4;  // panels
// Blocks of tiles and columns, and pieces of transformed inputs, where blocks share these.
constexpr int64_t shared_blocks_aimed = 32;
constexpr int64_t least_piece = 4;         // tiles
constexpr int64_t least_shared = 4 << 20;  // multiply-adds of a layer whose threads are worth another phase
constexpr double worth = 0.9;              // share of the products above which an axis stays as it is

// Words of transformed input that stay in the second-level cache of a CPU with such vectors.
int64_t cached_words(int width) { return width == 16 ? 160 * 1024 : 64 * 1024; }
int64_t padded(int64_t bytes) { return ceil_div(bytes, 64) * 64; }

// Lines of one axis: of all phases before `phase`.
int64_t lines_before(const ConvShape& s, int a, int64_t phase) {
  const ConvAxis axis(s, a);
  if (axis.dilation == 1 && phase > 0) {  // the first phases have one tap more than the others
    const int64_t longer = std::min(phase, axis.kernel % axis.phases());
    return longer * FilterAxis(s, a, 0).lines() + (phase - longer) * FilterAxis(s, a, axis.phases() - 1).lines();
  }
  int64_t lines = 0;
  for (int64_t r = 0; r < phase; ++r) lines += FilterAxis(s, a, r).lines();
  return lines;
}

int64_t lines_of(const ConvShape& s, int axis) { return lines_before(s, axis, ConvAxis(s, axis).phases()); }

std::array<int64_t, 3> phases_of_axes(const ConvShape& s, int64_t phase) {
  const int64_t h = ConvAxis(s, 1).phases();
  const int64_t w = ConvAxis(s, 2).phases();
  return {phase / (h * w), phase / w % h, phase % w};
}

// Outputs of one phase along an axis.
int64_t outputs_of(const ConvAxis& axis, int64_t phase) {
  return std::max<int64_t>(0, axis.first_q(phase, axis.out) - axis.first_q(phase, 0));
}

// Whether every phase of an axis has no more than one tap.
bool has_one_tap(const ConvAxis& axis) {
  return axis.kernel == 1 || (axis.transposed && axis.dilation == 1 && axis.kernel <= axis.stride);
}

// The most that a block of any phase needs; not all of one phase.
struct Extents {
  int64_t depths = 1;  // that share planes
  int64_t tiles[3] = {};
  int64_t points = 1;       // of one family
  int64_t outputs = 1;      // of a tile
  int64_t input_words = 0;  // of a transformed tile
};

int64_t input_words(const ConvShape& s, int64_t planes, const FilterPlane& plane, int64_t depths, int width) {
  int64_t words = 0;
  if (planes == 0) return words;
  plane.each_family([&](const FilterPlane::Family& family) {
    words += family.points() * winograd_pitch((planes + depths - 1) * family.filters * s.in_words(), width);
  });
  return words;
}

Extents extents_of(const ConvShape& s, int64_t depths, int width) {
  Extents all;
  all.depths = depths;
  for (int a = 0; a < 3; ++a) {
    const ConvAxis axis(s, a);
    int64_t points = 1;
    int64_t outputs = 1;
    for (int64_t r = 0; r < axis.phases(); ++r) {
      const FilterAxis filters(s, a, r);
      outputs = std::max<int64_t>(outputs, filters.outputs());
      all.tiles[a] = std::max(all.tiles[a], filters.tiles(outputs_of(axis, r)));
      for (int i = 0; i < filters.family_count(); ++i) points = std::max<int64_t>(points, filters.family(i).points());
    }
    all.points *= points;
    all.outputs *= outputs;
  }
  for (int64_t phase = 0; phase < s.phases(); ++phase) {
    const auto [d, h, w] = phases_of_axes(s, phase);
    const int64_t planes = FilterAxis(s, 0, d).taps();
    all.input_words = std::max(all.input_words, input_words(s, planes, FilterPlane(s, h, w), depths, width));
  }
  return all;
}

// Whether the outputs of all phases along the depth read runs of planes, one plane further each.
bool depths_share_planes(const ConvShape& s) {
  const ConvAxis d(s, 0);
  bool several = false;
  for (int64_t r = 0; r < d.phases(); ++r) {
    const AxisTaps taps = d.taps(r);
    if (taps.count > 1 && taps.shift_step != 1) return false;
    several = several || taps.count > 1;
  }
  return several && d.in_step() == 1;
}

// With as many depths as leave room for the least block, where the tiles of one depth fill register tiles.
Extents extents_of(const ConvShape& s, int width) {
  const int64_t rows = winograd_block_rows(width);
  for (int64_t depths = depths_share_planes(s) ? winograd_most_depths : 1; depths > 1; depths /= 2) {
    const Extents most = extents_of(s, depths, width);
    const int64_t tiles = most.tiles[1] * most.tiles[2];
    if (most.tiles[0] < depths || 10 * tiles < 9 * ceil_div(tiles, rows) * rows) continue;
    if (rows * most.input_words <= cached_words(width)) return most;
  }
  return extents_of(s, 1, width);
}

// What one phase of a run computes: all, or the first part.
ConvShape shape_at_once(const ConvWinogradPlan& plan) {
  ConvShape s = plan.shape;
  if (!plan.parted) return s;
  s.batch = 1;
  s.groups = 1;
  for (int a = 0; a < 3; ++a) s.out[a] = plan.part[a];
  return s;
}

}  // namespace

FilterAxis::FilterAxis(const ConvShape& shape, int a, int64_t phase) {
  const ConvAxis axis(shape, a);
  all_ = axis.taps(phase);
  step_ = axis.in_step();
  point_step_ = all_.shift_step;
  add_family(0, 0, all_.count, 0);
  const bool splits = a > 0 && (step_ == 1 || all_.shift_step == 1);
  if (!splits || all_.count < 2) return;
  FilterAxis trial = *this;
  if (shape.fours) {
    trial.split_once(4, winograd_four_of_one_tap);
  } else {
    trial.split_once(2, winograd_pair_of_one_tap);
  }
  if (static_cast<double>(trial.lines()) / trial.outputs_ < worth * static_cast<double>(all_.count)) *this = trial;
  if (shape.fours || step_ != 1 || !has_one_tap(ConvAxis(shape, 3 - a))) return;
  trial.split_twice();
  if (trial.lines() * outputs_ < lines() * trial.outputs_) *this = trial;
}

void FilterAxis::add_family(std::size_t outer, std::size_t inner, int64_t more, int64_t less) {
  if (more + less == 0) return;
  AxisFamily family = {outer, inner, more, less, 0, 0};
  if (family_count_ > 0) {
    const AxisFamily& before = families_[family_count_ - 1];
    family.more_tap = before.more_tap + before.more * before.taps();
    family.less_tap = before.less_tap + before.less * before.taps();
  }
  families_[family_count_++] = family;
}

// Of two outputs, three taps cost two products an output, two cost one and a half, one costs one: never a tap of zeros,
// which would leave rounding errors where a window ends. Of four, three cost one and a half, two one and a quarter.
void FilterAxis::split_once(int outputs, std::size_t one_tap) {
  outputs_ = outputs;
  residues_ = std::min(step_, all_.count);
  many_ = all_.count % residues_ == 0 ? residues_ : all_.count % residues_;
  output_step_ = step_ == 1 ? all_.shift_step : 1;
  point_step_ = step_ == 1 ? all_.shift_step : step_;
  const auto threes = [](int64_t taps) { return taps % 3 == 1 && taps > 1 ? taps / 3 - 1 : taps / 3; };
  const int64_t more = ceil_div(all_.count, residues_);
  const int64_t less = all_.count / residues_;
  const int64_t more_left = more - 3 * threes(more);
  const int64_t less_left = less - 3 * threes(less);
  family_count_ = 0;
  add_family(0, one_tap + 2, threes(more), threes(less));
  add_family(0, one_tap + 1, more_left / 2, less_left / 2);
  add_family(0, one_tap, more_left % 2, less_left % 2);
}

// Of four outputs: six taps cost three products an output, four cost two and a quarter, three two, two one and a half.
void FilterAxis::split_twice() {
  outputs_ = 4;
  nested_ = true;
  const int64_t taps = all_.count;
  const bool in_fours = taps == 8;  // one family instead of two
  const int64_t sixes = in_fours ? 0 : taps / 6;
  const int64_t fours = (taps - 6 * sixes) / 4;
  const int64_t left = taps - 6 * sixes - 4 * fours;
  family_count_ = 0;
  add_family(3, 2, sixes, 0);
  add_family(2, 2, fours, 0);
  if (left > 0) add_family(1, static_cast<std::size_t>(left), 1, 0);
}

int64_t FilterAxis::kernel_index(const AxisFamily& family, int64_t filter, int64_t tap) const {
  const int64_t first = many_ * family.more;
  const bool is_more = filter < first;
  const int64_t in_class = is_more ? family.more : family.less;
  const int64_t at = is_more ? filter : filter - first;
  const int64_t residue = at / in_class + (is_more ? 0 : many_);
  const int64_t start = (is_more ? family.more_tap : family.less_tap) + at % in_class * family.taps();
  return all_.first_index + (residue + (start + tap) * residues_) * all_.index_step;
}

int64_t FilterAxis::lines() const {
  int64_t count = 0;
  for (int i = 0; i < family_count_; ++i) count += filters(families_[i]) * families_[i].points();
  return count;
}

int64_t FilterAxis::family_points() const {
  int64_t count = 0;
  for (int i = 0; i < family_count_; ++i) count += families_[i].points();
  return count;
}

ConvWinogradFormat::ConvWinogradFormat(const ConvShape& shape, int vector_width)
    : width(vector_width), columns(shape.out_channels) {
  group_size = lines_of(shape, 0) * lines_of(shape, 1) * lines_of(shape, 2) * shape.in_words() *
               ceil_div(columns, width) * width;
}

WinogradWork conv_winograd_work(const ConvShape& s) {
  const auto images = static_cast<double>(s.batch * s.groups);
  WinogradWork work = {images, images};
  for (int a = 0; a < 3; ++a) {
    const ConvAxis axis(s, a);
    int64_t lines = 0;
    int64_t points = 0;
    for (int64_t r = 0; r < axis.phases(); ++r) {
      const FilterAxis filters(s, a, r);
      const int64_t tiles = filters.tiles(outputs_of(axis, r));
      lines += tiles * filters.lines();
      points += tiles * filters.family_points();
    }
    work.lines *= static_cast<double>(lines);
    work.points *= static_cast<double>(points);
  }
  return work;
}

std::vector<PhaseWeights> conv_winograd_weights(const ConvWinogradPlan& plan) {
  const ConvShape s = shape_at_once(plan);
  const int64_t parts = plan.parted ? plan.group_parts() : 1;
  const int64_t columns = ceil_div(plan.format.columns, plan.format.width) * plan.format.width;
  std::vector<PhaseWeights> phases;
  for (int64_t phase = 0; phase < plan.phases; ++phase) {
    const std::array<int64_t, 3> of_axis = phases_of_axes(s, phase);
    int64_t lines = 1;
    int64_t tiles[3] = {};
    for (int a = 0; a < 3; ++a) {
      const FilterAxis filters(s, a, of_axis[a]);
      lines *= filters.lines();
      tiles[a] = filters.tiles(outputs_of(ConvAxis(s, a), of_axis[a]));
    }
    const int64_t plane = tiles[1] * tiles[2];
    const int64_t blocks = plan.depths > 1 ? s.batch * ceil_div(tiles[0], plan.depths) * ceil_div(plane, plan.block)
                                           : ceil_div(s.batch * tiles[0] * plane, plan.block);
    phases.push_back({static_cast<double>(lines * s.in_words() * columns), static_cast<double>(parts * blocks)});
  }
  return phases;
}

bool winograd_keeps_bound(const ConvShape& shape) {
  constexpr int64_t many_terms = 256;
  constexpr int64_t enough_terms = 128;
  constexpr int64_t enough_channels = 32;
  int64_t fewest[3];           // taps of a phase that has any; those beyond many_terms are not told apart
  int64_t fewest_filtered[3];  // and is filtered
  for (int a = 0; a < 3; ++a) {
    const ConvAxis axis(shape, a);
    fewest[a] = fewest_filtered[a] = many_terms;
    for (int64_t r = 0; r < axis.phases(); ++r) {
      const int64_t taps = axis.taps(r).count;
      if (taps == 0) continue;
      fewest[a] = std::min(fewest[a], taps);
      if (a > 0 && FilterAxis(shape, a, r).transformed()) fewest_filtered[a] = std::min(fewest_filtered[a], taps);
    }
  }
  const int64_t plane = std::min(fewest_filtered[1] * fewest[2], fewest[1] * fewest_filtered[2]);
  const int64_t terms = shape.in_channels * fewest[0] * plane;
  return terms >= many_terms || (terms >= enough_terms && shape.in_channels >= enough_channels);
}

bool conv_winograd_takes(const ConvShape& shape) {
  bool filters[3] = {};
  for (int a = 1; a < 3; ++a) {
    const int64_t phases = ConvAxis(shape, a).phases();
    for (int64_t r = 0; r < phases && !filters[a]; ++r) filters[a] = FilterAxis(shape, a, r).transformed();
  }
  return shape.fours ? filters[1] && filters[2] : filters[1] || filters[2];
}

int64_t conv_winograd_line(const ConvShape& shape, int64_t phase_d, int64_t phase_h, int64_t phase_w) {
  const int64_t all_w = lines_of(shape, 2);
  const int64_t own_d = FilterAxis(shape, 0, phase_d).lines();
  const int64_t own_h = FilterAxis(shape, 1, phase_h).lines();
  const int64_t before = lines_before(shape, 0, phase_d) * lines_of(shape, 1) * all_w +
                         own_d * (lines_before(shape, 1, phase_h) * all_w + own_h * lines_before(shape, 2, phase_w));
  return before * shape.in_words();
}

int64_t conv_winograd_packed_floats(const ConvShape& shape, int width) {
  return ConvWinogradFormat(shape, width).group_size * shape.groups;
}

namespace {

void plan_blocks(ConvWinogradPlan& plan, int width) {
  const ConvShape s = shape_at_once(plan);
  const Extents most = extents_of(s, width);
  plan.input_pieces = 0;
  plan.depths = most.depths;
  plan.max_points = most.points;
  plan.max_outputs = most.outputs;
  const int64_t rows = winograd_block_rows(width);
  // Fewer would wait for the weights, which every block reads once for each depth. Tiles of four outputs along an axis
  // read them half as often as those of two.
  const int64_t least = plan.depths > 1 || s.fours || FilterPlane(s, 0, 0).nested() ? rows : 2 * rows;
  const int64_t plane = most.tiles[1] * most.tiles[2];
  const int64_t tiles = std::max<int64_t>(1, plan.depths > 1 ? plane : s.batch * most.tiles[0] * plane);
  const int64_t layers = plan.depths > 1 ? s.batch * ceil_div(most.tiles[0], plan.depths) : 1;
  const auto set_block = [&](int64_t block) {
    plan.block = block;
    plan.plane_blocks = ceil_div(tiles, block);
    plan.blocks = layers * plan.plane_blocks;
  };
  const int64_t cached = cached_words(width) / std::max<int64_t>(1, most.input_words);
  set_block(std::clamp(cached / rows * rows, least, most_tiles));
  const int64_t panel = 2 * width;
  const int64_t panels = PanelGrid(plan.format.columns, width).count();
  plan.n_block = std::max<int64_t>(1, panels) * panel;
  plan.n_blocks = 1;
  // What threads share.
  const auto count = [&] { return plan.parted ? winograd_blocks_aimed : plan.input_blocks(); };
  const int64_t most_block = plan.block;  // before it is halved, which reads the weights more often
  while (count() < winograd_blocks_aimed && plan.block > least)
    set_block(std::max(least, ceil_div(plan.block / 2, rows) * rows));
  // Blocks that share their inputs are divided by columns instead, which costs nothing but a phase.
  const bool is_few = count() < (panels > 4 ? winograd_blocks_aimed : winograd_blocks_aimed / 2);
  const bool shares = is_few && count() > 0 && panels > 1 &&
                      s.groups * plan.phases * tiles * most.input_words * plan.format.columns >= least_shared;
  if (shares) set_block(most_block);
  // Of one block without columns to divide, one thread alone would compute.
  const int64_t least_count = shares ? ceil_div(winograd_blocks_aimed, panels) : 2;
  while (count() < least_count && plan.block > rows) set_block(ceil_div(plan.block / 2, rows) * rows);
  set_block(std::min(plan.block, ceil_div(ceil_div(tiles, plan.plane_blocks), rows) * rows));
  if (shares) {
    plan.n_block = ceil_div(panels, std::min(panels, ceil_div(shared_blocks_aimed, count()))) * panel;
    plan.n_blocks = ceil_div(panels * panel, plan.n_block);
    plan.input_pieces =
        std::clamp<int64_t>(ceil_div(shared_blocks_aimed, count()), 1, ceil_div(plan.block, least_piece));
  }
  plan.input_words = plan.block * most.input_words;
}

// Of the scratch and of what all share.
void plan_bytes(ConvWinogradPlan& plan, int width) {
  const ConvShape s = shape_at_once(plan);
  const int64_t products = plan.together * plan.block * 3 * width;
  int64_t in_points = s.batch;
  for (int a = 0; a < 3; ++a) in_points *= plan.parted ? ConvAxis(s, a).most_read(s.out[a]) : s.in[a];
  plan.inputs_at = plan.in_copied ? padded(in_points * s.groups * s.in_channels * 4) / 4 : 0;
  plan.result_at = plan.inputs_at + (plan.input_pieces > 0 ? plan.input_blocks() * plan.input_words : 0);
  const int64_t results = s.batch * s.out_points() * s.groups * s.out_channels;
  const int64_t images = (plan.result_at + (plan.out_planar ? results : 0)) * 4;
  (plan.parted ? plan.images_bytes : plan.shared_bytes) = padded(images);
  plan.scratch_bytes = plan.images_bytes + (plan.input_pieces > 0 ? 0 : plan.input_words * 4) +
                       padded(plan.max_points * products * 4) + padded(plan.max_outputs * products * 4) +
                       padded((plan.n_block + 3 * width) * 4) + padded((s.in_channels + width) * 4) +
                       padded(plan.block * plan.max_outputs * int64_t{sizeof(float*)});
}

}  // namespace

ConvWinogradPlan plan_conv_winograd(const ConvShape& shape, const ImageStrides& in, const ImageStrides& out,
                                    const EndingProgram& endings, bool has_bias, int width) {
  ConvWinogradPlan plan = {};
  plan.shape = shape;
  plan.format = ConvWinogradFormat(shape, width);
  plan.in = in;
  plan.out = out;
  plan.endings = endings;
  plan.has_bias = has_bias;
  plan.in_copied = (in.channel != 1 && shape.groups * shape.in_channels > 1) || is_narrow(shape.types.in);
  plan.out_planar = (out.channel != 1 && shape.groups * shape.out_channels > 1) || is_narrow(shape.types.out);
  plan.past_caches = is_past_caches(shape);
  plan.brief = register_endings(endings, out, shape, !plan.out_planar);
  plan.phases = shape.phases();
  plan.turn_points = 64;
  plan_blocks(plan, width);
  cut_into_parts(plan);
  if (plan.parted) plan_blocks(plan, width);
  // Inputs that the second-level cache does not hold are read from behind it for each panel, or for some of them at
  // once.
  plan.together = plan.input_words > cached_words(width) ? most_together : 1;
  plan_bytes(plan, width);
  return plan;
}

int64_t conv_winograd_tiles(const ConvWinogradPlan& plan, int phase) {
  const ConvShape& s = plan.shape;
  if (s.batch * s.out_points() * s.groups * s.out_channels == 0) return 0;
  if (plan.parted) return s.groups * plan.group_parts();
  if (plan.in_copied && phase-- == 0) return s.batch * ceil_div(s.in_points(), plan.turn_points);
  if (plan.input_pieces > 0 && phase-- == 0) return plan.input_blocks() * plan.input_pieces;
  if (phase == 1) return s.batch * ceil_div(s.out_points(), plan.turn_points);
  return plan.input_blocks() * plan.n_blocks;
}

}  // namespace polyphase::cpu
