// Plans copies: sorts and merges axes, picks the plane, cuts tiles.
#include <algorithm>
#include <cstdlib>

#include "backends/cpu/kernels/strided_copy.h"
#include "base/check.h"

namespace polyphase::cpu {
namespace {

constexpr int64_t tile_bytes = 128 * 1024;

struct Axis {
  int64_t size;
  int64_t from;
  int64_t to;
};

// Result-major order: large result strides outside. Axes that continue each other in both arrangements become one.
std::vector<Axis> merged_copy_axes(const CopyBox& box, int element_bytes) {
  std::vector<Axis> axes;
  for (std::size_t i = 0; i < box.sizes.size(); ++i) {
    if (box.sizes[i] == 1) continue;
    const int64_t from = box.input < 0 ? 0 : box.from_strides[i] * element_bytes;
    axes.push_back({box.sizes[i], from, box.to_strides[i] * element_bytes});
  }
  std::stable_sort(axes.begin(), axes.end(), [](const Axis& a, const Axis& b) { return a.to > b.to; });
  std::vector<Axis> out;
  for (const Axis& axis : axes) {
    if (!out.empty() && out.back().to == axis.to * axis.size && out.back().from == axis.from * axis.size) {
      out.back() = {out.back().size * axis.size, axis.from, axis.to};
    } else {
      out.push_back(axis);
    }
  }
  while (out.size() < 2) out.insert(out.begin(), Axis{1, 0, 0});
  // The plane's rows: if the innermost axis is not contiguous in the operand, the axis that is goes next to it.
  const std::size_t last = out.size() - 1;
  if (box.input >= 0 && out[last].from != element_bytes && out[last].from != 0) {
    for (std::size_t i = 0; i < last; ++i) {
      if (std::abs(out[i].from) == element_bytes) {
        std::rotate(out.begin() + static_cast<std::ptrdiff_t>(i), out.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                    out.begin() + static_cast<std::ptrdiff_t>(last));
        break;
      }
    }
  }
  return out;
}

}  // namespace

std::vector<CopyRegion> plan_copy_regions(std::span<const CopyBox> boxes, int element_bytes, int64_t& tiles) {
  std::vector<CopyRegion> regions;
  tiles = 0;
  for (const CopyBox& box : boxes) {
    if (std::find(box.sizes.begin(), box.sizes.end(), 0) != box.sizes.end()) continue;
    const std::vector<Axis> axes = merged_copy_axes(box, element_bytes);
    CHECK(axes.size() <= max_rank);
    CopyRegion region{};
    region.input = box.input;
    region.rank = static_cast<int32_t>(axes.size());
    for (std::size_t i = 0; i < axes.size(); ++i) {
      region.sizes[i] = axes[i].size;
      region.from_strides[i] = axes[i].from;
      region.to_strides[i] = axes[i].to;
    }
    region.from_offset = box.from_offset * element_bytes;
    region.to_offset = box.to_offset * element_bytes;
    region.first_tile = tiles;
    const int64_t rows = axes[axes.size() - 2].size;
    const int64_t row_bytes = axes.back().size * element_bytes;
    int64_t planes = 1;
    for (std::size_t i = 0; i + 2 < axes.size(); ++i) planes *= axes[i].size;
    const int64_t wanted_rows = std::max<int64_t>(16, tile_bytes / row_bytes / 16 * 16);
    region.rows_per_tile = std::min(rows, wanted_rows);
    region.planes_per_tile = std::max<int64_t>(1, wanted_rows / rows);
    tiles += region.planes_per_tile > 1 ? ceil_div(planes, region.planes_per_tile)
                                        : planes * ceil_div(rows, region.rows_per_tile);
    regions.push_back(region);
  }
  return regions;
}

}  // namespace polyphase::cpu
