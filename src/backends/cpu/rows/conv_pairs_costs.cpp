// Estimates for convolution in bf16.
#include "backends/cpu/kernels/conv_pairs.h"

#include <algorithm>

#include "backends/cpu/rows/conv_costs.h"
#include "backends/cpu/rows/conv_counts.h"

namespace polyphase::cpu {
namespace {

// Nanoseconds of a dot product of pairs: a vector of 16 columns. Measured for vectors of pairs; the matrix unit, which
// was never seen, is reckoned at two fifths of its rate, and clusters without instructions for bf16 at two FP32
// products and what takes the pairs apart.
double pair_product(Cluster cluster) {
  switch (cluster) {
    case Cluster::amx:
      return 0.11;
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

struct PairsFactors {
  double result;  // channels-last
  double result_turned;
  double result_scattered;  // turned, whose neighbours are another phase's
  double result_point;      // of results channels-last
  double copied;            // channels-last
  double copied_turned;
  double copied_pixel;  // of an image channels-last
  double byte_beyond;
  double call;
};
constexpr PairsFactors pairs = {.result = 0.152,
                                .result_turned = 0.342,
                                .result_scattered = 0.6,
                                .result_point = 5.55,
                                .copied = 0.0329,
                                .copied_turned = 0.125,
                                .copied_pixel = 3.43,
                                .byte_beyond = 0.0939,
                                .call = 147};

}  // namespace

double conv_pairs_seconds(const ConvShape& s, Cluster cluster, bool in_planar, bool out_planar) {
  constexpr int64_t matrix_rows = 16;
  constexpr int64_t matrix_depth = 32;
  const ConvPairsPlan plan = plan_conv_pairs(s, {}, {}, {}, false, nullptr);
  const bool matrix = cluster == Cluster::amx;
  const int64_t width = plan.axes[2].end - plan.axes[2].begin;
  const int64_t rows = plan.lines_joined ? plan.pixels : matrix ? ceil_div(width, matrix_rows) * matrix_rows : width;
  const ConvAxis w(s, 2);
  double depth = 0;  // of a row, over the phases of the last axis
  for (int64_t phase = 0; phase < w.phases(); ++phase) {
    const int64_t taps = w.taps(phase).count;
    const int64_t own = plan.taps_joined ? std::min<int64_t>(1, taps) : taps;
    const int64_t elements = own == 0 ? 0 : plan.format.channels * (taps / own);
    depth += static_cast<double>(own * (matrix ? ceil_div(elements, matrix_depth) * matrix_depth : elements));
  }
  const double groups = product_of_factors(s.batch, s.groups);
  double lines = groups * product_of_factors(s.kernel[0], s.kernel[1]);
  for (int a = 0; a < 2; ++a) lines *= static_cast<double>(ceil_div(s.out[a], ConvAxis(s, a).phases()));
  const double vectors = lines * product_of_factors(rows, plan.format.columns / pair_columns);
  const double points = groups * points_of(s.out);
  const double results = points * static_cast<double>(plan.format.columns);
  const double pixels = product_of_factors(plan.copied_lines(), plan.pixels);
  const double copied = pixels * static_cast<double>(plan.format.channels);
  const double in = in_planar ? pairs.copied_turned * copied : pairs.copied * copied + pairs.copied_pixel * pixels;
  const double out =
      out_planar ? (w.phases() > 1 ? pairs.result_scattered : pairs.result_turned) * results
                 : pairs.result * results + pairs.result_point * points * static_cast<double>(plan.column_blocks);
  return (pair_product(cluster) * depth / 2 * vectors + in + out + pairs.byte_beyond * bytes_beyond_caches(s) +
          pairs.call) *
             ns +
         weights_seconds(product_of_factors(conv_pairs_packed_bytes(s)), avx512_width);
}

}  // namespace polyphase::cpu
