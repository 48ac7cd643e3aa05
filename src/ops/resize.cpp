// resize: nearest, linear and cubic resampling along any axes, by the coordinate rules of ONNX.
#include <algorithm>
#include <cmath>

#include "ops/dense.h"
#include "ops/families.h"
#include "ops/pick.h"

namespace polyphase {
namespace {

using Reals = std::vector<double>;

Result<std::vector<Type>> infer_resize(const InferContext& context) {
  const Type& x = context.input(0);
  const Attributes& given = context.attributes();
  const auto rank = static_cast<std::size_t>(x.shape.rank());
  const auto& sizes = given.get<std::vector<Dim>>("sizes");
  const auto& scales = given.get<Reals>("scales");
  const auto& roi = given.get<Reals>("roi");
  if (x.dtype == DType::boolean && given.get<std::string>("mode") != "nearest") {
    return Error{ErrorCode::invalid_model,
                 "resize: only mode nearest takes bool, found mode " + given.get<std::string>("mode") + "."};
  }
  if (sizes.size() != rank) {
    return Error{ErrorCode::invalid_model, "resize: attribute 'sizes' must have one entry per axis of " + x.text() +
                                               ", found " + print_attribute(sizes) + "."};
  }
  const bool sane =
      std::all_of(scales.begin(), scales.end(), [](double scale) { return scale >= 0x1p-31 && scale <= 0x1p31; });
  if ((!scales.empty() && scales.size() != rank) || !sane) {
    return Error{ErrorCode::invalid_model,
                 "resize: attribute 'scales' must be empty or have one entry between 2^-31 and 2^31 per axis of " +
                     x.text() + ", found " + print_attribute(scales) + "."};
  }
  const bool crops = given.get<std::string>("coordinate") == "tf_crop_and_resize";
  const bool finite = std::all_of(roi.begin(), roi.end(), [](double place) { return std::isfinite(place); });
  if (!finite || (crops ? roi.size() != 2 * rank : !roi.empty())) {
    return Error{ErrorCode::invalid_model,
                 "resize: attribute 'roi' must have a finite start for every axis and then an end for every axis with "
                 "coordinate "
                 "tf_crop_and_resize, and be empty otherwise, found " +
                     print_attribute(roi) + "."};
  }
  for (std::size_t i = 0; i < rank; ++i) {
    const Dim& size = x.shape[static_cast<int>(i)];
    if (sizes[i] == size) continue;
    TRY_VOID(context.require(
        min(sizes[i], 1), DimCheck::Relation::less_equal, size,
        "resize: axis " + std::to_string(i) + " of " + x.text() + " has no element to take values from."));
  }
  return std::vector<Type>{{x.dtype, Shape(sizes)}};
}

// One axis of the resampling. `scale` is out/in; where it is not given the exact ratio of the sizes is used without
// dividing first.
struct ResizeAxis {
  std::int64_t in = 1;
  std::int64_t out = 1;
  double given_scale = 0;  // 0: out/in
  double roi_start = 0;
  double roi_end = 1;

  double scale() const { return given_scale > 0 ? given_scale : static_cast<double>(out) / static_cast<double>(in); }
  double unscaled(double x) const {
    return given_scale > 0 ? x / given_scale : x * static_cast<double>(in) / static_cast<double>(out);
  }
};

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

struct WeightedPlace {
  std::int64_t place;
  double weight;
};

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

ResizeAxis axis_of(const ReferenceContext& context, std::size_t i) {
  const auto& scales = context.attributes.get<Reals>("scales");
  const auto& roi = context.attributes.get<Reals>("roi");
  ResizeAxis axis{context.inputs[0].sizes[i], context.outputs[0].sizes[i]};
  if (!scales.empty()) axis.given_scale = scales[i];
  if (!roi.empty()) {
    axis.roi_start = roi[i];
    axis.roi_end = roi[i + roi.size() / 2];
  }
  return axis;
}

// Whether a coordinate lies outside the operand where that makes the element the extrapolation value.
bool extrapolates(const ResizeAxis& axis, const std::string& rule, double coordinate) {
  return rule == "tf_crop_and_resize" && (coordinate < 0 || coordinate > static_cast<double>(axis.in - 1));
}

void resize_nearest(const ReferenceContext& context) {
  const TensorView& y = context.outputs[0];
  const auto& rule = context.attributes.get<std::string>("coordinate");
  const auto& nearest = context.attributes.get<std::string>("nearest");
  PickTables source(static_cast<std::size_t>(y.rank));
  for (std::size_t i = 0; i < source.size(); ++i) {
    const ResizeAxis axis = axis_of(context, i);
    for (std::int64_t place = 0; place < axis.out; ++place) {
      const double coordinate = coordinate_of(axis, rule, place);
      source[i].push_back(extrapolates(axis, rule, coordinate) ? picks_constant
                                                               : nearest_place(coordinate, nearest, axis.in));
    }
  }
  pick_elements(context.inputs[0], source, context.attributes.get<double>("extrapolation"), y);
}

// values: (outer, axis.in, inner) → (outer, axis.out, inner). Places outside become NaN-free zeros; the caller
// overwrites them.
std::vector<double> resample(const std::vector<double>& values, const ResizeAxis& axis, std::int64_t inner,
                             const Attributes& attributes) {
  const std::int64_t outer = static_cast<std::int64_t>(values.size()) / std::max<std::int64_t>(1, axis.in * inner);
  std::vector<double> out(static_cast<std::size_t>(outer * axis.out * inner));
  const auto& rule = attributes.get<std::string>("coordinate");
  for (std::int64_t place = 0; place < axis.out; ++place) {
    for (const WeightedPlace& entry : weights_at(coordinate_of(axis, rule, place), axis, attributes)) {
      for (std::int64_t o = 0; o < outer; ++o) {
        const double* from = values.data() + (o * axis.in + entry.place) * inner;
        double* to = out.data() + (o * axis.out + place) * inner;
        for (std::int64_t i = 0; i < inner; ++i) to[i] += entry.weight * from[i];
      }
    }
  }
  return out;
}

// Sets what tf_crop_and_resize takes from outside the operand.
void extrapolate(std::vector<double>& values, const ReferenceContext& context) {
  const TensorView& y = context.outputs[0];
  const auto& rule = context.attributes.get<std::string>("coordinate");
  const double value = context.attributes.get<double>("extrapolation");
  std::int64_t inner = y.element_count();
  for (std::size_t i = 0; i < static_cast<std::size_t>(y.rank) && inner > 0; ++i) {
    const ResizeAxis axis = axis_of(context, i);
    inner /= axis.out;
    for (std::int64_t at = 0; at < static_cast<std::int64_t>(values.size()); at += inner) {
      if (!extrapolates(axis, rule, coordinate_of(axis, rule, at / inner % axis.out))) continue;
      std::fill_n(values.begin() + at, inner, value);
    }
  }
}

Result<void> reference_resize(const ReferenceContext& context) {
  const TensorView& x = context.inputs[0];
  const TensorView& y = context.outputs[0];
  if (y.empty()) return {};
  if (context.attributes.get<std::string>("mode") == "nearest") {
    resize_nearest(context);
    return {};
  }
  const bool crops = context.attributes.get<std::string>("coordinate") == "tf_crop_and_resize";
  std::vector<double> values = dense_values<double>(x);
  std::int64_t inner = 1;
  for (std::size_t i = static_cast<std::size_t>(x.rank); i-- > 0;) {
    const ResizeAxis axis = axis_of(context, i);
    const bool same = axis.in == axis.out && (axis.given_scale == 0 || axis.given_scale == 1) && !crops;
    if (!same) values = resample(values, axis, inner, context.attributes);
    inner *= axis.out;
  }
  if (crops) extrapolate(values, context);
  if (!is_float(y.dtype)) {
    for (double& value : values) value = std::nearbyint(value);
  }
  store_values(values, y);
  return {};
}

std::vector<AttributeSpec> resize_attributes() {
  return {{"sizes", AttributeKind::dims, "the result's size per axis"},
          {"scales", AttributeKind::reals, "out/in per axis, for the coordinates; empty means the ratio of the sizes",
           Attribute(Reals{})},
          {"mode",
           AttributeKind::word,
           "the interpolation",
           Attribute(std::string("nearest")),
           {"nearest", "linear", "cubic"}},
          {"coordinate",
           AttributeKind::word,
           "how result places map to operand coordinates",
           Attribute(std::string("half_pixel")),
           {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric",
            "tf_half_pixel_for_nn", "tf_crop_and_resize"}},
          {"nearest",
           AttributeKind::word,
           "how mode nearest rounds a coordinate",
           Attribute(std::string("round_prefer_floor")),
           {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"}},
          {"cubic_coefficient", AttributeKind::real, "a of the cubic kernel: -0.75 (PyTorch, OpenCV) or -0.5 (Keys)",
           Attribute(-0.75)},
          {"exclude_outside", AttributeKind::boolean,
           "places outside the operand weigh 0 instead of repeating the edge", Attribute(false)},
          {"antialias", AttributeKind::boolean, "when shrinking, widen the linear or cubic kernel by in/out",
           Attribute(false)},
          {"roi", AttributeKind::reals,
           "tf_crop_and_resize only: starts, then ends, per axis, as fractions of the operand", Attribute(Reals{})},
          {"extrapolation", AttributeKind::real, "tf_crop_and_resize only: the value of places outside the operand",
           Attribute(0.0)}};
}

}  // namespace

std::vector<OpDef> resize_operators() {
  return {OpDef{
      .name = "resize",
      .doc = "Resampling along every axis whose size or scale changes, one axis after the other. Result place x has "
             "the operand coordinate\n"
             "  half_pixel (x + 0.5)/scale - 0.5       pytorch_half_pixel the same, 0 if the result has one place      "
             "asymmetric x/scale\n"
             "  align_corners x*(I-1)/(O-1)            tf_half_pixel_for_nn (x + 0.5)/scale\n"
             "  half_pixel_symmetric I/2*(1 - O/(scale*I)) + (x + 0.5)/scale - 0.5\n"
             "  tf_crop_and_resize start*(I-1) + x*(end - start)*(I-1)/(O-1), or the middle of the crop if O = 1\n"
             "with scale = O/I unless `scales` says otherwise. nearest takes the element at the rounded coordinate; "
             "linear weighs the two, cubic the\n"
             "four nearest elements; beyond the ends the last element repeats. Integers are rounded to the nearest, "
             "ties to even.\n"
             "Source: ONNX operator Resize; torch.nn.functional.interpolate.",
      .inputs = {{"x", "any rank; numeric, or bool in mode nearest"}},
      .outputs = {{"y", "the shape `sizes`, the dtype of x"}},
      .attributes = resize_attributes(),
      .infer = infer_resize,
      .reference = reference_resize,
      .layout = LayoutRule::per_axis}};
}

}  // namespace polyphase
