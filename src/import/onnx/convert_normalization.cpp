// The normalisations, at inference.
#include "import/onnx/node_context.h"

namespace polyphase {
namespace {

using Sizes = std::vector<Dim>;
using Integers = std::vector<std::int64_t>;

constexpr double default_epsilon = static_cast<double>(1e-5F);

Result<Value*> cast_to(NodeContext& node, Value* value, DType to) {
  if (value == nullptr || value->type.dtype == to) return value;
  return node.emit("cast", Attributes({{"to", to}}), {value});
}

Result<Values> convert_batch_norm(NodeContext& node) {
  const double epsilon = node.real("epsilon", default_epsilon);
  node.ignore("momentum");
  if (node.version() < 9 && node.integer("spatial", 1) != 1)
    return lacking("spatial=0 (statistics per element) is not supported.", "Export with opset 9 or later.");
  if (node.version() >= 14 && node.flag("training_mode", false)) {
    return lacking("training_mode is 1: the statistics would come from the batch.",
                   "Export the model in evaluation mode (model.eval()).");
  }
  // From opset 14 on the statistics may be wider than the data: compute in the wider type.
  const DType own = node.type(0).dtype;
  DType widest = own;
  for (std::size_t i = 1; i < 5; ++i) {
    if (size_bytes(node.type(i).dtype) > size_bytes(widest)) widest = node.type(i).dtype;
  }
  Values operands;
  for (std::size_t i = 0; i < 5; ++i) {
    TRY(Value * operand, cast_to(node, node.input(i), widest));
    operands.push_back(operand);
  }
  TRY(Value * value, node.emit("batch_norm", Attributes({{"epsilon", epsilon}}), std::move(operands)));
  return single(cast_to(node, value, own));
}

Result<Values> convert_instance_norm(NodeContext& node) {
  const double epsilon = node.real("epsilon", default_epsilon);
  return single(
      node.emit("instance_norm", Attributes({{"epsilon", epsilon}}), {node.input(0), node.input(1), node.input(2)}));
}

// Mean and 1 / sqrt(variance + epsilon) over the axes from `axis` on: results 1 and 2 of LayerNormalization, in f32.
Result<Values> layer_statistics(NodeContext& node, std::int64_t axis, double epsilon) {
  Integers axes;
  for (std::int64_t i = axis; i < node.rank(0); ++i) axes.push_back(i);
  const Attributes over({{"axes", axes}, {"keep", true}});
  const DType wide = node.type(0).dtype == DType::f64 ? DType::f64 : DType::f32;
  TRY(Value * x, cast_to(node, node.input(0), wide));
  TRY(Value * mean, node.emit("reduce_mean", over, {x}));
  TRY(Value * centred, node.emit("sub", {}, {x, mean}));
  TRY(Value * squares, node.emit("mul", {}, {centred, centred}));
  TRY(Value * variance, node.emit("reduce_mean", over, {squares}));
  TRY(Value * shifted, node.emit("add", {}, {variance, node.scalar(wide, epsilon)}));
  TRY(Value * deviation, node.emit("sqrt", {}, {shifted}));
  TRY(Value * inverse, node.emit("reciprocal", {}, {deviation}));
  return Values{mean, inverse};
}

Result<Values> convert_layer_norm(NodeContext& node) {
  const double epsilon = node.real("epsilon", default_epsilon);
  node.ignore("stash_type");  // the precision of the intermediate result; ours is never lower
  TRY(const std::int64_t axis, node.axis(node.integer("axis", -1), node.rank(0)));
  TRY(Value * value, node.emit("layer_norm", Attributes({{"axis", axis}, {"epsilon", epsilon}}),
                               {node.input(0), node.input(1), node.input(2)}));
  Values results{value};
  if (node.output_count() > 1) {
    TRY(const Values statistics, layer_statistics(node, axis, epsilon));
    results.insert(results.end(), statistics.begin(), statistics.end());
  }
  return results;
}

// One number per group → one per channel.
Result<Value*> per_channel(NodeContext& node, Value* value, std::int64_t groups, const Dim& channels) {
  TRY(Value * column, node.emit("reshape", Attributes({{"shape", Sizes{Dim(groups), Dim(1)}}}), {value}));
  TRY(Value * table,
      node.emit("expand", Attributes({{"shape", Sizes{Dim(groups), floor_div(channels, Dim(groups))}}}), {column}));
  return node.emit("reshape", Attributes({{"shape", Sizes{channels}}}), {table});
}

// Version 18 has scale and bias per group, version 21 per channel.
Result<Values> convert_onnx_group_norm(NodeContext& node) {
  const double epsilon = node.real("epsilon", default_epsilon);
  node.ignore("stash_type");
  const std::int64_t groups = node.integer("num_groups", 0);
  if (node.rank(0) < 2) return broken_rule("the operand must be (N, C, …), found " + node.type(0).text() + ".");
  const Dim channels = node.shape(0)[1];
  if (groups < 1 || (channels.is_constant() && channels.value() % groups != 0)) {
    return broken_rule("num_groups is " + std::to_string(groups) + "; it must be at least 1 and divide the channels, " +
                       channels.text() + ".");
  }
  Value* scale = node.input(1);
  Value* bias = node.input(2);
  if (node.version() < 21) {
    for (Value** parameter : {&scale, &bias}) {
      if ((*parameter)->type.shape.rank() != 1)
        return broken_rule("scale and bias must be lists, found " + (*parameter)->type.text() + ".");
      if ((*parameter)->type.shape[0] == channels && !(channels == groups)) {
        node.warn("scale and bias have one number per channel, as from opset 21 on; taken so");
      } else {
        TRY(*parameter, per_channel(node, *parameter, groups, channels));
      }
    }
  }
  return single(
      node.emit("group_norm", Attributes({{"groups", groups}, {"epsilon", epsilon}}), {node.input(0), scale, bias}));
}

// x / sqrt(mean(x²) + epsilon) * scale over the axes from `axis` on.
Result<Values> convert_rms_norm(NodeContext& node) {
  const double epsilon = node.real("epsilon", default_epsilon);
  node.ignore("stash_type");
  TRY(const std::int64_t axis, node.axis(node.integer("axis", -1), node.rank(0)));
  return single(node.emit("layer_norm", Attributes({{"axis", axis}, {"epsilon", epsilon}, {"centre", false}}),
                          {node.input(0), node.input(1)}));
}

// (x - mean) / (sqrt(mean(x²) - mean²) + 1e-9), as ONNX's function body has it.
Result<Values> convert_mean_variance(NodeContext& node) {
  TRY(const Integers axes, node.axes(node.integers("axes").value_or(Integers{0, 2, 3}), node.rank(0)));
  const Attributes over({{"axes", axes}, {"keep", true}});
  Value* x = node.input(0);
  TRY(Value * mean, node.emit("reduce_mean", over, {x}));
  TRY(Value * squares, node.emit("mul", {}, {x, x}));
  TRY(Value * mean_square, node.emit("reduce_mean", over, {squares}));
  TRY(Value * square_mean, node.emit("mul", {}, {mean, mean}));
  TRY(Value * variance, node.emit("sub", {}, {mean_square, square_mean}));
  TRY(Value * deviation, node.emit("sqrt", {}, {variance}));
  TRY(Value * divisor, node.emit("add", {}, {deviation, node.scalar(x->type.dtype, 1e-9)}));
  TRY(Value * centred, node.emit("sub", {}, {x, mean}));
  return single(node.emit("div", {}, {centred, divisor}));
}

}  // namespace

std::vector<Converter> normalization_converters() {
  return {
      {"BatchNormalization", {7, 9, 14, 15}, 5, 5, convert_batch_norm},
      {"GroupNormalization", {18, 21}, 3, 3, convert_onnx_group_norm},
      {"InstanceNormalization", {6, 22}, 3, 3, convert_instance_norm},
      {"LayerNormalization", {17}, 2, 3, convert_layer_norm},
      {"MeanVarianceNormalization", {9, 13}, 1, 1, convert_mean_variance},
      {"RMSNormalization", {23}, 2, 2, convert_rms_norm},
  };
}

}  // namespace polyphase
