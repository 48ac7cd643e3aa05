// Moves elements between two strided arrangements: layout changes, transposes, slices, concatenation, broadcasting,
// padding.
//
// A copy is a list of regions; a region is a box of elements that one loop nest moves:
//   to[to_offset + Σ i·to_stride] = from[input][from_offset + Σ i·from_stride]        all in bytes
// Axes are sorted and merged at plan time, so that the innermost axis is contiguous in the result where anything is.
// The two innermost axes form a plane that is copied by rows, filled, or transposed in blocks.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/tensor.h"

namespace polyphase::cpu {

struct CopyRegion {
  int32_t input;  // index of the operand; -1: `fill` is written
  int32_t rank;   // of sizes, after merging; at least 2 (leading axes of size 1)
  int64_t sizes[max_rank];
  int64_t from_strides[max_rank];
  int64_t to_strides[max_rank];
  int64_t from_offset;
  int64_t to_offset;
  int64_t first_tile;       // tiles of all regions are numbered in one sequence
  int64_t planes_per_tile;  // > 1: a tile is several whole planes
  int64_t rows_per_tile;    // < sizes[rank-2]: a tile is part of one plane
};

struct CopyPlan {
  int32_t element_bytes;  // 1, 2, 4 or 8
  int32_t region_count;
  int64_t tiles;
  int64_t regions_at;  // byte offset of the CopyRegions in the plan
  uint64_t fill;       // the bits of the fill element
};

// One box before merging; strides and offsets in elements.
struct CopyBox {
  int input = -1;
  std::vector<int64_t> sizes;
  std::vector<int64_t> from_strides;  // ignored where input is -1
  std::vector<int64_t> to_strides;
  int64_t from_offset = 0;
  int64_t to_offset = 0;
};

// Merges axes and cuts tiles. Empty boxes vanish.
std::vector<CopyRegion> plan_copy_regions(std::span<const CopyBox> boxes, int element_bytes, int64_t& tiles);

}  // namespace polyphase::cpu
