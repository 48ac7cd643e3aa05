// constant: a tensor that is part of the model; dims: sizes as data.
#include "ops/families.h"

namespace polyphase {
namespace {

Result<std::vector<Type>> infer_constant(const InferContext& context) {
  const Tensor& value = context.attributes().get<Tensor>("value");
  if (!value.valid()) return Error{ErrorCode::invalid_model, "a constant has no value."};
  return std::vector<Type>{value.type()};
}

Contents constant_contents(const InferContext& context) {
  if (!context.attributes().get<std::string>("weight").empty()) return std::nullopt;
  const TensorView& view = context.attributes().get<Tensor>("value").view();
  std::vector<Dim> out;
  for_each_index<1>(view.size_span(), {view.strides.data()}, [&](const std::array<std::int64_t, 1>& at) {
    out.emplace_back(load_integer(view.data + at[0] * static_cast<std::int64_t>(size_bytes(view.dtype)), view.dtype));
  });
  return out;
}

Result<void> reference_constant(const ReferenceContext& context) {
  copy_elements(context.attributes.get<Tensor>("value").view(), context.outputs[0]);
  return {};
}

Result<std::vector<Type>> infer_dims(const InferContext& context) {
  const auto& sizes = context.attributes().get<std::vector<Dim>>("values");
  const Dim count(static_cast<std::int64_t>(sizes.size()));
  if (context.attributes().get<bool>("scalar") && sizes.size() != 1) {
    return Error{ErrorCode::invalid_model, "dims: a scalar has one value, found " + print_attribute(sizes) + ".",
                 "Give one value, or leave scalar out."};
  }
  return std::vector<Type>{{DType::i64, context.attributes().get<bool>("scalar") ? Shape{} : Shape{count}}};
}

Contents dims_contents(const InferContext& context) { return context.attributes().get<std::vector<Dim>>("values"); }

Result<void> reference_dims(const ReferenceContext& context) {
  const auto values = integers_of(context.attributes.get<std::vector<Dim>>("values"));
  const TensorView& result = context.outputs[0];
  for (std::size_t i = 0; i < values.size(); ++i) {
    result.as<std::int64_t>()[static_cast<std::int64_t>(i) * result.strides[0]] = values[i];
  }
  return {};
}

}  // namespace

std::vector<OpDef> constant_operators() {
  return {
      OpDef{.name = "constant",
            .doc = "A tensor that is part of the model: weights, tables, literals.",
            .inputs = {},
            .outputs = {{"value", "the tensor"}},
            .attributes = {{"value", AttributeKind::tensor, "the tensor, any dtype and shape"},
                           {"weight", AttributeKind::word,
                            "the name under which the elements may be exchanged later (Engine::refit): so no pass may "
                            "look at them; empty: they stay as they are",
                            Attribute(std::string())}},
            .infer = infer_constant,
            .reference = reference_constant,
            .contents = constant_contents},
      OpDef{.name = "dims",
            .doc = "Sizes as data: an i64 vector (or scalar) of size expressions, known once the input shapes are.",
            .inputs = {},
            .outputs = {{"values", "i64, [n], or [] if scalar"}},
            .attributes = {{"values", AttributeKind::dims, "the sizes"},
                           {"scalar", AttributeKind::boolean, "one value of rank 0 instead of a vector",
                            Attribute(false)}},
            .infer = infer_dims,
            .reference = reference_dims,
            .contents = dims_contents},
  };
}

}  // namespace polyphase
