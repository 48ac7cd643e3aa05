// The order in which the rows of a conv_gemm tile are multiplied. Where many taps lie outside of the image, as in small
// images and volumes, rows of which the same taps do come behind each other, and register tiles end where these rows
// do: then a tile leaves those taps out.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "backends/cpu/kernels/conv_gemm.h"
#include "backends/cpu/kernels/gemm_tile.h"
#include "backends/cpu/kernels/scratch_pieces.h"

namespace polyphase::cpu::POLYPHASE_CLUSTER {

class RowOrder {
 public:
  RowOrder() = default;
  RowOrder(int64_t rows, std::byte* scratch) {
    ScratchPieces pieces(scratch);
    taps_ = pieces.next<uint64_t>(rows);
    tile_taps_ = pieces.next<uint64_t>(rows);
    moved_ = pieces.next<const float*>(rows);
    outs_ = pieces.next<float*>(rows);
    at_ = pieces.next<int32_t>(rows);
    starts_ = pieces.next<int32_t>(rows + 1);
  }

  // The rows stay as they are.
  void clear() { count_ = 0; }
  bool sorts() const { return count_ > 0; }

  // Sorts the pointers of `segments` taps to `count` rows, and those to their results; a tap outside leads to `zeros`.
  // Where few taps lie outside, nothing is done.
  __attribute__((noinline)) void sort(const float** rows, float* const* outs, int64_t count, int32_t segments,
                                      const float* zeros) {
    find_taps(rows, count, segments, zeros);
    if (outside_ * least_outside < count * segments) return;
    group(static_cast<int32_t>(count));
    for (int32_t s = 0; s < segments; ++s) {
      const float** const of_tap = rows + s * count;
      for (int64_t i = 0; i < count; ++i) moved_[i] = of_tap[at_[i]];
      std::copy_n(moved_, count, of_tap);
    }
    for (int64_t i = 0; i < count; ++i) outs_[i] = outs[at_[i]];
    count_ = static_cast<int32_t>(count);
    most_ = 0;
  }

  // Of row i in this order.
  int64_t row(int64_t i) const { return at_[i]; }
  float* const* outs() const { return outs_; }

  // Into register tiles of up to `most` rows. Rows alike are divided evenly; few of them are joined with those that
  // follow.
  __attribute__((noinline)) void cut(int most) {
    if (most == most_) return;
    most_ = most;
    tiles_ = 0;
    starts_[0] = 0;
    int32_t open = 0;  // where the tile begins that may still grow
    for (int32_t begin = 0, end = 0; begin < count_; begin = end) {
      while (end < count_ && taps_[at_[end]] == taps_[at_[begin]]) ++end;
      if (open < begin && end - open > most) close(begin, open);
      if (end - open >= least_rows) {
        const int32_t pieces = static_cast<int32_t>(ceil_div(int64_t{end - open}, int64_t{most}));
        for (int32_t k = pieces; k > 0; --k) close(open + (end - open + k - 1) / k, open);
      }
    }
    if (open < count_) close(count_, open);
  }
  int32_t tiles() const { return tiles_; }
  int rows_of(int32_t tile) const { return starts_[tile + 1] - starts_[tile]; }
  // The taps that lie outside for all rows of a tile, by bit.
  uint64_t outside(int32_t tile) const { return tile_taps_[tile]; }

 private:
  static constexpr int64_t least_outside = 8;  // a part of all taps of all rows
  static constexpr int least_rows = 4;         // of two vectors: fewer sums wait for each other

  void find_taps(const float* const* rows, int64_t count, int32_t segments, const float* zeros) {
    outside_ = 0;
    std::fill_n(taps_, count, 0);
    for (int32_t s = 0; s < segments; ++s) {
      for (int64_t i = 0; i < count; ++i) {
        if (rows[s * count + i] != zeros) continue;
        taps_[i] |= uint64_t{1} << static_cast<unsigned>(s);
        ++outside_;
      }
    }
  }

  // Rows alike behind each other, as the first of them came: there are few kinds.
  void group(int32_t count) {
    int32_t placed = 0;
    for (int32_t i = 0; placed < count; ++i) {
      if (std::find(taps_, taps_ + i, taps_[i]) != taps_ + i) continue;
      for (int32_t j = i; j < count; ++j) {
        if (taps_[j] == taps_[i]) at_[placed++] = j;
      }
    }
  }

  void close(int32_t end, int32_t& open) {
    uint64_t taps = ~uint64_t{0};
    for (; open < end; ++open) taps &= taps_[at_[open]];
    tile_taps_[tiles_] = taps;
    starts_[++tiles_] = end;
  }

  uint64_t* taps_ = nullptr;  // of a row, in the order as they came
  uint64_t* tile_taps_ = nullptr;
  const float** moved_ = nullptr;  // of one tap
  float** outs_ = nullptr;
  int32_t* at_ = nullptr;
  int32_t* starts_ = nullptr;
  int64_t outside_ = 0;
  int32_t count_ = 0;
  int32_t tiles_ = 0;
  int most_ = 0;
};

}  // namespace polyphase::cpu::POLYPHASE_CLUSTER
