// Cuts large images into parts for conv_winograd: how many outputs along each axis.
#include "backends/cpu/kernels/winograd_parts.h"

#include <algorithm>

namespace polyphase::cpu {
namespace {

constexpr int64_t worth_parts = 2 << 20;     // floats of a group's images: smaller ones gain nothing
constexpr int64_t part_floats = 512 * 1024;  // of a part's images, if such a part fills its blocks

// Outputs along an axis that are whole tiles of all its phases, and of the depths that share planes.
int64_t whole_tiles(const ConvShape& s, int a, int64_t depths) {
  const ConvAxis axis(s, a);
  int64_t outputs = a == 0 ? depths : 1;
  for (int64_t r = 0; r < axis.phases(); ++r) {
    const FilterAxis filters(s, a, r);
    if (filters.transformed()) outputs = std::max(outputs, filters.outputs() * filters.output_step());
  }
  return outputs * axis.phases();
}

// How a group's image may be cut into parts.
class PartChoice {
 public:
  // Of a plan for the whole image.
  explicit PartChoice(const ConvWinogradPlan& plan) : s_(plan.shape), depths_(plan.depths), block_(plan.block) {
    units_ = s_.batch * s_.groups;
    for (int a = 0; a < 3; ++a) {
      unit_[a] = whole_tiles(s_, a, depths_);
      count_[a] = ceil_div(s_.out[a], unit_[a]);
      units_ *= count_[a];
    }
    most_blocks_ = 9 * blocks(count_[0], count_[1], count_[2]) / 8;
  }

  // Sets the outputs of a part of at most `floats`, of which there are at least so many, to those that copy and turn
  // least, by output; false if none fills blocks as the whole image does.
  bool find(int64_t floats, int64_t least_parts, int64_t (&part)[3]) const {
    double best = 0;
    for (int64_t d = 1; d <= count_[0]; d *= 2) {
      for (int64_t h = 1; h <= count_[1]; h += 1 + h / 16) {
        const int64_t most = widest(d, h, floats, units_ / least_parts);
        if (most == 0) break;
        const int64_t in_block = std::max<int64_t>(1, block_ / ((depths_ > 1 ? 1 : d) * h));
        for (const int64_t w : {even_pieces(count_[2], most), std::max<int64_t>(1, most / in_block * in_block)}) {
          if (w < count_[2] && outputs(2, w) < least_line) continue;
          const double score = moved(d, h, w);
          if ((best != 0 && score >= best) || blocks(d, h, w) > most_blocks_) continue;
          best = score;
          part[0] = outputs(0, d);
          part[1] = outputs(1, h);
          part[2] = outputs(2, w);
        }
      }
    }
    return best != 0;
  }

 private:
  static constexpr int64_t least_line = 32;  // outputs, of a part that does not have whole lines

  // What all parts of one group need, of phases that all axes transform.
  int64_t blocks(int64_t d, int64_t h, int64_t w) const {
    const int64_t units[3] = {d, h, w};
    int64_t sum = 0;
    for (int last = 0; last < 8; ++last) {  // of which axes the last parts
      int64_t parts = s_.batch;
      int64_t tiles[3];
      for (int a = 0; a < 3; ++a) {
        const int64_t whole = (count_[a] - 1) / units[a];
        const bool is_last = (last >> a & 1) != 0;
        parts *= is_last ? 1 : whole;
        tiles[a] = is_last ? count_[a] - whole * units[a] : units[a];
      }
      const int64_t plane = tiles[1] * tiles[2];
      sum += parts * (depths_ > 1 ? tiles[0] * ceil_div(plane, block_) : ceil_div(tiles[0] * plane, block_));
    }
    return sum;
  }
  // Points along an axis of a part of so many units: of the output, and of what it reads.
  int64_t outputs(int a, int64_t units) const { return std::min(s_.out[a], units * unit_[a]); }
  int64_t inputs(int a, int64_t units) const { return ConvAxis(s_, a).most_read(outputs(a, units)); }
  // Of both images, as if their lines had some points more.
  int64_t floats_of(int64_t d, int64_t h, int64_t w, int64_t more) const {
    return s_.in_channels * inputs(0, d) * inputs(1, h) * (inputs(2, w) + more) +
           s_.out_channels * outputs(0, d) * outputs(1, h) * (outputs(2, w) + more);
  }
  // The most units along the lines; 0 if there is no room.
  int64_t widest(int64_t d, int64_t h, int64_t floats, int64_t most_units) const {
    int64_t least = 0;
    int64_t most = std::min(count_[2], most_units / (d * h));
    while (least < most) {
      const int64_t w = (least + most + 1) / 2;
      if (floats_of(d, h, w, 0) <= floats) {
        least = w;
      } else {
        most = w - 1;
      }
    }
    return least;
  }
  // Floats that are copied and turned, by output; lines cost as if they were longer.
  double moved(int64_t d, int64_t h, int64_t w) const {
    return static_cast<double>(floats_of(d, h, w, 2 * least_line)) /
           static_cast<double>(outputs(0, d) * outputs(1, h) * outputs(2, w));
  }

  const ConvShape& s_;
  int64_t depths_;
  int64_t block_;        // tiles
  int64_t most_blocks_;  // an eighth more than the whole image needs
  int64_t unit_[3];
  int64_t count_[3];
  int64_t units_;  // of all groups and images
};

}  // namespace

void cut_into_parts(ConvWinogradPlan& plan) {
  const ConvShape& s = plan.shape;
  const int64_t whole = s.in_points() * s.in_channels + s.out_points() * s.out_channels;
  if (!plan.in_copied || !plan.out_planar || s.pad_mode != PadMode::zero || plan.n_blocks > 1) return;
  if (whole < worth_parts || s.out_points() == 0) return;
  const PartChoice choice(plan);
  for (const int64_t least_parts : {2 * winograd_blocks_aimed, winograd_blocks_aimed}) {
    for (int64_t floats = part_floats; floats < whole && !plan.parted; floats *= 2) {
      plan.parted = choice.find(floats, least_parts, plan.part);
    }
  }
  for (int a = 0; a < 3 && plan.parted; ++a) plan.parts[a] = ceil_div(s.out[a], plan.part[a]);
}

}  // namespace polyphase::cpu
