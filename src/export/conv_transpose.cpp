// Reading a ConvTranspose by the rules of ops/conv_transpose_onnx.cpp.
#include "export/conv_transpose.h"

#include <algorithm>

#include "ops/conv_transpose_frontend.h"

namespace polyphase::legal {
namespace {

Result<Type> type_of(const onnx::NodeProto& node, int input, const ModelFacts& model) {
  const std::string name = node.input_size() > input ? node.input(input) : std::string();
  if (const TensorFact* fact = model.find(name); fact != nullptr) return fact->type;
  return Error{ErrorCode::unsupported,
               "the shape of its operand " + std::to_string(input) + ", '" + name +
                   "', is not known, so nobody can say whether the target takes it.",
               "polyphase check tells what Polyphase lacks on the way to it."};
}

std::optional<std::vector<std::int64_t>> maybe(std::vector<std::int64_t> values) {
  if (values.empty()) return std::nullopt;
  return values;
}

std::vector<Dim> dims_of(const std::vector<std::int64_t>& values) { return {values.begin(), values.end()}; }

}  // namespace

bool ConvTransposeFacts::fixed_crop() const {
  const auto fixed = [](const Dim& dim) { return dim.is_constant(); };
  return std::all_of(pre.begin(), pre.end(), fixed) && std::all_of(post.begin(), post.end(), fixed);
}

Result<ConvTransposeFacts> read_conv_transpose(const onnx::NodeProto& node, const ModelFacts& model) {
  ConvTransposeFacts out;
  TRY(out.x, type_of(node, 0, model));
  TRY(out.weight, type_of(node, 1, model));
  OnnxConvTranspose given;
  given.input = out.x.shape;
  given.weight = out.weight.shape;
  given.auto_pad = word_of(node, "auto_pad");
  if (given.auto_pad.empty()) given.auto_pad = "NOTSET";
  given.dilations = maybe(integers_of(node, "dilations"));
  given.group = integer_of(node, "group", 1);
  given.kernel_shape = maybe(integers_of(node, "kernel_shape"));
  given.output_padding = maybe(integers_of(node, "output_padding"));
  given.strides = maybe(integers_of(node, "strides"));
  out.output_shape = integers_of(node, "output_shape");
  if (!out.output_shape.empty()) given.output_shape = dims_of(out.output_shape);
  if (const auto pads = integers_of(node, "pads"); !pads.empty()) given.pads = dims_of(pads);
  std::vector<DimCheck> checks;
  TRY(ConvTransposeForm form, onnx_conv_transpose(given, checks));
  for (auto size = out.weight.shape.begin() + 2; size != out.weight.shape.end(); ++size) {
    if (!size->is_constant())
      return Error{ErrorCode::unsupported,
                   "the size of its kernel is not known: the weight is " + out.weight.text() + ".",
                   "Make the weight an initializer, or give its input a fixed shape."};
    out.kernel.push_back(size->value());
  }
  out.stride = std::move(form.stride);
  out.dilation = std::move(form.dilation);
  out.groups = form.groups;
  out.pre = std::move(form.pre);
  out.post = std::move(form.post);
  out.auto_pad = given.auto_pad;
  out.output_padding = given.output_padding.value_or(std::vector<std::int64_t>(out.axes(), 0));
  return out;
}

Result<std::string> output_shape_below_input(const onnx::NodeProto& node, const ModelFacts& model) {
  TRY(const ConvTransposeFacts facts, read_conv_transpose(node, model));
  if (facts.output_shape.size() != facts.axes()) return std::string();
  for (std::size_t i = 0; i < facts.axes(); ++i) {
    const Dim& size = facts.x.shape[static_cast<int>(i) + 2];
    if (size.is_constant() && facts.output_shape[i] < size.value())
      return "output_shape asks for " + std::to_string(facts.output_shape[i]) + " of " + size.text() + " places";
  }
  return std::string();
}

}  // namespace polyphase::legal
