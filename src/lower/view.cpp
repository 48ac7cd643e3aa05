// Strides of views.
#include "lower/view.h"

#include "base/check.h"

namespace polyphase {
namespace {

struct Axis {
  Dim size;
  Dim stride;
  int index;
};

// A run of old axes and a run of new ones that hold the same number of elements: (old end, new end), both exclusive.
std::optional<std::pair<std::size_t, std::size_t>> equal_run(const std::vector<Axis>& old_axes, std::size_t i,
                                                             const std::vector<Axis>& new_axes, std::size_t k) {
  const std::size_t longest = old_axes.size() - i + new_axes.size() - k;
  for (std::size_t length = 2; length <= longest; ++length) {
    for (std::size_t a = 1; a < length; ++a) {
      const std::size_t b = length - a;
      if (i + a > old_axes.size() || k + b > new_axes.size()) continue;
      Dim old_product = 1;
      Dim new_product = 1;
      for (std::size_t t = 0; t < a; ++t) old_product *= old_axes[i + t].size;
      for (std::size_t t = 0; t < b; ++t) new_product *= new_axes[k + t].size;
      if (old_product == new_product) return std::pair{i + a, k + b};
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::vector<Dim>> reshape_strides(const Shape& from, const std::vector<Dim>& strides, const Shape& to) {
  std::vector<Axis> old_axes;
  std::vector<Axis> new_axes;
  for (int i = 0; i < from.rank(); ++i) {
    if (!(from[i] == 1)) old_axes.push_back({from[i], strides[static_cast<std::size_t>(i)], i});
  }
  for (int i = 0; i < to.rank(); ++i) {
    if (!(to[i] == 1)) new_axes.push_back({to[i], 1, i});
  }
  std::size_t i = 0;
  std::size_t k = 0;
  while (i < old_axes.size() && k < new_axes.size()) {
    auto run = equal_run(old_axes, i, new_axes, k);
    // All that is left on both sides is equal because the whole is; that needs no proof.
    if (!run.has_value()) run = std::pair{old_axes.size(), new_axes.size()};
    for (std::size_t t = i; t + 1 < run->first; ++t) {
      if (!(old_axes[t].stride == old_axes[t + 1].stride * old_axes[t + 1].size)) return std::nullopt;
    }
    Dim step = old_axes[run->first - 1].stride;
    for (std::size_t t = run->second; t-- > k;) {
      new_axes[t].stride = step;
      step *= new_axes[t].size;
    }
    i = run->first;
    k = run->second;
  }
  if (i < old_axes.size() || k < new_axes.size()) return std::nullopt;
  std::vector<Dim> out(static_cast<std::size_t>(to.rank()), Dim(1));
  for (const Axis& axis : new_axes) out[static_cast<std::size_t>(axis.index)] = axis.stride;
  return out;
}

std::optional<Placement> apply(const View& view, const Shape& parent_shape, const Placement& parent,
                               const Shape& shape) {
  Placement out{parent.offset, {}};
  switch (view.kind) {
    case View::Kind::same: {
      if (shape == parent_shape) return parent;
      auto strides = reshape_strides(parent_shape, parent.strides, shape);
      if (!strides.has_value()) return std::nullopt;
      out.strides = std::move(*strides);
      return out;
    }
    case View::Kind::permute:
      for (const std::int64_t axis : view.order) out.strides.push_back(parent.strides[static_cast<std::size_t>(axis)]);
      return out;
    case View::Kind::window:
      for (std::size_t axis = 0; axis < parent.strides.size(); ++axis) {
        out.offset += view.start[axis] * parent.strides[axis];
        out.strides.push_back(parent.strides[axis] * Dim(view.step[axis]));
      }
      return out;
    case View::Kind::expand: {
      const int added = shape.rank() - parent_shape.rank();
      for (int axis = 0; axis < shape.rank(); ++axis) {
        if (axis < added) {
          out.strides.emplace_back(0);
          continue;
        }
        const Dim& size = parent_shape[axis - added];
        if (size == shape[axis]) {
          out.strides.push_back(parent.strides[static_cast<std::size_t>(axis - added)]);
        } else if (size == 1) {
          out.strides.emplace_back(0);
        } else {
          return std::nullopt;
        }
      }
      return out;
    }
  }
  return std::nullopt;
}

}  // namespace polyphase
