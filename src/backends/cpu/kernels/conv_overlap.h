// Convolution and transposed convolution by overlap-add: what every input pixel comes to through every tap is one
// product, which reads the image where it lies; the taps that meet in an output are added up behind it.
//
//     reached[column][p] = Σ_c weight[c][column] * in[c][p]             column = (kernel point, out channel), p = pixel
//     out[o][s*q + r - pre] = Σ_t reached[(t, o)][q + shift(t)] + bias[o]       over the taps t of phase r
//     (conv_shape.h; of a convolution, whose stride is 1, there is one phase)
//
// Nothing is padded, or filled up to the taps of the longest phase; in return every column is stored and loaded once.
// That pays for few columns, or many channels: where a padded copy of the image and the zeros of a kernel that the
// stride does not divide would be much beside that.
//
// Of a channels-first image vectors are pixels and weights are broadcast. A block of pixels that several chunks of
// columns read is copied by itself, since channels that lie apart share sets of the first-level cache. Of a
// channels-last image vectors are columns and pixels are broadcast, as in conv_gemm, and what comes out is turned: no
// line of the image is turned, or read more than once.
//
// A tile owns some groups by a block of q along the last two axes and goes down its lines: a run of input lines is
// multiplied when the first of them is reached, as one line where they lie behind each other, and kept until no output
// reads it any more.
#pragma once

#include <cstdint>

#include "backends/cpu/kernels/conv_gemm.h"
#include "backends/cpu/kernels/conv_shape.h"
#include "backends/cpu/kernels/endings.h"

namespace polyphase::cpu {

// Packed weights, by the order of the image's axes: channels-first [group][chunk][in channel][chunk columns];
// channels-last [group][panel][in channel][columns of the panel], panels as in conv_gemm.
struct ConvOverlapFormat {
  bool from_pixels;  // channels-last
  int64_t columns;   // kernel points by out channels of a group
  int64_t chunk;     // columns of a register block; the last one is padded with zeros. Channels-last: of a vector
  int64_t chunks;

  ConvOverlapFormat(const ConvShape& shape, int width, bool from_pixels);
  ConvOverlapFormat() = default;

  int64_t padded_columns() const { return chunks * chunk; }
  int64_t group_floats(const ConvShape& shape) const { return padded_columns() * shape.in_channels; }
};

// Of the two axes, the middle and the last one.
struct ConvOverlapPlan {
  ConvShape shape;
  ConvOverlapFormat format;
  ImageStrides in;
  ImageStrides out;
  EndingProgram endings;  // without a leading bias
  bool has_bias;
  bool in_place;     // lines are read where they lie: side by side, as floats; else they are gathered, a run at a time
  bool copies;       // of them a block is copied before its chunks read it
  bool turns;        // lines of all channels of a channels-last result of floats
  bool past_caches;  // rows of an output so large that the caches cannot hold it for its reader
  int32_t width;
  int64_t first_q[2];  // un-cropped q range
  int64_t q_count[2];
  int64_t tile_q[2];
  int64_t blocks[2];  // tiles along each axis
  int64_t behind[2];  // input positions in front of its own that a q reads,
  int64_t ahead[2];   // and behind it; less than none where the image is cropped
  int64_t tile_groups;
  int64_t group_blocks;
  int64_t words;         // input channels that are multiplied at a time
  int64_t most_run;      // pixels of a run, unless a line has more
  int64_t run_lines;     // multiplied at a time; several only where lines are whole and lie behind each other
  int64_t runs;          // that are kept
  int64_t run_floats;    // of a column and a run, whole vectors
  int64_t column_pitch;  // floats of a column
  int64_t block;         // pixels of a register block, or those that are turned at a time
  int64_t sum_pitch;     // floats of a phase's sums of a line
  int64_t line_floats;   // of an output line on its way out, or those of all channels
  int64_t shared_bytes;  // none
  int64_t scratch_bytes;

  int64_t halo(int axis) const { return behind[axis] + ahead[axis]; }
};

// A tap whose results meet others' in the outputs of one phase of a line.
struct OverlapTap {
  const float* from;  // of the first out channel, at q = 0
  int64_t shift;
};

// Those of a phase, and the q from `lo` to `hi` of the tile at which all of them lie in the image.
struct OverlapPhase {
  const OverlapTap* first;
  const OverlapTap* end;
  int64_t lo;
  int64_t hi;
};

// Whether the kernel knows the geometry: one or two axes, not too few channels, few columns; of a convolution, stride
// 1, and of its padding by elements of a channels-last image what mirrors them or repeats the last, no further than the
// kernel reaches.
bool conv_overlap_takes(const ConvShape& shape);

ConvOverlapPlan plan_conv_overlap(const ConvShape& shape, const ImageStrides& in, const ImageStrides& out,
                                  const EndingProgram& endings, bool has_bias, int width);
// Of a channels-last image of floats.
ConvOverlapPlan plan_conv_overlap_last(const ConvShape& shape, const ImageStrides& in, const ImageStrides& out,
                                       const EndingProgram& endings, bool has_bias, int width);
inline int conv_overlap_phases(const ConvOverlapPlan&) { return 1; }
int64_t conv_overlap_tiles(const ConvOverlapPlan& plan, int phase);

int64_t conv_overlap_packed_floats(const ConvShape& shape, int width);
int64_t conv_overlap_last_packed_floats(const ConvShape& shape, int width);
void pack_conv_overlap(const ConvShape& shape, int width, const float* weights, const WeightStrides& strides,
                       PackShare share, float* packed);
void pack_conv_overlap_last(const ConvShape& shape, int width, const float* weights, const WeightStrides& strides,
                            PackShare share, float* packed);

}  // namespace polyphase::cpu
