// New weights are new initializers; weights that are computed get a node.
#include "export/rewrite_kernel.h"

#include <algorithm>

#include "export/conv_transpose.h"

namespace polyphase::legal {
namespace {

constexpr std::int64_t axes_are_operand = 13;  // of Squeeze and Unsqueeze
constexpr std::int64_t last_axis = 3;

Type with_last_axis(Type type) {
  type.shape.push_back(1);
  return type;
}

// Unsqueeze or Squeeze of the last axis; "" as `word`: the node that ends the replacement.
std::string reshape_last(Replacement& out, const char* op_type, const std::string& x, const std::string& word,
                         const Type* type) {
  std::vector<std::string> operands = {x};
  const bool operand = out.model().opset() >= axes_are_operand;
  if (operand) operands.push_back(out.integers({last_axis}, (word.empty() ? "last" : word) + "_axis"));
  std::string result;
  if (word.empty()) {
    out.add_last(op_type, operands);
  } else {
    result = out.add(op_type, operands, word, type);
  }
  if (!operand) set_integers(out.latest(), "axes", {last_axis});
  return result;
}

// One entry more for each list of one per axis; pads have two.
void add_axis(onnx::NodeProto& node) {
  const auto append = [&](const char* name, std::int64_t entry) {
    std::vector<std::int64_t> values = integers_of(node, name);
    if (values.empty()) return;
    values.push_back(entry);
    set_integers(node, name, values);
  };
  for (const char* name : {"strides", "dilations", "kernel_shape", "output_shape"}) append(name, 1);
  append("output_padding", 0);
  if (const auto pads = integers_of(node, "pads"); pads.size() == 2)
    set_integers(node, "pads", {pads[0], 0, pads[1], 0});
}

}  // namespace

Result<void> rewrite_one_axis_as_two(const onnx::NodeProto& node, Replacement& out) {
  TRY(const ConvTransposeFacts facts, read_conv_transpose(node, out.model()));
  std::vector<std::string> operands(node.input().begin(), node.input().end());
  const Type image = with_last_axis(facts.x);
  operands[0] = reshape_last(out, "Unsqueeze", operands[0], "as_image", &image);
  const Type weight = with_last_axis(facts.weight);
  if (const auto* tensor = out.model().initializer(operands[1]); tensor != nullptr) {
    onnx::TensorProto same = *tensor;  // the bytes are the same, in this file or in one beside it
    same.add_dims(1);
    operands[1] = out.tensor(std::move(same), "weight", weight);
  } else {
    operands[1] = reshape_last(out, "Unsqueeze", operands[1], "weight", &weight);
  }
  const std::string y = out.add("ConvTranspose", operands, "image");
  out.latest().mutable_attribute()->CopyFrom(node.attribute());
  add_axis(out.latest());
  reshape_last(out, "Squeeze", y, "", nullptr);
  return {};
}

Result<void> rewrite_dilation_as_zeros(const onnx::NodeProto& node, Replacement& out) {
  TRY(const ConvTransposeFacts facts, read_conv_transpose(node, out.model()));
  const auto* tensor = out.model().initializer(node.input(1));
  if (tensor == nullptr)
    return Error{ErrorCode::unsupported, "its weight is computed, so zeros cannot be put between its taps.",
                 "Fold constants first, so that the weight is an initializer."};
  TRY(const Tensor weight, out.model().elements(*tensor));
  std::vector<std::int64_t> sizes = weight.sizes();
  for (std::size_t i = 0; i < facts.axes(); ++i) sizes[i + 2] = facts.span(i);
  TRY(const Tensor spread, Tensor::allocate(weight.dtype(), sizes));
  TensorView taps = spread.view();  // those that are not 0
  for (std::size_t i = 0; i < facts.axes(); ++i) {
    taps.sizes[i + 2] = facts.kernel[i];
    taps.strides[i + 2] *= facts.dilation[i];
  }
  copy_elements(weight.view(), taps);
  std::vector<std::string> operands(node.input().begin(), node.input().end());
  operands[1] = out.constant(spread, "weight_with_zeros");
  out.add_last("ConvTranspose", operands);
  out.latest().mutable_attribute()->CopyFrom(node.attribute());
  drop_attribute(out.latest(), "dilations");
  drop_attribute(out.latest(), "kernel_shape");
  return {};
}

}  // namespace polyphase::legal
