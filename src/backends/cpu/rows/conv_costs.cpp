// Estimates for the convolution kernels.
#include "backends/cpu/rows/conv_costs.h"

#include <algorithm>
#include <cmath>

#include "backends/cpu/kernels/conv_depthwise.h"
#include "backends/cpu/kernels/conv_disjoint.h"
#include "backends/cpu/kernels/conv_gemm.h"
#include "backends/cpu/kernels/conv_overlap.h"
#include "backends/cpu/kernels/conv_pixels.h"
#include "backends/cpu/kernels/conv_winograd.h"
#include "backends/cpu/rows/conv_counts.h"
#include "backends/cpu/rows/conv_factors.h"

namespace polyphase::cpu {
namespace {

// Where kernels place their weights: output positions, of a transposed convolution those of one phase.
double grid_of(const ConvShape& s) {
  double positions = static_cast<double>(s.batch);
  for (int a = 0; a < 3; ++a)
    positions *= static_cast<double>(s.transposed ? ceil_div(s.out[a], s.stride[a]) : s.out[a]);
  return positions;
}

double vectors_of_products(int64_t vectors, double alone) {
  return vectors == 1 ? alone : static_cast<double>(vectors);
}

double beyond_caches(const ConvShape& s, int width) {
  return s.products == Products::pairs ? pair_beyond : float_beyond(width);
}

double packed_bytes(int64_t floats) { return 4 * static_cast<double>(floats); }

// Floats that pass through registers when an image is turned: whole vectors of channels.
double turned(const ConvShape& s, const int64_t (&extents)[3], int64_t channels, int width) {
  if (channels == 1) return 0;
  return product_of_factors(s.batch, ceil_div(channels, width), width) * points_of(extents);
}

// Floats of results that are turned by the groups, each filling vectors with its own channels.
double turned_by_groups(const ConvShape& s, int width) {
  if (s.groups == 1) return 0;
  return product_of_factors(s.batch, s.groups, ceil_div(s.out_channels, width), width) * points_of(s.out);
}

// conv_gemm leaves out taps of whole lines outside of the image, where a pass over the rows is a part of the sums, and
// half of what lies outside where it sorts rows: register tiles are smaller then, and hold rows of several kinds.
double share_multiplied(const ConvShape& s, const ConvGemmPlan& plan) {
  constexpr double left_out = 0.55;
  if (plan.sorts) return 1 - left_out * (1 - plan.share_inside);
  constexpr int64_t whole_pass = 512;  // channels of all taps
  constexpr int64_t register_rows = 12;
  const int64_t depth = s.kernel[0] * s.kernel[1] * s.kernel[2] * s.in_channels;
  if (s.transposed || s.pad_mode != PadMode::zero || depth <= whole_pass || s.out[2] < register_rows) return 1;
  return ConvAxis(s, 0).share_inside(false) * ConvAxis(s, 1).share_inside(false);
}

ImageStrides strides_of(int64_t channels, const int64_t (&extents)[3], bool planar) {
  return planar ? planar_strides(extents, channels) : pixel_strides(extents, channels);
}

}  // namespace

double conv_gemm_seconds(const ConvShape& s, int width, bool in_planar, bool out_planar) {
  const GemmFactors& by = width == avx512_width ? gemm_avx512 : gemm_avx2;
  const ConvGemmPlan plan = plan_conv_gemm(s, strides_of(s.groups * s.in_channels, s.in, in_planar),
                                           strides_of(s.groups * s.out_channels, s.out, out_planar), {}, false, width);
  const ConvGemmFormat& format = plan.format;
  const int64_t vectors = ceil_div(format.columns, width);
  const double panels = static_cast<double>(PanelGrid(format.columns, width).count());
  const int64_t taps_w = format.stacked ? ceil_div(s.kernel[2], s.stride[2]) : s.kernel[2];
  const double lines_of_taps = grid_of(s) * product_of_factors(s.groups, s.kernel[0], s.kernel[1]);
  const double multiplies = share_multiplied(s, plan) * lines_of_taps * product_of_factors(taps_w, s.in_channels) *
                            vectors_of_products(vectors, by.alone);
  const bool joined = s.groups == 1 && s.in_channels < 128 && s.dilation[2] == 1;
  const int64_t column_groups = s.transposed && !format.stacked ? s.stride[2] : 1;
  const double segments = lines_of_taps * static_cast<double>(joined ? std::min(column_groups, s.kernel[2]) : taps_w);
  const double outer_phases = s.transposed ? product_of_factors(s.stride[0], s.stride[1], column_groups) : 1.0;
  const double rows = grid_of(s) * static_cast<double>(s.groups) * outer_phases;
  const double in_turned = in_planar ? turned(s, s.in, s.groups * s.in_channels, width) : 0;
  const double out_turned = out_planar ? turned(s, s.out, s.groups * s.out_channels, width) : 0;
  const double by_groups = out_planar ? turned_by_groups(s, width) : 0;
  constexpr int64_t gathered_channels = 12;  // fewer are gathered where groups keep pixels from being joined
  const double gathered =
      s.groups > 1 && s.in_channels < gathered_channels ? lines_of_taps * product_of_factors(taps_w, s.in_channels) : 0;
  const double of_panel = by.panel_row + (format.stacked && out_planar ? by.stacked_row : 0);
  const double per_row = of_panel * panels + (format.columns % width == 0 ? 0 : by.partial_row);
  const double packed = packed_bytes(conv_gemm_packed_floats(s, width));
  // By each block of rows, from behind the second-level cache.
  const double streamed =
      by.weight_byte_streamed * weights_beyond(packed) * product_of_factors(plan.line_blocks, plan.x_blocks);
  return (std::hypot(by.product * multiplies, streamed) + (by.panel_segment * panels + by.segment) * segments +
          per_row * rows + (s.transposed ? by.in_turned_transposed : by.in_turned) * in_turned +
          by.out_turned * out_turned + (s.transposed ? by.group_result_transposed : by.group_result) * by_groups +
          by.gathered * gathered + by.byte * bytes_of_images(s) + by.byte_beyond * bytes_beyond_caches(s) + by.call) *
             ns +
         weights_seconds(packed, float_beyond(width)) + conversion_seconds(s, of_floats);
}

namespace {

// What conv_pixels does, counted.
struct PixelsWork {
  double multiplies;  // of vectors
  double weights;     // broadcasts, one for a register block's vectors
  double visits;      // vectors of pixels that are loaded
  double results;     // vectors of them
  double runs;        // by phases of the outer axes and chunks
  double lines;       // of the output
  double copied;      // floats
  double copied_lines;
  double tiles;
};

PixelsWork pixels_work(const ConvShape& s, const ConvPixelsPlan& plan) {
  const ConvPixelsFormat& f = plan.format;
  const int width = plan.width;
  const double phases = product_of_factors(ConvAxis(s, 0).phases(), ConvAxis(s, 1).phases() / f.line_phases);
  const double groups = product_of_factors(s.batch, s.groups);
  double runs = groups * static_cast<double>(plan.blocks[2]);
  runs *= product_of_factors(plan.q_count[0], ceil_div(plan.q_count[1], plan.run_lines));
  const int64_t vectors = plan.sum_pitch / width;
  const int64_t blocks = ceil_div(vectors, pixel_vectors(width, static_cast<int>(f.chunk)));
  const double lines = runs * product_of_factors(s.kernel[0], f.kernel_lines, s.in_words());
  const double blocks_of_tiles = groups * product_of_factors(plan.blocks[0], plan.blocks[1], plan.blocks[2]);
  const double copied_lines =
      blocks_of_tiles * product_of_factors(s.in_words(), plan.tile_lines[0], plan.tile_lines[1]);
  return {.multiplies = lines * product_of_factors(vectors, f.line_floats),
          .weights = lines * product_of_factors(blocks, f.line_floats),
          .visits = lines * product_of_factors(vectors, f.taps_w, f.chunks),
          .results = runs * phases * product_of_factors(vectors, f.columns),
          .runs = runs * phases * static_cast<double>(f.chunks),
          .lines = groups * product_of_factors(s.out_channels, s.out[0], s.out[1], plan.blocks[2]),
          .copied = copied_lines * static_cast<double>(plan.pitch),
          .copied_lines = copied_lines,
          .tiles = blocks_of_tiles / static_cast<double>(plan.tile_groups)};
}

// Of one channel per group, whose lines leave the registers interleaved.
double joined_pixels_nanoseconds(const ConvShape& s, const ConvPixelsPlan& plan, const PixelsWork& work,
                                 const PixelsFactors& by) {
  const double vectors = work.lines * static_cast<double>(ceil_div(plan.tile_q[2], plan.width));
  const double lines_of_taps = product_of_factors(s.kernel[0], s.kernel[1]) /
                               product_of_factors(ConvAxis(s, 0).phases(), ConvAxis(s, 1).phases());
  const double groups = product_of_factors(s.batch, s.groups, plan.blocks[0], plan.blocks[1], plan.blocks[2]);
  return by.product * vectors * lines_of_taps * static_cast<double>(s.kernel[2]) +
         by.visit * vectors * lines_of_taps * static_cast<double>(OutputPhases(ConvAxis(s, 2)).columns()) +
         by.joined_result * vectors * static_cast<double>(ConvAxis(s, 2).phases()) + by.joined_line * work.lines +
         by.copied * work.copied + by.copied_line * work.copied_lines + by.joined_group * groups +
         by.joined_byte_beyond * bytes_beyond_caches(s) + by.call;
}

}  // namespace

double conv_pixels_seconds(const ConvShape& s, int width, bool in_planar, bool out_planar) {
  const bool in_pairs = s.products == Products::pairs;
  const PixelsFactors& by = in_pairs ? pixels_pairs : width == avx512_width ? pixels_avx512 : pixels_avx2;
  const ConversionFactors& conversions = in_pairs ? pixels_pairs_conversions : of_floats;
  const ConvPixelsPlan plan = plan_conv_pixels(s, {}, {}, {}, false, width);
  const PixelsWork work = pixels_work(s, plan);
  const int64_t phases = ConvAxis(s, 2).phases();
  // The channels of a group alone fill vectors that are turned; an image of one channel lies either way.
  const auto turned_alone = [&](bool planar, int64_t channels, double points) {
    return planar || s.groups * channels == 1 ? 0 : points * static_cast<double>(ceil_div(channels, width) * width);
  };
  const double in_turned = turned_alone(in_planar, s.in_channels, work.copied / static_cast<double>(s.in_channels));
  const double out_turned =
      turned_alone(out_planar, s.out_channels, work.results * width / static_cast<double>(s.out_channels));
  const double between_layouts = by.in_turned * in_turned + by.out_turned * out_turned;
  if (plan.depthwise) {
    return (joined_pixels_nanoseconds(s, plan, work, by) + between_layouts) * ns + conversion_seconds(s, conversions);
  }
  const double of_phases = phases <= 4 ? by.result_interleaved : by.result_transposed;
  const double of_result = phases > 1 ? of_phases : by.result;
  return (by.product * work.multiplies + by.weight * work.weights + by.visit * work.visits + of_result * work.results +
          by.run * work.runs + by.line * work.lines + by.copied * work.copied + by.copied_line * work.copied_lines +
          by.tile * work.tiles + between_layouts + by.byte_beyond * bytes_beyond_caches(s) + by.call) *
             ns +
         weights_seconds(packed_bytes(plan.format.group_size * s.groups), beyond_caches(s, width)) +
         conversion_seconds(s, conversions);
}

double conv_disjoint_seconds(const ConvShape& shape, int width, bool, bool) {
  const ConvDisjointPlan plan = plan_conv_disjoint(shape, {0, 0, {0, 0, 1}}, {0, 0, {0, 0, 1}}, {}, false, width);
  const ConvShape& s = plan.shape;
  const bool in_pairs = s.products == Products::pairs;
  const DisjointFactors& by = in_pairs ? disjoint_pairs : width == avx512_width ? disjoint_avx512 : disjoint_avx2;
  const ConversionFactors& conversions = in_pairs ? disjoint_pairs_conversions : of_floats;
  const ConvDisjointFormat& f = plan.format;
  const double groups = product_of_factors(s.batch, s.groups);
  const int sides = (plan.front > 0 ? 1 : 0) + (plan.behind < s.out[2] ? 1 : 0);
  const double margins = by.margin * sides * groups * product_of_factors(f.lines, s.in[0], s.in[1]);
  if (plan.by_lines) {
    const double lines = groups * product_of_factors(f.lines, s.in[0], s.in[1]);
    const double results = lines * product_of_factors(ceil_div(s.in[2], width), plan.phases);
    return (by.result_by_lines * results + by.line_by_lines * lines + margins +
            by.byte_beyond * bytes_beyond_caches(s) + by.call) *
               ns +
           conversion_seconds(s, conversions);
  }
  const int64_t vectors_of_block = plan.pixels / width;
  const double vectors = product_of_factors(ceil_div(s.in_points(), plan.pixels), vectors_of_block);
  const int64_t last_columns = (f.lines - (f.blocks - 1) * f.lines_per_block) * s.kernel[2];
  const double columns = static_cast<double>(((f.blocks - 1) * f.chunks + ceil_div(last_columns, f.chunk)) * f.chunk);
  const double results = groups * vectors * static_cast<double>(f.lines * plan.phases);
  const auto line = static_cast<double>(std::max<int64_t>(1, s.in[2]));
  const double whole = s.in[2] % width == 0 ? line : line - width + 1;  // begins of vectors that lie in one line
  const double straight = plan.straight ? std::max(0.0, whole / line) : 0;
  const double lines = straight < 1 ? groups * product_of_factors(f.lines, s.in[0], s.in[1]) : 0;
  const double reached = product_of_factors(f.lines, s.in[0], s.in[1]);
  const double all = product_of_factors(s.out_channels, s.out[0], s.out[1]);
  const double filled = groups * std::max(0.0, all - reached) * static_cast<double>(s.out[2]);
  const bool is_unfolded = plan.unfolding.count() > 1;
  const double unfolded = is_unfolded ? groups * product_of_factors(s.in_channels, s.in_points()) : 0;
  return (is_unfolded ? by.unfolded : 1) *
             (by.product * groups * vectors * columns * static_cast<double>(f.words) +
              results * (by.result * straight + by.result_held * (1 - straight)) +
              (plan.phases != f.leaving ? by.result_scattered * results : 0) + by.line * lines + margins +
              by.filled * filled +
              by.copied * (groups * vectors * product_of_factors(width, plan.block_tiles, f.words) + unfolded) +
              by.byte_beyond * bytes_beyond_caches(s) + by.call) *
             ns +
         weights_seconds(packed_bytes(f.block_words * f.blocks * s.groups), beyond_caches(s, width)) +
         conversion_seconds(s, conversions);
}

namespace {

// What overlap-add does, whatever the order of the image's axes.
struct OverlapCounts {
  double tiles;
  int64_t lines;   // of the image, that a tile reads
  int64_t pixels;  // of each
  double written;  // lines of outputs, of a tile's width
  double results;  // vectors of them, by phases
  double taps;     // of a line of outputs

  OverlapCounts(const ConvOverlapPlan& plan, const ConvShape& s)
      : tiles(product_of_factors(s.batch, s.groups, plan.blocks[0], plan.blocks[1])),
        lines(std::min(s.in[1], plan.tile_q[0] + plan.halo(0))),
        pixels(std::min(s.in[2], plan.tile_q[1] + plan.halo(1))),
        written(product_of_factors(s.batch, s.groups, s.out_channels, s.out[1], plan.blocks[1])),
        results(written * product_of_factors(ceil_div(plan.tile_q[1], plan.width), ConvAxis(s, 2).phases())),
        taps(product_of_factors(s.kernel[1], s.kernel[2]) / static_cast<double>(ConvAxis(s, 1).phases())) {}
};

}  // namespace

double conv_overlap_seconds(const ConvShape& s, int width, bool, bool) {
  const OverlapFactors& by = width == avx512_width ? overlap_avx512 : overlap_avx2;
  const ConvOverlapPlan plan =
      plan_conv_overlap(s, {0, s.in_points(), {0, s.in[2], 1}}, {0, 0, {0, 0, 1}}, {}, false, width);
  const ConvOverlapFormat& f = plan.format;
  const OverlapCounts counts(plan, s);
  const double runs = counts.tiles * static_cast<double>(ceil_div(counts.lines, plan.run_lines));
  const double vectors =
      runs * static_cast<double>(ceil_div(std::min(counts.lines, plan.run_lines) * counts.pixels, width));
  const auto columns = static_cast<double>(f.padded_columns());
  const auto passes = static_cast<double>(ceil_div(s.in_channels, plan.words));
  const double of_gathered = by.gathered * 4 * elements_read(s) + by.gathered_beyond * bytes_beyond_caches(s);
  // Beside the image's border not all taps meet; of transposed ones, which have few there, they are in the others.
  const double of_borders =
      s.transposed ? 0 : by.border_tap * counts.written * counts.taps * static_cast<double>(plan.halo(1));
  return (by.product * vectors * columns * static_cast<double>(s.in_channels) +
          by.visit * vectors * product_of_factors(f.chunks, s.in_channels) + by.reached * vectors * columns * passes +
          by.result * counts.results + (by.line + by.line_tap * counts.taps) * counts.written + of_borders +
          by.byte * bytes_of_images(s) + by.byte_beyond * bytes_beyond_caches(s) + (plan.in_place ? 0 : of_gathered) +
          by.call) *
             ns +
         weights_seconds(packed_bytes(conv_overlap_packed_floats(s, width)), float_beyond(width)) +
         conversion_seconds(s, of_floats);
}

double conv_overlap_last_seconds(const ConvShape& s, int width, bool, bool out_planar) {
  const OverlapLastFactors& by = width == avx512_width ? overlap_last_avx512 : overlap_last_avx2;
  const ConvOverlapPlan plan =
      plan_conv_overlap_last(s, strides_of(s.groups * s.in_channels, s.in, false),
                             strides_of(s.groups * s.out_channels, s.out, out_planar), {}, false, width);
  const ConvOverlapFormat& f = plan.format;
  const OverlapCounts counts(plan, s);
  const double pixels = counts.tiles * product_of_factors(counts.lines, counts.pixels);
  const auto phases = static_cast<double>(ConvAxis(s, 2).phases());
  const double borders = counts.written * static_cast<double>(std::min(plan.halo(1), plan.tile_q[1]));
  return (by.product * pixels * static_cast<double>(s.in_channels) * vectors_of_products(f.chunks, by.alone) +
          by.turned * pixels * static_cast<double>(f.padded_columns()) +
          counts.results * (by.result + by.result_tap * counts.taps / phases) + by.line * counts.written +
          by.border_tap * borders * counts.taps + by.byte * bytes_of_images(s) +
          by.byte_beyond * bytes_beyond_caches(s) + by.call) *
             ns +
         weights_seconds(packed_bytes(conv_overlap_last_packed_floats(s, width)), float_beyond(width)) +
         conversion_seconds(s, of_floats);
}

double conv_winograd_seconds(const ConvShape& s, int width, bool in_planar, bool out_planar) {
  const bool in_pairs = s.products == Products::pairs;
  const WinogradFactors& by = in_pairs ? winograd_pairs : width == avx512_width ? winograd_avx512 : winograd_avx2;
  const ConversionFactors& conversions = in_pairs ? winograd_pairs_conversions : of_floats;
  const ConvWinogradPlan plan =
      plan_conv_winograd(s, strides_of(s.groups * s.in_channels, s.in, in_planar),
                         strides_of(s.groups * s.out_channels, s.out, out_planar), {}, false, width);
  const WinogradWork work = conv_winograd_work(s);
  const int64_t vectors = ceil_div(s.out_channels, width);
  const double multiplies = work.lines * static_cast<double>(s.in_words()) * vectors_of_products(vectors, by.alone);
  const double planes = static_cast<double>(FilterAxis(s, 0, 0).taps());
  const auto depths = static_cast<double>(plan.depths);
  const double shared = plan.depths > 1 ? (planes + depths - 1) / (planes * depths) : 1;
  const double transformed = shared * work.lines * product_of_factors(ceil_div(s.in_channels, width), plan.n_blocks);
  const double transformed_results = work.points * static_cast<double>(vectors);
  const double packed = packed_bytes(conv_winograd_packed_floats(s, width));
  double weights = 0;
  double again = 0;  // what the second-level cache does not keep until the next block
  double blocks = 0;
  for (const PhaseWeights& phase : conv_winograd_weights(plan)) {
    const double bytes = 4 * phase.floats;
    const auto groups = static_cast<double>(s.groups);
    weights += groups * bytes * depths * phase.blocks;
    again += groups * weights_beyond(bytes) * std::max(0.0, phase.blocks - 1);
    blocks += groups * phase.blocks * static_cast<double>(plan.n_blocks);
  }
  const double streamed = by.weight_byte_streamed * (weights_beyond(weights) + again);
  const double in_turned = in_planar ? turned(s, s.in, s.groups * s.in_channels, width) : 0;
  const double out_turned = out_planar ? turned(s, s.out, s.groups * s.out_channels, width) : 0;
  constexpr int64_t few_channels = 32;  // whose products do not hide what else a group costs
  const double by_groups = out_planar && s.in_channels < few_channels ? turned_by_groups(s, width) : 0;
  return (std::hypot(by.product * multiplies, streamed) + by.transformed * transformed +
          by.transformed_result * transformed_results + by.weight_byte * weights + by.in_turned * in_turned +
          by.out_turned * out_turned + by.group_result * by_groups + by.byte * bytes_of_images(s) +
          (plan.parted ? by.byte_beyond_parted : by.byte_beyond) * bytes_beyond_caches(s) + by.block * blocks +
          by.call) *
             ns +
         weights_seconds(packed, beyond_caches(s, width)) + conversion_seconds(s, conversions);
}

double conv_depthwise_seconds(const ConvShape& s, int width, bool in_planar, bool out_planar) {
  const DepthwiseFactors& by = width == avx512_width ? depthwise_avx512 : depthwise_avx2;
  const int64_t channels = s.groups * s.out_channels;
  const double multiplies = grid_of(s) * product_of_factors(s.kernel_points(), ceil_div(channels, width));
  const double in_turned = in_planar ? turned(s, s.in, s.groups, width) : 0;
  const double out_turned = out_planar ? turned(s, s.out, channels, width) : 0;
  const double results = product_of_factors(s.batch, ceil_div(channels, width)) * points_of(s.out);
  const ConvAxis w(s, 2);
  const bool shares = shares_columns(ceil_div(s.kernel[2], w.phases()), w.in_step(), width);
  const double result = !shares ? by.result_alone : s.transposed ? by.result_transposed : by.result;
  return ((shares ? by.product : by.product_alone) * multiplies + result * results + by.in_turned * in_turned +
          by.out_turned * out_turned + by.byte_beyond * bytes_beyond_caches(s)) *
             ns +
         conversion_seconds(s, of_floats);
}

double conv_separable_seconds(const ConvShape& depthwise, const ConvShape& pointwise, int width) {
  constexpr double byte = 0.03;  // written and read again, from behind the second-level cache
  constexpr double inner_bytes = 4e5;
  const double between = 4 * elements_read(pointwise);
  return conv_depthwise_seconds(depthwise, width, false, false) + conv_gemm_seconds(pointwise, width, false, false) -
         byte * std::max(0.0, between - inner_bytes) * ns;
}

}  // namespace polyphase::cpu
