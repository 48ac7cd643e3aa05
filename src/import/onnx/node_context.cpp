// Attributes with their types checked, operands as sizes or fixed numbers, and the nodes that are added.
#include "import/onnx/node_context.h"

#include <algorithm>

#include "import/onnx/importer.h"
#include "import/onnx/ratios.h"
#include "onnx/onnx.pb.h"
#include "wire/printable.h"

namespace polyphase {

Error broken_rule(std::string message, std::string hint) {
  return Error{ErrorCode::invalid_model, std::move(message), std::move(hint)};
}

NodeContext::NodeContext(Importer& importer, Graph& graph, const Converter& converter, int version, std::string name,
                         Values inputs, std::size_t output_count, std::vector<NamedAttribute> attributes)
    : Emitter(graph, std::move(name)),
      importer_(importer),
      converter_(converter),
      version_(version),
      inputs_(std::move(inputs)),
      output_count_(output_count),
      attributes_(std::move(attributes)) {}

onnx::AttributeProto* NodeContext::attribute_named(std::string_view attribute_name) {
  asked_.insert(std::string(attribute_name));
  for (const NamedAttribute& attribute : attributes_) {
    if (attribute.name == attribute_name) return attribute.proto;
  }
  return nullptr;
}

namespace {

// Files from before the field `type` leave it out; then the field that is there decides.
int type_of(const onnx::AttributeProto& attribute) {
  using onnx::AttributeProto;
  if (attribute.type() != AttributeProto::UNDEFINED) return attribute.type();
  if (attribute.has_f()) return AttributeProto::FLOAT;
  if (attribute.has_i()) return AttributeProto::INT;
  if (attribute.has_s()) return AttributeProto::STRING;
  if (attribute.has_t()) return AttributeProto::TENSOR;
  if (attribute.has_g()) return AttributeProto::GRAPH;
  if (attribute.floats_size() != 0) return AttributeProto::FLOATS;
  if (attribute.ints_size() != 0) return AttributeProto::INTS;
  if (attribute.strings_size() != 0) return AttributeProto::STRINGS;
  return AttributeProto::UNDEFINED;
}

std::string_view name_of_type(int type) {
  constexpr std::string_view names[] = {
      "UNDEFINED", "FLOAT",   "INT",    "STRING",        "TENSOR",         "GRAPH",      "FLOATS",     "INTS",
      "STRINGS",   "TENSORS", "GRAPHS", "SPARSE_TENSOR", "SPARSE_TENSORS", "TYPE_PROTO", "TYPE_PROTOS"};
  return type >= 0 && type < 15 ? names[type] : "unknown";
}

}  // namespace

onnx::AttributeProto* NodeContext::attribute_named(std::string_view attribute_name, int wanted_type) {
  onnx::AttributeProto* attribute = attribute_named(attribute_name);
  if (attribute == nullptr) return nullptr;
  const int type = type_of(*attribute);
  const bool empty_list = type == onnx::AttributeProto::UNDEFINED &&
                          (wanted_type == onnx::AttributeProto::INTS || wanted_type == onnx::AttributeProto::FLOATS ||
                           wanted_type == onnx::AttributeProto::STRINGS);
  if (type == wanted_type || empty_list) return attribute;
  refuse_later(broken_rule("attribute '" + std::string(attribute_name) + "' has the type " +
                           std::string(name_of_type(type)) + "; it must be " + std::string(name_of_type(wanted_type)) +
                           "."));
  return nullptr;
}

void NodeContext::refuse_later(Error error) {
  if (refusal_ == nullptr) refusal_ = std::make_unique<Error>(std::move(error));
}

bool NodeContext::has_attribute(std::string_view attribute_name) { return attribute_named(attribute_name) != nullptr; }

std::int64_t NodeContext::integer(std::string_view attribute_name, std::int64_t otherwise) {
  const auto* attribute = attribute_named(attribute_name, onnx::AttributeProto::INT);
  return attribute == nullptr ? otherwise : attribute->i();
}

double NodeContext::real(std::string_view attribute_name, double otherwise) {
  const auto* attribute = attribute_named(attribute_name, onnx::AttributeProto::FLOAT);
  return attribute == nullptr ? otherwise : static_cast<double>(attribute->f());
}

std::string NodeContext::word(std::string_view attribute_name, std::string_view otherwise) {
  const auto* attribute = attribute_named(attribute_name, onnx::AttributeProto::STRING);
  return attribute == nullptr ? std::string(otherwise) : attribute->s();
}

std::optional<std::vector<std::int64_t>> NodeContext::integers(std::string_view attribute_name) {
  const auto* attribute = attribute_named(attribute_name, onnx::AttributeProto::INTS);
  if (attribute == nullptr) return std::nullopt;
  return std::vector<std::int64_t>(attribute->ints().begin(), attribute->ints().end());
}

std::optional<std::vector<double>> NodeContext::reals(std::string_view attribute_name) {
  const auto* attribute = attribute_named(attribute_name, onnx::AttributeProto::FLOATS);
  if (attribute == nullptr) return std::nullopt;
  return std::vector<double>(attribute->floats().begin(), attribute->floats().end());
}

std::vector<std::string> NodeContext::words(std::string_view attribute_name) {
  const auto* attribute = attribute_named(attribute_name, onnx::AttributeProto::STRINGS);
  if (attribute == nullptr) return {};
  return {attribute->strings().begin(), attribute->strings().end()};
}

Result<Tensor> NodeContext::tensor(std::string_view attribute_name) {
  auto* attribute = attribute_named(attribute_name, onnx::AttributeProto::TENSOR);
  if (attribute == nullptr)
    return broken_rule("attribute '" + std::string(attribute_name) + "' (a tensor) is missing.");
  return importer_.take(*attribute->mutable_t());
}

Result<Tensor> NodeContext::sparse_tensor(std::string_view attribute_name) {
  auto* attribute = attribute_named(attribute_name, onnx::AttributeProto::SPARSE_TENSOR);
  if (attribute == nullptr)
    return broken_rule("attribute '" + std::string(attribute_name) + "' (a sparse tensor) is missing.");
  return importer_.take(*attribute->mutable_sparse_tensor());
}

Result<std::vector<Dim>> NodeContext::sizes(std::size_t i, DimRange range) {
  return sizes_of(input(i), "operand " + std::to_string(i), range);
}

Result<std::vector<Dim>> NodeContext::sizes_of(Value* value, std::string_view role, DimRange range) {
  const std::string who = std::string(role) + " (" + wire::quoted_name(value->name) + ", " + value->type.text() + ")";
  if (!is_integer(value->type.dtype)) return broken_rule(who + " must hold integers.");
  if (value->type.shape.rank() > 1) return broken_rule(who + " must be a list of numbers.");
  if (value->contents.has_value()) return *value->contents;
  const auto length = value->type.shape.element_count().constant();
  if (!length.has_value()) {
    return lacking(who + " is computed from data, and even its length is not known before the run.",
                   "Export the model so that this list has a fixed length.");
  }
  if (*length > max_rank * 2)
    return lacking(who + " holds " + std::to_string(*length) + " numbers that are computed from data.",
                   "Fix them at export.");
  if (const auto tensor = importer_.fixed().of(value); tensor.has_value()) {
    std::vector<Dim> out;
    for (std::int64_t k = 0; k < *length; ++k) {
      out.emplace_back(load_integer(tensor->view().data + k * static_cast<std::int64_t>(size_bytes(tensor->dtype())),
                                    tensor->dtype()));
    }
    return out;
  }
  Value*& bound = importer_.bound(value);
  if (bound == nullptr) {
    std::vector<Dim> symbols;
    for (std::int64_t k = 0; k < *length; ++k)
      symbols.push_back(Dim::symbol(importer_.fresh_symbol(value->name), range));
    Value* integers = value;
    if (value->type.dtype != DType::i64 && value->type.dtype != DType::i32) {
      TRY(integers, emit("cast", Attributes({{"to", DType::i64}}), {value}));
    }
    TRY(Node * node, graph().add("bind", Attributes({{"symbols", symbols}}), {integers}, name() + "/bind"));
    bound = node->output();
    if (!bound->contents.has_value()) bound->contents = symbols;
  }
  return *bound->contents;
}

Result<Dim> NodeContext::size(std::size_t i, std::string_view role, DimRange range) {
  if (!(shape(i).element_count() == 1) || rank(i) > 1)
    return broken_rule(std::string(role) + " must be one number, found " + type(i).text() + ".");
  TRY(const std::vector<Dim> found, sizes_of(input(i), role, range));
  return found.front();
}

std::optional<Tensor> NodeContext::fixed(std::size_t i) {
  return has(i) ? importer_.fixed().of(input(i)) : std::nullopt;
}

std::optional<std::vector<Ratio>> NodeContext::ratios(std::size_t i) {
  return has(i) ? ratios_of(input(i), importer_.fixed()) : std::nullopt;
}

std::optional<std::vector<Dim>> NodeContext::whole_sizes(std::size_t i) {
  return has(i) ? whole_sizes_of(input(i), importer_.fixed()) : std::nullopt;
}

namespace {

Error not_fixed(const Value& value, std::string_view role) {
  return lacking(std::string(role) + " (" + wire::quoted_name(value.name) + ", " + value.type.text() +
                     ") is computed from the model's inputs; it must be fixed in the model.",
                 "Make it a constant before the export.");
}

}  // namespace

Result<std::vector<std::int64_t>> NodeContext::fixed_integers(std::size_t i, std::string_view role) {
  const auto tensor = fixed(i);
  if (!tensor.has_value()) return not_fixed(*input(i), role);
  if (!is_integer(tensor->dtype()) || tensor->view().rank > 1)
    return broken_rule(std::string(role) + " must be a list of integers, found " + tensor->type().text() + ".");
  std::vector<std::int64_t> out;
  for (std::int64_t k = 0; k < tensor->view().element_count(); ++k) {
    out.push_back(load_integer(tensor->view().data + k * static_cast<std::int64_t>(size_bytes(tensor->dtype())),
                               tensor->dtype()));
  }
  return out;
}

Result<std::vector<double>> NodeContext::fixed_reals(std::size_t i, std::string_view role) {
  const auto tensor = fixed(i);
  if (!tensor.has_value()) return not_fixed(*input(i), role);
  std::vector<double> out;
  for (std::int64_t k = 0; k < tensor->view().element_count(); ++k) {
    out.push_back(
        load_double(tensor->view().data + k * static_cast<std::int64_t>(size_bytes(tensor->dtype())), tensor->dtype()));
  }
  return out;
}

Result<std::int64_t> NodeContext::axis(std::int64_t given, std::int64_t of_rank, std::string_view role) {
  if (given >= -of_rank && given < of_rank) return given < 0 ? given + of_rank : given;
  return broken_rule(std::string(role) + " is " + std::to_string(given) + "; for rank " + std::to_string(of_rank) +
                     " it must lie in [-" + std::to_string(of_rank) + ", " + std::to_string(of_rank) + ").");
}

Result<std::vector<std::int64_t>> NodeContext::axes(const std::vector<std::int64_t>& given, std::int64_t of_rank) {
  std::vector<std::int64_t> out;
  if (static_cast<std::int64_t>(given.size()) > of_rank) {
    return broken_rule("axes lists " + std::to_string(given.size()) + " axes of a tensor of rank " +
                       std::to_string(of_rank) + ".");
  }
  for (const std::int64_t one : given) {
    TRY(const std::int64_t normal, axis(one, of_rank, "an entry of axes"));
    if (std::find(out.begin(), out.end(), normal) != out.end())
      return broken_rule("axes names axis " + std::to_string(normal) + " twice.");
    out.push_back(normal);
  }
  return out;
}

void NodeContext::warn(std::string text) { importer_.warn("node '" + name() + "': " + std::move(text)); }

Result<void> NodeContext::finish() const {
  if (refusal_ != nullptr) return Error(*refusal_);
  for (const NamedAttribute& attribute : attributes_) {
    if (asked_.count(attribute.name) == 0) {
      return broken_rule("attribute " + wire::quoted_name(attribute.name) + " does not belong to " +
                         std::string(op_type()) + ", version " + std::to_string(version_) + ".");
    }
  }
  return {};
}

Result<Values> single(Result<Value*> value) {
  if (!value.ok()) return std::move(value).error();
  return Values{*value};
}

Result<Value*> reshaped(NodeContext& node, Value* x, std::vector<Dim> shape) {
  return node.emit("reshape", Attributes({{"shape", std::move(shape)}}), {x});
}

}  // namespace polyphase
