// Normalisations, by given statistics and by the operand's own.
#include <cfloat>

#include "import/compose/composer.h"
#include "import/torch/aten_node.h"

namespace polyphase {
namespace {

using Sizes = Composer::Sizes;

// Beside the result stand statistics that only training reads.
Result<Values> with_statistics(const Composer& c, Value* value) {
  TRY(Value * result, c.result(value));
  return Values{result, nullptr, nullptr};
}

Error in_training(const char* what) {
  return lacking(std::string(what) + " is in training mode: it normalises by its operand's statistics.",
                 "Call eval() on the module before the export.");
}

Value* by_statistics(AtenNode& node, Composer& c) {
  Value* const x = node.tensor("input");
  const DType dtype = c.dtype(x);
  const auto per_channel = [&](const char* parameter, double otherwise) {
    return node.has(parameter) ? node.tensor(parameter) : c.expand(c.number(otherwise, dtype), {c.size(x, 1)});
  };
  return c.op(
      "batch_norm",
      {x, per_channel("weight", 1), per_channel("bias", 0), node.tensor("running_mean"), node.tensor("running_var")},
      Attributes({{"epsilon", node.real("eps")}}));
}

Result<Values> convert_batch_norm(AtenNode& node) {
  if (node.flag("training") || !node.has("running_mean") || !node.has("running_var")) return in_training("batch_norm");
  Composer c(node);
  return c.results({by_statistics(node, c)});
}

Result<Values> convert_native_batch_norm(AtenNode& node) {
  if (node.flag("training") || !node.has("running_mean") || !node.has("running_var")) return in_training("batch_norm");
  Composer c(node);
  return with_statistics(c, by_statistics(node, c));
}

Result<Values> convert_batch_norm_inference(AtenNode& node) {
  Composer c(node);
  return with_statistics(c, by_statistics(node, c));
}

Result<Values> convert_instance_norm(AtenNode& node) {
  Composer c(node);
  if (!node.flag("use_input_stats")) return c.results({by_statistics(node, c)});
  return c.results({c.with_optional("instance_norm", {node.tensor("input"), node.tensor("weight"), node.tensor("bias")},
                                    Attributes({{"epsilon", node.real("eps")}}))});
}

// By the operand's own statistics over the batch as well.
Result<Values> convert_batch_statistics(AtenNode& node) {
  Composer c(node);
  Value* const x = node.tensor("input");
  if (!node.flag("training")) return broken_program("batch_norm without statistics must be in training mode.");
  const int rank = c.rank(x);
  Composer::Integers turned;
  for (int i = 0; i < rank; ++i) turned.push_back(i);
  std::swap(turned[0], turned[1]);
  // Channels first, so that the batch is one more spatial axis; one image of as many channels.
  Value* const image = c.unsqueeze(c.transpose(x, turned), 0);
  Value* const y = c.with_optional("instance_norm", {image, node.tensor("weight"), node.tensor("bias")},
                                   Attributes({{"epsilon", node.real("eps")}}));
  TRY(Value * result, c.result(c.transpose(c.squeeze(y, 0), turned)));
  return Values{result, nullptr, nullptr};
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
  return with_statistics(c, by_groups(node, c, "group"));
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
  return Values{y, nullptr, nullptr};
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
  Value* const norm = c.reduce("reduce_l2", v, axes, true);
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
