// What the steps of all families ask of a node.
#include "export/opset_step.h"

#include "base/lasting.h"
#include "export/replacement.h"

namespace polyphase::legal {

std::vector<OpsetStep> opset_steps() {
  std::vector<OpsetStep> out;
  for (const auto family : {axis_steps(), operand_steps(), layer_steps(), composite_steps(), resize_steps()})
    out.insert(out.end(), family.begin(), family.end());
  return out;
}

const OpsetStep* find_opset_step(std::string_view op_type, int version) {
  static const std::vector<OpsetStep>& steps = lasting(opset_steps());
  for (const OpsetStep& step : steps) {
    if (step.op_type == op_type && step.version == version) return &step;
  }
  return nullptr;
}

Error cannot_be_said(const std::string& why) {
  return Error{ErrorCode::unsupported, why,
               "Give --opset the number that the message names, or export the model anew from where it was trained."};
}

bool has_operand(const onnx::NodeProto& node, int index) {
  return node.input_size() > index && !node.input(index).empty();
}

bool has_result(const onnx::NodeProto& node, int index) {
  return node.output_size() > index && !node.output(index).empty();
}

void drop_operands_from(onnx::NodeProto& node, int index) {
  while (node.input_size() > index) node.mutable_input()->RemoveLast();
}

void trim_operands(onnx::NodeProto& node) {
  while (node.input_size() > 0 && node.input(node.input_size() - 1).empty()) node.mutable_input()->RemoveLast();
}

void set_operand(onnx::NodeProto& node, int index, const std::string& tensor) {
  while (node.input_size() <= index) node.add_input();
  node.set_input(index, tensor);
}

Result<Type> operand_type(const onnx::NodeProto& node, int index, const ModelFacts& model) {
  const std::string name = node.input_size() > index ? node.input(index) : std::string();
  if (const TensorFact* fact = model.find(name); fact != nullptr) return fact->type;
  return cannot_be_said("the shape of its operand " + std::to_string(index) + ", '" + name + "', is not known");
}

Result<Tensor> constant_elements(const onnx::NodeProto& node, int index, const ModelFacts& model) {
  const std::string name = node.input_size() > index ? node.input(index) : std::string();
  const onnx::TensorProto* const found = model.constant(name);
  if (found == nullptr)
    return cannot_be_said("its operand " + std::to_string(index) + ", '" + name + "', is no constant");
  return model.elements(*found);
}

Result<std::vector<std::int64_t>> constant_integers(const onnx::NodeProto& node, int index, const ModelFacts& model) {
  std::vector<std::int64_t> out;
  const std::string name = node.input_size() > index ? node.input(index) : std::string();
  if (const TensorFact* fact = model.find(name); fact != nullptr && fact->contents.has_value()) {
    for (const Dim& dim : *fact->contents) {
      if (dim.is_constant()) out.push_back(dim.value());
    }
    if (out.size() == fact->contents->size()) return out;
    out.clear();
  }
  TRY(const Tensor elements, constant_elements(node, index, model));
  const TensorView view = elements.view();
  for (std::int64_t i = 0; i < view.element_count(); ++i)
    out.push_back(
        load_integer(view.data + i * static_cast<std::int64_t>(size_bytes(elements.dtype())), elements.dtype()));
  return out;
}

Result<double> constant_number(const onnx::NodeProto& node, int index, const ModelFacts& model) {
  TRY(const Tensor elements, constant_elements(node, index, model));
  if (elements.view().element_count() != 1)
    return cannot_be_said("its operand " + std::to_string(index) + " has not one element");
  return load_double(elements.view().data, elements.dtype());
}

Tensor number_tensor(DType dtype, double value, const std::vector<std::int64_t>& sizes) {
  auto made = Tensor::allocate(dtype, sizes);
  CHECK(made.ok(), "memory for one number");
  const TensorView view = made->view();
  for (std::int64_t i = 0; i < view.element_count(); ++i) {
    std::byte* const element = view.data + i * static_cast<std::int64_t>(size_bytes(dtype));
    if (is_float(dtype)) {
      store_double(element, dtype, value);
    } else {
      store_integer(element, dtype, static_cast<std::int64_t>(value));
    }
  }
  return *std::move(made);
}

float real_of(const onnx::NodeProto& node, std::string_view name, float otherwise) {
  const auto* found = find_attribute(node, name);
  return found == nullptr ? otherwise : found->f();
}

}  // namespace polyphase::legal
