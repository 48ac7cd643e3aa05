// Numbers that were attributes and became operands: Slice, Pad, TopK, Clip, Dropout, DFT; and what later forms add.
#include <algorithm>
#include <array>
#include <limits>

#include "base/lasting.h"
#include "export/opset_step.h"
#include "export/replacement.h"

namespace polyphase::legal {
namespace {

Result<void> slice_up(const onnx::NodeProto& node, Replacement& out) {
  std::array<std::string, 3> operands;
  const std::array<std::string_view, 3> names = {"starts", "ends", "axes"};
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (find_attribute(node, names[i]) != nullptr) operands[i] = out.integers(integers_of(node, names[i]), names[i]);
  }
  onnx::NodeProto& made = out.again();
  for (std::size_t i = 0; i < names.size(); ++i) {
    drop_attribute(made, names[i]);
    if (!operands[i].empty()) set_operand(made, static_cast<int>(i) + 1, operands[i]);
  }
  return {};
}

Result<std::vector<std::int64_t>> slice_axes(const onnx::NodeProto& node, std::size_t count, const ModelFacts& model) {
  std::vector<std::int64_t> axes;
  if (!has_operand(node, 3)) {
    for (std::size_t i = 0; i < count; ++i) axes.push_back(static_cast<std::int64_t>(i));
    return axes;
  }
  TRY(axes, constant_integers(node, 3, model));
  if (std::all_of(axes.begin(), axes.end(), [](std::int64_t axis) { return axis >= 0; })) return axes;
  TRY(const Type type, operand_type(node, 0, model));
  for (std::int64_t& axis : axes) axis += axis < 0 ? type.shape.rank() : 0;
  return axes;
}

// What opset 11 made clear: axes below zero, steps backwards.
Result<void> slice_clear_down(const onnx::NodeProto& node, Replacement& out) {
  if (has_operand(node, 4)) {
    TRY(const auto steps, constant_integers(node, 4, out.model()));
    if (std::any_of(steps.begin(), steps.end(), [](std::int64_t step) { return step < 0; }))
      return cannot_be_said("it goes backwards");
  }
  if (!has_operand(node, 3)) return {};
  TRY(const auto written, constant_integers(node, 3, out.model()));
  TRY(const auto axes, slice_axes(node, 0, out.model()));
  if (axes == written) return {};
  const std::string operand = out.integers(axes, "axes");
  out.again().set_input(3, operand);
  return {};
}

Result<void> slice_down(const onnx::NodeProto& node, Replacement& out) {
  if (has_operand(node, 4)) {
    TRY(const auto steps, constant_integers(node, 4, out.model()));
    if (std::any_of(steps.begin(), steps.end(), [](std::int64_t step) { return step != 1; }))
      return cannot_be_said("it has steps");
  }
  TRY(const auto starts, constant_integers(node, 1, out.model()));
  TRY(const auto ends, constant_integers(node, 2, out.model()));
  TRY(const auto axes, slice_axes(node, starts.size(), out.model()));
  onnx::NodeProto& made = out.again();
  drop_operands_from(made, 1);
  set_integers(made, "starts", starts);
  set_integers(made, "ends", ends);
  set_integers(made, "axes", axes);
  return {};
}

Result<void> pad_up(const onnx::NodeProto& node, Replacement& out) {
  TRY(const Type type, operand_type(node, 0, out.model()));
  const std::string pads = out.integers(integers_of(node, "pads"), "pads");
  const std::string word = word_of(node, "mode");
  std::string value;
  if (find_attribute(node, "value") != nullptr && (word.empty() || word == "constant"))
    value = out.constant(number_tensor(type.dtype, static_cast<double>(real_of(node, "value", 0)), {}), "value");
  onnx::NodeProto& made = out.again();
  drop_attribute(made, "pads");
  drop_attribute(made, "value");
  set_operand(made, 1, pads);
  if (!value.empty()) set_operand(made, 2, value);
  return {};
}

Result<void> pad_down(const onnx::NodeProto& node, Replacement& out) {
  TRY(const auto pads, constant_integers(node, 1, out.model()));
  double value = 0;
  if (has_operand(node, 2)) {
    TRY(value, constant_number(node, 2, out.model()));
  }
  if (static_cast<double>(static_cast<float>(value)) != value) return cannot_be_said("its value is no float32");
  onnx::NodeProto& made = out.again();
  drop_operands_from(made, 1);
  set_integers(made, "pads", pads);
  set_real(made, "value", static_cast<float>(value));
  return {};
}

Result<void> pad_axes_down(const onnx::NodeProto& node, Replacement& out) {
  if (!has_operand(node, 3)) {
    if (node.input_size() > 3) drop_operands_from(out.again(), 3);
    return {};
  }
  TRY(const auto axes, constant_integers(node, 3, out.model()));
  TRY(const auto pads, constant_integers(node, 1, out.model()));
  TRY(const Type type, operand_type(node, 0, out.model()));
  const std::int64_t rank = type.shape.rank();
  if (pads.size() != 2 * axes.size()) return cannot_be_said("pads has not two numbers for each of its axes");
  std::vector<std::int64_t> all(static_cast<std::size_t>(2 * rank), 0);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<std::size_t>(floor_mod(axes[i], std::max<std::int64_t>(1, rank)));
    all[axis] = pads[i];
    all[axis + static_cast<std::size_t>(rank)] = pads[axes.size() + i];
  }
  const std::string operand = out.integers(all, "pads");
  onnx::NodeProto& made = out.again();
  drop_operands_from(made, 3);
  made.set_input(1, operand);
  trim_operands(made);
  return {};
}

Result<void> pad_wrap_down(const onnx::NodeProto& node, Replacement&) {
  if (word_of(node, "mode") == "wrap") return cannot_be_said("mode=wrap does not exist before");
  return {};
}

// The node again, with what the attribute says as that operand.
void turn_to_operand(Replacement& out, const char* attribute, const std::string& value, int operand) {
  onnx::NodeProto& made = out.again();
  drop_attribute(made, attribute);
  set_operand(made, operand, value);
}

Result<void> top_k_up(const onnx::NodeProto& node, Replacement& out) {
  turn_to_operand(out, "k", out.integers({integer_of(node, "k", 1)}, "k"), 1);
  return {};
}

Result<void> top_k_down(const onnx::NodeProto& node, Replacement& out) {
  TRY(const auto k, constant_integers(node, 1, out.model()));
  if (k.size() != 1) return cannot_be_said("its operand K has not one element");
  onnx::NodeProto& made = out.again();
  drop_operands_from(made, 1);
  set_integer(made, "k", k.front());
  return {};
}

// Bounds that are not written are those of float32 in the attributes' form, and none in the operands'.
Result<void> clip_up(const onnx::NodeProto& node, Replacement& out) {
  TRY(const Type type, operand_type(node, 0, out.model()));
  constexpr float largest = std::numeric_limits<float>::max();
  const auto bound = [&](std::string_view name, float otherwise) {
    if (find_attribute(node, name) == nullptr && type.dtype == DType::f16) return std::string();
    return out.constant(number_tensor(type.dtype, static_cast<double>(real_of(node, name, otherwise)), {}), name);
  };
  const std::string low = bound("min", -largest);
  const std::string high = bound("max", largest);
  onnx::NodeProto& made = out.again();
  drop_attribute(made, "min");
  drop_attribute(made, "max");
  if (!low.empty()) set_operand(made, 1, low);
  if (!high.empty()) set_operand(made, 2, high);
  return {};
}

Result<void> clip_down(const onnx::NodeProto& node, Replacement& out) {
  constexpr double none = std::numeric_limits<double>::infinity();
  std::array<double, 2> bounds = {-none, none};
  for (int i = 0; i < 2; ++i) {
    if (!has_operand(node, i + 1)) continue;
    TRY(bounds[static_cast<std::size_t>(i)], constant_number(node, i + 1, out.model()));
  }
  for (const double bound : bounds) {
    if (static_cast<double>(static_cast<float>(bound)) != bound) return cannot_be_said("a bound is no float32");
  }
  onnx::NodeProto& made = out.again();
  drop_operands_from(made, 1);
  set_real(made, "min", static_cast<float>(bounds[0]));
  set_real(made, "max", static_cast<float>(bounds[1]));
  return {};
}

Result<void> need_no_mask(const onnx::NodeProto& node, Replacement&) {
  if (has_result(node, 1)) return cannot_be_said("its result 'mask' has another meaning there");
  return {};
}

Result<void> dropout_up(const onnx::NodeProto& node, Replacement& out) {
  TRY_VOID(need_no_mask(node, out));
  if (find_attribute(node, "ratio") == nullptr) return {};
  const auto ratio = static_cast<double>(real_of(node, "ratio", 0.5F));
  turn_to_operand(out, "ratio", out.constant(number_tensor(DType::f32, ratio, {}), "ratio"), 1);
  return {};
}

Result<void> dropout_down(const onnx::NodeProto& node, Replacement& out) {
  TRY_VOID(need_no_mask(node, out));
  if (has_operand(node, 2)) {
    TRY(const double training, constant_number(node, 2, out.model()));
    if (training != 0) return cannot_be_said("it drops elements (training_mode)");
  }
  std::optional<double> ratio;
  if (has_operand(node, 1)) {
    TRY(ratio, constant_number(node, 1, out.model()));
  }
  if (node.input_size() < 2 && find_attribute(node, "seed") == nullptr) return {};
  onnx::NodeProto& made = out.again();
  drop_operands_from(made, 1);
  drop_attribute(made, "seed");
  if (ratio.has_value()) set_real(made, "ratio", static_cast<float>(*ratio));
  return {};
}

Result<void> dft_up(const onnx::NodeProto& node, Replacement& out) {
  const auto axis = static_cast<double>(integer_of(node, "axis", 1));
  turn_to_operand(out, "axis", out.constant(number_tensor(DType::i64, axis, {}), "axis"), 2);
  return {};
}

Result<void> dft_down(const onnx::NodeProto& node, Replacement& out) {
  std::int64_t axis = -2;
  if (has_operand(node, 2)) {
    TRY(const auto given, constant_integers(node, 2, out.model()));
    if (given.size() != 1) return cannot_be_said("its operand axis has not one element");
    axis = given.front();
  }
  TRY(const Type type, operand_type(node, 0, out.model()));
  onnx::NodeProto& made = out.again();
  drop_operands_from(made, 2);
  trim_operands(made);
  set_integer(made, "axis", axis < 0 ? axis + type.shape.rank() : axis);
  return {};
}

Result<void> constant_down(const onnx::NodeProto& node, Replacement& out) {
  if (find_attribute(node, "value") != nullptr) return {};
  const onnx::TensorProto* const given = node.output_size() == 1 ? out.model().constant(node.output(0)) : nullptr;
  if (given == nullptr) return cannot_be_said("its value is neither a tensor nor numbers");
  const onnx::TensorProto value = *given;
  onnx::NodeProto& made = out.again();
  made.clear_attribute();
  auto* attribute = made.add_attribute();
  attribute->set_name("value");
  attribute->set_type(onnx::AttributeProto::TENSOR);
  *attribute->mutable_t() = value;
  return {};
}

// allowzero=1 matters where a size of 0 is asked for.
Result<void> reshape_down(const onnx::NodeProto& node, Replacement& out) {
  if (find_attribute(node, "allowzero") == nullptr) return {};
  if (integer_of(node, "allowzero", 0) != 0) {
    TRY(const auto sizes, constant_integers(node, 1, out.model()));
    if (std::find(sizes.begin(), sizes.end(), 0) != sizes.end())
      return cannot_be_said("it asks for a size of 0 (allowzero), which copies the operand's size before");
  }
  drop_attribute(out.again(), "allowzero");
  return {};
}

Result<void> shape_down(const onnx::NodeProto& node, Replacement& out) {
  const bool from_front = integer_of(node, "start", 0) == 0;
  if (find_attribute(node, "end") == nullptr && from_front) {
    if (find_attribute(node, "start") != nullptr) drop_attribute(out.again(), "start");
    return {};
  }
  TRY(const Type type, operand_type(node, 0, out.model()));
  const Type all{DType::i64, Shape{Dim(type.shape.rank())}};
  const std::string sizes = out.add("Shape", {node.input(0)}, "all", &all);
  const std::string start = out.integers({integer_of(node, "start", 0)}, "start");
  const std::string end = out.integers({integer_of(node, "end", type.shape.rank())}, "end");
  out.add_last("Slice", {sizes, start, end, out.integers({0}, "axis")});
  return {};
}

Result<void> mod_down(const onnx::NodeProto& node, Replacement& out) {
  TRY(const Type type, operand_type(node, 0, out.model()));
  if (is_float(type.dtype) && integer_of(node, "fmod", 0) == 0)
    return cannot_be_said("the remainder of floats with the divisor's sign does not exist before");
  return {};
}

// Before opset 8 all operands have the same shape.
Result<void> broadcast_down(const onnx::NodeProto& node, Replacement& out) {
  for (int i = 0; i < node.input_size(); ++i) {
    TRY(const Type type, operand_type(node, i, out.model()));
    TRY(const Type first, operand_type(node, 0, out.model()));
    if (!(type.shape == first.shape)) return cannot_be_said("its operands have several shapes");
  }
  return {};
}

}  // namespace

std::span<const OpsetStep> operand_steps() {
  constexpr std::string_view broadcast = "operands of several shapes are broadcast";
  static const std::vector<OpsetStep>& steps = lasting<std::vector<OpsetStep>>(
      {{"Max", 8, broadcast, nullptr, broadcast_down},
       {"Mean", 8, broadcast, nullptr, broadcast_down},
       {"Min", 8, broadcast, nullptr, broadcast_down},
       {"Sum", 8, broadcast, nullptr, broadcast_down},
       {"Slice", 10, "starts, ends, axes and steps are operands; before, attributes without steps", slice_up,
        slice_down},
       {"Slice", 11, "axes below zero and steps backwards are defined", nullptr, slice_clear_down},
       {"Pad", 11, "pads and the value are operands; before, attributes", pad_up, pad_down},
       {"Pad", 18, "axes names those that pads is of", nullptr, pad_axes_down},
       {"Pad", 19, "the mode wrap exists", nullptr, pad_wrap_down},
       {"TopK", 10, "k is an operand; before, an attribute", top_k_up, top_k_down},
       {"Clip", 11, "bounds are operands; before, attributes, float32's largest numbers where absent", clip_up,
        clip_down},
       {"Dropout", 10, "the mask is bool", need_no_mask, need_no_mask},
       {"Dropout", 12, "ratio and training_mode are operands; before, ratio is an attribute", dropout_up, dropout_down},
       {"DFT", 20, "axis is an operand, -2 where absent; before, an attribute, 1 where absent", dft_up, dft_down},
       {"Constant", 12, "numbers may be written without a tensor", nullptr, constant_down},
       {"Reshape", 14, "allowzero lets 0 mean a size of 0", nullptr, reshape_down},
       {"Shape", 15, "start and end choose some of the sizes", nullptr, shape_down},
       {"Mod", 28, "floats have a remainder with the divisor's sign", nullptr, mod_down}});
  return steps;
}

}  // namespace polyphase::legal
