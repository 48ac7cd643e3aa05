// Where grid_sample reads along one axis: up to four places with weights for a coordinate in [-1, 1].
#pragma once

#include <cmath>
#include <cstdint>

namespace polyphase {

enum class GridMode : std::int32_t { linear, nearest, cubic };
enum class GridPadding : std::int32_t { zeros, border, reflection };

struct GridRule {
  GridMode mode = GridMode::linear;
  GridPadding padding = GridPadding::zeros;
  bool align_corners = false;
};

struct GridTaps {
  std::int64_t place[4];  // -1: outside, where the operand counts as 0
  double weight[4];
  int count;
};

// Mirrors at the centres of the outer elements (align_corners) or at their outer edges.
inline double grid_reflected(double at, std::int64_t size, bool align_corners) {
  const double low = align_corners ? 0.0 : -0.5;
  const double span = align_corners ? static_cast<double>(size - 1) : static_cast<double>(size);
  if (span <= 0) return 0;
  const double distance = std::fabs(at - low);
  const double extra = std::fmod(distance, span);
  const bool flipped = std::fmod(std::floor(distance / span), 2.0) != 0;
  return (flipped ? span - extra : extra) + low;
}

inline double grid_bounded(double at, std::int64_t size, const GridRule& rule) {
  if (rule.padding == GridPadding::zeros) return at;
  if (rule.padding == GridPadding::reflection) at = grid_reflected(at, size, rule.align_corners);
  const auto last = static_cast<double>(size - 1);
  return at > 0 ? (at < last ? at : last) : 0;  // NaN gives 0
}

// The element at a whole-numbered coordinate.
inline std::int64_t grid_place(double at, std::int64_t size, const GridRule& rule) {
  at = grid_bounded(at, size, rule);
  if (!(at > -0.5 && at < static_cast<double>(size) - 0.5)) return -1;
  return static_cast<std::int64_t>(std::nearbyint(at));
}

// A coordinate in [-1, 1] in elements: -1 and 1 are the centres of the outer ones (align_corners) or their outer edges.
inline double grid_elements(double coordinate, std::int64_t size, const GridRule& rule) {
  const auto count = static_cast<double>(size);
  return rule.align_corners ? (coordinate + 1) / 2 * (count - 1) : ((coordinate + 1) * count - 1) / 2;
}

inline GridTaps grid_taps(double coordinate, std::int64_t size, const GridRule& rule) {
  double at = grid_elements(coordinate, size, rule);
  GridTaps out{};
  if (rule.mode == GridMode::cubic) {
    const double first = std::floor(at);
    const double t = at - first;
    constexpr double a = -0.75;
    const auto near = [](double d) { return ((a + 2) * d - (a + 3)) * d * d + 1; };
    const auto far = [](double d) { return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a; };
    const double weights[4] = {far(t + 1), near(t), near(1 - t), far(2 - t)};
    out.count = 4;
    for (int i = 0; i < 4; ++i) {
      out.place[i] = grid_place(first + (i - 1), size, rule);
      out.weight[i] = weights[i];
    }
    return out;
  }
  at = grid_bounded(at, size, rule);
  if (rule.mode == GridMode::nearest) {
    out.count = 1;
    out.place[0] = grid_place(std::nearbyint(at), size, rule);
    out.weight[0] = 1;
    return out;
  }
  const double first = std::floor(at);
  out.count = 2;
  out.place[0] = grid_place(first, size, {rule.mode, GridPadding::zeros, false});
  out.place[1] = grid_place(first + 1, size, {rule.mode, GridPadding::zeros, false});
  out.weight[1] = at - first;
  out.weight[0] = 1 - out.weight[1];
  return out;
}

}  // namespace polyphase
