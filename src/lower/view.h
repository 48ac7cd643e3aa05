// View: how one value lies inside another, as strides over symbolic sizes.
#pragma once

#include <optional>
#include <vector>

#include "base/layout.h"
#include "base/shape.h"

namespace polyphase {

struct View {
  enum class Kind : std::uint8_t {
    same,     // the same elements in the same row-major order, maybe in another shape
    permute,  // axis i is the parent's axis order[i]
    window,   // element i of an axis is the parent's start + i * step
    expand,   // numpy's broadcast_to
  };
  Kind kind = Kind::same;
  std::vector<std::int64_t> order;
  std::vector<Dim> start;
  std::vector<std::int64_t> step;
};

// Strides in elements, by logical axis, and the offset from the root's first element.
struct Placement {
  Dim offset;
  std::vector<Dim> strides;
};

// Strides of the same elements in another shape; nothing where a run of axes is not contiguous, or that cannot be
// proved.
std::optional<std::vector<Dim>> reshape_strides(const Shape& from, const std::vector<Dim>& strides, const Shape& to);
// The view's place, from its parent's.
std::optional<Placement> apply(const View& view, const Shape& parent_shape, const Placement& parent,
                               const Shape& shape);

}  // namespace polyphase
