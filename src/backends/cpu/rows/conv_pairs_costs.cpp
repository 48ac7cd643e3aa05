// Estimates for convolution in bf16.
#include "backends/cpu/kernels/conv_pairs.h"

#include <algorithm>

#include "backends/cpu/rows/conv_costs.h"
#include "backends/cpu/rows/conv_counts.h"

namespace polyphase::cpu {
namespace {

// What a run of the kernel does, in numbers that its time is a sum of.
struct PairsWork {
  double products;         // of a pair by a vector of columns; of a matrix unit those of whole steps
  double calls;            // of the unit
  double copied;           // elements of the image
  double copied_vectors;   // of channels-first lines
  double results;          // whole registers of columns
  double result_vectors;   // of channels-first lines
  double result_segments;  // of pixels, that are written at once channels-last
};

PairsWork count_work(const ConvPairsPlan& plan, bool matrix) {
  const ConvShape& s = plan.shape;
  constexpr int64_t matrix_depth = 32;
  const ConvAxis d(s, 0);
  const ConvAxis h(s, 1);
  const ConvAxis w(s, 2);
  const auto computed = [&](int64_t rows) { return matrix ? ceil_div(rows, matrix_rows) * matrix_rows : rows; };
  const auto vectors = [](int64_t lanes) { return static_cast<double>(ceil_div(lanes, pair_columns)); };
  const double images = product_of_factors(s.batch, s.groups);
  const int64_t width = plan.axes[2].end - plan.axes[2].begin;
  const auto channels = static_cast<double>(plan.format.channels);
  const auto columns = static_cast<double>(plan.format.columns);

  // Of the lines of one phase.
  const auto lines = static_cast<double>(ceil_div(s.out[1], h.phases()));
  double rows = lines * static_cast<double>(computed(width));
  double calls = lines * static_cast<double>(ceil_div(width, std::max<int64_t>(1, plan.q_per_tile)));
  if (plan.lines_joined) {
    rows = static_cast<double>(plan.line_blocks) * static_cast<double>(computed(plan.lines_per_tile * plan.pixels));
    calls = static_cast<double>(plan.line_blocks);
  }
  double depth = 0;  // of a row, over the phases of the last axis
  for (int64_t phase = 0; phase < w.phases(); ++phase) {
    const int64_t taps = w.taps(phase).count;
    const int64_t own = plan.taps_joined ? std::min<int64_t>(1, taps) : taps;
    const int64_t elements = own == 0 ? 0 : plan.format.channels * (taps / own);
    depth += static_cast<double>(own * (matrix ? ceil_div(elements, matrix_depth) * matrix_depth : elements));
  }
  const double outer_taps = product_of_factors(s.kernel[0], s.kernel[1], ceil_div(s.out[0], d.phases()));

  double pixels = product_of_factors(plan.copied_lines(), plan.pixels);
  if (plan.in_strips) {
    const int64_t reach = plan.axes[1].greatest_shift - plan.axes[1].least_shift;
    pixels =
        product_of_factors(conv_pairs_tiles(plan, 1), plan.lines_per_tile * h.in_step() + reach, plan.strip_pixels) *
        product_of_factors(s.kernel[0]) / static_cast<double>(d.phases());
  }
  const double points = images * points_of(s.out);
  const auto filled = [&](double elements, int64_t line) {
    return line == 0 ? 0 : elements / static_cast<double>(line) * vectors(line);
  };

  PairsWork work = {};
  work.products = images * outer_taps * rows * depth / 2 * columns / pair_columns;
  work.calls = images * product_of_factors(s.out[0], h.phases(), w.phases(), plan.column_blocks) * calls;
  work.copied = pixels * channels;
  work.copied_vectors = filled(work.copied, s.in[2]);
  work.results = points * columns;
  work.result_vectors = filled(work.results, s.out[2]);
  work.result_segments = points * static_cast<double>(plan.column_blocks);
  return work;
}

// Nanoseconds of a product of pairs by a vector of 16 columns: measured on Zen 4 for vectors of pairs, fitted on
// Emerald Rapids for the matrix unit; clusters without instructions for bf16 take two FP32 products and what takes the
// pairs apart.
double pair_product(Cluster cluster) {
  switch (cluster) {
    case Cluster::amx:
      return 0.0401;
    case Cluster::avx512_bf16:
      return 0.293;
    case Cluster::avx512:
      return 1.36;
    case Cluster::avx2:
      return 1.12;
    case Cluster::scalar:
      break;
  }
  return 9.6;
}

// Nanoseconds, fitted to 1056 times of drawn geometries, forward ones among them, in both layouts, the least of several
// runs each on Emerald Rapids (unit_call: on Zen 4).
constexpr double unit_call = 25.1;
constexpr double matrix_call = 222;
constexpr double result_segment = 5.23;
constexpr double gathered_result = 5.93;  // channels-last, whose columns are phases
constexpr double byte_beyond = 0.0633;
constexpr double run = 585;

// What depends on how an image is stored; channels-first images in f32 were fitted on Granite Rapids and follow bf16's
// new proportions.
struct ImageFactors {
  double copied;  // of an image channels-last
  double copied_vector;
  double result;  // channels-last
  double result_vector;
};
constexpr ImageFactors of_wide = {.copied = 0.115, .copied_vector = 3.75, .result = 0.168, .result_vector = 4.36};
constexpr ImageFactors of_bf16 = {.copied = 0.0851, .copied_vector = 3.02, .result = 0.238, .result_vector = 4.59};

}  // namespace

double conv_pairs_seconds(const ConvShape& s, Cluster cluster, bool in_planar, bool out_planar) {
  const bool matrix = cluster == Cluster::amx;
  const ConvPairsPlan plan = plan_conv_pairs(s, {}, {}, {}, false, nullptr);
  const PairsWork work = count_work(plan, matrix);
  const ImageFactors& of_in = s.types.in == DType::f32 ? of_wide : of_bf16;
  const ImageFactors& of_out = s.types.out == DType::f32 ? of_wide : of_bf16;
  const bool in_place = !in_planar && s.types.in == DType::bf16 && conv_pairs_stays_inside(plan);
  const double copied = in_planar ? of_in.copied_vector * work.copied_vectors : of_in.copied * work.copied;
  const double in = in_place ? 0 : copied;
  const double out = out_planar ? of_out.result_vector * work.result_vectors
                                : of_out.result * work.results + result_segment * work.result_segments;
  const bool by_pixels = plan.stack.is_on && !out_planar && s.groups * s.out_channels > 1;
  const double gathered = by_pixels ? gathered_result * elements_written(s) : 0;
  const double calls = (matrix ? matrix_call : unit_call) * work.calls;
  return (pair_product(cluster) * work.products + calls + in + out + gathered + byte_beyond * bytes_beyond_caches(s) +
          run) *
             ns +
         weights_seconds(product_of_factors(conv_pairs_packed_bytes(s)), pair_beyond);
}

}  // namespace polyphase::cpu
