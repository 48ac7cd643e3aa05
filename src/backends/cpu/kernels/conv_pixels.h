// Convolution and transposed convolution by vectors along the pixels, weights broadcast: few output channels, or images
// that would have to be turned.
//
// The columns (phase of the last axis, out channel) of a group are N = stride * out_channels; phases of the middle axis
// join them where few columns would leave registers unused: all of them read the same lines, but where the stride does
// not divide the kernel, which then is filled up with zeros if lines read less often pay for the products. They are cut
// into chunks of at most 12 (of 32 registers) or 6 (of 16). A tile owns some groups by a block of q along each axis; it
// first copies the input lines that a group's block needs channels-first and zero-padded, so that every tap is one
// unaligned vector load:
//
//     acc[column][q..q+16*V) += weight[c][td][th][tw][column] * line[c][td][th][q + shift(tw) ..]
//
// Of a convolution that strides along the last axis a line is copied in so many pieces, each of the pixels that lie a
// stride apart: all q read neighbours of one piece then.
//
// Copied lines lie directly behind each other, so that neighbouring lines of q are one run of vectors where no step of
// q passes over input lines: what a run sums up between its lines is left behind when they are written.
//
// Groups of one input and one output channel whose last axis has two phases (AVX-512: up to four) are read and written
// much more than they are computed: their lines leave the registers interleaved, and those that lie behind each other
// in the output as one run of whole vectors, so that short lines, too, can go past the caches (pixels_depthwise.h,
// joined_run.h).
//
// In bf16 two input channels are one word of 32 bits, a pair, on both sides: copied lines and packed weights hold pairs
// in place of floats, of which there are half as many.
//
// Where N is large, conv_gemm multiplies as fast; but it turns channels-first images on both ways, and its vectors of
// output channels are filled up. The estimates choose.
#pragma once

#include <cstdint>

#include "backends/cpu/kernels/conv_gemm.h"
#include "backends/cpu/kernels/conv_shape.h"
#include "backends/cpu/kernels/endings.h"

namespace polyphase::cpu {

// Packed weights: [group][phase d][phase h][chunk][word][tap][chunk columns], where the first taps of all lines
// of taps come before the others. Where the stride does not divide the kernel, the first tap of a line lies in the
// kernel for the first phases only: chunks of the other phases leave it out, and the chunk between them may have its
// first taps apart, [word][line of taps][columns that they reach], if products saved are worth one more pass. A word is
// an input channel, or a pair of them.
struct ConvPixelsFormat {
  int64_t line_phases;   // of the middle axis that are columns as well: all, or one
  int64_t kernel_lines;  // of taps of the middle axis, for all phases that are summed one after the other
  int64_t columns;       // N, by phase of the last axis, of the middle one, out channel
  int64_t chunk;         // columns of a chunk; the last one is padded with zeros
  int64_t chunks;
  int64_t taps_w;         // stacked
  int64_t first_columns;  // that the first tap reaches
  bool splits;            // the chunk that the first tap reaches in part
  int64_t line_floats;    // of one line of taps, one word, all chunks
  int64_t group_size;     // floats of one group

  ConvPixelsFormat(const ConvShape& shape, int width);
  ConvPixelsFormat() = default;

  // Columns of a chunk with the first tap: all, none, or those that have it apart.
  int64_t firsts(int64_t index) const {
    const int64_t reached = first_columns - index * chunk;
    if (reached <= 0) return 0;
    return reached >= chunk || !splits ? chunk : reached;
  }
  // Of the middle axis, of a phase or of those that are columns together.
  AxisTaps line_taps(const ConvAxis& middle, int64_t phase) const {
    return line_phases > 1 ? middle.stacked_taps() : middle.taps(phase);
  }

  // Of one line of taps and one word.
  int64_t chunk_floats(int64_t index) const { return (taps_w - 1) * chunk + firsts(index); }
};

// One phase of the outer axes, in a tile's scratch.
struct PixelsPhase {
  int64_t lines;  // of taps
  int64_t taps;
  int64_t offsets;  // where those of its taps begin
  int64_t weights;  // floats in front of its own
  int64_t words;    // whose products are summed up along a run at a time
};

// A register tile: M columns by V vectors of pixels, summed over words and taps.
struct PixelsTile {
  const float* lines;    // [word][depth][line][pixel], at the least shift of the first pixel
  const float* weights;  // [word][tap][M]
  const float* init;     // [M]
  float* sums;           // [M], `sum_pitch` apart
  int64_t sum_pitch;
  int64_t channel_pitch;   // floats of `lines` from word to word
  const float* fetched;    // of one tap: what is fetched along with the first word of the first block
  int64_t fetched_pitch;   // from word to word
  bool fetches_block;      // as many floats as a block has, not one line of the caches
  const int64_t* offsets;  // [tap]: floats from the word's first to the tap's
  int64_t words;
  int64_t taps;
  int64_t blocks;  // of M columns by V vectors, side by side
  int64_t begun;   // columns whose `sums` hold what products before these came to
  bool continues;  // all columns' do: these are added to them one by one, as if there were no break
  bool ends;       // no products come behind these: `init` is added
};
using PixelsTileFunction = void (*)(const PixelsTile&);
// Those of M columns, by vectors from one on.
using PixelsTilesOfColumns = const PixelsTileFunction* (*)(int columns);

struct ConvPixelsPlan {
  ConvShape shape;
  ConvPixelsFormat format;
  ImageStrides in;
  ImageStrides out;
  EndingProgram endings;       // without a leading bias
  PixelsTilesOfColumns pairs;  // where they are multiplied
  bool has_bias;
  bool in_planar;
  bool out_planar;
  bool past_caches;  // rows of an output so large that the caches cannot hold it for its reader
  bool depthwise;    // lines leave the registers as they are in the output; q of the last axis are outputs' then
  int32_t width;
  int64_t first_q[3];  // un-cropped q range of each axis
  int64_t q_count[3];
  int64_t tile_q[3];  // q of a tile along each axis
  int64_t blocks[3];  // tiles along each axis
  int64_t tile_groups;
  int64_t group_blocks;
  int64_t first_shift[3];  // least input shift of any phase of an axis
  int64_t tile_lines[2];   // input depths of a tile, lines of a depth
  int64_t run_lines;       // neighbouring lines of q that are one run
  int64_t steps;           // input pixels from q to q of the last axis, of a convolution
  int64_t step_pitch;      // floats of every such pixel of a line, which lie together in the scratch
  int64_t pitch;           // floats of one line there
  int64_t channel_pitch;   // from word to word
  int64_t sum_pitch;       // floats of a column's sums of a run
  int64_t line_floats;     // of the room for what leaves: a line of all out channels, or lines of one
  int64_t turned_floats;   // where pairs do not come from lines of the image: a line of all channels of a group
  int64_t max_taps;        // of all phases of the outer axes together, all taps of the last
  int64_t shared_bytes;    // none
  int64_t scratch_bytes;
};

// A line of sums of all columns is held at a time.
inline constexpr int64_t most_pixels_columns = 4096;
// Pieces of a line of a convolution that strides.
inline constexpr int64_t most_pixels_steps = 4;

// Whether the geometry is one that the kernel knows: unit dilation of a transposed convolution along the last axis; a
// convolution's stride there only where it is small, multiplies floats and pads by zeros.
bool conv_pixels_takes(const ConvShape& shape);

ConvPixelsPlan plan_conv_pixels(const ConvShape& shape, const ImageStrides& in, const ImageStrides& out,
                                const EndingProgram& endings, bool has_bias, int width);
inline int conv_pixels_phases(const ConvPixelsPlan&) { return 1; }
int64_t conv_pixels_tiles(const ConvPixelsPlan& plan, int phase);

int64_t conv_pixels_packed_floats(const ConvShape& shape, int width);
void pack_conv_pixels(const ConvShape& shape, int width, const float* weights, const WeightStrides& strides,
                      PackShare share, float* packed);

// Phases of the last axis that leave the registers interleaved, of groups of one input and one output channel: short
// vectors of more than two take longer there than from memory.
constexpr int64_t most_depthwise_phases(int width) { return width == 16 ? 4 : 2; }
inline constexpr int64_t depthwise_phase_bytes = 3 * sizeof(void*);  // of an outer phase, in a tile's scratch

// Those phases by the outputs that lie beside each other: output s*q + r of a line adds up products of pixels beside
// each other, columns, of which one in front of the others and one behind them may reach some phases only. A line takes
// as many q as its outputs then, whatever is cropped in front of them.
//
//     s = 2, k = 3, crop 1       column 0: phases 0 1      column 1: phase 1
//     s = 2, k = 4, crop 1       column 0: phase 0         column 1: phases 0 1      column 2: phase 1
class OutputPhases {
 public:
  struct Range {
    int64_t first;
    int64_t end;
    int64_t columns() const { return end > first ? 1 : 0; }
  };

  int64_t count;
  int64_t cropped;      // phases of the un-cropped grid in front of output 0
  int64_t taps;         // stacked
  int64_t first_shift;  // column 0's pixel, from the q of the un-cropped grid on that the first outputs have
  Range lead;           // phases that the column in front reaches; none if there is no such column
  Range trail;          // behind
  int64_t between;      // columns that reach all

  // Of the last axis of a transposed convolution, whose dilation is 1.
  explicit OutputPhases(const ConvAxis& axis)
      : count(axis.phases()), cropped(floor_mod(axis.crop(), count)), taps(axis.stacked_taps().count) {
    const int64_t behind = count - cropped;  // those whose output lies a q further in the un-cropped grid
    const int64_t reached = axis.kernel - count * (taps - 1);  // that have the first of the stacked taps
    first_shift = 1 - taps + (reached <= cropped ? 1 : 0);
    const int64_t last_shift = cropped > 0 ? 1 : 0;
    const auto range = [&](int64_t shift) -> Range {
      const int64_t tap = shift + taps - 1;
      if (tap == 0) return {0, std::min(behind, reached - cropped)};
      return {shift > 0 ? behind : 0, behind + (tap > 1 ? cropped : std::min(cropped, reached))};
    };
    lead = range(first_shift);
    if (lead.first > 0 || lead.columns() == 0 || lead.end == count) lead = {};
    trail = range(last_shift);
    if (last_shift == first_shift && lead.columns() > 0) trail = {};
    if (trail.first == 0 && trail.end == count) trail = {};
    between = last_shift + 1 - first_shift - lead.columns() - trail.columns();
  }

  int64_t columns() const { return lead.columns() + between + trail.columns(); }
  Range reached(int64_t column) const {
    if (column < lead.columns()) return lead;
    return column < lead.columns() + between ? Range{0, count} : trail;
  }

  // Phase `phase` of the outputs, in the un-cropped grid, and which of its stacked taps a column is.
  int64_t uncropped(int64_t phase) const { return phase + cropped - (is_behind(phase) ? count : 0); }
  int64_t tap(int64_t phase, int64_t column) const {
    return first_shift + column + taps - 1 - (is_behind(phase) ? 1 : 0);
  }

 private:
  // Whether it lies a q further in the un-cropped grid.
  bool is_behind(int64_t phase) const { return phase + cropped >= count; }
};

// Floats behind a tile's lines, which are read as whole register blocks.
constexpr int64_t lines_slack(int width) { return 3 * width; }

// Vectors of q that fit beside `columns` columns in the registers.
constexpr int pixel_vectors(int width, int columns) {
  const int registers = width == 16 ? 32 : 16;
  const int vectors = (registers - 1) / (columns + 1);  // one holds a weight
  const int most = width == 16 ? 12 : 6;
  return vectors > most ? most : vectors;
}
constexpr int pixel_columns(int width) { return width == 16 ? 12 : 6; }

}  // namespace polyphase::cpu
