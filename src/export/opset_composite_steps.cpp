// Operators that an older opset does not have, in terms of those that it has.
#include <cmath>

#include "base/lasting.h"
#include "export/opset_step.h"
#include "export/replacement.h"
#include "wire/dtype_map.h"

namespace polyphase::legal {
namespace {

// Of several nodes, each of which rounds, in units of the largest element.
constexpr double rounding = 1e-5;

std::string number(const Type& like, double value, std::string_view word, Replacement& out) {
  return out.constant(number_tensor(like.dtype, value, {}), word);
}

Result<void> gelu_down(const onnx::NodeProto& node, Replacement& out) {
  TRY(const Type type, operand_type(node, 0, out.model()));
  const std::string& x = node.input(0);
  std::string inner;
  if (word_of(node, "approximate") == "tanh") {
    const std::string square = out.add("Mul", {x, x}, "square", &type);
    const std::string cube = out.add("Mul", {square, x}, "cube", &type);
    const std::string small = out.add("Mul", {cube, number(type, 0.044715, "cube_factor", out)}, "small", &type);
    const std::string sum = out.add("Add", {x, small}, "sum", &type);
    const double factor = std::sqrt(2 / 3.14159265358979323846);
    const std::string scaled = out.add("Mul", {sum, number(type, factor, "factor", out)}, "scaled", &type);
    inner = out.add("Tanh", {scaled}, "tanh", &type);
  } else {
    const std::string scaled = out.add("Mul", {x, number(type, std::sqrt(0.5), "factor", out)}, "scaled", &type);
    inner = out.add("Erf", {scaled}, "erf", &type);
  }
  const std::string weight = out.add("Add", {inner, number(type, 1, "one", out)}, "weight", &type);
  const std::string half = out.add("Mul", {x, number(type, 0.5, "half_factor", out)}, "half", &type);
  out.add_last("Mul", {half, weight});
  return {};
}

Result<void> mish_down(const onnx::NodeProto& node, Replacement& out) {
  TRY(const Type type, operand_type(node, 0, out.model()));
  const std::string soft = out.add("Softplus", {node.input(0)}, "softplus", &type);
  out.add_last("Mul", {node.input(0), out.add("Tanh", {soft}, "tanh", &type)});
  return {};
}

Result<void> hard_swish_down(const onnx::NodeProto& node, Replacement& out) {
  TRY(const Type type, operand_type(node, 0, out.model()));
  const std::string gate = out.add("HardSigmoid", {node.input(0)}, "gate", &type);
  set_real(out.latest(), "alpha", 1.0F / 6.0F);
  set_real(out.latest(), "beta", 0.5F);
  out.add_last("Mul", {node.input(0), gate});
  return {};
}

Result<void> swish_down(const onnx::NodeProto& node, Replacement& out) {
  TRY(const Type type, operand_type(node, 0, out.model()));
  std::string scaled = node.input(0);
  if (const float alpha = real_of(node, "alpha", 1); alpha != 1)
    scaled = out.add("Mul", {scaled, number(type, static_cast<double>(alpha), "alpha", out)}, "scaled", &type);
  out.add_last("Mul", {node.input(0), out.add("Sigmoid", {scaled}, "gate", &type)});
  return {};
}

Result<void> compare_or_equal(const onnx::NodeProto& node, std::string_view strict, Replacement& out) {
  const std::vector<std::string> operands = {node.input(0), node.input(1)};
  std::optional<Type> result;
  if (const TensorFact* fact = out.model().find(node.output(0)); fact != nullptr) result = fact->type;
  const Type* const type = result.has_value() ? &*result : nullptr;
  const std::string strictly = out.add(strict, operands, "strictly", type);
  out.add_last("Or", {strictly, out.add("Equal", operands, "equal", type)});
  return {};
}

Result<void> greater_or_equal_down(const onnx::NodeProto& node, Replacement& out) {
  return compare_or_equal(node, "Greater", out);
}

Result<void> less_or_equal_down(const onnx::NodeProto& node, Replacement& out) {
  return compare_or_equal(node, "Less", out);
}

Result<void> cast_like_down(const onnx::NodeProto& node, Replacement& out) {
  TRY(const Type like, operand_type(node, 1, out.model()));
  out.add_last("Cast", {node.input(0)});
  set_integer(out.latest(), "to", wire::onnx_from_dtype(like.dtype));
  return {};
}

// Means over the axes from `axis` on, in float32 where the data are narrower.
struct Moments {
  std::string x;
  Type type;
  std::vector<std::int64_t> axes;
  bool narrow = false;
  DType outside = DType::f32;
};

Result<Moments> moments_of(const onnx::NodeProto& node, Replacement& out) {
  Moments of;
  TRY(of.type, operand_type(node, 0, out.model()));
  of.x = node.input(0);
  of.outside = of.type.dtype;
  of.narrow = is_narrow(of.type.dtype);
  if (integer_of(node, "stash_type", 1) != onnx::TensorProto::FLOAT && of.type.dtype != DType::f64)
    return cannot_be_said("stash_type is not float32");
  const int rank = of.type.shape.rank();
  for (std::int64_t axis = floor_mod(integer_of(node, "axis", -1), std::max(1, rank)); axis < rank; ++axis)
    of.axes.push_back(axis);
  if (of.narrow) {
    of.type.dtype = DType::f32;
    of.x = out.add("Cast", {of.x}, "wide", &of.type);
    set_integer(out.latest(), "to", onnx::TensorProto::FLOAT);
  }
  return of;
}

std::string mean_of(const Moments& of, const std::string& x, std::string_view word, bool axes_are_operand,
                    Replacement& out) {
  Type reduced = of.type;
  for (const std::int64_t axis : of.axes) reduced.shape[static_cast<int>(axis)] = Dim(1);
  std::vector<std::string> operands = {x};
  if (axes_are_operand) operands.push_back(out.integers(of.axes, std::string(word) + "_axes"));
  const std::string mean = out.add("ReduceMean", operands, word, &reduced);
  if (!axes_are_operand) set_integers(out.latest(), "axes", of.axes);
  set_integer(out.latest(), "keepdims", 1);
  return mean;
}

// x / sqrt(mean(x²) + epsilon), in the operand's own type again.
std::string normalised(const onnx::NodeProto& node, const Moments& of, const std::string& x, bool axes_are_operand,
                       Replacement& out) {
  const std::string square = out.add("Mul", {x, x}, "square", &of.type);
  const std::string variance = mean_of(of, square, "variance", axes_are_operand, out);
  const double epsilon = static_cast<double>(real_of(node, "epsilon", 1e-5F));
  const std::string safe = out.add("Add", {variance, number(of.type, epsilon, "epsilon", out)}, "safe");
  const std::string deviation = out.add("Sqrt", {safe}, "deviation");
  const std::string wide = out.add("Div", {x, deviation}, "normalised", &of.type);
  if (!of.narrow) return wide;
  const std::string back = out.add("Cast", {wide}, "narrow");
  set_integer(out.latest(), "to", wire::onnx_from_dtype(of.outside));
  return back;
}

Result<void> layer_norm_down(const onnx::NodeProto& node, Replacement& out) {
  if (has_result(node, 1) || has_result(node, 2)) return cannot_be_said("it gives statistics");
  TRY(const Moments of, moments_of(node, out));
  const std::string mean = mean_of(of, of.x, "mean", false, out);
  const std::string centred = out.add("Sub", {of.x, mean}, "centred", &of.type);
  const std::string unit = normalised(node, of, centred, false, out);
  if (!has_operand(node, 2)) {
    out.add_last("Mul", {unit, node.input(1)});
    return {};
  }
  out.add_last("Add", {out.add("Mul", {unit, node.input(1)}, "scaled"), node.input(2)});
  return {};
}

Result<void> rms_norm_down(const onnx::NodeProto& node, Replacement& out) {
  TRY(const Moments of, moments_of(node, out));
  out.add_last("Mul", {normalised(node, of, of.x, true, out), node.input(1)});
  return {};
}

// A number per group → a number per channel.
Result<std::string> for_each_channel(const onnx::NodeProto& node, int operand, std::int64_t channels,
                                     std::int64_t groups, std::string_view word, Replacement& out) {
  const std::string name(word);
  TRY(const Type type, operand_type(node, operand, out.model()));
  if (type.shape.rank() == 1 && type.shape[0] == Dim(channels)) return node.input(operand);
  const Type column{type.dtype, Shape{Dim(groups), Dim(1)}};
  const Type matrix{type.dtype, Shape{Dim(groups), Dim(channels / groups)}};
  const Type vector{type.dtype, Shape{Dim(channels)}};
  const std::string as_column = out.add(
      "Reshape", {node.input(operand), out.integers({groups, 1}, name + "_column_shape")}, name + "_column", &column);
  const std::string repeated = out.add(
      "Expand", {as_column, out.integers({groups, channels / groups}, name + "_repeats")}, name + "_repeated", &matrix);
  return out.add("Reshape", {repeated, out.integers({channels}, name + "_shape")}, name, &vector);
}

Result<void> group_norm_up(const onnx::NodeProto& node, Replacement& out) {
  TRY(const Type type, operand_type(node, 0, out.model()));
  const std::int64_t groups = integer_of(node, "num_groups", 1);
  if (type.shape.rank() < 2 || !type.shape[1].is_constant() || groups < 1)
    return cannot_be_said("its channels are open");
  const std::int64_t channels = type.shape[1].value();
  TRY(const std::string scale, for_each_channel(node, 1, channels, groups, "scale", out));
  TRY(const std::string bias, for_each_channel(node, 2, channels, groups, "bias", out));
  onnx::NodeProto& made = out.again();
  made.set_input(1, scale);
  made.set_input(2, bias);
  return {};
}

// With a scale and a bias per group it is an InstanceNormalization of the groups.
Result<void> group_norm_of_groups_down(const onnx::NodeProto& node, Replacement& out) {
  TRY(const Type type, operand_type(node, 0, out.model()));
  if (type.dtype == DType::bf16) return cannot_be_said("nothing there normalises bf16");
  const std::int64_t groups = integer_of(node, "num_groups", 1);
  const Type grouped_type{type.dtype, Shape{type.shape[0], Dim(groups), Dim::symbol("places", {0, INT32_MAX})}};
  const std::string grouped =
      out.add("Reshape", {node.input(0), out.integers({0, groups, -1}, "groups")}, "grouped", &grouped_type);
  const std::string unit =
      out.add("InstanceNormalization", {grouped, node.input(1), node.input(2)}, "normalised", &grouped_type);
  set_real(out.latest(), "epsilon", real_of(node, "epsilon", 1e-5F));
  const Type shape{DType::i64, Shape{Dim(type.shape.rank())}};
  out.add_last("Reshape", {unit, out.add("Shape", {node.input(0)}, "shape", &shape)});
  return {};
}

// Groups as an axis of their own, then a scale and a bias per channel. GroupNormalization-18 is no way out: ONNX took
// it back.
Result<void> group_norm_down(const onnx::NodeProto& node, Replacement& out) {
  TRY(const Type type, operand_type(node, 0, out.model()));
  const std::int64_t groups = integer_of(node, "num_groups", 1);
  const Type grouped_type{type.dtype, Shape{type.shape[0], Dim(groups), Dim::symbol("places", {0, INT32_MAX})}};
  const std::string grouped =
      out.add("Reshape", {node.input(0), out.integers({0, groups, -1}, "groups")}, "grouped", &grouped_type);
  onnx::NodeProto of_groups = node;
  of_groups.set_input(0, grouped);
  TRY(Moments of, moments_of(of_groups, out));
  const std::string centred = out.add("Sub", {of.x, mean_of(of, of.x, "mean", true, out)}, "centred", &of.type);
  const std::string unit = normalised(node, of, centred, true, out);
  const Type shape{DType::i64, Shape{Dim(type.shape.rank())}};
  const std::string back =
      out.add("Reshape", {unit, out.add("Shape", {node.input(0)}, "shape", &shape)}, "back", &type);
  std::vector<std::int64_t> column(static_cast<std::size_t>(std::max(1, type.shape.rank() - 1)), 1);
  column[0] = -1;
  const std::string per_channel = out.integers(column, "column");
  const std::string scale = out.add("Reshape", {node.input(1), per_channel}, "scale");
  const std::string bias = out.add("Reshape", {node.input(2), per_channel}, "bias");
  out.add_last("Add", {out.add("Mul", {back, scale}, "scaled", &type), bias});
  return {};
}

}  // namespace

std::span<const OpsetStep> composite_steps() {
  constexpr std::string_view born = "the operator exists";
  static const std::vector<OpsetStep>& steps = lasting<std::vector<OpsetStep>>(
      {{"GreaterOrEqual", 12, born, nullptr, greater_or_equal_down},
       {"LessOrEqual", 12, born, nullptr, less_or_equal_down},
       {"HardSwish", 14, born, nullptr, hard_swish_down, rounding},
       {"CastLike", 15, born, nullptr, cast_like_down},
       {"LayerNormalization", 17, born, nullptr, layer_norm_down, rounding},
       {"Mish", 18, born, nullptr, mish_down, rounding},
       {"Gelu", 20, born, nullptr, gelu_down, rounding},
       {"GroupNormalization", 18, born, nullptr, group_norm_of_groups_down, rounding},
       {"GroupNormalization", 21, "scale and bias have a number per channel; before, per group", group_norm_up,
        group_norm_down, rounding},
       {"RMSNormalization", 23, born, nullptr, rms_norm_down, rounding},
       {"Swish", 24, born, nullptr, swish_down, rounding}});
  return steps;
}

}  // namespace polyphase::legal
