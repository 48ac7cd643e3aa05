// One walk over the model, subgraphs included.
#include "export/model_facts.h"

#include "onnx/onnx.pb.h"
#include "wire/dtype_map.h"
#include "wire/external_data.h"
#include "wire/onnx_tensor.h"

namespace polyphase::legal {
namespace {

constexpr std::size_t most_constant_bytes = 1 << 16;

}  // namespace

bool is_own_domain(std::string_view domain) { return domain.empty() || domain == "ai.onnx"; }

ModelFacts::ModelFacts(const onnx::ModelProto& model, TensorFacts tensors, wire::ExternalData& external)
    : external_(&external), tensors_(std::move(tensors)) {
  for (const auto& opset : model.opset_import()) {
    if (opset.domain().empty() || opset.domain() == "ai.onnx") opset_ = opset.version();
  }
  collect(model.graph());
}

void ModelFacts::collect(const onnx::GraphProto& graph) {
  for (const auto& input : graph.input()) names_.insert(input.name());
  for (const auto& tensor : graph.initializer()) {
    names_.insert(tensor.name());
    initializers_.emplace(tensor.name(), &tensor);
    const auto dtype = wire::dtype_from_onnx(tensor.data_type());
    if (dtype.ok())
      tensors_.try_emplace(
          tensor.name(), TensorFact{{*dtype, Shape(std::vector<Dim>(tensor.dims().begin(), tensor.dims().end()))}, {}});
  }
  for (const auto& tensor : graph.sparse_initializer()) names_.insert(tensor.values().name());
  for (const auto& node : graph.node()) {
    names_.insert(node.name());
    names_.insert(node.output().begin(), node.output().end());
    add_constant(node);
    if (node.op_type() == "Pad" && is_own_domain(node.domain()) && node.output_size() == 1)
      pads_.emplace(node.output(0), std::make_shared<const onnx::NodeProto>(node));
    for (const auto& attribute : node.attribute()) {
      if (attribute.has_g()) collect(attribute.g());
      for (const auto& inner : attribute.graphs()) collect(inner);
    }
  }
}

// Copied: nodes come and go while a model is rewritten.
void ModelFacts::add_constant(const onnx::NodeProto& node) {
  if (node.op_type() != "Constant" || !is_own_domain(node.domain()) || node.output_size() != 1) return;
  auto tensor = std::make_shared<onnx::TensorProto>();
  for (const auto& attribute : node.attribute()) {
    if (attribute.has_t() && attribute.t().ByteSizeLong() <= most_constant_bytes) {
      *tensor = attribute.t();
    } else if (attribute.name() == "value_int" || attribute.name() == "value_ints") {
      tensor->set_data_type(onnx::TensorProto::INT64);
      if (attribute.name() == "value_int") tensor->add_int64_data(attribute.i());
      for (const std::int64_t value : attribute.ints()) tensor->add_int64_data(value);
      if (attribute.name() == "value_ints") tensor->add_dims(attribute.ints_size());
    } else if (attribute.name() == "value_float" || attribute.name() == "value_floats") {
      tensor->set_data_type(onnx::TensorProto::FLOAT);
      if (attribute.name() == "value_float") tensor->add_float_data(attribute.f());
      for (const float value : attribute.floats()) tensor->add_float_data(value);
      if (attribute.name() == "value_floats") tensor->add_dims(attribute.floats_size());
    } else {
      continue;
    }
    constants_.emplace(node.output(0), std::move(tensor));
    return;
  }
}

const TensorFact* ModelFacts::find(std::string_view tensor) const {
  const auto found = tensors_.find(tensor);
  return found == tensors_.end() ? nullptr : &found->second;
}

const onnx::TensorProto* ModelFacts::initializer(std::string_view tensor) const {
  const auto found = initializers_.find(tensor);
  return found == initializers_.end() ? nullptr : found->second;
}

const onnx::NodeProto* ModelFacts::pad(std::string_view tensor) const {
  const auto found = pads_.find(tensor);
  return found == pads_.end() ? nullptr : found->second.get();
}

void ModelFacts::add_initializer(const onnx::TensorProto& tensor) {
  constants_.insert_or_assign(tensor.name(), std::make_shared<const onnx::TensorProto>(tensor));
}

const onnx::TensorProto* ModelFacts::constant(std::string_view tensor) const {
  const auto found = constants_.find(tensor);
  return found == constants_.end() ? initializer(tensor) : found->second.get();
}

Result<Tensor> ModelFacts::elements(const onnx::TensorProto& initializer) const {
  onnx::TensorProto copy = initializer;
  return wire::take_tensor(copy, *external_);
}

std::string ModelFacts::fresh_name(const std::string& wish) {
  std::string name = wish;
  for (int i = 2; !names_.insert(name).second; ++i) name = wish + "_" + std::to_string(i);
  return name;
}

std::string name_of(const onnx::NodeProto& node) {
  if (!node.name().empty()) return node.name();
  for (const std::string& output : node.output()) {
    if (!output.empty()) return output;
  }
  return node.op_type();
}

}  // namespace polyphase::legal
