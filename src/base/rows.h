// Rows: walks several strided tensors of one shape as few long rows, so that a loop pays its set-up once per row.
//
//   sizes 2 3 4, all dense         → one row of 24
//   one operand transposed         → rows along the axis where the first operand lies closest
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "base/shape.h"

namespace polyphase {

enum class RowOrder : std::uint8_t {
  logical,  // rows in index order, each along the last axis: for sums, whose order of additions must not depend on
            // strides
  any,      // whatever is fastest: for work where each element stands alone
};

namespace detail {

template <std::size_t Operands>
struct RowAxis {
  std::int64_t size = 1;
  std::array<std::int64_t, Operands> strides{};
};

template <std::size_t Operands>
bool merges(const RowAxis<Operands>& outer, const RowAxis<Operands>& inner) {
  for (std::size_t i = 0; i < Operands; ++i) {
    if (outer.strides[i] != inner.strides[i] * inner.size) return false;
  }
  return true;
}

}  // namespace detail

// Calls f(offsets, count, steps) for each row: `offsets` and `steps` in elements, one per operand. Every element of
// `sizes` is in exactly one row. RowOrder::any sorts the axes by the strides of operand 0.
template <std::size_t Operands, typename F>
void for_each_row(std::span<const std::int64_t> sizes, const std::array<const std::int64_t*, Operands>& strides,
                  RowOrder order, F&& f) {
  using Axis = detail::RowAxis<Operands>;
  std::array<Axis, max_rank> axes;
  std::size_t rank = 0;
  for (std::size_t axis = 0; axis < sizes.size(); ++axis) {
    if (sizes[axis] == 0) return;
    if (sizes[axis] == 1) continue;
    axes[rank].size = sizes[axis];
    for (std::size_t i = 0; i < Operands; ++i) axes[rank].strides[i] = strides[i][axis];
    ++rank;
  }
  if (order == RowOrder::any) {
    const auto farther = [](const Axis& a, const Axis& b) {
      return (a.strides[0] < 0 ? -a.strides[0] : a.strides[0]) > (b.strides[0] < 0 ? -b.strides[0] : b.strides[0]);
    };
    // Kernels walk rows too, and they do not allocate: std::stable_sort does.
    for (auto next = axes.begin(); next != axes.begin() + rank; ++next)
      std::rotate(std::upper_bound(axes.begin(), next, *next, farther), next, next + 1);
  }
  std::size_t merged = 0;
  for (std::size_t axis = 0; axis < rank; ++axis) {
    if (merged > 0 && detail::merges(axes[merged - 1], axes[axis])) {
      const std::int64_t outer = axes[merged - 1].size;
      axes[merged - 1] = axes[axis];
      axes[merged - 1].size *= outer;
    } else {
      axes[merged++] = axes[axis];
    }
  }
  if (merged == 0) merged = 1;  // a single element: a row of one
  const Axis& row = axes[merged - 1];
  std::array<std::int64_t, max_rank> index{};
  std::array<std::int64_t, Operands> offsets{};
  for (;;) {
    f(static_cast<const std::array<std::int64_t, Operands>&>(offsets), row.size, row.strides);
    std::size_t axis = merged - 1;
    for (;;) {
      if (axis == 0) return;
      --axis;
      const Axis& outer = axes[axis];
      if (++index[axis] < outer.size) {
        for (std::size_t i = 0; i < Operands; ++i) offsets[i] += outer.strides[i];
        break;
      }
      for (std::size_t i = 0; i < Operands; ++i) offsets[i] -= outer.strides[i] * (outer.size - 1);
      index[axis] = 0;
    }
  }
}

}  // namespace polyphase
