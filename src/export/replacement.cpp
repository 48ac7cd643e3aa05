// Building nodes as the model's opset writes them.
#include "export/replacement.h"

#include "wire/dtype_map.h"

namespace polyphase::legal {
namespace {

// Where Pad and Slice began to take as operands what were attributes.
constexpr std::int64_t pad_has_operands = 11;
constexpr std::int64_t slice_has_operands = 10;
constexpr std::int64_t to_the_end = INT64_MAX;

std::vector<std::int64_t> ends_of_crop(const std::vector<std::int64_t>& ends) {
  std::vector<std::int64_t> out;
  for (const std::int64_t end : ends) out.push_back(end == 0 ? to_the_end : -end);
  return out;
}

std::vector<std::int64_t> spatial_axes(std::size_t count) {
  std::vector<std::int64_t> out;
  for (std::size_t i = 0; i < count; ++i) out.push_back(static_cast<std::int64_t>(i) + 2);
  return out;
}

}  // namespace

std::string Replacement::add(std::string_view op_type, const std::vector<std::string>& inputs, std::string_view word,
                             const Type* type) {
  const std::string result = fresh(word);
  onnx::NodeProto& node = nodes_.emplace_back();
  node.set_op_type(std::string(op_type));
  node.set_name(result);
  for (const std::string& input : inputs) node.add_input(input);
  node.add_output(result);
  if (type != nullptr) model_.add(result, {*type, {}});
  return result;
}

void Replacement::add_last(std::string_view op_type, const std::vector<std::string>& inputs) {
  onnx::NodeProto& node = nodes_.emplace_back();
  node.set_op_type(std::string(op_type));
  node.set_name(node_.name());
  for (const std::string& input : inputs) node.add_input(input);
  node.mutable_output()->CopyFrom(node_.output());
}

onnx::NodeProto& Replacement::again() {
  nodes_.push_back(node_);
  return nodes_.back();
}

std::string Replacement::integers(const std::vector<std::int64_t>& values, std::string_view word) {
  onnx::TensorProto tensor;
  tensor.set_data_type(onnx::TensorProto::INT64);
  tensor.add_dims(static_cast<std::int64_t>(values.size()));
  for (const std::int64_t value : values) tensor.add_int64_data(value);
  const std::string name =
      this->tensor(std::move(tensor), word, {DType::i64, Shape{Dim(static_cast<std::int64_t>(values.size()))}});
  model_.add_initializer(tensors_.back());
  return name;
}

std::string Replacement::tensor(onnx::TensorProto value, std::string_view word, const Type& type) {
  const std::string name = fresh(word);
  value.set_name(name);
  tensors_.push_back(std::move(value));
  model_.add(name, {type, {}});
  return name;
}

std::string Replacement::constant(const Tensor& value, std::string_view word) {
  onnx::TensorProto made;
  made.set_data_type(wire::onnx_from_dtype(value.dtype()));
  for (const std::int64_t size : value.sizes()) made.add_dims(size);
  made.set_raw_data(value.view().data,
                    static_cast<std::size_t>(value.view().element_count()) * size_bytes(value.dtype()));
  return tensor(std::move(made), word, value.type());
}

std::string Replacement::pad(const std::string& x, const std::vector<std::int64_t>& pads, std::string_view word,
                             const Type& type) {
  if (model_.opset() < pad_has_operands) {
    const std::string out = add("Pad", {x}, word, &type);
    set_integers(latest(), "pads", pads);
    return out;
  }
  const std::string amounts = integers(pads, std::string(word) + "_pads");
  return add("Pad", {x, amounts}, word, &type);
}

std::vector<std::string> Replacement::crop_operands(const std::string& x, const std::vector<std::int64_t>& begins,
                                                    const std::vector<std::int64_t>& ends) {
  if (model_.opset() < slice_has_operands) return {x};
  return {x, integers(begins, "crop_starts"), integers(ends_of_crop(ends), "crop_ends"),
          integers(spatial_axes(begins.size()), "crop_axes")};
}

void Replacement::set_crop(const std::vector<std::int64_t>& begins, const std::vector<std::int64_t>& ends) {
  if (model_.opset() >= slice_has_operands) return;
  set_integers(latest(), "starts", begins);
  set_integers(latest(), "ends", ends_of_crop(ends));
  set_integers(latest(), "axes", spatial_axes(begins.size()));
}

const onnx::AttributeProto* find_attribute(const onnx::NodeProto& node, std::string_view name) {
  for (const auto& attribute : node.attribute()) {
    if (attribute.name() == name) return &attribute;
  }
  return nullptr;
}

std::vector<std::int64_t> integers_of(const onnx::NodeProto& node, std::string_view name) {
  const auto* found = find_attribute(node, name);
  if (found == nullptr) return {};
  return {found->ints().begin(), found->ints().end()};
}

std::int64_t integer_of(const onnx::NodeProto& node, std::string_view name, std::int64_t otherwise) {
  const auto* found = find_attribute(node, name);
  return found == nullptr ? otherwise : found->i();
}

std::string word_of(const onnx::NodeProto& node, std::string_view name) {
  const auto* found = find_attribute(node, name);
  return found == nullptr ? std::string() : found->s();
}

void set_integers(onnx::NodeProto& node, std::string_view name, const std::vector<std::int64_t>& values) {
  drop_attribute(node, name);
  auto* attribute = node.add_attribute();
  attribute->set_name(std::string(name));
  attribute->set_type(onnx::AttributeProto::INTS);
  for (const std::int64_t value : values) attribute->add_ints(value);
}

void set_integer(onnx::NodeProto& node, std::string_view name, std::int64_t value) {
  drop_attribute(node, name);
  auto* attribute = node.add_attribute();
  attribute->set_name(std::string(name));
  attribute->set_type(onnx::AttributeProto::INT);
  attribute->set_i(value);
}

void set_real(onnx::NodeProto& node, std::string_view name, float value) {
  drop_attribute(node, name);
  auto* attribute = node.add_attribute();
  attribute->set_name(std::string(name));
  attribute->set_type(onnx::AttributeProto::FLOAT);
  attribute->set_f(value);
}

void set_word(onnx::NodeProto& node, std::string_view name, std::string_view value) {
  drop_attribute(node, name);
  auto* attribute = node.add_attribute();
  attribute->set_name(std::string(name));
  attribute->set_type(onnx::AttributeProto::STRING);
  attribute->set_s(std::string(value));
}

void drop_attribute(onnx::NodeProto& node, std::string_view name) {
  for (int i = 0; i < node.attribute_size(); ++i) {
    if (node.attribute(i).name() == name) {
      node.mutable_attribute()->DeleteSubrange(i, 1);
      return;
    }
  }
}

}  // namespace polyphase::legal
