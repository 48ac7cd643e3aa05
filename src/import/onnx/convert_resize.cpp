// Resize in all versions, and Upsample, its forerunner.
//
// Resize 10 and Upsample sample asymmetrically (in = out / scale), nearest by floor. From 11 on attributes say how.
#include <algorithm>
#include <cmath>

#include "import/onnx/node_context.h"
#include "import/onnx/ratios.h"

namespace polyphase {
namespace {

using Sizes = std::vector<Dim>;
using Integers = std::vector<std::int64_t>;
using Reals = std::vector<double>;

// floor(size * scale); for a fixed size in binary32, as the exporters' and ONNX's own arithmetic has it.
Dim scaled_size(const Dim& size, double scale) {
  if (scale == 1.0) return size;
  if (size.is_constant()) {
    return Dim(static_cast<std::int64_t>(std::floor(static_cast<float>(size.value()) * static_cast<float>(scale))));
  }
  const auto [p, q] = fraction_of(scale);
  return floor_div(size * Dim(p), Dim(q));
}

// What is resized: one entry per axis of the operand.
struct Target {
  Sizes sizes;
  Reals scales;  // empty: the ratio of the sizes
  Reals roi;
};

Result<void> check_scales(const Reals& scales) {
  for (const double scale : scales) {
    if (!(scale > 0) || !(scale < 1e9))
      return broken_rule("scales has the entry " + std::to_string(scale) + "; it must be greater than 0.");
  }
  return {};
}

// Spreads per-axis entries given for `axes` over all axes.
template <typename T>
Result<std::vector<T>> spread(const std::vector<T>& given, const Integers& axes, std::vector<T> otherwise,
                              const char* what) {
  if (given.size() != axes.size()) {
    return broken_rule(std::string(what) + " has " + std::to_string(given.size()) + " entries; it needs " +
                       std::to_string(axes.size()) + ", one per axis.");
  }
  for (std::size_t i = 0; i < axes.size(); ++i) otherwise[static_cast<std::size_t>(axes[i])] = given[i];
  return otherwise;
}

Error open_scales() {
  return lacking(
      "scales is computed from the model's inputs.",
      "Export with a fixed scale_factor, or with size= computed from the input's sizes (then the model has `sizes`).");
}

// Scales that are sizes over sizes, as exporters write them to reach the size of a skip connection. The result must
// have whole sizes: then their ratio is the scale.
Result<Target> from_ratios(NodeContext& node, std::size_t i, const Integers& axes) {
  const auto given = node.ratios(i);
  if (!given.has_value()) return open_scales();
  TRY(const std::vector<Ratio> ratios,
      spread(*given, axes, std::vector<Ratio>(static_cast<std::size_t>(node.rank(0)), {Dim(1), Dim(1)}), "scales"));
  Target target;
  for (std::size_t axis = 0; axis < ratios.size(); ++axis) {
    const Dim& own = node.shape(0)[static_cast<int>(axis)];
    const Dim& above = ratios[axis].above;
    const Dim& below = ratios[axis].below;
    if (below == own) {
      target.sizes.push_back(above);
    } else if (floor_mod(own * above, below) == 0) {
      target.sizes.push_back(floor_div(own * above, below));
    } else {
      return open_scales();
    }
  }
  return target;
}

Result<Target> from_scales(NodeContext& node, Reals scales) {
  TRY_VOID(check_scales(scales));
  Target target;
  for (int axis = 0; axis < node.rank(0); ++axis)
    target.sizes.push_back(scaled_size(node.shape(0)[axis], scales[static_cast<std::size_t>(axis)]));
  target.scales = std::move(scales);
  return target;
}

Result<Values> emit_resize(NodeContext& node, Target target, Attributes attributes) {
  bool is_same = target.roi.empty();
  for (std::size_t i = 0; i < target.sizes.size(); ++i) {
    is_same = is_same && target.sizes[i] == node.shape(0)[static_cast<int>(i)] &&
              (target.scales.empty() || target.scales[i] == 1.0);
  }
  if (is_same) return Values{node.input(0)};
  attributes.set("sizes", std::move(target.sizes));
  attributes.set("scales", std::move(target.scales));
  if (!target.roi.empty()) attributes.set("roi", std::move(target.roi));
  TRY(Value * value, node.emit("resize", std::move(attributes), {node.input(0)}));
  return Values{value};
}

Result<std::string> read_mode(NodeContext& node, bool has_cubic) {
  const std::string mode = node.word("mode", "nearest");
  if (mode == "nearest" || mode == "linear" || (mode == "cubic" && has_cubic)) return mode;
  if (mode == "bilinear") return std::string("linear");
  return broken_rule("mode is '" + mode.substr(0, 40) + "'; it must be nearest, linear" +
                     (has_cubic ? " or cubic." : "."));
}

Result<Integers> resized_axes(NodeContext& node) {
  Integers axes;
  for (int axis = 0; axis < node.rank(0); ++axis) axes.push_back(axis);
  if (node.version() < 18) return axes;
  const auto given = node.integers("axes");
  if (!given.has_value()) return axes;
  return node.axes(*given, node.rank(0));
}

// Upsample and Resize 10.
Result<Values> convert_asymmetric(NodeContext& node) {
  if (node.op_type() == "Upsample" && node.version() == 10) {
    return lacking("Upsample was taken out of ONNX with opset 10.",
                   "Use Resize: onnx.version_converter.convert_version(model, 13).");
  }
  TRY(const std::string mode, read_mode(node, false));
  const Attributes attributes(
      {{"mode", mode}, {"coordinate", std::string("asymmetric")}, {"nearest", std::string("floor")}});
  Reals scales;
  if (node.version() < 9) {
    scales = node.reals("scales").value_or(Reals{});
  } else {
    if (!node.has(1)) return broken_rule("the operand scales is missing.");
    if (!node.fixed(1).has_value()) {
      TRY(const Integers axes, resized_axes(node));
      TRY(Target target, from_ratios(node, 1, axes));
      return emit_resize(node, std::move(target), attributes);
    }
    TRY(scales, node.fixed_reals(1, "scales"));
  }
  if (static_cast<int>(scales.size()) != node.rank(0)) {
    return broken_rule("scales has " + std::to_string(scales.size()) + " entries; the operand " + node.type(0).text() +
                       " needs one per axis.");
  }
  TRY(Target target, from_scales(node, std::move(scales)));
  return emit_resize(node, std::move(target), attributes);
}

// keep_aspect_ratio_policy: one scale for all axes, the least or the greatest that the sizes ask for. The places are
// taken at that scale, not at the ratio of the sizes, which are rounded.
Result<void> keep_ratio(NodeContext& node, Target& target, const Integers& axes, const std::string& policy) {
  if (policy != "not_larger" && policy != "not_smaller") {
    return broken_rule("keep_aspect_ratio_policy is '" + policy.substr(0, 40) +
                       "'; it must be stretch, not_larger or not_smaller.");
  }
  double scale = policy == "not_larger" ? INFINITY : 0.0;
  for (const std::int64_t axis : axes) {
    const Dim& own = node.shape(0)[static_cast<int>(axis)];
    const Dim& wanted = target.sizes[static_cast<std::size_t>(axis)];
    if (!own.is_constant() || !wanted.is_constant() || own.value() < 1) {
      return lacking("keep_aspect_ratio_policy=" + policy + " with a size that is not fixed.",
                     "Fix the sizes (--dim NAME=NUMBER), or use the policy stretch.");
    }
    const double ratio = static_cast<double>(wanted.value()) / static_cast<double>(own.value());
    scale = policy == "not_larger" ? std::min(scale, ratio) : std::max(scale, ratio);
  }
  target.scales.assign(target.sizes.size(), 1.0);
  for (const std::int64_t axis : axes) {
    const double exact = scale * static_cast<double>(node.shape(0)[static_cast<int>(axis)].value());
    target.sizes[static_cast<std::size_t>(axis)] = Dim(static_cast<std::int64_t>(std::floor(exact + 0.5)));
    target.scales[static_cast<std::size_t>(axis)] = scale;
  }
  return {};
}

bool has_entries(NodeContext& node, std::size_t i) { return node.has(i) && !(node.shape(i).element_count() == 0); }

Result<Reals> read_roi(NodeContext& node, const Integers& axes) {
  if (!has_entries(node, 1)) return broken_rule("tf_crop_and_resize needs the operand roi.");
  TRY(const Reals given, node.fixed_reals(1, "roi"));
  const std::size_t count = axes.size();
  if (given.size() != 2 * count)
    return broken_rule("roi has " + std::to_string(given.size()) + " entries; it needs " + std::to_string(2 * count) +
                       ", all starts, then all ends.");
  const auto rank = static_cast<std::size_t>(node.rank(0));
  Reals roi(2 * rank, 0.0);
  std::fill(roi.begin() + static_cast<std::ptrdiff_t>(rank), roi.end(), 1.0);
  for (std::size_t i = 0; i < count; ++i) {
    roi[static_cast<std::size_t>(axes[i])] = given[i];
    roi[rank + static_cast<std::size_t>(axes[i])] = given[count + i];
  }
  return roi;
}

Result<Target> read_target(NodeContext& node, bool crops) {
  TRY(const Integers axes, resized_axes(node));
  std::string policy = "stretch";
  if (node.version() >= 18) policy = node.word("keep_aspect_ratio_policy", "stretch");
  const bool has_scales = has_entries(node, 2);
  const bool has_sizes = has_entries(node, 3);
  if (has_scales == has_sizes) {
    return broken_rule(has_scales ? "both scales and sizes are given; ONNX allows only one of them."
                                  : "neither scales nor sizes is given.");
  }
  Target target;
  const std::vector<Dim>& own = node.shape(0).dims();
  Reals roi;
  if (crops) {
    TRY(roi, read_roi(node, axes));
  }
  if (has_sizes) {
    TRY(const Sizes given, node.sizes(3));
    TRY(target.sizes, spread(given, axes, own, "sizes"));
    if (policy != "stretch") TRY_VOID(keep_ratio(node, target, axes, policy));
  } else if (!node.fixed(2).has_value() && !crops) {
    TRY(target, from_ratios(node, 2, axes));
  } else {
    TRY(const Reals given, node.fixed_reals(2, "scales"));
    TRY(Reals scales, spread(given, axes, Reals(own.size(), 1.0), "scales"));
    TRY(target, from_scales(node, std::move(scales)));
    for (std::size_t i = 0; crops && i < own.size(); ++i) {
      target.sizes[i] = scaled_size(own[i], (roi[i + own.size()] - roi[i]) * target.scales[i]);
    }
  }
  target.roi = std::move(roi);
  return target;
}

Result<Values> convert_resize(NodeContext& node) {
  if (node.version() < 11) return convert_asymmetric(node);
  const std::string coordinate = node.word("coordinate_transformation_mode", "half_pixel");
  TRY(const std::string mode, read_mode(node, true));
  const std::string nearest = node.word("nearest_mode", "round_prefer_floor");
  const double cubic = node.real("cubic_coeff_a", -0.75);
  const bool exclude_outside = node.flag("exclude_outside", false);
  const double extrapolation = node.real("extrapolation_value", 0.0);
  const bool antialias = node.version() >= 18 && node.flag("antialias", false);
  TRY(Target target, read_target(node, coordinate == "tf_crop_and_resize"));
  Attributes attributes({{"mode", mode},
                         {"coordinate", coordinate},
                         {"nearest", nearest},
                         {"cubic_coefficient", cubic},
                         {"exclude_outside", exclude_outside},
                         {"antialias", antialias},
                         {"extrapolation", extrapolation}});
  return emit_resize(node, std::move(target), std::move(attributes));
}

}  // namespace

std::vector<Converter> resize_converters() {
  return {
      {"Resize", {10, 11, 13, 18, 19}, 1, 4, convert_resize},
      {"Upsample", {7, 9, 10}, 1, 2, convert_asymmetric},
  };
}

}  // namespace polyphase
