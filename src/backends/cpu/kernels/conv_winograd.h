// Convolution and transposed convolution by Winograd's minimal filtering: the plan, which is plain bytes, and the
// packing.
//
// Two neighbouring outputs of a filter of r taps need r + 1 products instead of 2r: F(2, r) of Winograd (Arithmetic
// Complexity of Computations, 1980), in two dimensions F(2x2, r x r) of Lavin and Gray (arXiv:1509.09308). With d the
// r + 1 inputs that the two outputs read, g the taps, and all of it per channel,
//
//     F(2, 2)   v = d0-d1, d1, d2-d1              u = g0, g0+g1, g1                          y = m0+m1, m1+m2
//     F(2, 3)   v = d0-d2, d1+d2, d2-d1, d1-d3    u = g0, (g0+g1+g2)/2, (g0-g1+g2)/2, g2     y = m0+m1+m2, m1-m2-m3
//
// where m = v * u becomes one matrix product over the channels per point. Each phase of a transposed convolution is
// such a convolution with the taps it receives: k = 4, s = 2 needs 9 products where there were 16. Longer filters are
// sums of short ones (k = 4 is two of r = 2), a forward stride splits the taps by residue, dilation pairs outputs that
// lie `dilation` apart. An axis on which nothing is saved stays as it is: one output, one point per tap. The factors
// are 1 and 1/2, so the rounding error stays of the direct sum's size, far inside 2 gamma_K sum |x||w| unless a few
// taps stand out by orders of magnitude; an infinity may become a NaN, where direct sums keep its sign.
//
// A tile here is the 1, 2 or 4 outputs that one transform yields; a block is what a worker computes at once:
//
//     tiles [t0, t0 + block) of one phase and group, in the order of their outputs   x   columns [n0, n1)
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cpu/kernels/conv_gemm.h"
#include "backends/cpu/kernels/conv_shape.h"
#include "backends/cpu/kernels/endings.h"
#include "kernel/row.h"

namespace polyphase::cpu {

// One axis of one phase as a sum of short filters over a grid of outputs q.
class FilterAxis {
 public:
  FilterAxis() = default;
  // `axis` 0 (depth) is never transformed.
  FilterAxis(const ConvShape& shape, int axis, int64_t phase);

  int taps() const { return taps_; }  // of a short filter: 1 (no transform), 2 or 3
  int64_t filters() const { return filters_; }
  int points() const { return taps_ == 1 ? 1 : taps_ + 1; }
  int outputs() const { return taps_ == 1 ? 1 : 2; }
  int64_t output_step() const { return output_step_; }  // between the two outputs of a tile
  int64_t point_step() const { return point_step_; }    // between the inputs of a tile
  int64_t lines() const { return filters_ * points(); }

  int64_t tiles(int64_t count) const {
    if (taps_ == 1) return count;
    const int64_t apart = spread(count);
    return apart == 0 ? 0 : apart * ceil_div(ceil_div(count, apart), 2);
  }
  // The first output of a tile, counted from the first of `count`.
  int64_t first_output(int64_t tile, int64_t count) const {
    if (taps_ == 1) return tile;
    const int64_t apart = spread(count);
    return tile % apart + tile / apart * 2 * output_step_;
  }
  // Where the first input of a tile whose first output is q lies, for one of the filters.
  int64_t first_input(int64_t q, int64_t filter) const { return step_ * q + shift(filter); }
  // Kernel index of a filter's tap; -1 where the filter is longer than what is left of the kernel.
  int64_t kernel_index(int64_t filter, int tap) const;

 private:
  int64_t spread(int64_t count) const { return output_step_ < count ? output_step_ : count; }
  int64_t shift(int64_t filter) const;
  void choose(int taps);

  AxisTaps all_ = {};
  int64_t step_ = 1;      // input positions from output to output
  int64_t residues_ = 1;  // classes of taps `step_` apart
  int taps_ = 1;
  int64_t filters_ = 0;
  int64_t output_step_ = 1;
  int64_t point_step_ = 1;
};

// What the packed weights look like; depends on the weights' shape, strides and dilations, and on the vector width
// only.
//   [group][phase d][phase h][phase w][panel][point h][point w][filter d][filter h][filter w][in channel][vectors *
//   width]
struct ConvWinogradFormat {
  int32_t width;
  int64_t columns;     // out_channels
  int64_t group_size;  // elements of one group

  ConvWinogradFormat(const ConvShape& shape, int width);
  ConvWinogradFormat() = default;
};

struct ConvWinogradPlan {
  ConvShape shape;
  ConvWinogradFormat format;
  ImageStrides in;
  ImageStrides out;
  EndingProgram endings;  // without a leading bias
  bool has_bias;
  bool in_copied;     // the first phase copies a channels-first input channels-last
  bool out_planar;    // the last phase turns the result channels-first
  bool past_caches;   // which is so large that the caches cannot hold it for its reader
  bool fast_endings;  // at most one (leaky) ReLU: applied in registers
  int64_t phases;     // of all axes
  int64_t block;      // tiles of a block
  int64_t blocks;     // of one phase and group
  int64_t n_block;    // columns of a block, a multiple of a panel
  int64_t n_blocks;
  int64_t max_points;
  int64_t pitch;  // elements from tile to tile of the transformed input
  int64_t turn_points;
  int64_t result_at;  // elements from the start of `shared` to the result of the compute phase
  int64_t scratch_bytes;
  int64_t shared_bytes;
};

inline constexpr int64_t winograd_place_bytes = 64;  // of what a run knows of a tile

// What the products of all phases are made of, for estimates.
struct WinogradWork {
  double lines;   // rows of the products times the filters that each sums, per channel
  double points;  // rows of the products
};
WinogradWork conv_winograd_work(const ConvShape& shape);

// Whether an axis of some phase is transformed.
bool conv_winograd_takes(const ConvShape& shape);
ConvWinogradPlan plan_conv_winograd(const ConvShape& shape, const ImageStrides& in, const ImageStrides& out,
                                    const EndingProgram& endings, bool has_bias, int width);
int64_t conv_winograd_tiles(const ConvWinogradPlan& plan, int phase);
inline int conv_winograd_phases(const ConvWinogradPlan& plan) {
  return 1 + (plan.in_copied ? 1 : 0) + (plan.out_planar ? 1 : 0);
}

int64_t conv_winograd_packed_floats(const ConvShape& shape, int width);
void pack_conv_winograd(const ConvShape& shape, int width, const float* weights, const WeightStrides& strides,
                        PackShare share, float* packed);

// Where a phase's panels begin in the packed weights of a group, in lines of all columns.
int64_t conv_winograd_line(const ConvShape& shape, int64_t phase_d, int64_t phase_h, int64_t phase_w);

}  // namespace polyphase::cpu
