// Upsample and Resize: scales that were attributes, places that were asymmetric, operands that may be absent.
#include <algorithm>
#include <cmath>

#include "base/lasting.h"
#include "export/opset_step.h"
#include "export/replacement.h"

namespace polyphase::legal {
namespace {

std::string reals(const std::vector<float>& values, std::string_view word, Replacement& out) {
  auto tensor = Tensor::allocate(DType::f32, std::vector{static_cast<std::int64_t>(values.size())});
  CHECK(tensor.ok(), "memory for a few numbers");
  for (std::size_t i = 0; i < values.size(); ++i)
    store_double(tensor->view().data + i * sizeof(float), DType::f32, static_cast<double>(values[i]));
  return out.constant(*tensor, word);
}

Result<std::vector<float>> constant_reals(const onnx::NodeProto& node, int index, const ModelFacts& model) {
  TRY(const Tensor elements, constant_elements(node, index, model));
  std::vector<float> out;
  const TensorView view = elements.view();
  for (std::int64_t i = 0; i < view.element_count(); ++i)
    out.push_back(static_cast<float>(
        load_double(view.data + i * static_cast<std::int64_t>(size_bytes(elements.dtype())), elements.dtype())));
  return out;
}

Result<void> scales_to_operand(const onnx::NodeProto& node, Replacement& out) {
  const auto* const scales = find_attribute(node, "scales");
  if (scales == nullptr) return cannot_be_said("it has no scales");
  const std::string operand = reals({scales->floats().begin(), scales->floats().end()}, "scales", out);
  onnx::NodeProto& made = out.again();
  drop_attribute(made, "scales");
  set_operand(made, 1, operand);
  return {};
}

Result<void> scales_to_attribute(const onnx::NodeProto& node, Replacement& out) {
  TRY(const auto scales, constant_reals(node, 1, out.model()));
  onnx::NodeProto& made = out.again();
  drop_operands_from(made, 1);
  drop_attribute(made, "scales");
  auto* attribute = made.add_attribute();
  attribute->set_name("scales");
  attribute->set_type(onnx::AttributeProto::FLOATS);
  for (const float scale : scales) attribute->add_floats(scale);
  return {};
}

Result<void> upsample_to_resize(const onnx::NodeProto& /*node*/, Replacement& out) {
  out.again().set_op_type("Resize");
  return {};
}

Result<void> resize_to_upsample(const onnx::NodeProto& node, Replacement& out) {
  TRY(const auto scales, constant_reals(node, 1, out.model()));
  if (std::any_of(scales.begin(), scales.end(), [](float scale) { return scale < 1; }))
    return cannot_be_said("it makes an axis smaller");
  out.again().set_op_type("Upsample");
  return {};
}

// Opset 10 knows one way to find places: o / scale, and below for the nearest.
Result<void> resize_10_up(const onnx::NodeProto& /*node*/, Replacement& out) {
  const std::string roi = reals({}, "roi", out);
  onnx::NodeProto& made = out.again();
  const std::string scales = made.input_size() > 1 ? made.input(1) : std::string();
  set_operand(made, 1, roi);
  set_operand(made, 2, scales);
  set_word(made, "coordinate_transformation_mode", "asymmetric");
  set_word(made, "nearest_mode", "floor");
  return {};
}

std::string word_or(const onnx::NodeProto& node, std::string_view name, std::string_view otherwise) {
  const std::string word = word_of(node, name);
  return word.empty() ? std::string(otherwise) : word;
}

// By whole numbers the nearest of the centres is the one below o / scale.
bool takes_nearest_below(const onnx::NodeProto& node, const std::vector<float>& scales) {
  const std::string places = word_or(node, "coordinate_transformation_mode", "half_pixel");
  const std::string nearest = word_or(node, "nearest_mode", "round_prefer_floor");
  const bool whole =
      std::all_of(scales.begin(), scales.end(), [](float scale) { return scale >= 1 && scale == std::floor(scale); });
  if (places == "asymmetric") return nearest == "floor";
  return whole && places == "half_pixel" && (nearest == "round_prefer_floor" || nearest == "round_prefer_ceil");
}

Result<std::vector<float>> scales_of_sizes(const onnx::NodeProto& node, const Replacement& out) {
  TRY(const auto sizes, constant_integers(node, 3, out.model()));
  TRY(const Type type, operand_type(node, 0, out.model()));
  std::vector<float> scales;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const Dim& size = type.shape[static_cast<int>(i)];
    if (!size.is_constant() || size.value() == 0 || sizes[i] % size.value() != 0)
      return cannot_be_said("it asks for sizes that are no whole multiples of its operand's");
    const std::int64_t times = sizes[i] / size.value();
    scales.push_back(static_cast<float>(times));
  }
  return scales;
}

Result<void> resize_11_down(const onnx::NodeProto& node, Replacement& out) {
  const std::string mode = word_or(node, "mode", "nearest");
  if (mode == "cubic") return cannot_be_said("mode=cubic does not exist before");
  std::vector<float> scales;
  const bool by_sizes = has_operand(node, 3);
  if (by_sizes) {
    TRY(scales, scales_of_sizes(node, out));
  } else {
    auto known = constant_reals(node, 2, out.model());
    if (known.ok()) scales = *std::move(known);
  }
  const std::string places = word_or(node, "coordinate_transformation_mode", "half_pixel");
  const bool same = mode == "nearest" ? takes_nearest_below(node, scales.empty() ? std::vector<float>{0.5F} : scales)
                                      : places == "asymmetric";
  if (!same)
    return cannot_be_said(
        "before, places are asymmetric and the nearest is the one below; it has coordinate_transformation_mode=" +
        places + (mode == "nearest" ? ", nearest_mode=" + word_or(node, "nearest_mode", "round_prefer_floor") : ""));
  const std::string operand = by_sizes ? reals(scales, "scales", out) : node.input(2);
  onnx::NodeProto& made = out.again();
  drop_operands_from(made, 1);
  set_operand(made, 1, operand);
  for (const char* name :
       {"coordinate_transformation_mode", "cubic_coeff_a", "exclude_outside", "extrapolation_value", "nearest_mode"})
    drop_attribute(made, name);
  return {};
}

Result<void> resize_13_up(const onnx::NodeProto& node, Replacement&) {
  if (word_of(node, "coordinate_transformation_mode") == "tf_half_pixel_for_nn")
    return cannot_be_said("coordinate_transformation_mode=tf_half_pixel_for_nn does not exist any more");
  return {};
}

// Before opset 13 roi and scales must be there, without elements where they say nothing.
Result<void> resize_13_down(const onnx::NodeProto& node, Replacement& out) {
  const std::string roi = has_operand(node, 1) ? node.input(1) : reals({}, "roi", out);
  const std::string scales = has_operand(node, 2) ? node.input(2) : reals({}, "scales", out);
  if (has_operand(node, 1) && has_operand(node, 2)) return {};
  onnx::NodeProto& made = out.again();
  set_operand(made, 1, roi);
  set_operand(made, 2, scales);
  return {};
}

Result<void> resize_18_down(const onnx::NodeProto& node, Replacement& out) {
  if (integer_of(node, "antialias", 0) != 0) return cannot_be_said("antialias does not exist before");
  if (has_operand(node, 3) && word_or(node, "keep_aspect_ratio_policy", "stretch") != "stretch")
    return cannot_be_said("keep_aspect_ratio_policy does not exist before");
  const std::vector<std::int64_t> axes = integers_of(node, "axes");
  const bool some = find_attribute(node, "axes") != nullptr;
  std::string operand;
  if (some) {
    if (has_operand(node, 1) && word_of(node, "coordinate_transformation_mode") == "tf_crop_and_resize")
      return cannot_be_said("its roi is of some axes");
    TRY(const Type type, operand_type(node, 0, out.model()));
    const int rank = type.shape.rank();
    if (has_operand(node, 3)) {
      std::vector<std::int64_t> sizes;
      TRY(const auto given, constant_integers(node, 3, out.model()));
      for (const Dim& size : type.shape) sizes.push_back(size.is_constant() ? size.value() : -1);
      for (std::size_t i = 0; i < std::min(axes.size(), given.size()); ++i)
        sizes[static_cast<std::size_t>(floor_mod(axes[i], std::max(1, rank)))] = given[i];
      if (std::find(sizes.begin(), sizes.end(), -1) != sizes.end())
        return cannot_be_said("its sizes are of some axes, and the others are open");
      operand = out.integers(sizes, "sizes");
    } else {
      std::vector<float> scales(static_cast<std::size_t>(rank), 1);
      TRY(const auto given, constant_reals(node, 2, out.model()));
      for (std::size_t i = 0; i < std::min(axes.size(), given.size()); ++i)
        scales[static_cast<std::size_t>(floor_mod(axes[i], std::max(1, rank)))] = given[i];
      operand = reals(scales, "scales", out);
    }
  }
  bool any = some;
  for (const char* name : {"antialias", "keep_aspect_ratio_policy"}) any = any || find_attribute(node, name) != nullptr;
  if (!any) return {};
  onnx::NodeProto& made = out.again();
  for (const char* name : {"antialias", "axes", "keep_aspect_ratio_policy"}) drop_attribute(made, name);
  if (some) set_operand(made, has_operand(node, 3) ? 3 : 2, operand);
  return {};
}

Result<void> resize_19_down(const onnx::NodeProto& node, Replacement&) {
  if (word_of(node, "coordinate_transformation_mode") == "half_pixel_symmetric")
    return cannot_be_said("coordinate_transformation_mode=half_pixel_symmetric does not exist before");
  return {};
}

}  // namespace

std::span<const OpsetStep> resize_steps() {
  static const std::vector<OpsetStep>& steps = lasting<std::vector<OpsetStep>>(
      {{"Upsample", 9, "scales is an operand; before, an attribute", scales_to_operand, scales_to_attribute},
       {"Upsample", 10, "it is called Resize", upsample_to_resize},
       {"Resize", 10, "the operator exists; before, it is called Upsample and makes nothing smaller", nullptr,
        resize_to_upsample},
       {"Resize", 11, "attributes choose the places; before, they are asymmetric, and the nearest is the one below",
        resize_10_up, resize_11_down},
       {"Resize", 13, "roi and scales may be absent, and tf_half_pixel_for_nn does not exist", resize_13_up,
        resize_13_down},
       {"Resize", 18, "axes, antialias and keep_aspect_ratio_policy exist", nullptr, resize_18_down},
       {"Resize", 19, "half_pixel_symmetric exists", nullptr, resize_19_down}});
  return steps;
}

}  // namespace polyphase::legal
