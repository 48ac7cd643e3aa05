// resize: nearest, linear and cubic resampling along any axes, by the coordinate rules of ONNX.
#include <algorithm>
#include <cmath>

#include "ops/cut.h"
#include "ops/dense.h"
#include "ops/families.h"
#include "ops/pick.h"
#include "ops/resize_axis.h"

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

ResizeAxis resized_axis(const ReferenceContext& context, std::size_t i) {
  return resize_axis(context.attributes, i, context.inputs[0].sizes[i], context.outputs[0].sizes[i]);
}

void resize_nearest(const ReferenceContext& context) {
  const TensorView& y = context.outputs[0];
  PickTables source(static_cast<std::size_t>(y.rank));
  for (std::size_t i = 0; i < source.size(); ++i) {
    const ResizeAxis axis = resized_axis(context, i);
    for (std::int64_t place = 0; place < axis.out; ++place) {
      const auto places = resize_sources(context.attributes, axis, place);
      source[i].push_back(places.empty() ? picks_constant : places.front().place);
    }
  }
  pick_elements(context.inputs[0], source, context.attributes.get<double>("extrapolation"), y);
}

// values: (outer, axis.in, inner) → (outer, axis.out, inner). Places outside become zeros; the caller overwrites them.
std::vector<double> resample(const std::vector<double>& values, const ResizeAxis& axis, std::int64_t inner,
                             const Attributes& attributes) {
  const std::int64_t outer = static_cast<std::int64_t>(values.size()) / std::max<std::int64_t>(1, axis.in * inner);
  std::vector<double> out(static_cast<std::size_t>(outer * axis.out * inner));
  for (std::int64_t place = 0; place < axis.out; ++place) {
    for (const WeightedPlace& entry : resize_sources(attributes, axis, place)) {
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
  const double value = context.attributes.get<double>("extrapolation");
  std::int64_t inner = y.element_count();
  for (std::size_t i = 0; i < static_cast<std::size_t>(y.rank) && inner > 0; ++i) {
    const ResizeAxis axis = resized_axis(context, i);
    inner /= axis.out;
    for (std::int64_t at = 0; at < static_cast<std::int64_t>(values.size()); at += inner) {
      if (resize_extrapolates(context.attributes, axis, at / inner % axis.out))
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
    const ResizeAxis axis = resized_axis(context, i);
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
      .cut = cut_resize,
      .layout = LayoutRule::per_axis}};
}

}  // namespace polyphase
