// ModelBuilder: small ONNX models for tests, a line per node.
#pragma once

#include <initializer_list>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "import/onnx/import_onnx.h"
#include "onnx/onnx.pb.h"

namespace polyphase {

using AttributeValue = std::variant<std::int64_t, float, std::string, std::vector<std::int64_t>, onnx::GraphProto>;
using AttributeList = std::vector<std::pair<std::string, AttributeValue>>;
// A size: a number, or a name; "" is unnamed.
using ModelSizes = std::vector<std::variant<std::int64_t, std::string>>;

inline void set_attributes(onnx::NodeProto* node, const AttributeList& attributes) {
  for (const auto& [name, value] : attributes) {
    onnx::AttributeProto* attribute = node->add_attribute();
    attribute->set_name(name);
    if (const auto* i = std::get_if<std::int64_t>(&value)) {
      attribute->set_type(onnx::AttributeProto::INT);
      attribute->set_i(*i);
    } else if (const auto* f = std::get_if<float>(&value)) {
      attribute->set_type(onnx::AttributeProto::FLOAT);
      attribute->set_f(*f);
    } else if (const auto* s = std::get_if<std::string>(&value)) {
      attribute->set_type(onnx::AttributeProto::STRING);
      attribute->set_s(*s);
    } else if (const auto* ints = std::get_if<std::vector<std::int64_t>>(&value)) {
      attribute->set_type(onnx::AttributeProto::INTS);
      for (const std::int64_t entry : *ints) attribute->add_ints(entry);
    } else {
      attribute->set_type(onnx::AttributeProto::GRAPH);
      *attribute->mutable_g() = std::get<onnx::GraphProto>(value);
    }
  }
}

// Adds a node to a graph or a function.
template <typename Body>
onnx::NodeProto* add_node(Body* body, const std::string& op, const std::vector<std::string>& inputs,
                          const std::vector<std::string>& outputs, const AttributeList& attributes = {},
                          const std::string& domain = {}) {
  onnx::NodeProto* node = body->add_node();
  node->set_op_type(op);
  node->set_domain(domain);
  node->set_name(op + "_" + std::to_string(body->node_size()));
  for (const std::string& input : inputs) node->add_input(input);
  for (const std::string& output : outputs) node->add_output(output);
  set_attributes(node, attributes);
  return node;
}

class ModelBuilder {
 public:
  explicit ModelBuilder(std::int64_t opset = 18) {
    model_.set_ir_version(8);
    model_.mutable_graph()->set_name("test");
    import_domain("", opset);
  }

  void import_domain(const std::string& domain, std::int64_t version) {
    auto* import = model_.add_opset_import();
    import->set_domain(domain);
    import->set_version(version);
  }

  void input(const std::string& name, const ModelSizes& sizes, int type = onnx::TensorProto::FLOAT) {
    auto* info = graph()->add_input();
    info->set_name(name);
    auto* tensor = info->mutable_type()->mutable_tensor_type();
    tensor->set_elem_type(type);
    auto* shape = tensor->mutable_shape();
    for (const auto& size : sizes) {
      auto* dim = shape->add_dim();
      if (const auto* number = std::get_if<std::int64_t>(&size)) {
        dim->set_dim_value(*number);
      } else if (!std::get<std::string>(size).empty()) {
        dim->set_dim_param(std::get<std::string>(size));
      }
    }
  }

  void integers(const std::string& name, const std::vector<std::int64_t>& values) {
    auto* tensor = graph()->add_initializer();
    tensor->set_name(name);
    tensor->set_data_type(onnx::TensorProto::INT64);
    tensor->add_dims(static_cast<std::int64_t>(values.size()));
    for (const std::int64_t value : values) tensor->add_int64_data(value);
  }

  void integer(const std::string& name, std::int64_t value) {
    integers(name, {value});
    graph()->mutable_initializer(graph()->initializer_size() - 1)->clear_dims();
  }

  void reals(const std::string& name, const std::vector<std::int64_t>& sizes, const std::vector<float>& values) {
    auto* tensor = graph()->add_initializer();
    tensor->set_name(name);
    tensor->set_data_type(onnx::TensorProto::FLOAT);
    for (const std::int64_t size : sizes) tensor->add_dims(size);
    for (const float value : values) tensor->add_float_data(value);
  }

  onnx::NodeProto* node(const std::string& op, const std::vector<std::string>& inputs,
                        const std::vector<std::string>& outputs, const AttributeList& attributes = {},
                        const std::string& domain = {}) {
    return add_node(graph(), op, inputs, outputs, attributes, domain);
  }

  void output(const std::string& name) { graph()->add_output()->set_name(name); }
  onnx::GraphProto* graph() { return model_.mutable_graph(); }
  onnx::ModelProto& model() { return model_; }

  Result<ImportedModel> import(const ImportOptions& options = {}) const {
    static const Registry registry = Registry::built_in();
    return import_onnx(wire::ModelApart{wire::ModelPointer(new onnx::ModelProto(model_)), {}}, registry, options);
  }

 private:
  onnx::ModelProto model_;
};

}  // namespace polyphase
