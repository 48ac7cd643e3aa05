// Runs one tile of a copy: rows by memcpy, fills, register transposes, or element by element.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "backends/cpu/kernels/strided_copy.h"
#include "backends/cpu/simd/transpose.h"
#include "backends/cpu/simd/vec.h"

namespace polyphase::cpu::POLYPHASE_CLUSTER {

struct CopyPlane {
  int64_t rows;
  int64_t columns;
  int64_t from_row;  // strides in bytes
  int64_t from_column;
  int64_t to_row;
  int64_t to_column;
};

template <class T>
inline void copy_plane_of(const CopyPlane& p, const std::byte* from, std::byte* to) {
  // Blocks of 16 columns keep both sides' cache lines alive while the rows pass.
  for (int64_t first = 0; first < p.columns; first += 16) {
    const int64_t last = std::min(p.columns, first + 16);
    for (int64_t r = 0; r < p.rows; ++r) {
      const std::byte* source = from + r * p.from_row;
      std::byte* target = to + r * p.to_row;
      for (int64_t c = first; c < last; ++c) {
        T value;
        std::memcpy(&value, source + c * p.from_column, sizeof(T));
        std::memcpy(target + c * p.to_column, &value, sizeof(T));
      }
    }
  }
}

inline void copy_plane_by_elements(const CopyPlane& p, int element_bytes, const std::byte* from, std::byte* to) {
  switch (element_bytes) {
    case 1:
      return copy_plane_of<uint8_t>(p, from, to);
    case 2:
      return copy_plane_of<uint16_t>(p, from, to);
    case 4:
      return copy_plane_of<uint32_t>(p, from, to);
    default:
      return copy_plane_of<uint64_t>(p, from, to);
  }
}

template <class T>
inline void fill_row(std::byte* to, int64_t columns, int64_t stride, T value) {
  if (stride == static_cast<int64_t>(sizeof(T))) {
    T* target = reinterpret_cast<T*>(to);
    std::fill(target, target + columns, value);
    return;
  }
  for (int64_t c = 0; c < columns; ++c) std::memcpy(to + c * stride, &value, sizeof(T));
}

inline void fill_row_bits(std::byte* to, int64_t columns, int64_t stride, int element_bytes, uint64_t bits) {
  switch (element_bytes) {
    case 1:
      return fill_row(to, columns, stride, static_cast<uint8_t>(bits));
    case 2:
      return fill_row(to, columns, stride, static_cast<uint16_t>(bits));
    case 4:
      return fill_row(to, columns, stride, static_cast<uint32_t>(bits));
    default:
      return fill_row(to, columns, stride, bits);
  }
}

__attribute__((noinline)) inline void copy_plane(const CopyPlane& p, int element_bytes, const std::byte* from,
                                                 std::byte* to) {
  if (p.from_column == element_bytes && p.to_column == element_bytes) {
    const auto row_bytes = static_cast<std::size_t>(p.columns * element_bytes);
    for (int64_t r = 0; r < p.rows; ++r) std::memcpy(to + r * p.to_row, from + r * p.from_row, row_bytes);
    return;
  }
  if (p.from_column == 0) {
    for (int64_t r = 0; r < p.rows; ++r) {
      uint64_t bits = 0;
      std::memcpy(&bits, from + r * p.from_row, static_cast<std::size_t>(element_bytes));
      fill_row_bits(to + r * p.to_row, p.columns, p.to_column, element_bytes, bits);
    }
    return;
  }
  const bool crosses = p.from_row == element_bytes && p.to_column == element_bytes;
  if (crosses && element_bytes == 4 && p.from_column % 4 == 0 && p.to_row % 4 == 0) {
    transpose(reinterpret_cast<const float*>(from), p.from_column / 4, reinterpret_cast<float*>(to), p.to_row / 4,
              p.columns, p.rows);
    return;
  }
  if constexpr (vec_width >= 8) {  // where there are instructions for elements of 2 bytes
    if (crosses && element_bytes == 2 && p.rows >= vec_width && p.columns >= 4 && p.from_column % 2 == 0 &&
        p.to_row % 2 == 0) {
      transpose_halves(reinterpret_cast<const uint16_t*>(from), p.from_column / 2, reinterpret_cast<uint16_t*>(to),
                       p.to_row / 2, p.columns, p.rows);
      return;
    }
  }
  copy_plane_by_elements(p, element_bytes, from, to);
}

inline void run_copy_planes(const CopyPlan& plan, const CopyRegion& region, const std::byte* from, std::byte* to,
                            int64_t plane, int64_t first_row, int64_t rows) {
  const int last = region.rank - 1;
  int64_t from_offset = region.from_offset;
  int64_t to_offset = region.to_offset;
  for (int axis = last - 2; axis >= 0; --axis) {
    const int64_t i = plane % region.sizes[axis];
    plane /= region.sizes[axis];
    from_offset += i * region.from_strides[axis];
    to_offset += i * region.to_strides[axis];
  }
  const CopyPlane p{rows,
                    region.sizes[last],
                    region.from_strides[last - 1],
                    region.from_strides[last],
                    region.to_strides[last - 1],
                    region.to_strides[last]};
  std::byte* target = to + to_offset + first_row * p.to_row;
  if (region.input < 0) {
    for (int64_t r = 0; r < rows; ++r)
      fill_row_bits(target + r * p.to_row, p.columns, p.to_column, plan.element_bytes, plan.fill);
    return;
  }
  copy_plane(p, plan.element_bytes, from + from_offset + first_row * p.from_row, target);
}

inline void run_strided_copy(const CopyPlan& plan, const std::byte* const* inputs, std::byte* to, int64_t tile) {
  const auto* regions =
      reinterpret_cast<const CopyRegion*>(reinterpret_cast<const std::byte*>(&plan) + plan.regions_at);
  const CopyRegion* end = regions + plan.region_count;
  const CopyRegion* region =
      std::upper_bound(regions, end, tile, [](int64_t t, const CopyRegion& r) { return t < r.first_tile; }) - 1;
  const std::byte* from = region->input < 0 ? nullptr : inputs[region->input];
  const int64_t local = tile - region->first_tile;
  const int64_t rows = region->sizes[region->rank - 2];
  int64_t planes = 1;
  for (int axis = 0; axis < region->rank - 2; ++axis) planes *= region->sizes[axis];
  if (region->planes_per_tile > 1) {
    const int64_t last = std::min(planes, (local + 1) * region->planes_per_tile);
    for (int64_t plane = local * region->planes_per_tile; plane < last; ++plane)
      run_copy_planes(plan, *region, from, to, plane, 0, rows);
    return;
  }
  const int64_t chunks = (rows + region->rows_per_tile - 1) / region->rows_per_tile;
  const int64_t first = local % chunks * region->rows_per_tile;
  run_copy_planes(plan, *region, from, to, local / chunks, first, std::min(region->rows_per_tile, rows - first));
}

}  // namespace polyphase::cpu::POLYPHASE_CLUSTER
