// The model around the nodes: versions, inputs, initialisers, outputs.
#include "import/onnx/importer.h"

#include "import/compose/symbol_name.h"
#include "import/onnx/input_shapes.h"
#include "import/onnx/opsets.h"
#include "onnx/onnx.pb.h"
#include "wire/dtype_map.h"
#include "wire/printable.h"

namespace polyphase {
namespace {

// Names that PyTorch's exporters and optimisers give to what has none in the module: val_3, onnx::Mul_7,
// /up/Constant_output_0. A scalar of such a name is a literal (0.5, an epsilon), no parameter.
bool is_numbered_by_exporter(std::string_view name) {
  const auto digits = name.find_last_not_of("0123456789") + 1;
  if (digits == name.size()) return name.find("::") != std::string_view::npos;
  return digits == 0 || name.substr(0, digits) == "val_" || name.find("::") != std::string_view::npos ||
         name.find("Constant") != std::string_view::npos || name.find("onst_") != std::string_view::npos;
}

}  // namespace

Result<ImportedModel> Importer::run() {
  ImportedModel imported;
  TRY_VOID(read_versions(imported));
  TRY(functions_, FunctionTable::of(model_, options_.max_nodes));
  graph_ = std::make_unique<Graph>(registry_);
  const Body body{&opsets_, nullptr, {}};
  Scope scope{graph_.get(), &body, nullptr, {}};
  main_scope_ = &scope;
  TRY_VOID(add_initializers(*model_.mutable_graph(), scope));
  TRY_VOID(add_inputs(scope));
  TRY_VOID(translate_graph(*model_.mutable_graph(), scope));
  if (options_.survey != nullptr) finish_survey(imported);
  if (imported.complete) {
    if (!missing_.empty()) return missing_.error();
    TRY_VOID(add_outputs(scope));
  }
  for (ImportedWeight& weight : weights_) weight.used = used_weights_.count(weight.names.front()) != 0;
  if (options_.refittable) fix_weights(*graph_, fixed_.weights(), weights_);
  imported.weights = std::move(weights_);
  imported.graph = std::move(graph_);
  imported.tensors = std::move(named_);
  imported.warnings = std::move(warnings_);
  return imported;
}

void Importer::finish_survey(ImportedModel& imported) {
  missing_.tell(*options_.survey);
  imported.complete = options_.survey->complete();
  if (!imported.complete) output_what_nobody_reads(*graph_);
}

Result<void> Importer::read_versions(ImportedModel& imported) {
  const std::int64_t ir_version = model_.ir_version();
  if (ir_version < 1) {
    return Error{ErrorCode::invalid_model,
                 "the model's ir_version is " +
                     (model_.has_ir_version() ? std::to_string(ir_version) : std::string("missing")) +
                     ", so it is not a sound ONNX model.",
                 "Export it again."};
  }
  if (ir_version > newest_onnx_ir_version) {
    return Error{ErrorCode::unsupported,
                 "the model's ir_version is " + std::to_string(ir_version) + "; Polyphase knows up to " +
                     std::to_string(newest_onnx_ir_version) + ".",
                 "Export it with an older onnx package, or set model.ir_version and save it again."};
  }
  TRY(opsets_, opsets_of(model_));
  imported.name = model_.graph().name();
  imported.producer =
      model_.producer_name() + (model_.producer_version().empty() ? "" : " " + model_.producer_version());
  imported.opset = opsets_.count("") == 0 ? 0 : opsets_.at("");
  if (model_.training_info_size() != 0) warn("the model carries training information, which is not used");
  return {};
}

Result<void> Importer::add_initializers(onnx::GraphProto& graph, Scope& scope) {
  const auto add = [&](const std::string& name, Result<Tensor> tensor, const char* kind) -> Result<void> {
    if (name.empty())
      return Error{ErrorCode::invalid_model, std::string(kind) + " has no name.", "Export the model again."};
    Meaning meaning;
    if (tensor.ok()) {
      meaning.tensor = std::move(tensor).value();
      // Those of subgraphs share no name space, so nobody could say which is meant.
      if (options_.refittable && &graph == model_.mutable_graph()) {
        const bool is_literal = meaning.tensor->view().rank == 0 && is_numbered_by_exporter(name);
        if (!is_literal && may_be_exchanged(*meaning.tensor)) meaning.weight = name;
        weights_.push_back({.names = {name}, .value = *meaning.tensor, .is_literal = is_literal});
      }
    } else {
      Error error = std::move(tensor).error().within(std::string("in ") + kind + " " + wire::quoted_name(name));
      if (error.code != ErrorCode::unsupported) return error;
      meaning.problem = std::make_shared<Error>(std::move(error));  // fatal only if it is used
    }
    return define(name, std::move(meaning), scope);
  };
  for (auto& proto : *graph.mutable_initializer()) TRY_VOID(add(proto.name(), take(proto), "initializer"));
  for (auto& proto : *graph.mutable_sparse_initializer())
    TRY_VOID(add(proto.values().name(), take(proto), "sparse initializer"));
  return {};
}

Result<void> Importer::add_inputs(Scope& scope) {
  std::vector<const onnx::ValueInfoProto*> inputs;
  std::set<std::string_view> seen;
  for (const auto& input : model_.graph().input()) {
    if (input.name().empty())
      return Error{ErrorCode::invalid_model, "an input of the model has no name.", "Export the model again."};
    if (!seen.insert(input.name()).second) {
      return Error{ErrorCode::invalid_model,
                   "two inputs of the model are named " + wire::quoted_name(input.name()) + ".",
                   "Export the model again."};
    }
    if (scope.names.count(input.name()) == 0) inputs.push_back(&input);  // else an initialiser gives its value
  }
  TRY(std::vector<Type> types, input_types(inputs, options_, symbols_, warnings_));
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    Meaning meaning;
    meaning.value = graph_->add_input(inputs[i]->name(), std::move(types[i]));
    TRY_VOID(define(inputs[i]->name(), std::move(meaning), scope));
  }
  return {};
}

void Importer::compare_declared_type(const onnx::ValueInfoProto& declared, const Value& value) {
  if (!declared.type().has_tensor_type()) return;
  const auto& type = declared.type().tensor_type();
  const std::string what =
      "output '" + wire::printable(declared.name()) + "' is " + value.type.text() + ", but the model declares ";
  const auto dtype = wire::dtype_from_onnx(type.elem_type());
  if (dtype.ok() && *dtype != value.type.dtype)
    warn(what + "elements of type " + wire::onnx_type_name(type.elem_type()));
  if (!type.has_shape()) return;
  if (type.shape().dim_size() != value.type.shape.rank()) {
    warn(what + "rank " + std::to_string(type.shape().dim_size()));
    return;
  }
  for (int axis = 0; axis < value.type.shape.rank(); ++axis) {
    const auto& dimension = type.shape().dim(axis);
    if (dimension.has_dim_value() && dimension.dim_value() >= 0 &&
        surely_different(value.type.shape[axis], Dim(dimension.dim_value()))) {
      warn(what + "the size " + std::to_string(dimension.dim_value()) + " on axis " + std::to_string(axis));
    }
  }
}

Result<void> Importer::add_outputs(Scope& scope) {
  if (model_.graph().output_size() == 0) {
    return Error{ErrorCode::invalid_model, "the model has no outputs.", "Name at least one output of the graph."};
  }
  std::set<std::string_view> seen;
  for (const auto& output : model_.graph().output()) {
    if (!seen.insert(output.name()).second) {
      return Error{ErrorCode::invalid_model,
                   "two outputs of the model are named " + wire::quoted_name(output.name()) + ".",
                   "Export the model again."};
    }
    bool missing = false;
    auto value = value_of(output.name(), scope, missing);
    if (!value.ok()) return std::move(value).error().within("as output of the model");
    if (*value == nullptr)
      return Error{ErrorCode::invalid_model, "an output of the model has no name.", "Export the model again."};
    compare_declared_type(output, **value);
    graph_->add_output(*value, output.name());
  }
  return {};
}

Result<Tensor> Importer::take(onnx::TensorProto& proto) {
  const auto found = tensors_.find(&proto);
  if (found != tensors_.end()) return found->second;
  TRY(Tensor tensor, wire::take_tensor(proto, external_));
  tensors_.emplace(&proto, tensor);
  return tensor;
}

Result<Tensor> Importer::take(onnx::SparseTensorProto& proto) {
  const auto found = sparse_tensors_.find(&proto);
  if (found != sparse_tensors_.end()) return found->second;
  TRY(Tensor tensor, wire::take_sparse_tensor(proto, external_, dense_budget_));
  sparse_tensors_.emplace(&proto, tensor);
  return tensor;
}

std::string Importer::fresh_symbol(std::string_view wish) { return unique_symbol(wish, symbols_); }

void Importer::warn(std::string text) {
  constexpr std::size_t most = 100;
  if (warnings_.size() < most) warnings_.push_back(std::move(text));
  if (warnings_.size() == most) warnings_.push_back("further warnings are left out");
}

}  // namespace polyphase
