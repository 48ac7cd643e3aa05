// batch_norm, instance_norm, group_norm, layer_norm: shift and scale to mean 0 and variance 1, then by learned
// parameters.
#include <cmath>

#include "ops/cut.h"
#include "ops/dense.h"
#include "ops/families.h"

namespace polyphase {
namespace {

// x is float and has a channel axis.
Result<void> check_operand(const InferContext& context, const std::string& op, int least_rank) {
  const Type& x = context.input(0);
  if (is_float(x.dtype) && x.shape.rank() >= least_rank) return {};
  return Error{ErrorCode::invalid_model, op + ": the operand must be of a float dtype and of rank " +
                                             std::to_string(least_rank) + " or more, found " + x.text() + "."};
}

// Parameters may be stored in another float dtype than x (half-precision models keep them in f32).
Result<void> check_per_channel(const InferContext& context, const std::string& op, std::size_t operand,
                               const std::string& name) {
  if (!context.has_input(operand)) return {};
  const Type& parameter = context.input(operand);
  const std::string message = op + ": operand '" + name +
                              "' must be a float vector with one entry per channel (axis 1 of " +
                              context.input(0).text() + "), found " + parameter.text() + ".";
  if (!is_float(parameter.dtype) || parameter.shape.rank() != 1) return Error{ErrorCode::invalid_model, message};
  return context.require(parameter.shape[0], DimCheck::Relation::equal, context.shape(0)[1], message);
}

Result<std::vector<Type>> infer_batch_norm(const InferContext& context) {
  TRY_VOID(check_operand(context, "batch_norm", 2));
  TRY_VOID(check_per_channel(context, "batch_norm", 1, "scale"));
  TRY_VOID(check_per_channel(context, "batch_norm", 2, "bias"));
  TRY_VOID(check_per_channel(context, "batch_norm", 3, "mean"));
  TRY_VOID(check_per_channel(context, "batch_norm", 4, "variance"));
  return std::vector<Type>{context.input(0)};
}

Result<std::vector<Type>> infer_instance_norm(const InferContext& context) {
  TRY_VOID(check_operand(context, "instance_norm", 3));
  TRY_VOID(check_per_channel(context, "instance_norm", 1, "scale"));
  TRY_VOID(check_per_channel(context, "instance_norm", 2, "bias"));
  return std::vector<Type>{context.input(0)};
}

Result<std::vector<Type>> infer_group_norm(const InferContext& context) {
  TRY_VOID(check_operand(context, "group_norm", 2));
  const Type& x = context.input(0);
  const std::int64_t groups = context.attributes().get<std::int64_t>("groups");
  const std::string message = "group_norm: groups must be at least 1 and divide the channels, found " + x.text() +
                              ", groups=" + std::to_string(groups) + ".";
  if (groups < 1) return Error{ErrorCode::invalid_model, message};
  TRY_VOID(context.require(floor_mod(x.shape[1], Dim(groups)), DimCheck::Relation::equal, 0, message));
  TRY_VOID(check_per_channel(context, "group_norm", 1, "scale"));
  TRY_VOID(check_per_channel(context, "group_norm", 2, "bias"));
  return std::vector<Type>{x};
}

Result<std::vector<Type>> infer_layer_norm(const InferContext& context) {
  TRY_VOID(check_operand(context, "layer_norm", 1));
  const Type& x = context.input(0);
  const std::int64_t axis = context.attributes().get<std::int64_t>("axis");
  if (axis < 0 || axis >= x.shape.rank()) {
    return Error{ErrorCode::invalid_model, "layer_norm: attribute 'axis' must name an axis of the operand " + x.text() +
                                               ", found " + std::to_string(axis) + "."};
  }
  for (const std::size_t operand : {std::size_t{1}, std::size_t{2}}) {
    if (!context.has_input(operand)) continue;
    const Type& parameter = context.input(operand);
    const std::string message = std::string("layer_norm: operand '") + (operand == 1 ? "scale" : "bias") +
                                "' must be float and broadcast to the normalised axes " + std::to_string(axis) +
                                " and after of " + x.text() + ", found " + parameter.text() + ".";
    const int missing = x.shape.rank() - parameter.shape.rank();
    if (!is_float(parameter.dtype) || missing < axis) return Error{ErrorCode::invalid_model, message};
    for (int i = 0; i < parameter.shape.rank(); ++i) {
      if (parameter.shape[i] == 1) continue;
      TRY_VOID(context.require(parameter.shape[i], DimCheck::Relation::equal, x.shape[i + missing], message));
    }
  }
  return std::vector<Type>{x};
}

std::int64_t product(const TensorView& view, int first, int end) {
  std::int64_t out = 1;
  for (int axis = first; axis < end; ++axis) out *= view.sizes[static_cast<std::size_t>(axis)];
  return out;
}

// Every run of `count` values gets mean 0 and variance 1 (the biased variance, in two passes); without the mean taken
// out the mean of squares 1.
void normalise(std::vector<double>& values, std::int64_t count, double epsilon, bool centres = true) {
  const auto total = static_cast<std::int64_t>(values.size());
  for (std::int64_t begin = 0; begin < total; begin += count) {
    double* run = values.data() + begin;
    double mean = 0;
    for (std::int64_t i = 0; i < count; ++i) mean += run[i];
    mean = centres ? mean / static_cast<double>(count) : 0;
    double variance = 0;
    for (std::int64_t i = 0; i < count; ++i) variance += (run[i] - mean) * (run[i] - mean);
    const double factor = 1 / std::sqrt(variance / static_cast<double>(count) + epsilon);
    for (std::int64_t i = 0; i < count; ++i) run[i] = (run[i] - mean) * factor;
  }
}

// values[i] = values[i] * scale[c] + bias[c], c the place of i on axis 1.
void scale_channels(std::vector<double>& values, const ReferenceContext& context) {
  const TensorView& x = context.inputs[0];
  const std::int64_t inner = product(x, 2, x.rank);
  const std::vector<double> scale =
      context.has_input(1) ? dense_values<double>(context.inputs[1]) : std::vector<double>();
  const std::vector<double> bias =
      context.has_input(2) ? dense_values<double>(context.inputs[2]) : std::vector<double>();
  const std::int64_t planes = x.sizes[0] * x.sizes[1];
  for (std::int64_t plane = 0; plane < planes; ++plane) {
    const auto channel = static_cast<std::size_t>(plane % x.sizes[1]);
    const double factor = scale.empty() ? 1 : scale[channel];
    const double offset = bias.empty() ? 0 : bias[channel];
    for (std::int64_t i = 0; i < inner; ++i) {
      double& value = values[static_cast<std::size_t>(plane * inner + i)];
      value = value * factor + offset;
    }
  }
}

Result<void> reference_batch_norm(const ReferenceContext& context) {
  const TensorView& x = context.inputs[0];
  const double epsilon = context.attributes.get<double>("epsilon");
  std::vector<double> values = dense_values<double>(x);
  const std::vector<double> mean = dense_values<double>(context.inputs[3]);
  const std::vector<double> variance = dense_values<double>(context.inputs[4]);
  const std::int64_t inner = product(x, 2, x.rank);
  const std::int64_t planes = x.sizes[0] * x.sizes[1];
  for (std::int64_t plane = 0; plane < planes; ++plane) {
    const auto channel = static_cast<std::size_t>(plane % x.sizes[1]);
    const double factor = 1 / std::sqrt(variance[channel] + epsilon);
    for (std::int64_t i = 0; i < inner; ++i) {
      double& value = values[static_cast<std::size_t>(plane * inner + i)];
      value = (value - mean[channel]) * factor;
    }
  }
  scale_channels(values, context);
  store_values(values, context.outputs[0]);
  return {};
}

Result<void> normalise_channels(const ReferenceContext& context, std::int64_t channels_per_run) {
  const TensorView& x = context.inputs[0];
  std::vector<double> values = dense_values<double>(x);
  normalise(values, channels_per_run * product(x, 2, x.rank), context.attributes.get<double>("epsilon"));
  scale_channels(values, context);
  store_values(values, context.outputs[0]);
  return {};
}

Result<void> reference_instance_norm(const ReferenceContext& context) { return normalise_channels(context, 1); }

Result<void> reference_group_norm(const ReferenceContext& context) {
  return normalise_channels(context, context.inputs[0].sizes[1] / context.attributes.get<std::int64_t>("groups"));
}

// A parameter's values repeated over the normalised axes, or nothing if it is absent.
std::vector<double> spread(const ReferenceContext& context, std::size_t operand, std::size_t axis) {
  std::vector<double> out;
  if (!context.has_input(operand)) return out;
  const TensorView& x = context.inputs[0];
  const TensorView& parameter = context.inputs[operand];
  std::array<std::int64_t, max_rank> strides{};
  for (int i = 0; i < parameter.rank; ++i) {
    const auto at = static_cast<std::size_t>(i);
    if (parameter.sizes[at] != 1)
      strides[at + static_cast<std::size_t>(x.rank - parameter.rank)] = parameter.strides[at];
  }
  const auto size = static_cast<std::int64_t>(size_bytes(parameter.dtype));
  for_each_index<1>({x.sizes.data() + axis, static_cast<std::size_t>(x.rank) - axis}, {strides.data() + axis},
                    [&](const std::array<std::int64_t, 1>& at) {
                      out.push_back(load_double(parameter.data + at[0] * size, parameter.dtype));
                    });
  return out;
}

Result<void> reference_layer_norm(const ReferenceContext& context) {
  const TensorView& x = context.inputs[0];
  const auto axis = static_cast<std::size_t>(context.attributes.get<std::int64_t>("axis"));
  const std::int64_t count = product(x, static_cast<int>(axis), x.rank);
  std::vector<double> values = dense_values<double>(x);
  normalise(values, count, context.attributes.get<double>("epsilon"), context.attributes.get<bool>("centre"));
  const std::vector<double> scale = spread(context, 1, axis);
  const std::vector<double> bias = spread(context, 2, axis);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t at = i % static_cast<std::size_t>(count);
    values[i] = values[i] * (scale.empty() ? 1 : scale[at]) + (bias.empty() ? 0 : bias[at]);
  }
  store_values(values, context.outputs[0]);
  return {};
}

AttributeSpec epsilon() { return {"epsilon", AttributeKind::real, "added to the variance", Attribute(1e-5)}; }

CutAnswer cut_batch_norm(const CutContext& context) {
  if (context.any_cut(1)) return "takes parameters that lie in pieces";
  if (context.state(0).axis == 1) return "has parameters of their own for every place along axis 1";
  return context.state(0);
}

CutAnswer cut_layer_norm(const CutContext& context) {
  if (context.any_cut(1)) return "takes parameters that lie in pieces";
  if (context.state(0).axis >= context.attributes().get<std::int64_t>("axis"))
    return "takes its mean and variance over the whole of " + axis_words(context.state(0));
  return context.state(0);
}

OpDef batch_norm() {
  return OpDef{.name = "batch_norm",
               .doc =
                   "Normalisation by given statistics, y = (x - mean) / sqrt(variance + epsilon) * scale + bias, all "
                   "per channel (axis 1).\n"
                   "Source: ONNX operator BatchNormalization in inference; torch.nn.BatchNorm2d in eval mode; Ioffe "
                   "and Szegedy 2015.",
               .inputs = {{"x", "(N, C, ...), float"},
                          {"scale", "(C), any float dtype"},
                          {"bias", "(C)"},
                          {"mean", "(C)"},
                          {"variance", "(C)"}},
               .outputs = {{"y", "the type of x"}},
               .attributes = {epsilon()},
               .infer = infer_batch_norm,
               .reference = reference_batch_norm,
               .cut = cut_batch_norm,
               .layout = LayoutRule::per_axis};
}

OpDef instance_norm() {
  return OpDef{.name = "instance_norm",
               .doc =
                   "Normalisation of each channel of each image: y = (x - mean) / sqrt(variance + epsilon) * scale + "
                   "bias, mean and (biased)\n"
                   "variance over the spatial axes. Source: ONNX operator InstanceNormalization; "
                   "torch.nn.InstanceNorm2d; Ulyanov et al. 2016.",
               .inputs = {{"x", "(N, C, spatial...), float"},
                          {"scale", "(C), any float dtype; absent means 1", true},
                          {"bias", "(C), any float dtype; absent means 0", true}},
               .outputs = {{"y", "the type of x"}},
               .attributes = {epsilon()},
               .infer = infer_instance_norm,
               .reference = reference_instance_norm,
               .cut = cut_batch_only,
               .layout = LayoutRule::per_axis};
}

OpDef group_norm() {
  return OpDef{
      .name = "group_norm",
      .doc =
          "Normalisation of groups of C/groups neighbouring channels of each image: y = (x - mean) / sqrt(variance + "
          "epsilon) * scale +\n"
          "bias, mean and (biased) variance over a group's channels and the spatial axes, scale and bias per channel.\n"
          "Source: ONNX operator GroupNormalization-21; torch.nn.GroupNorm; Wu and He 2018.",
      .inputs = {{"x", "(N, C, ...), float"},
                 {"scale", "(C), any float dtype; absent means 1", true},
                 {"bias", "(C), any float dtype; absent means 0", true}},
      .outputs = {{"y", "the type of x"}},
      .attributes = {{"groups", AttributeKind::integer, "number of groups; divides C"}, epsilon()},
      .infer = infer_group_norm,
      .reference = reference_group_norm,
      .cut = cut_batch_only,
      .layout = LayoutRule::per_axis};
}

OpDef layer_norm() {
  return OpDef{.name = "layer_norm",
               .doc =
                   "Normalisation over the axes from `axis` to the last: y = (x - mean) / sqrt(variance + epsilon) * "
                   "scale + bias, with the\n"
                   "biased variance. Source: ONNX operator LayerNormalization; torch.nn.LayerNorm; Ba et al. 2016.",
               .inputs = {{"x", "any rank above 0, float"},
                          {"scale", "broadcasts to the normalised axes, any float dtype; absent means 1", true},
                          {"bias", "broadcasts to the normalised axes, any float dtype; absent means 0", true}},
               .outputs = {{"y", "the type of x"}},
               .attributes =
                   {{"axis", AttributeKind::integer, "the first normalised axis, 0 to rank - 1"},
                    epsilon(),
                    {"centre", AttributeKind::boolean,
                     "take the mean out; without it y = x / sqrt(mean of x squared + epsilon) * scale + bias (RMSNorm)",
                     Attribute(true)}},
               .infer = infer_layer_norm,
               .reference = reference_layer_norm,
               .cut = cut_layer_norm,
               .layout = LayoutRule::per_axis};
}

}  // namespace

std::vector<OpDef> norm_operators() { return {batch_norm(), instance_norm(), group_norm(), layer_norm()}; }

}  // namespace polyphase
