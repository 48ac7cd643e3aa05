// Windows and resampling: pools, interpolation, reading at given places.
#include <cmath>

#include "import/compose/composer.h"
#include "import/torch/aten_node.h"

namespace polyphase {
namespace {

using Sizes = Composer::Sizes;
using Integers = Composer::Integers;

// With the batch axis that the operators want; `added` says whether it was missing.
Value* batched(Composer& c, Value* x, int spatial, bool& added) {
  added = c.rank(x) == spatial + 1;
  return added ? c.unsqueeze(x, 0) : x;
}

Value* unbatched(Composer& c, Value* y, bool added) { return added ? c.squeeze(y, 0) : y; }

Result<Attributes> pooling_window(AtenNode& node, int spatial) {
  const auto count = static_cast<std::size_t>(spatial);
  const Integers kernel = node.integers("kernel_size", count);
  Integers stride = node.integers("stride", count);
  if (stride.empty()) stride = kernel;
  const Integers padding = node.integers("padding", count);
  const Integers dilation = node.takes("dilation") ? node.integers("dilation", count) : Integers(count, 1);
  for (const Integers* list : std::initializer_list<const Integers*>{&kernel, &stride, &padding, &dilation}) {
    if (list->size() != count)
      return broken_program("a list of the window has " + std::to_string(list->size()) + " entries for " +
                            std::to_string(count) + " axes.");
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (kernel[i] <= 0 || stride[i] <= 0 || dilation[i] <= 0)
      return broken_program("kernel size, stride and dilation must be greater than zero.");
    if (padding[i] < 0 || padding[i] > kernel[i] / 2)
      return broken_program("pad should be at most half of effective kernel size, but got pad=" +
                            std::to_string(padding[i]) + " and kernel_size=" + std::to_string(kernel[i]));
  }
  const Sizes pad(padding.begin(), padding.end());
  return Attributes({{"kernel", kernel},
                     {"stride", stride},
                     {"dilation", dilation},
                     {"pre", pad},
                     {"post", pad},
                     {"ceil", node.flag("ceil_mode")}});
}

template <int spatial>
Result<Values> convert_max_pool(AtenNode& node) {
  Composer c(node);
  bool added = false;
  Value* const x = batched(c, node.tensor("self"), spatial, added);
  TRY(Attributes window, pooling_window(node, spatial));
  return c.results({unbatched(c, c.op("max_pool", {x}, std::move(window)), added)});
}

// Indices count within a plane here, within the whole operand in the IR.
template <int spatial>
Result<Values> convert_max_pool_indices(AtenNode& node) {
  Composer c(node);
  bool added = false;
  Value* const x = batched(c, node.tensor("self"), spatial, added);
  TRY(const Attributes window, pooling_window(node, spatial));
  Value* const values = c.op("max_pool", {x}, window);
  Value* const places = c.op("max_pool_indices", {x}, window);
  Dim plane = 1;
  for (int i = 1; i <= spatial; ++i) plane *= c.size(x, -i);
  Value* const inside = c.op("mod", {places, c.dims({plane}, true)});
  return c.results({unbatched(c, values, added), unbatched(c, inside, added)});
}

// The operand padded with 0 so that each window of ceil mode lies inside of it; `window` then pads nothing more.
Value* whole_windows(Composer& c, Value* x, Attributes& window) {
  const Value* const pooled = c.op("avg_pool", {x}, window);  // for its sizes
  const auto kernel = window.get<Integers>("kernel");
  const auto stride = window.get<Integers>("stride");
  const auto before = window.get<Sizes>("pre");
  for (std::size_t i = 0; i < kernel.size() && c.ok(); ++i) {
    const int axis = static_cast<int>(i) + 2;
    const Dim span = (c.size(pooled, axis) - 1) * stride[i] + kernel[i];
    x = c.pad(x, axis, before[i], span - c.size(x, axis) - before[i]);
  }
  const Sizes none(kernel.size(), Dim(0));
  window.set("pre", none);
  window.set("post", none);
  window.set("ceil", false);
  return x;
}

template <int spatial>
Result<Values> convert_avg_pool(AtenNode& node) {
  Composer c(node);
  bool added = false;
  Value* x = batched(c, node.tensor("self"), spatial, added);
  const DType dtype = c.dtype(x);
  if (!is_float(dtype)) x = c.cast(x, DType::f64);
  TRY(Attributes window, pooling_window(node, spatial));
  const bool divides = node.takes("divisor_override") && node.has("divisor_override");
  window.set("include_pad", divides || node.flag("count_include_pad"));
  double factor = 1;
  if (divides) {
    const std::int64_t divisor = node.integer("divisor_override");
    if (divisor == 0) return broken_program("divisor must be not zero");
    for (const std::int64_t taps : window.get<Integers>("kernel")) factor *= static_cast<double>(taps);
    factor /= static_cast<double>(divisor);
    if (node.flag("ceil_mode")) x = whole_windows(c, x, window);
  }
  Value* const y = c.mul(c.op("avg_pool", {x}, std::move(window)), factor);
  return c.results({unbatched(c, is_float(dtype) ? y : c.cast(c.truncate(y), dtype), added)});
}

// floor(size·scale), exact for scales that are ratios of small numbers.
Result<Dim> scaled_size(const Dim& size, double scale) {
  if (size.is_constant()) return Dim(static_cast<std::int64_t>(std::floor(static_cast<double>(size.value()) * scale)));
  for (std::int64_t below = 1; below <= 1024; ++below) {
    const double above = scale * static_cast<double>(below);
    if (above == std::floor(above) && above < 1e9)
      return floor_div(size * Dim(static_cast<std::int64_t>(above)), below);
  }
  return lacking("a size that is not known at export is scaled by " + std::to_string(scale) + ".",
                 "Pass size= instead of scale_factor=, or recompute_scale_factor=True.");
}

struct Interpolation {
  const char* mode;  // of the IR's resize
  int spatial;
  bool exact = false;      // nearest-exact: from pixel centres
  bool antialias = false;  // kernels as wide as what they shrink, of weights inside of the operand only
};

Result<Values> interpolate(AtenNode& node, const Interpolation& kind, const std::vector<double>& scales,
                           std::optional<Sizes> sizes) {
  Composer c(node);
  Value* const x = node.takes("self") ? node.tensor("self") : node.tensor("input");
  const auto count = static_cast<std::size_t>(kind.spatial);
  if (c.rank(x) != kind.spatial + 2)
    return broken_program("interpolation over " + std::to_string(kind.spatial) +
                          " axes takes a batch and channels before them, found " + x->type.text() + ".");
  if (!sizes.has_value()) {
    sizes.emplace();
    if (scales.size() != count) return broken_program("Must specify exactly one of output_size and scale_factors");
    for (std::size_t i = 0; i < count; ++i) {
      TRY(Dim size, scaled_size(c.size(x, static_cast<int>(i) + 2), scales[i]));
      sizes->push_back(std::move(size));
    }
  }
  if (sizes->size() != count)
    return broken_program("It is expected output_size equals to " + std::to_string(count) + ".");
  const bool aligned = node.takes("align_corners") && node.flag("align_corners");
  const bool nearest = std::string_view(kind.mode) == "nearest";
  if (!nearest && !is_float(c.dtype(x)))
    return lacking("interpolation of integers, which PyTorch rounds in steps of its own.",
                   "Interpolate x.float(), and round the result.");
  Sizes whole{c.size(x, 0), c.size(x, 1)};
  whole.insert(whole.end(), sizes->begin(), sizes->end());
  Attributes attributes({{"sizes", std::move(whole)},
                         {"mode", kind.mode},
                         {"coordinate", aligned      ? "align_corners"
                                        : kind.exact ? "tf_half_pixel_for_nn"
                                        : nearest    ? "asymmetric"
                                                     : "half_pixel"},
                         {"nearest", "floor"}});
  if (kind.antialias) {
    if (aligned) return lacking("antialias=True together with align_corners=True.", "Leave one of them out.");
    attributes.set("antialias", true);
    attributes.set("exclude_outside", true);
    attributes.set("cubic_coefficient", -0.5);
  }
  // Where a scale is given, coordinates follow it and not the ratio of the sizes.
  if (scales.size() == count && !aligned) {
    std::vector<double> factors{1, 1};
    factors.insert(factors.end(), scales.begin(), scales.end());
    attributes.set("scales", std::move(factors));
  }
  return c.results({c.op("resize", {x}, std::move(attributes))});
}

// upsample_*.default: sizes, and a scale per axis where interpolate was called with one.
template <const Interpolation* kind>
Result<Values> convert_upsample(AtenNode& node) {
  static constexpr std::string_view names[] = {"scales_d", "scales_h", "scales_w"};
  std::vector<double> scales;
  if (kind->spatial == 1) {
    if (node.has("scales")) scales.push_back(node.real("scales"));
  } else {
    for (int i = 3 - kind->spatial; i < 3; ++i) {
      if (node.has(names[i])) scales.push_back(node.real(names[i]));
    }
  }
  return interpolate(node, *kind, scales, node.sizes("output_size"));
}

// upsample_*.vec: sizes or scales.
template <const Interpolation* kind>
Result<Values> convert_upsample_vec(AtenNode& node) {
  const std::vector<double> scales = node.has("scale_factors") ? node.reals("scale_factors") : std::vector<double>{};
  std::optional<Sizes> sizes;
  if (node.has("output_size")) sizes = node.sizes("output_size");
  return interpolate(node, *kind, scales, std::move(sizes));
}

Result<Values> convert_grid_sample(AtenNode& node) {
  Composer c(node);
  constexpr const char* modes[] = {"linear", "nearest", "cubic"};
  constexpr const char* paddings[] = {"zeros", "border", "reflection"};
  const std::int64_t mode = node.integer("interpolation_mode");
  const std::int64_t padding = node.integer("padding_mode");
  if (mode < 0 || mode > 2 || padding < 0 || padding > 2) return broken_program("grid_sampler has an unknown mode.");
  return c.results({c.op(
      "grid_sample", {node.tensor("input"), node.tensor("grid")},
      Attributes(
          {{"mode", modes[mode]}, {"padding", paddings[padding]}, {"align_corners", node.flag("align_corners")}}))});
}

constexpr Interpolation nearest1{"nearest", 1};
constexpr Interpolation nearest2{"nearest", 2};
constexpr Interpolation nearest3{"nearest", 3};
constexpr Interpolation exact1{"nearest", 1, true};
constexpr Interpolation exact2{"nearest", 2, true};
constexpr Interpolation exact3{"nearest", 3, true};
constexpr Interpolation linear1{"linear", 1};
constexpr Interpolation linear2{"linear", 2};
constexpr Interpolation linear3{"linear", 3};
constexpr Interpolation cubic2{"cubic", 2};
constexpr Interpolation smooth_linear2{"linear", 2, false, true};
constexpr Interpolation smooth_cubic2{"cubic", 2, false, true};

}  // namespace

std::vector<AtenEntry> aten_resample_entries() {
  return {
      {"_upsample_bicubic2d_aa(Tensor self, SymInt[2] output_size, bool align_corners, float? scales_h=None, float? "
       "scales_w=None) -> Tensor",
       convert_upsample<&smooth_cubic2>},
      {"_upsample_bicubic2d_aa.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? scale_factors) -> "
       "Tensor",
       convert_upsample_vec<&smooth_cubic2>},
      {"_upsample_bilinear2d_aa(Tensor self, SymInt[2] output_size, bool align_corners, float? scales_h=None, float? "
       "scales_w=None) -> Tensor",
       convert_upsample<&smooth_linear2>},
      {"_upsample_bilinear2d_aa.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? scale_factors) "
       "-> Tensor",
       convert_upsample_vec<&smooth_linear2>},
      {"_upsample_nearest_exact1d(Tensor self, SymInt[1] output_size, float? scales=None) -> Tensor",
       convert_upsample<&exact1>},
      {"_upsample_nearest_exact1d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor",
       convert_upsample_vec<&exact1>},
      {"_upsample_nearest_exact2d(Tensor self, SymInt[2] output_size, float? scales_h=None, float? scales_w=None) -> "
       "Tensor",
       convert_upsample<&exact2>},
      {"_upsample_nearest_exact2d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor",
       convert_upsample_vec<&exact2>},
      {"_upsample_nearest_exact3d(Tensor self, SymInt[3] output_size, float? scales_d=None, float? scales_h=None, "
       "float? "
       "scales_w=None) -> Tensor",
       convert_upsample<&exact3>},
      {"_upsample_nearest_exact3d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor",
       convert_upsample_vec<&exact3>},
      {"avg_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=[0], bool ceil_mode=False, bool "
       "count_include_pad=True) -> Tensor",
       convert_avg_pool<1>},
      {"avg_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, bool ceil_mode=False, bool "
       "count_include_pad=True, int? divisor_override=None) -> Tensor",
       convert_avg_pool<2>},
      {"avg_pool3d(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, bool ceil_mode=False, bool "
       "count_include_pad=True, int? divisor_override=None) -> Tensor",
       convert_avg_pool<3>},
      {"grid_sampler(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> "
       "Tensor",
       convert_grid_sample},
      {"grid_sampler_2d(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> "
       "Tensor",
       convert_grid_sample},
      {"grid_sampler_3d(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> "
       "Tensor",
       convert_grid_sample},
      {"max_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=[0], int[1] dilation=[1], bool "
       "ceil_mode=False) -> Tensor",
       convert_max_pool<1>},
      {"max_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, int[2] dilation=1, bool "
       "ceil_mode=False) -> Tensor",
       convert_max_pool<2>},
      {"max_pool2d_with_indices(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, int[2] "
       "dilation=1, "
       "bool ceil_mode=False) -> (Tensor, Tensor)",
       convert_max_pool_indices<2>},
      {"max_pool3d(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, int[3] dilation=1, bool "
       "ceil_mode=False) -> Tensor",
       convert_max_pool<3>},
      {"max_pool3d_with_indices(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, int[3] "
       "dilation=1, "
       "bool ceil_mode=False) -> (Tensor, Tensor)",
       convert_max_pool_indices<3>},
      {"upsample_bicubic2d(Tensor self, SymInt[2] output_size, bool align_corners, float? scales_h=None, float? "
       "scales_w=None) -> Tensor",
       convert_upsample<&cubic2>},
      {"upsample_bicubic2d.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? scale_factors) -> "
       "Tensor",
       convert_upsample_vec<&cubic2>},
      {"upsample_bilinear2d(Tensor self, SymInt[2] output_size, bool align_corners, float? scales_h=None, float? "
       "scales_w=None) -> Tensor",
       convert_upsample<&linear2>},
      {"upsample_bilinear2d.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? scale_factors) -> "
       "Tensor",
       convert_upsample_vec<&linear2>},
      {"upsample_linear1d(Tensor self, SymInt[1] output_size, bool align_corners, float? scales=None) -> Tensor",
       convert_upsample<&linear1>},
      {"upsample_linear1d.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? scale_factors) -> "
       "Tensor",
       convert_upsample_vec<&linear1>},
      {"upsample_nearest1d(Tensor self, SymInt[1] output_size, float? scales=None) -> Tensor",
       convert_upsample<&nearest1>},
      {"upsample_nearest1d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor",
       convert_upsample_vec<&nearest1>},
      {"upsample_nearest2d(Tensor self, SymInt[2] output_size, float? scales_h=None, float? scales_w=None) -> Tensor",
       convert_upsample<&nearest2>},
      {"upsample_nearest2d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor",
       convert_upsample_vec<&nearest2>},
      {"upsample_nearest3d(Tensor self, SymInt[3] output_size, float? scales_d=None, float? scales_h=None, float? "
       "scales_w=None) -> Tensor",
       convert_upsample<&nearest3>},
      {"upsample_nearest3d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor",
       convert_upsample_vec<&nearest3>},
      {"upsample_trilinear3d(Tensor self, SymInt[3] output_size, bool align_corners, float? scales_d=None, float? "
       "scales_h=None, float? scales_w=None) -> Tensor",
       convert_upsample<&linear3>},
      {"upsample_trilinear3d.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? scale_factors) -> "
       "Tensor",
       convert_upsample_vec<&linear3>},
  };
}

}  // namespace polyphase
