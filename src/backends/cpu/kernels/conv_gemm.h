// Convolution and transposed convolution as GEMMs over gathered rows: the plan, which is plain bytes, and the packing.
//
// A column group is one output phase of the last axis (N = out_channels) or, when `stacked`, all of them side by side
// (N = stride * out_channels): in channels-last its result is one contiguous run of the output. A line is one output
// row (batch, depth, height) of one phase of the outer axes. A tile owns a rectangle of the output,
//
//     lines [line0, line0 + lines)  x  outputs [x0, x1) of the last axis  x  columns [n0, n1) of the column group,
//
// of one group and one outer phase, and computes every column group inside it. Channels-first inputs are first turned
// to channels-last in shared memory (phase 0); channels-first outputs are turned tile by tile.
//
// The rows of small images are sorted, so that register tiles leave out taps that lie outside (row_order.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cpu/kernels/conv_shape.h"
#include "backends/cpu/kernels/endings.h"
#include "backends/cpu/kernels/scratch_pieces.h"
#include "kernel/row.h"

namespace polyphase::cpu {

// Columns come in panels of two vectors; an odd count ends in one panel of three. Up to three vectors are one panel.
struct PanelGrid {
  int64_t vectors;  // ceil(N / width)
  explicit PanelGrid(int64_t columns, int width) : vectors(ceil_div(columns, width)) {}
  int64_t count() const { return vectors <= 3 ? 1 : vectors / 2; }
  int vectors_of(int64_t panel) const { return static_cast<int>(panel + 1 < count() ? 2 : vectors - 2 * panel); }
};

// K of one pass over the rows: its part of a panel stays in the first-level cache.
inline constexpr int64_t gemm_chunk_depth = 320;

// What the packed weights look like; depends on the weights' shape, strides and dilations, and on the vector width
// only.
//   [group][outer phase d][outer phase h][column group][panel][tap d][tap h][tap w][in channel][vectors * width]
struct ConvGemmFormat {
  bool stacked;
  int32_t width;
  int64_t column_groups;
  int64_t columns;     // of one column group
  int64_t taps_w;      // of all column groups together
  int64_t group_size;  // elements of one group

  ConvGemmFormat(const ConvShape& shape, int width);
  ConvGemmFormat() = default;
};

struct ConvGemmPlan {
  ConvShape shape;
  ConvGemmFormat format;
  ImageStrides in;
  ImageStrides out;
  EndingProgram endings;  // without a leading bias
  bool has_bias;          // a leading bias: initial value of the accumulators
  bool in_planar;         // channels-first input
  bool in_copied;       // phase 0 copies the input channels-last: it is channels-first or narrow, or its pixels collide
  bool past_caches;     // channels-first output so large that the caches cannot hold it for its reader
  bool out_planar;      // channels-first or narrow output: tiles are transposed on their way out
  bool local;           // channels-first input of which tiles turn their own piece; they then own all outer phases
  bool joined;          // taps beside each other read pixels beside each other: all of a line are one segment
  bool parted;          // rows are sorted, taps that would be joined apart: sums are cut where joined taps' would be
  bool gathered;        // few input channels that cannot be joined: rows are copied side by side, one segment in all
  BriefEndings brief;   // done in registers, if they are all
  bool run_contiguous;  // the channels of a pixel are followed by those of the next pixel
  bool run_endings;     // and the operands of the endings lie alike: the endings of a line are one run
  bool groups_inside;   // all groups of a place in the image come before the next place
  int64_t lines_per_tile;
  int64_t line_blocks;
  int64_t x_block;  // output positions of a tile along the last axis, a multiple of the stride
  int64_t x_blocks;
  int64_t n_block;  // columns of a tile, a multiple of a panel
  int64_t n_blocks;
  int64_t outer_phases;
  int64_t local_shift[2];  // least and greatest input shift along the last axis
  int64_t max_rows;        // rows of one column group in a tile
  int64_t panels_summed;   // panels whose partial sums are kept at once
  int64_t max_segments;
  int64_t max_depth;    // of one segment: K that a row pointer leads to
  int64_t border_rows;  // of a tile: rows whose joined taps lie partly outside the image and are copied
  int64_t copy_pitch;   // elements from pixel to pixel of the copied input
  int64_t copy_points;  // input positions of one copying tile
  bool sorts;           // a tile's rows may be multiplied in another order (row_order.h)
  double share_inside;  // of all outputs' taps, where that is asked for: those that lie inside of the image
  int64_t scratch_bytes;
  int64_t shared_bytes;
};

// What the order of so many rows takes of a tile's scratch.
inline int64_t row_order_bytes(int64_t rows) {
  return 2 * scratch_piece_bytes<uint64_t>(rows) + scratch_piece_bytes<const float*>(rows) +
         scratch_piece_bytes<float*>(rows) + scratch_piece_bytes<int32_t>(rows) +
         scratch_piece_bytes<int32_t>(rows + 1);
}

// Which cluster the plan is for: only its vector width matters.
ConvGemmPlan plan_conv_gemm(const ConvShape& shape, const ImageStrides& in, const ImageStrides& out,
                            const EndingProgram& endings, bool has_bias, int width);
// The same with tiles of given lines and positions of the last axis, with all columns and in ascending order, for a
// forward convolution of kernel and stride 1 whose rows another kernel fills: pixels that do not push each other out of
// the caches.
struct TileCut {
  int64_t lines;
  int64_t x_block;
};
ConvGemmPlan plan_conv_gemm_cut(const ConvShape& shape, const ImageStrides& in, const ImageStrides& out,
                                const EndingProgram& endings, bool has_bias, int width, const TileCut& cut);
int64_t conv_gemm_tiles(const ConvGemmPlan& plan, int phase);
inline int conv_gemm_phases(const ConvGemmPlan& plan) { return plan.in_copied ? 2 : 1; }

// Strides of a weight in elements, by [in channel, out channel of the group] for a transposed convolution with the
// groups along the input channels, or [out channel, in channel of the group] with the groups along the output channels.
struct WeightStrides {
  int64_t first;
  int64_t second;
  int64_t axis[3];

  int64_t in_step(const ConvShape& shape) const { return shape.transposed ? first : second; }
  int64_t out_step(const ConvShape& shape) const { return shape.transposed ? second : first; }
  int64_t group_step(const ConvShape& shape) const {
    return (shape.transposed ? shape.in_channels : shape.out_channels) * first;
  }
};

int64_t conv_gemm_packed_floats(const ConvShape& shape, int width);
void pack_conv_gemm(const ConvShape& shape, int width, const float* weights, const WeightStrides& strides,
                    PackShare share, float* packed);

// Offset of one column group's panels inside the packed weights of a group.
inline int64_t conv_gemm_offset(const ConvShape& shape, const ConvGemmFormat& format, int64_t phase_d, int64_t phase_h,
                                int64_t column_group) {
  const ConvAxis d(shape, 0);
  const ConvAxis h(shape, 1);
  const ConvAxis w(shape, 2);
  const int64_t taps_d = d.taps(phase_d).count;
  const int64_t taps_h = h.taps(phase_h).count;
  const int64_t before = (d.taps_before(phase_d) * shape.kernel[1] + taps_d * h.taps_before(phase_h)) * format.taps_w +
                         taps_d * taps_h * (format.stacked ? 0 : w.taps_before(column_group));
  return before * shape.in_channels * ceil_div(format.columns, format.width) * format.width;
}

struct ConvPointers {
  const float* in;
  const float* weights;
  const float* bias;  // one per output channel; null if the plan has none
  float* out;
  float* shared;
  const float* const* operands;  // of the endings
};

}  // namespace polyphase::cpu
