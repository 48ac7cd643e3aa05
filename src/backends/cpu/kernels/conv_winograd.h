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
// where m = v * u becomes one matrix product over the channels per point. Where only one axis has taps that meet, four
// or six of these are filtered twice: F(2, 2) or F(2, 3) of pairs of taps, each of whose products is an F(2, 2), so
// that four outputs need nine or twelve products where each level alone leaves twelve or sixteen. It is the
// two-dimensional filtering above with both directions along one axis, the outer one with double steps, and as exact.
// Each phase of a transposed convolution is such a convolution with the taps it receives: k = 4, s = 2 needs 9 products
// where there were 16. Longer filters are sums of short ones (five taps are three and two; seven, filtered twice, are
// six and one), a forward stride splits the taps by residue, dilation pairs outputs that lie `dilation` apart. An axis
// on which nothing is saved stays as it is: one output, one point per tap. The factors are 1 and 1/2, so the rounding
// error stays of the direct sum's size: below 2 gamma_K sum |x||w|, also of inputs whose sizes differ by orders of
// magnitude, where the sums of all filtered phases have enough terms, channels by taps (winograd_keeps_bound); of
// fewer, an input that stands out and is not the output's own may weigh more than all that are. An infinity may become
// a NaN, where direct sums keep its sign.
//
// Under automatic precision (ConvShape::fours) four outputs are filtered at once, with the points of Toom and Cook at
// 0, ±3/4, ±3/2 and infinity, or without -3/2 (Blahut, Fast Algorithms for Signal Processing, 5; the choice of points
// after Barabasz et al., arXiv:1803.10986): 36 products of 4x4 outputs of 3x3 taps, where F(2, 3) takes 64 and direct
// sums 144.
//
//     F(4, 2)   v = 27/32 d0 - 9/16 d1 - 3/2 d2 + d3,   d3 - 3/4 d2 - 9/8 d1,   d3 - 9/4 d2 + 9/8 d1,   d3 - 9/16 d1,
//                   d4 - 3/2 d3 - 9/16 d2 + 27/32 d1
//     F(4, 3)   v = 81/64 d0 - 45/16 d2 + d4,   d4 - 9/4 d2 ± 3/4 (d3 - 9/4 d1),   d4 - 9/16 d2 ± 3/2 (d3 - 9/16 d1),
//                   81/64 d1 - 45/16 d3 + d5
//
// Its rounding error is some two to three times a direct sum's in the L2 norm. It is of the size of all that a tile
// reads, so that single outputs whose own inputs are small beside those of their neighbours have a larger one.
//
// In bf16 (ConvShape::products) both v and u are rounded, sums are FP32: relative to a tensor's L2 norm the error is at
// most some 6e-3 (4.5e-3 of many sums, where both directions have two taps; a result of few elements strays from it, to
// 1e-2), where rounding x and w themselves leaves 2.4e-3.
//
// A tile here is the outputs that one transform yields, up to 4 in each direction; a block is what a worker computes at
// once:
//
//     tiles [t0, t0 + block) of one phase and group, in the order of their outputs   x   columns [n0, n1)
//
// Where depths that lie beside each other read the same planes, a block has the tiles of several depths, and each plane
// is transformed once: the row of the next depth begins one plane later.
//
// Where there are so few blocks that threads would lack work, columns are divided among more of them, and all inputs
// are transformed first, into memory that blocks share.
//
// Large channels-first images are cut into parts, boxes of outputs of a group: a worker copies what a part reads
// channels-last, computes all phases of it, and turns the result back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <vector>

#include "backends/cpu/kernels/conv_gemm.h"
#include "backends/cpu/kernels/conv_shape.h"
#include "backends/cpu/kernels/endings.h"
#include "kernel/row.h"

namespace polyphase::cpu {

// The lengths that a filter may have along an axis: of one output, and of two and four outputs one to three taps.
struct WinogradLength {
  int outputs;
  int taps;
  constexpr int points() const { return outputs + taps - 1; }
};
inline constexpr WinogradLength winograd_lengths[] = {{1, 1}, {2, 1}, {2, 2}, {2, 3}, {4, 1}, {4, 2}, {4, 3}};
inline constexpr std::size_t winograd_pair_of_one_tap = 1;  // of winograd_lengths, those of more taps behind it
inline constexpr std::size_t winograd_four_of_one_tap = 4;
inline constexpr int winograd_most_taps = 3;    // in a direction
inline constexpr int winograd_most_points = 6;  // there
inline constexpr int winograd_most_outputs = 4;

// Filters of the same length along an axis. `outer` and `inner` are of winograd_lengths: an axis that is filtered once
// has but inner ones.
struct AxisFamily {
  std::size_t outer;
  std::size_t inner;
  int64_t more, less;          // filters of each class of taps that has more than the others, or fewer
  int64_t more_tap, less_tap;  // the first of theirs in such a class

  int taps() const { return winograd_lengths[outer].taps * winograd_lengths[inner].taps; }
  int points() const { return winograd_lengths[outer].points() * winograd_lengths[inner].points(); }
};

// One axis of one phase as a sum of short filters over a grid of outputs q.
class FilterAxis {
 public:
  static constexpr int most_families = 3;

  FilterAxis() = default;
  // `axis` 0 (depth) is never transformed.
  FilterAxis(const ConvShape& shape, int axis, int64_t phase);

  bool transformed() const { return outputs_ > 1; }
  bool nested() const { return nested_; }      // filtered twice
  int outputs() const { return outputs_; }     // of a tile
  int64_t taps() const { return all_.count; }  // of all filters
  int family_count() const { return family_count_; }
  const AxisFamily& family(int index) const { return families_[index]; }
  int64_t filters(const AxisFamily& family) const { return many_ * family.more + (residues_ - many_) * family.less; }
  int64_t output_step() const { return output_step_; }  // between the outputs of a tile
  int64_t point_step() const { return point_step_; }    // between the inputs of a tile
  // Points of all filters, and of all families.
  int64_t lines() const;
  int64_t family_points() const;

  int64_t tiles(int64_t count) const {
    if (!transformed()) return count;
    const int64_t apart = spread(count);
    return apart == 0 ? 0 : apart * ceil_div(ceil_div(count, apart), outputs_);
  }
  // The first output of a tile, counted from the first of `count`.
  int64_t first_output(int64_t tile, int64_t count) const {
    if (!transformed()) return tile;
    const int64_t apart = spread(count);
    return tile % apart + tile / apart * outputs_ * output_step_;
  }
  // Tiles from this one on whose first outputs lie equally far apart, and how far.
  struct Run {
    int64_t tiles;
    int64_t step;
  };
  Run run_of(int64_t tile, int64_t count) const {
    if (!transformed()) return {count - tile, 1};
    const int64_t apart = spread(count);
    if (apart == 1) return {tiles(count) - tile, outputs_ * output_step_};
    return {apart - tile % apart, 1};
  }
  int64_t first_input(int64_t q) const { return step_ * q + all_.first_shift; }  // of the first filter
  // f(at) for each filter of a family: where the first input of the tile whose first output is q lies.
  template <class F>
  void each_filter(const AxisFamily& family, int64_t q, F f) const {
    for (int64_t residue = 0; residue < residues_; ++residue) {
      const int64_t at = first_input(q) + residue;
      const int64_t first = residue < many_ ? family.more_tap : family.less_tap;
      const int64_t count = residue < many_ ? family.more : family.less;
      for (int64_t i = 0; i < count; ++i) f(at + (first + i * family.taps()) * point_step_);
    }
  }
  // Kernel index of a filter's tap.
  int64_t kernel_index(const AxisFamily& family, int64_t filter, int64_t tap) const;

 private:
  void add_family(std::size_t outer, std::size_t inner, int64_t more, int64_t less);
  // Into filters of so many outputs, the shortest of which is winograd_lengths[one_tap].
  void split_once(int outputs, std::size_t one_tap);
  void split_twice();
  int64_t spread(int64_t count) const { return output_step_ < count ? output_step_ : count; }

  AxisTaps all_ = {};
  int outputs_ = 1;
  bool nested_ = false;
  int64_t step_ = 1;                         // input positions from output to output
  int64_t residues_ = 1;                     // classes of taps `step_` apart
  int64_t many_ = 1;                         // of them that have one tap more than the others
  AxisFamily families_[most_families] = {};  // the longer filters have the first taps
  int family_count_ = 0;
  int64_t output_step_ = 1;
  int64_t point_step_ = 1;
};

// The last two axes of one phase. Points and outputs of a tile lie in two directions: along both axes, or, where an
// axis is filtered twice and the other not at all, both along that one, the first with double steps.
class FilterPlane {
 public:
  // Filters of the same lengths along both axes: their products are one matrix product.
  struct Family {
    const AxisFamily* h;
    const AxisFamily* w;
    std::size_t lengths[2];  // of winograd_lengths, in each direction
    int64_t filters;
    int points(int direction) const { return winograd_lengths[lengths[direction]].points(); }
    int points() const { return points(0) * points(1); }
  };

  FilterPlane() = default;
  FilterPlane(const ConvShape& shape, int64_t phase_h, int64_t phase_w) : h(shape, 1, phase_h), w(shape, 2, phase_w) {}

  int outputs(int direction) const {  // of a tile
    return nested() ? 2 : direction == 0 ? h.outputs() : w.outputs();
  }
  bool nested() const { return h.nested() || w.nested(); }
  // Along the height and along the lines, point or tap (i, j) is so many steps behind the first one, and so is an
  // output.
  int64_t steps_h(int64_t i, int64_t j) const { return h.nested() ? 2 * i + j : w.nested() ? 0 : i; }
  int64_t steps_w(int64_t i, int64_t j) const { return w.nested() ? 2 * i + j : h.nested() ? 0 : j; }

  // f(family) in the order of the packed weights.
  template <class F>
  void each_family(F f) const {
    for (int i = 0; i < h.family_count(); ++i) {
      for (int j = 0; j < w.family_count(); ++j) {
        const AxisFamily& of_h = h.family(i);
        const AxisFamily& of_w = w.family(j);
        const AxisFamily& twice = h.nested() ? of_h : of_w;
        f(Family{&of_h,
                 &of_w,
                 {nested() ? twice.outer : of_h.inner, nested() ? twice.inner : of_w.inner},
                 h.filters(of_h) * w.filters(of_w)});
      }
    }
  }

  FilterAxis h;
  FilterAxis w;
};

// What the packed weights look like; depends on the weights' shape, strides and dilations, and on the vector width
// only.
//   [group][phase d][phase h][phase w][family h][family w][panel][point in both directions]
//                                                    [filter d][filter h][filter w][word][vectors * width]
// where a word is an input channel, or a pair of them in bf16.
struct ConvWinogradFormat {
  int32_t width;
  int64_t columns;     // out_channels
  int64_t group_size;  // elements of one group

  ConvWinogradFormat(const ConvShape& shape, int width);
  ConvWinogradFormat() = default;
};

// The inputs of tiles beside each other, of one filter and all channels.
struct WinogradInputs {
  std::size_t lengths[2];    // of winograd_lengths, in each direction
  const float* const* from;  // of the first tile: [point in both directions]; the channels lie beside each other
  int64_t step;              // floats from tile to tile; the last points of the next one are fetched
  int64_t tiles;
  int64_t channels;
  float* to;      // the first tile's words of the first point; whole vectors are written
  int64_t pitch;  // words from tile to tile
  int64_t apart;  // words from point to point
};
// One point's transformed inputs times a panel of columns. Of pairs, whole register tiles of rows are read and written.
struct WinogradProduct {
  const float* rows;   // words
  int64_t pitch;       // from row to row
  const float* panel;  // [word][vectors * width]
  int64_t depth;       // words of a row
  int64_t row_count;
  int vectors;
  float* out;         // [row][vectors * width]
  const float* next;  // the panel that is multiplied after this one, fetched meanwhile
};
// What a cluster transforms inputs and multiplies them with, in floats or in pairs.
struct WinogradUnit {
  void (*transform[std::size(winograd_lengths)][std::size(winograd_lengths)])(
      const WinogradInputs&);  // [of each direction]
  void (*multiply)(const WinogradProduct&);
};

struct ConvWinogradPlan {
  ConvShape shape;
  ConvWinogradFormat format;
  const WinogradUnit* pairs;  // of pairs, where the shape multiplies them
  ImageStrides in;
  ImageStrides out;
  EndingProgram endings;  // without a leading bias
  bool has_bias;
  bool in_copied;        // a channels-first or narrow input is copied channels-last, by the first phase or for a part
  bool out_planar;       // the result is turned channels-first, or narrowed, by the last phase or part by part
  bool parted;           // one phase does all, a part at a time; blocks are those of a part
  int64_t part[3];       // its outputs along each axis, each of which begins with the first output of a tile
  int64_t parts[3];      // of one group and image
  bool past_caches;      // which is so large that the caches cannot hold it for its reader
  BriefEndings brief;    // done in registers, if they are all
  int64_t phases;        // of all axes
  int64_t depths;        // outputs along the depth whose tiles share planes; 1: tiles run on from depth to depth
  int64_t block;         // tiles of a block, of each depth
  int64_t blocks;        // of one phase and group
  int64_t plane_blocks;  // of them, of one group of depths
  int64_t n_block;       // columns of a block, a multiple of a panel
  int64_t together;      // panels that each point's inputs are multiplied with before the next point's
  int64_t n_blocks;
  int64_t input_pieces;  // of a block, that are transformed by a phase of their own; 0: a block transforms its input
  int64_t input_words;   // of the transformed input of a block: whole cache lines, as winograd_pitch is
  int64_t max_points;    // of a family
  int64_t max_outputs;   // of a tile
  int64_t turn_points;
  int64_t inputs_at;     // elements from the start of `shared` to the transformed inputs of all blocks
  int64_t result_at;     // elements from the start of `shared`, or of a part's images, to the result of the products
  int64_t images_bytes;  // of a part's images, at the front of the scratch
  int64_t scratch_bytes;
  int64_t shared_bytes;

  int64_t group_parts() const { return shape.batch * parts[0] * parts[1] * parts[2]; }  // of one group, all images
  int64_t input_blocks() const { return shape.groups * blocks * phases; }               // whatever their columns
};

inline constexpr int64_t winograd_most_depths = 4;
inline constexpr int64_t winograd_phases = 4096;  // the most: all are looked at one by one

// A block is whole register tiles of every width: those of three vectors have fewer rows.
constexpr int64_t winograd_block_rows(int width) { return width == 16 ? 24 : 12; }

// What the products of all phases are made of, for estimates.
struct WinogradWork {
  double lines;   // rows of the products times the filters that each sums, per channel
  double points;  // rows of the products
};
WinogradWork conv_winograd_work(const ConvShape& shape);

// What a phase reads of the packed weights, once for each of its blocks that holds tiles.
struct PhaseWeights {
  double floats;  // of one group
  double blocks;  // of one group and all images
};
std::vector<PhaseWeights> conv_winograd_weights(const ConvWinogradPlan& plan);

// Whether the error of each output stays in its bound. Of 20,000 drawn layers whose inputs are spread over e^±6, those
// of 256 terms and more came to 0.42 of it, of 128 with 32 channels to 0.33; of 64 to 128 terms some beyond it. Of
// 29,000 at the edge of this rule one element came to 1.06.
bool winograd_keeps_bound(const ConvShape& shape);
// Whether an axis of some phase is transformed; of fours, whether both are: a line that is filtered twice needs as few
// products. For no more than winograd_phases.
bool conv_winograd_takes(const ConvShape& shape);
ConvWinogradPlan plan_conv_winograd(const ConvShape& shape, const ImageStrides& in, const ImageStrides& out,
                                    const EndingProgram& endings, bool has_bias, int width);
int64_t conv_winograd_tiles(const ConvWinogradPlan& plan, int phase);
// Words from tile to tile of a family's transformed input, `depth` of which are used.
inline int64_t winograd_pitch(int64_t depth, int width) {
  const int64_t whole = ceil_div(depth + width, 16) * 16;  // whole vectors are written
  return whole % 64 == 0 ? whole + 16 : whole;             // rows a multiple of a page apart would share cache sets
}
inline int conv_winograd_phases(const ConvWinogradPlan& plan) {
  return plan.parted ? 1 : 1 + (plan.in_copied ? 1 : 0) + (plan.input_pieces > 0 ? 1 : 0) + (plan.out_planar ? 1 : 0);
}

int64_t conv_winograd_packed_floats(const ConvShape& shape, int width);
void pack_conv_winograd(const ConvShape& shape, int width, const float* weights, const WeightStrides& strides,
                        PackShare share, float* packed);

// Where a phase's panels begin in the packed weights of a group, in lines of all columns.
int64_t conv_winograd_line(const ConvShape& shape, int64_t phase_d, int64_t phase_h, int64_t phase_w);

}  // namespace polyphase::cpu
