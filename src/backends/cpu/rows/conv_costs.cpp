// Estimates for the convolution kernels.
#include "backends/cpu/rows/conv_costs.h"

#include <algorithm>

#include "backends/cpu/kernels/conv_gemm.h"
#include "backends/cpu/kernels/conv_pixels.h"
#include "backends/cpu/kernels/conv_winograd.h"

namespace polyphase::cpu {
namespace {

constexpr double ns = 1e-9;
constexpr double call = 1500 * ns;
constexpr double moved_byte = 0.010 * ns;

template <class... Factors>
double product_of_factors(Factors... factors) {
  return (1.0 * ... * static_cast<double>(factors));
}

double points_of(const int64_t (&extents)[3]) { return product_of_factors(extents[0], extents[1], extents[2]); }

// Where kernels place their weights: output positions, of a transposed convolution those of one phase.
double grid_of(const ConvShape& s) {
  double positions = static_cast<double>(s.batch);
  for (int a = 0; a < 3; ++a)
    positions *= static_cast<double>(s.transposed ? ceil_div(s.out[a], s.stride[a]) : s.out[a]);
  return positions;
}

double bytes_of(const ConvShape& s) {
  const double in = product_of_factors(s.batch, s.groups, s.in_channels) * points_of(s.in);
  const double out = product_of_factors(s.batch, s.groups, s.out_channels) * points_of(s.out);
  return 4 * (in + out + product_of_factors(s.groups, s.in_channels, s.out_channels, s.kernel_points()));
}

// Floats that pass through registers when an image is turned: whole vectors of channels.
double turned(const ConvShape& s, const int64_t (&extents)[3], int64_t channels, int width) {
  if (channels == 1) return 0;
  return product_of_factors(s.batch, ceil_div(channels, width), width) * points_of(extents);
}

}  // namespace

double conv_gemm_seconds(const ConvShape& s, int width, bool in_planar, bool out_planar) {
  const ConvGemmFormat format(s, width);
  const int64_t vectors = ceil_div(format.columns, width);
  const double panels = static_cast<double>(PanelGrid(format.columns, width).count());
  const int64_t taps_w = format.stacked ? ceil_div(s.kernel[2], s.stride[2]) : s.kernel[2];
  const double lines_of_taps = grid_of(s) * product_of_factors(s.groups, s.kernel[0], s.kernel[1]);
  const double multiplies =
      lines_of_taps * product_of_factors(taps_w, s.in_channels) * (vectors == 1 ? 1.25 : static_cast<double>(vectors));
  const bool joined = s.groups == 1 && s.in_channels < 128 && s.dilation[2] == 1;
  const int64_t column_groups = s.transposed && !format.stacked ? s.stride[2] : 1;
  const double segments = lines_of_taps * static_cast<double>(joined ? std::min(column_groups, s.kernel[2]) : taps_w);
  const double outer_phases = s.transposed ? product_of_factors(s.stride[0], s.stride[1], column_groups) : 1.0;
  const double rows = grid_of(s) * static_cast<double>(s.groups) * outer_phases;
  const double in_turned = in_planar ? turned(s, s.in, s.groups * s.in_channels, width) : 0;
  const double out_turned = out_planar ? turned(s, s.out, s.groups * s.out_channels, width) : 0;
  return (0.134 * multiplies + (0.26 * panels + 0.64) * segments + 3.9 * panels * rows + 0.058 * in_turned +
          0.17 * out_turned) *
             ns +
         moved_byte * bytes_of(s) + call;
}

double conv_pixels_seconds(const ConvShape& s, int width, bool in_planar, bool out_planar) {
  const int64_t phases = s.transposed ? s.stride[2] : 1;
  const int64_t columns = phases * s.out_channels;
  const int64_t taps_w = ceil_div(s.kernel[2], phases);
  const double vectors = static_cast<double>(ceil_div(ceil_div(s.out[2], phases), width));
  const double lines = product_of_factors(s.batch, s.groups, s.out[0], s.out[1]);
  const double lines_of_taps = lines * product_of_factors(s.kernel[0], s.kernel[1]) /
                               (s.transposed ? product_of_factors(s.stride[0], s.stride[1]) : 1.0);
  const double visits = lines_of_taps * vectors * static_cast<double>(taps_w);
  const double multiplies = visits * product_of_factors(s.in_channels, columns);
  const double copied = product_of_factors(s.batch, s.groups, s.in_channels, s.kernel[0]) * points_of(s.in);
  const double in_turned =
      in_planar ? 0 : static_cast<double>(s.groups * s.kernel[0]) * turned(s, s.in, s.in_channels, width);
  const double out_turned = out_planar ? 0 : static_cast<double>(s.groups) * turned(s, s.out, s.out_channels, width);
  return (0.14 * multiplies + 0.33 * visits * static_cast<double>(ceil_div(columns, pixel_columns(width))) +
          4.2 * lines * vectors * static_cast<double>(columns) +
          5.6 * lines_of_taps * static_cast<double>(s.in_channels) + 0.051 * copied + 0.026 * in_turned +
          0.060 * out_turned) *
             ns +
         call;
}

double conv_winograd_seconds(const ConvShape& s, int width, bool in_planar, bool out_planar) {
  const ConvWinogradPlan plan = plan_conv_winograd(s, {}, {}, {}, false, width);
  const WinogradWork work = conv_winograd_work(s);
  const int64_t vectors = ceil_div(s.out_channels, width);
  const double multiplies =
      work.lines * static_cast<double>(s.in_channels) * (vectors == 1 ? 1.25 : static_cast<double>(vectors));
  const double transformed = work.lines * product_of_factors(ceil_div(s.in_channels, width), plan.n_blocks) +
                             work.points * static_cast<double>(vectors);
  const double weights = 4 * product_of_factors(conv_winograd_packed_floats(s, width), plan.blocks);
  const double in_turned = in_planar ? turned(s, s.in, s.groups * s.in_channels, width) : 0;
  const double out_turned = out_planar ? turned(s, s.out, s.groups * s.out_channels, width) : 0;
  return (0.134 * multiplies + 1.4 * transformed + 0.036 * weights + 0.058 * in_turned + 0.23 * out_turned) * ns +
         moved_byte * bytes_of(s) + call;
}

double conv_depthwise_seconds(const ConvShape& s, int width, bool in_planar, bool out_planar) {
  const int64_t channels = s.groups * s.out_channels;
  const double multiplies = grid_of(s) * product_of_factors(s.kernel_points(), ceil_div(channels, width));
  const double in_turned = in_planar ? turned(s, s.in, s.groups, width) : 0;
  const double out_turned = out_planar ? turned(s, s.out, channels, width) : 0;
  return (0.41 * multiplies + 0.058 * in_turned + 0.17 * out_turned) * ns + moved_byte * bytes_of(s) + call;
}

}  // namespace polyphase::cpu
