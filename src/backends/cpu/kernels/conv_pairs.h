// Convolution and transposed convolution in bf16: operands are rounded to bf16 and multiplied two channels at a time,
// sums are FP32. The plan, which is plain bytes, and the packing.
//
// The image is copied to [depth][line][pixel][channel], channels to an even number, in bf16 and with as many zeros
// around each line as taps reach. Then the taps of all output pixels of a line lie inside of the copy, one row a fixed
// step behind the other: what matrix units and vectors of pairs both read as it is.
//
//     sums[q][column] = Σ_segments Σ_pairs  copy[segment + q * step][pair] · weights[segment][pair][column]
//
// A segment is one tap of the outer axes with all taps of the last axis, which read pixels beside each other; dilated
// ones are segments of their own. A tile owns some lines of q of one depth, a piece of each, and some columns, with the
// phases of the lines and of the pixels, which leave it interleaved. Short lines are joined: rows then run on over the
// zeros between them.
//
// A small image is copied as a whole, in phase 0. A large one would only pass through memory twice more: there a tile
// is a strip, which copies the lines that it reads next to where it has read others, and owns all columns.
//
// Few output channels would leave most of a register of columns empty. Where the strides make up for that, all phases
// are columns: the transposed convolution is a forward one of ceil(k / s) taps over q, whose columns are groups of the
// phases of a pixel, [channel][phase d][phase h], as many in a panel as fit, and its results leave interleaved.
#pragma once

#include <cstdint>

#include "backends/cpu/kernels/conv_disjoint.h"
#include "backends/cpu/kernels/conv_gemm.h"
#include "backends/cpu/kernels/conv_shape.h"
#include "backends/cpu/kernels/conv_winograd.h"
#include "backends/cpu/kernels/endings.h"

namespace polyphase::cpu {

inline constexpr int64_t pair_columns = 16;  // of a register of any cluster, and of a panel of packed weights
inline constexpr int64_t pairs_gathered_pixels = 64;
inline constexpr int64_t pairs_gathered_floats = pair_columns * pairs_gathered_pixels;  // that the copy turns at once

// All phases as columns; dilations are 1.
struct PairsStack {
  bool is_on;
  int64_t channels;    // of the result, in one group
  int64_t strides[3];  // phases
  int64_t first_q[3];  // of the outputs: what the forward convolution calls 0

  int64_t column_groups() const { return channels * strides[0] * strides[1]; }
  int64_t groups_of_panel() const { return pair_columns / strides[2]; }
};

PairsStack stack_pairs(const ConvShape& shape);
// The forward convolution that computes them; `shape` itself where they are none.
ConvShape stacked_shape(const ConvShape& shape, const PairsStack& stack);

// Packed weights, in bf16:
//   [group][outer phase d][outer phase h][phase w][panel][tap d][tap h][tap w][pair of channels][column][2]
struct ConvPairsFormat {
  int64_t channels;  // in, of one group, even
  int64_t columns;   // out channels of one group, to whole registers
  int64_t group_size;

  explicit ConvPairsFormat(const ConvShape& shape);
  ConvPairsFormat() = default;
  int64_t panels() const { return columns / pair_columns; }
};

// Rows a fixed step behind each other times panels of columns: for each row the sum over segments.
struct PairTile {
  const uint16_t* rows;       // the first one
  const int64_t* segments;    // where its segments begin, in elements from `rows`
  const int64_t* weights_at;  // and their weights, in elements from the beginning of a panel
  const uint16_t* panels;
  float* out;
  int64_t row_step;    // elements from row to row
  int64_t panel_step;  // elements from panel to panel
  int64_t out_step;    // floats from row to row of the results
  int64_t segment_count;
  int64_t depth;  // elements of a segment, even
  int64_t row_count;
  int64_t columns;  // of whole panels
};

// Sums of pixels by pair_columns channels, turned: to[c * to_pitch + i] = bf16(sums[i * pitch + c] + bias[c]).
struct PairResults {
  const float* sums;
  int64_t pitch;
  const float* bias;  // of pair_columns channels
  uint16_t* to;       // with room for pair_results_room elements behind the last of a channel
  int64_t to_pitch;
  int64_t count;
};
inline constexpr int64_t pair_results_room = 2 * pair_columns;

// Rows of channels, each a pixel's, on their way to where they belong: as they are in f32, or rounded to bf16.
struct BriefRows {
  const float* values;
  int64_t pitch;        // from row to row
  const float* bias;    // null: none
  const void* added;    // in f32 or, if the endings say so, in bf16; null: none
  int64_t added_pitch;  // from row to row
  void* to;
  int64_t to_pitch;  // elements from row to row
  int64_t rows;
  int64_t columns;
};

// What a cluster multiplies pairs with. Matrix units read and write whole blocks of rows (pair_row_block): what lies
// behind the last row must be there, and the sums behind its own are spoilt.
struct PairUnit {
  void (*prepare)(int64_t depth);  // for products of segments so deep
  void (*multiply)(const PairTile& tile);
  void (*release)();  // after the last product of a tile
  void (*turn)(const PairResults& results);
  void (*store)(const BriefEndings& endings, const BriefRows& rows);
  void (*store_in_bf16)(const BriefEndings& endings, const BriefRows& rows);
  PanelProductFunction multiply_panel;  // conv_disjoint's; null: the cluster has no instruction for vectors of pairs
  const WinogradUnit* winograd;         // likewise
  PixelsTilesOfColumns pixels_tiles;    // conv_pixels'
};
inline constexpr int64_t pair_row_block = 32;
inline constexpr int64_t matrix_rows = 16;  // what is left of rows is rounded up to these

// Output positions of one axis, counted in q over all phases, and those of them that any tap reaches.
struct PairsAxis {
  int64_t begin, end;
  int64_t reached_begin, reached_end;
  int64_t least_shift;     // over the taps of all phases
  int64_t greatest_shift;  // likewise
};

struct ConvPairsPlan {
  ConvShape shape;  // stacked_shape
  ConvShape image;  // as it was before
  PairsStack stack;
  ConvPairsFormat format;
  const PairUnit* unit;
  ImageStrides in;
  ImageStrides out;
  EndingProgram endings;  // without a leading bias
  bool has_bias;
  bool out_planar;
  bool turned_narrow;  // rounded before they are turned
  BriefEndings brief;  // how they are done in one pass with the way out, of images channels-last
  bool endings_join;   // they take no operands: results of several pixels are one run
  bool past_caches;    // output so large that the caches cannot hold it for its reader
  bool taps_joined;    // one segment for all taps of the last axis
  bool lines_joined;   // rows run on from line to line
  bool in_strips;
  bool in_place;  // rows are read from the image: a copy would be the same
  PairsAxis axes[3];
  int64_t first_line, lines;  // of the copy of the whole image; the first lies at this input position
  int64_t first_pixel, pixels;
  int64_t copy_lines;     // of one copying tile
  int64_t ring_lines;     // of a plane that a strip holds
  int64_t strip_pixels;   // of a line that it holds
  int64_t strip_q;        // and the q of a line that it owns
  int64_t ring_elements;  // of all that it holds
  int64_t tail_elements;  // of the image's last rows, whose block ends behind it
  int64_t line_phases;    // phases of lines that a tile holds: all or one
  int64_t line_blocks, lines_per_tile;
  int64_t step_lines;  // of q, whose sums a tile holds at once: all that it owns, but for strips
  int64_t q_blocks;    // pieces of lines that tiles own
  int64_t q_per_tile;  // whose sums a tile holds at once: all that it owns, but for strips
  int64_t column_blocks, columns_per_tile;
  int64_t line_pitch;  // rows from line to line of the sums
  int64_t most_segments;
  int64_t sum_positions;  // of a tile's scratch
  int64_t run_lines;      // output lines that are turned and stored as one run
  int64_t interleaved;    // floats of a line of interleaved results
  int64_t run_pitch;      // floats from channel to channel of it
  int64_t scratch_bytes;
  int64_t shared_bytes;

  int64_t plane_lines() const { return shape.in[0] * lines; }
  int64_t tile_column_blocks() const { return in_strips ? 1 : column_blocks; }
  int64_t copied_lines() const { return in_strips || in_place ? 0 : shape.batch * shape.groups * plane_lines(); }
};

// Whether no tap of the last two axes leaves the image, whose channels are pairs: in bf16 it can be read in place.
bool conv_pairs_stays_inside(const ConvPairsPlan& plan);

// Why the kernel does not take the geometry; empty: it does.
const char* conv_pairs_refuses(const ConvShape& shape);

ConvPairsPlan plan_conv_pairs(const ConvShape& shape, const ImageStrides& in, const ImageStrides& out,
                              const EndingProgram& endings, bool has_bias, const PairUnit* unit);
inline int conv_pairs_phases(const ConvPairsPlan&) { return 2; }
int64_t conv_pairs_tiles(const ConvPairsPlan& plan, int phase);

int64_t conv_pairs_packed_bytes(const ConvShape& shape);
void pack_conv_pairs(const ConvShape& shape, const float* weights, const WeightStrides& strides, PackShare share,
                     uint16_t* packed);

// Where the weights of one phase begin inside those of a group.
inline int64_t conv_pairs_offset(const ConvShape& shape, const ConvPairsFormat& format, const int64_t (&phase)[3]) {
  const ConvAxis d(shape, 0);
  const ConvAxis h(shape, 1);
  const ConvAxis w(shape, 2);
  const int64_t taps_d = d.taps(phase[0]).count;
  const int64_t taps_h = h.taps(phase[1]).count;
  const int64_t before =
      (d.taps_before(phase[0]) * shape.kernel[1] + taps_d * h.taps_before(phase[1])) * shape.kernel[2] +
      taps_d * taps_h * w.taps_before(phase[2]);
  return before * format.channels * format.columns;
}

}  // namespace polyphase::cpu
