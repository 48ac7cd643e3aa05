// Transposed convolution whose kernel is no longer than its stride, and pointwise convolution, between channels-first
// images: no two taps meet in an output, so that all is one product, and nothing is turned on the way in or out.
//
//     sums[column][p] = Σ_c weight[c][column] * in[c][p]        column = (out channel, kernel point), p = input pixel
//
// In bf16 two input channels are one word of 32 bits, a pair, on both sides: the panel and the packed weights hold
// pairs in place of floats, of which there are half as many.
//
// A tile owns some input pixels, which it copies into a panel of register blocks, and some blocks of columns. The
// columns of one line of the kernel are the phases of one output line: they are interleaved as they are stored. Outputs
// that no tap reaches (kernel shorter than stride, padding behind the image) are the bias: those beside pixels of the
// image come with their tile, whole lines of them have tiles of their own, or, where most lines are such, are filled by
// the tile that then writes the lines between them. Of a single input channel there is nothing
// to add up: each input line becomes the output lines of the kernel's lines, one after the other (disjoint_lines.h).
//
// A kernel that is some times as long as its stride becomes one of the stride's length where pixels are given the
// channels of those before them, whose taps meet theirs in an output (phase 0):
//
//     unfolded[(t, c)][q] = in[c][q - t], multiplied by the weights of kernel points stride * t + r, 0 <= r < stride
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "backends/cpu/kernels/conv_gemm.h"
#include "backends/cpu/kernels/conv_pixels.h"
#include "backends/cpu/kernels/conv_shape.h"
#include "backends/cpu/kernels/endings.h"

namespace polyphase::cpu {

// Phases of an output line that can leave the registers interleaved.
inline constexpr int64_t most_interleaved_phases = 4;

// Lanes from which on every other output, which no tap reaches, leaves the registers with its neighbour: with fewer it
// takes longer than to put them between when the line is written.
inline constexpr int least_width_of_gaps = 16;

// Columns that a register block may have, of which so many are interleaved: few sizes, since each is code of its own.
constexpr bool is_chunk(int width, int64_t columns, int64_t interleaved) {
  const bool is_size = columns <= 4 || columns == 6 || columns == 12;
  return is_size && columns <= pixel_columns(width) && columns % interleaved == 0;
}

// Packed weights: [group][column block][chunk][word][chunk columns]. A block holds whole lines of the kernel.
struct ConvDisjointFormat {
  int64_t words;            // of a pixel: its channels, or pairs of them, the last of which may be half zero
  int64_t interleaved;      // columns that leave the registers as one: the taps of a line, or 1
  int64_t leaving;          // outputs of a pixel as which they leave: the phases of a line, or 1
  int64_t lines;            // of the kernel, of all out channels: out_channels * kernel[0] * kernel[1]
  int64_t lines_per_block;  // the last block may have fewer
  int64_t blocks;
  int64_t chunk;   // columns of a chunk; the last one of a block is padded with zeros
  int64_t chunks;  // of a block
  int64_t block_words;

  int64_t columns() const { return chunks * chunk; }                  // of a block
  int64_t sums() const { return columns() / interleaved * leaving; }  // of a pixel and a block

  ConvDisjointFormat(const ConvShape& shape, int width);
  ConvDisjointFormat() = default;
};

// How an image is unfolded; not at all where one tap is left of each axis.
struct ConvUnfolding {
  int64_t taps[3];   // of an axis, that meet in an output
  int64_t in[3];     // pixels of the image as it is given
  int64_t channels;  // of a group
  ImageStrides strides;

  ConvUnfolding(const ConvShape& shape, const ImageStrides& in_strides);
  ConvUnfolding() = default;

  int64_t count() const { return taps[0] * taps[1] * taps[2]; }
  int64_t point(int a) const { return in[a] + taps[a] - 1; }  // pixels of the unfolded image
  int64_t points() const { return point(0) * point(1) * point(2); }
  std::array<int64_t, 3> place_of(int64_t tap) const {
    return {tap / taps[2] / taps[1], tap / taps[2] % taps[1], tap % taps[2]};
  }
};

// Outputs [from, to) of vector number `vector` of a vector of pixels' outputs; the vector's first would lie at `at`.
struct ProductRun {
  int64_t at;
  int32_t vector;
  int32_t from;
  int32_t to;
};

// Runs that a vector of pixels may have, whose outputs are so many vectors: each pixel may be a line, and a line may
// reach into the next vector.
inline int64_t most_product_runs(int64_t width, int64_t vectors) { return width + vectors; }

// Where the outputs of a vector of pixels go: those of the block's line l to first + lines[l], as one run unless they
// belong to several lines of the image.
struct ProductTarget {
  std::byte* first;
  DType type;
  const int64_t* lines;
  const ProductRun* runs;  // null: one run, of all outputs; by vector
  int64_t run_count;
  bool streams;  // as one run of whole cache lines, past the caches
};

// All columns of a panel of pixels; a word is a float or a pair.
struct PanelProduct {
  const float* panel;  // as the tile copies it
  int64_t panel_step;
  int64_t block;  // pixels of a register block
  int64_t pixels;
  int64_t words;         // of a pixel
  int64_t depth;         // words between which sums stay in registers
  const float* weights;  // [chunk][word][column]
  int64_t chunk;         // columns
  int64_t columns;
  int64_t taps;  // columns that leave as `phases` outputs
  int64_t phases;
  const float* init;             // [column]
  float* partial;                // as many floats as there are columns of whole chunks by pixels of whole blocks
  const ProductTarget* targets;  // of each vector of pixels
};
using PanelProductFunction = void (*)(const PanelProduct&);

// Pixels [q0, q1) of an input line whose outputs lie in the tile's sums; z and y are outputs without crop.
struct HeldLine {
  int64_t z;
  int64_t y;
  int64_t q0;
  int64_t q1;
  int64_t pixel;  // of the tile: q0
  int64_t from;   // where q0 lies in the input's image
  bool begins;    // outputs in front of the image's are this tile's
  bool ends;      // and those behind
};

// A line of the kernel: its outputs are so many beyond those of z and y, in this channel of the group.
struct KernelLine {
  int64_t z;
  int64_t y;
  int64_t channel;
};

struct ConvDisjointPlan {
  ConvShape shape;  // of the unfolded image, but for input pixels that lead to no output
  ConvUnfolding unfolding;
  ConvDisjointFormat format;
  ImageStrides in;
  ImageStrides out;
  EndingProgram endings;       // without a leading bias
  PanelProductFunction pairs;  // where they are multiplied
  bool has_bias;
  bool streams;       // lines go past the caches, which cannot hold the output for its reader
  bool has_gaps;      // output lines that no tap reaches
  bool fills;         // a tile fills all lines from its first one to the next tile's, then writes those that it reaches
  bool straight;      // sums can go from the registers to where they belong
  bool by_lines;      // one input channel per group: no product, but each line scaled by the taps of the kernel's lines
  bool direct;        // lines are written where they belong, not copied there
  bool joined_lines;  // of a channel: all its outputs are as one line, whose endings are alike
  bool alike_endings;  // whose operands are the same for all pixels of a channel
  int64_t crop[3];     // in front: output o of an axis is o + crop = stride * q + tap
  int64_t in_first;    // where the first of the input's pixels lies in an image
  int64_t front;       // outputs of a line before those that its pixels lead to
  int64_t behind;      // the first one after them
  int64_t phases;      // of the last axis
  int64_t pixels;      // of a register block
  int64_t tile_pixels;
  int64_t panel_step;  // words from one block of pixels to the next: an odd number of vectors
  int64_t pixel_tiles;
  int64_t blocks_per_tile;
  int64_t block_tiles;
  int64_t groups_per_tile;
  int64_t group_tiles;
  int64_t depth;         // words between which sums stay in registers
  int64_t vector_runs;   // that a vector of pixels may have
  int64_t most_held;     // lines of a tile that are held
  int64_t shared_bytes;  // the unfolded image
  int64_t scratch_bytes;

  bool has_margins() const { return front > 0 || behind < shape.out[2]; }
  int64_t product_tiles() const { return shape.batch * group_tiles * pixel_tiles * block_tiles; }
};

// Whether the kernel knows the geometry; the images have to be channels-first or of one channel.
bool conv_disjoint_takes(const ConvShape& shape);

ConvDisjointPlan plan_conv_disjoint(const ConvShape& shape, const ImageStrides& in, const ImageStrides& out,
                                    const EndingProgram& endings, bool has_bias, int width);
inline int conv_disjoint_phases(const ConvDisjointPlan& plan) { return plan.unfolding.count() > 1 ? 2 : 1; }
int64_t conv_disjoint_tiles(const ConvDisjointPlan& plan, int phase);

// One tile of phase 0, of two: an input channel's pixels to the places of all taps in the unfolded image, as they are
// stored.
void unfold_image(const ConvDisjointPlan& plan, const std::byte* in, std::byte* shared, int64_t tile);

int64_t conv_disjoint_packed_floats(const ConvShape& shape, int width);
void pack_conv_disjoint(const ConvShape& shape, int width, const float* weights, const WeightStrides& strides,
                        PackShare share, float* packed);

}  // namespace polyphase::cpu
