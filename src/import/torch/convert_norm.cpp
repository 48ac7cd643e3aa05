// Normalisations, by given statistics and by the operand's own.
#include <cfloat>

#include "import/compose/composer.h"
#include "import/torch/aten_node.h"

namespace polyphase {
namespace {

using Sizes = Composer::Sizes;

// Beside the result stand the statistics: the mean and 1/sqrt(variance + epsilon) over `axes` of x, in `shape`.
Result<Values> with_statistics(AtenNode& node, Composer& c, Value* result, Value* x, const Composer::Integers& axes,
                               Sizes shape) {
  const DType dtype = is_narrow(c.dtype(x)) ? DType::f32 : c.dtype(x);
  Value* const precise = c.cast(x, dtype);
  Value* const mean = c.reduce("reduce_mean", precise, axes, true);
  Value* const variance = c.reduce("reduce_mean", c.op("square", {c.sub(precise, mean)}), axes, true);
  Value* const root = c.op("sqrt", {c.add(variance, node.real("eps"))});
  Value* const inverse = c.div(c.number(1, dtype), root);
  return c.results({result, c.cast(c.reshape(mean, shape), node.result_dtype(1).value_or(dtype)),
                    c.cast(c.reshape(inverse, shape), node.result_dtype(2).value_or(dtype))});
}

// Of given statistics PyTorch returns none, as tensors without elements.
Result<Values> without_statistics(AtenNode& node, Composer& c, Value* result) {
  const auto none = [&](std::size_t i) {
    return node.constant(
        Tensor::from_values(node.result_dtype(i).value_or(DType::f32), std::vector<std::int64_t>{0}, {}));
  };
  return c.results({result, none(1), none(2)});
}

Error in_training(const char* what) {
  return lacking(std::string(what) + " is in training mode: it normalises by its operand's statistics.",
                 "Call eval() on the module before the export.");
}

Value* by_statistics(AtenNode& node, Composer& c) {
  Value* const x = node.tensor("input");
  if (c.rank(x) < 2) {
    c.refuse(lacking("batch_norm of an operand without an axis of channels.", "Give the operand two axes or more."));
    return nullptr;
  }
  const DType dtype = c.dtype(x);
  const auto per_channel = [&](const char* parameter, double otherwise) {
    return node.has(parameter) ? node.tensor(parameter) : c.expand(c.number(otherwise, dtype), {c.size(x, 1)});
  };
  return c.op(
      "batch_norm",
      {x, per_channel("weight", 1), per_channel("bias", 0), node.tensor("running_mean"), node.tensor("running_var")},
      Attributes({{"epsilon", node.real("eps")}}));
}

// By the operand's own statistics over the batch as well.
Value* by_batch(AtenNode& node, Composer& c) {
  Value* const x = node.tensor("input");
  const int rank = c.rank(x);
  Composer::Integers turned;
  for (int i = 0; i < rank; ++i) turned.push_back(i);
  std::swap(turned[0], turned[1]);
  // Channels first, so that the batch is one more spatial axis; one image of as many channels.
  Value* const image = c.unsqueeze(c.transpose(x, turned), 0);
  Value* const y = c.with_optional("instance_norm", {image, node.tensor("weight"), node.tensor("bias")},
                                   Attributes({{"epsilon", node.real("eps")}}));
  return c.transpose(c.squeeze(y, 0), turned);
}

Result<Values> with_batch_statistics(AtenNode& node, Composer& c) {
  Value* const x = node.tensor("input");
  Composer::Integers axes;
  for (int i = 0; i < c.rank(x); ++i) {
    if (i != 1) axes.push_back(i);
  }
  return with_statistics(node, c, by_batch(node, c), x, axes, {c.size(x, 1)});
}

Result<Values> convert_batch_statistics(AtenNode& node) {
  Composer c(node);
  if (!node.flag("training")) return broken_program("batch_norm without statistics must be in training mode.");
  return with_batch_statistics(node, c);
}

// Whether the call would write its operand's statistics into the module's.
bool tracks(const AtenNode& node) {
  return node.flag("training") && (node.has("running_mean") || node.has("running_var"));
}

Result<Values> convert_batch_norm(AtenNode& node) {
  Composer c(node);
  if (tracks(node)) return in_training("batch_norm");
  return c.results({node.flag("training") ? by_batch(node, c) : by_statistics(node, c)});
}

Result<Values> convert_native_batch_norm(AtenNode& node) {
  Composer c(node);
  if (tracks(node)) return in_training("batch_norm");
  if (!node.flag("training")) return without_statistics(node, c, by_statistics(node, c));
  return with_batch_statistics(node, c);
}

Result<Values> convert_batch_norm_inference(AtenNode& node) {
  Composer c(node);
  return without_statistics(node, c, by_statistics(node, c));
}

Result<Values> convert_instance_norm(AtenNode& node) {
  Composer c(node);
  if (!node.flag("use_input_stats")) return c.results({by_statistics(node, c)});
  return c.results({c.with_optional("instance_norm", {node.tensor("input"), node.tensor("weight"), node.tensor("bias")},
                                    Attributes({{"epsilon", node.real("eps")}}))});
}

Value* by_groups(AtenNode& node, Composer& c, const char* groups) {
  return c.with_optional("group_norm", {node.tensor("input"), node.tensor("weight"), node.tensor("bias")},
                         Attributes({{"groups", node.integer(groups)}, {"epsilon", node.real("eps")}}));
}

Result<Values> convert_group_norm(AtenNode& node) {
  Composer c(node);
  return c.results({by_groups(node, c, "num_groups")});
}

Result<Values> convert_native_group_norm(AtenNode& node) {
  Composer c(node);
  Value* const x = node.tensor("input");
  const Dim images = node.size("N");
  const std::int64_t groups = node.integer("group");
  if (groups <= 0) return broken_program("Expected num groups to be greater than 0, got " + std::to_string(groups));
  Value* const members = c.reshape(x, {images, groups, floor_div(node.size("C"), groups) * node.size("HxW")});
  return with_statistics(node, c, by_groups(node, c, "group"), members, {2}, {images, groups});
}

// The last axes, as many as normalized_shape has.
Result<Value*> by_last_axes(AtenNode& node, Composer& c, Value* bias, double epsilon, bool centre) {
  Value* const x = node.tensor("input");
  const Sizes shape = node.sizes("normalized_shape");
  const std::int64_t axis = c.rank(x) - static_cast<std::int64_t>(shape.size());
  if (axis < 0 || shape.empty())
    return broken_program("normalized_shape has " + std::to_string(shape.size()) + " sizes; the operand has " +
                          std::to_string(c.rank(x)) + " axes.");
  for (std::size_t i = 0; i < shape.size(); ++i)
    c.require_equal(shape[i], c.size(x, static_cast<int>(axis) + static_cast<int>(i)),
                    "normalized_shape must be the operand's last sizes.");
  return c.result(c.with_optional("layer_norm", {x, node.tensor("weight"), bias},
                                  Attributes({{"axis", axis}, {"epsilon", epsilon}, {"centre", centre}})));
}

Result<Values> convert_layer_norm(AtenNode& node) {
  Composer c(node);
  TRY(Value * y, by_last_axes(node, c, node.tensor("bias"), node.real("eps"), true));
  return Values{y};
}

Result<Values> convert_native_layer_norm(AtenNode& node) {
  Composer c(node);
  TRY(Value * y, by_last_axes(node, c, node.tensor("bias"), node.real("eps"), true));
  Value* const x = node.tensor("input");
  Composer::Integers axes;
  Sizes shape = c.sizes(x);
  for (int i = c.rank(x) - static_cast<int>(node.sizes("normalized_shape").size()); i < c.rank(x); ++i) {
    axes.push_back(i);
    shape[static_cast<std::size_t>(i)] = 1;
  }
  return with_statistics(node, c, y, x, axes, std::move(shape));
}

Result<Values> convert_rms_norm(AtenNode& node) {
  Composer c(node);
  const DType dtype = c.dtype(node.tensor("input"));
  const double smallest = dtype == DType::f64 ? DBL_EPSILON : FLT_EPSILON;  // of the type that PyTorch computes in
  TRY(Value * y, by_last_axes(node, c, nullptr, node.has("eps") ? node.real("eps") : smallest, false));
  return Values{y};
}

// v·g / |v|, the norm over all axes but `dim`.
Result<Values> convert_weight_norm(AtenNode& node) {
  Composer c(node);
  Value* const v = node.tensor("v");
  Composer::Integers axes;
  std::int64_t kept = node.integer("dim");
  if (kept != -1) {
    TRY(kept, node.axis("dim", c.rank(v)));
  }
  for (int i = 0; i < c.rank(v); ++i) {
    if (i != kept) axes.push_back(i);
  }
  Value* const norm = axes.empty() ? c.op("abs", {v}) : c.reduce("reduce_l2", v, axes, true);
  return c.results({c.mul(v, c.div(node.tensor("g"), norm))});
}

}  // namespace

std::vector<AtenEntry> aten_norm_entries() {
  return {
      {"_native_batch_norm_legit.no_stats(Tensor input, Tensor? weight, Tensor? bias, bool training, float momentum, "
       "float "
       "eps) -> (Tensor, Tensor, Tensor)",
       convert_batch_statistics},
      {"_native_batch_norm_legit_no_training(Tensor input, Tensor? weight, Tensor? bias, Tensor running_mean, Tensor "
       "running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
       convert_batch_norm_inference},
      {"_weight_norm(Tensor v, Tensor g, int dim=0) -> Tensor", convert_weight_norm},
      {"batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool "
       "training, "
       "float momentum, float eps, bool cudnn_enabled) -> Tensor",
       convert_batch_norm},
      {"group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, float "
       "eps=1.0000000000000001e-05, bool cudnn_enabled=True) -> Tensor",
       convert_group_norm},
      {"instance_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool "
       "use_input_stats, float momentum, float eps, bool cudnn_enabled) -> Tensor",
       convert_instance_norm},
      {"layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, Tensor? bias=None, float "
       "eps=1.0000000000000001e-05, bool cudnn_enable=True) -> Tensor",
       convert_layer_norm},
      {"native_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool "
       "training, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
       convert_native_batch_norm},
      {"native_group_norm(Tensor input, Tensor? weight, Tensor? bias, SymInt N, SymInt C, SymInt HxW, int group, float "
       "eps) "
       "-> (Tensor, Tensor, Tensor)",
       convert_native_group_norm},
      {"native_layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight, Tensor? bias, float eps) -> "
       "(Tensor, "
       "Tensor, Tensor)",
       convert_native_layer_norm},
      {"rms_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, float? eps=None) -> Tensor",
       convert_rms_norm},
  };
}

}  // namespace polyphase
