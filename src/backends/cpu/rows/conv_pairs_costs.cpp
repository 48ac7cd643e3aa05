// Estimates for convolution in bf16.
#include "backends/cpu/kernels/conv_pairs.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "backends/cpu/rows/conv_costs.h"
#include "backends/cpu/rows/conv_counts.h"

namespace polyphase::cpu {
namespace {

// What a run of the kernel does, in numbers that its time is a sum of.
struct PairsWork {
  double products;     // of a pair by a vector of columns; of a matrix unit those that it computes, whole steps
  double sums;         // vectors that the unit begins and ends with
  double calls;        // of the unit
  double copied;       // elements of the image
  double copied_rows;  // vectors of them, as far as lines fill them; pixels of an image channels-last
  double results;
  double result_rows;  // likewise
};

PairsWork count_work(const ConvShape& s, const ConvPairsPlan& plan, bool matrix, bool in_planar, bool out_planar) {
  constexpr int64_t matrix_rows = 16;
  constexpr int64_t matrix_depth = 32;
  constexpr int64_t vector_columns = 16;
  const ConvAxis h(s, 1);
  const ConvAxis w(s, 2);
  const double groups = product_of_factors(s.batch, s.groups);
  const int64_t height = plan.axes[1].end - plan.axes[1].begin;
  const int64_t width = plan.axes[2].end - plan.axes[2].begin;
  const auto whole = [&](int64_t rows) { return matrix ? ceil_div(rows, matrix_rows) * matrix_rows : rows; };
  // Rows of an outer phase's lines.
  const double lines = static_cast<double>(ceil_div(s.out[1], h.phases()));
  double rows = lines * static_cast<double>(whole(width));
  double calls = lines * static_cast<double>(ceil_div(width, std::max<int64_t>(1, plan.q_per_tile)));
  if (plan.lines_joined) {
    const int64_t joined = plan.lines_per_tile * plan.pixels;
    rows = static_cast<double>(ceil_div(height, plan.lines_per_tile)) * static_cast<double>(whole(joined));
    calls = static_cast<double>(plan.line_blocks);
  }
  double depth = 0;  // of a row, over the phases of the last axis
  for (int64_t phase = 0; phase < w.phases(); ++phase) {
    const int64_t taps = w.taps(phase).count;
    const int64_t own = plan.taps_joined ? std::min<int64_t>(1, taps) : taps;
    const int64_t elements = own == 0 ? 0 : plan.format.channels * (taps / own);
    depth += static_cast<double>(own * (matrix ? ceil_div(elements, matrix_depth) * matrix_depth : elements));
  }
  const double columns = static_cast<double>(plan.format.columns / vector_columns);
  const double outer = groups * static_cast<double>(s.out[0] * h.phases());
  const double outer_taps = groups * product_of_factors(s.kernel[0], s.kernel[1]) * static_cast<double>(ceil_div(s.out[0], ConvAxis(s, 0).phases()));
  PairsWork work = {};
  work.products = outer_taps * rows * depth / 2 * columns;
  work.sums = outer * rows * static_cast<double>(w.phases()) * columns;
  work.calls = outer * calls * static_cast<double>(w.phases() * plan.column_blocks);
  double pixels = static_cast<double>(plan.copied_lines() * plan.pixels);
  if (plan.in_strips) {
    const double planes = 1.0;
    (void)planes;
    const double tiles = static_cast<double>(conv_pairs_tiles(plan, 1));
    const double lines_of_tile = static_cast<double>(plan.lines_per_tile * h.in_step() + plan.axes[1].greatest_shift - plan.axes[1].least_shift);
    pixels = tiles * lines_of_tile * static_cast<double>(plan.strip_pixels) * static_cast<double>(s.kernel[0]) / static_cast<double>(s.transposed ? s.stride[0] : 1);
  }
  work.copied = pixels * static_cast<double>(plan.format.channels);
  const double points = groups * points_of(s.out);
  work.results = points * static_cast<double>(plan.format.columns);
  const auto vectors = [](int64_t n) { return static_cast<double>(ceil_div(n, vector_columns)); };
  work.copied_rows = in_planar ? pixels / static_cast<double>(std::max<int64_t>(1, s.in[2])) * vectors(s.in[2]) * static_cast<double>(plan.format.channels) : pixels;
  work.result_rows = out_planar ? points / static_cast<double>(s.out[2]) * vectors(s.out[2]) * static_cast<double>(plan.format.columns) : points * static_cast<double>(plan.column_blocks);
  return work;
}

}  // namespace

double conv_pairs_seconds(const ConvShape& s, Cluster cluster, bool in_planar, bool out_planar) {
  const ConvPairsPlan plan = plan_conv_pairs(s, {}, {}, {}, false, nullptr);
  const bool matrix = cluster == Cluster::amx;
  const PairsWork w = count_work(s, plan, matrix, in_planar, out_planar);
  if (std::getenv("XFEAT")) {
    std::fprintf(stderr, "FEAT %g %g %g %g %g %g %g %g %g\n", w.products, w.sums, w.calls, w.copied, w.copied_rows, w.results, w.result_rows,
                 bytes_beyond_caches(s), weights_beyond(static_cast<double>(conv_pairs_packed_bytes(s))));
  }
  return 1;
}

}  // namespace polyphase::cpu
