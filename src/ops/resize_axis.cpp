// The coordinate rules and interpolation kernels of resize.
#include "ops/resize_axis.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace polyphase {
namespace {

// The operand's coordinate of result place x (ONNX Resize, coordinate_transformation_mode).
double coordinate_of(const ResizeAxis& axis, const std::string& rule, std::int64_t place) {
  const auto x = static_cast<double>(place);
  const auto in = static_cast<double>(axis.in);
  const auto out = static_cast<double>(axis.out);
  if (rule == "half_pixel") return axis.unscaled(x + 0.5) - 0.5;
  if (rule == "pytorch_half_pixel") return axis.out > 1 ? axis.unscaled(x + 0.5) - 0.5 : 0;
  if (rule == "align_corners") return axis.out > 1 ? x * (in - 1) / (out - 1) : 0;
  if (rule == "asymmetric") return axis.unscaled(x);
  if (rule == "tf_half_pixel_for_nn") return axis.unscaled(x + 0.5);
  if (rule == "half_pixel_symmetric") {
    const double adjustment = out / (axis.scale() * in);  // sizes are rounded; the centre stays in the centre
    return in / 2 * (1 - adjustment) + axis.unscaled(x + 0.5) - 0.5;
  }
  CHECK(rule == "tf_crop_and_resize");
  return axis.out > 1 ? axis.roi_start * (in - 1) + x * (axis.roi_end - axis.roi_start) * (in - 1) / (out - 1)
                      : 0.5 * (axis.roi_start + axis.roi_end) * (in - 1);
}

std::int64_t nearest_place(double coordinate, const std::string& rule, std::int64_t size) {
  double place = std::ceil(coordinate);
  if (rule == "floor") place = std::floor(coordinate);
  if (rule == "round_prefer_floor") place = std::ceil(coordinate - 0.5);
  if (rule == "round_prefer_ceil") place = std::floor(coordinate + 0.5);
  return static_cast<std::int64_t>(std::clamp(place, 0.0, static_cast<double>(size - 1)));
}

// The kernels of linear interpolation and of cubic convolution (Keys 1981, with coefficient a).
double linear_weight(double distance) { return std::max(0.0, 1 - std::fabs(distance)); }
double cubic_weight(double distance, double a) {
  const double t = std::fabs(distance);
  if (t <= 1) return ((a + 2) * t - (a + 3)) * t * t + 1;
  if (t < 2) return ((a * t - 5 * a) * t + 8 * a) * t - 4 * a;
  return 0;
}

// The operand's places under the interpolation kernel around a coordinate; antialiasing widens the kernel when
// shrinking.
std::vector<WeightedPlace> weights_at(double coordinate, const ResizeAxis& axis, const Attributes& attributes) {
  const bool cubic = attributes.get<std::string>("mode") == "cubic";
  const bool exclude_outside = attributes.get<bool>("exclude_outside");
  const double a = attributes.get<double>("cubic_coefficient");
  const double narrow = attributes.get<bool>("antialias") ? std::min(axis.scale(), 1.0) : 1.0;
  const double base = std::floor(coordinate);
  const auto first = static_cast<std::int64_t>(std::floor((cubic ? -2 : -1) / narrow)) + 1;
  std::vector<WeightedPlace> out;
  double sum = 0;
  for (std::int64_t i = first; i <= 1 - first; ++i) {
    const double distance = (static_cast<double>(i) - (coordinate - base)) * narrow;
    const double weight = cubic ? cubic_weight(distance, a) : linear_weight(distance);
    const double place = base + static_cast<double>(i);
    const double inside = std::clamp(place, 0.0, static_cast<double>(axis.in - 1));
    if (weight == 0 || (exclude_outside && inside != place)) continue;
    out.push_back({static_cast<std::int64_t>(inside), weight});
    sum += weight;
  }
  for (WeightedPlace& entry : out) entry.weight /= sum;
  return out;
}

// Whether a coordinate lies outside the operand where that makes the element the extrapolation value.
bool extrapolates(const ResizeAxis& axis, const std::string& rule, double coordinate) {
  return rule == "tf_crop_and_resize" && (coordinate < 0 || coordinate > static_cast<double>(axis.in - 1));
}

}  // namespace

ResizeAxis resize_axis(const Attributes& attributes, std::size_t i, std::int64_t in, std::int64_t out) {
  const auto& scales = attributes.get<std::vector<double>>("scales");
  const auto& roi = attributes.get<std::vector<double>>("roi");
  ResizeAxis axis{in, out};
  if (!scales.empty()) axis.given_scale = scales[i];
  if (!roi.empty()) {
    axis.roi_start = roi[i];
    axis.roi_end = roi[i + roi.size() / 2];
  }
  return axis;
}

bool resize_extrapolates(const Attributes& attributes, const ResizeAxis& axis, std::int64_t place) {
  const auto& rule = attributes.get<std::string>("coordinate");
  return extrapolates(axis, rule, coordinate_of(axis, rule, place));
}

std::vector<WeightedPlace> resize_sources(const Attributes& attributes, const ResizeAxis& axis, std::int64_t place) {
  const auto& rule = attributes.get<std::string>("coordinate");
  const double coordinate = coordinate_of(axis, rule, place);
  if (extrapolates(axis, rule, coordinate)) return {};
  if (attributes.get<std::string>("mode") == "nearest") {
    return {{nearest_place(coordinate, attributes.get<std::string>("nearest"), axis.in), 1.0}};
  }
  return weights_at(coordinate, axis, attributes);
}

}  // namespace polyphase
