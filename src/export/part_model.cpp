// Inputs get the types that the importer found; sizes that are expressions get names.
#include "export/part_model.h"

#include "wire/dtype_map.h"

namespace polyphase::legal {
namespace {

class PartWriter {
 public:
  explicit PartWriter(const RewrittenNode& rewritten, std::optional<std::int64_t> opset = std::nullopt)
      : of_(rewritten) {
    model_.set_ir_version(of_.model.ir_version());
    for (const auto& import : of_.model.opset_import()) {
      auto& own = *model_.add_opset_import();
      own = import;
      if (opset.has_value() && (own.domain().empty() || own.domain() == "ai.onnx")) own.set_version(*opset);
    }
    model_.mutable_graph()->set_name("part");
  }

  Result<std::string> write(std::span<const onnx::NodeProto> nodes, std::span<const onnx::TensorProto> tensors) {
    onnx::GraphProto& graph = *model_.mutable_graph();
    TRY_VOID(declare_operands(graph));
    for (const onnx::TensorProto& tensor : tensors) *graph.add_initializer() = tensor;
    for (const onnx::NodeProto& node : nodes) *graph.add_node() = node;
    for (const std::string& output : of_.node.output()) {
      if (!output.empty()) graph.add_output()->set_name(output);
    }
    return model_.SerializeAsString();
  }

 private:
  Result<void> declare_operands(onnx::GraphProto& graph) {
    std::set<std::string> seen;
    for (const std::string& input : of_.node.input()) {
      if (input.empty() || !seen.insert(input).second) continue;
      if (const onnx::TensorProto* weight = of_.facts.initializer(input); weight != nullptr) {
        *graph.add_initializer() = *weight;
        continue;
      }
      const TensorFact* fact = of_.facts.find(input);
      if (fact == nullptr)
        return Error{ErrorCode::unsupported, "the type of its operand '" + input + "' is not known.",
                     "polyphase check tells what Polyphase lacks on the way to it."}
            .at_node(name_of(of_.node));
      declare(input, fact->type, *graph.add_input());
    }
    return {};
  }

  void declare(const std::string& name, const Type& type, onnx::ValueInfoProto& out) {
    out.set_name(name);
    auto* tensor = out.mutable_type()->mutable_tensor_type();
    tensor->set_elem_type(wire::onnx_from_dtype(type.dtype));
    tensor->mutable_shape();
    for (const Dim& dim : type.shape) {
      auto* size = tensor->mutable_shape()->add_dim();
      if (dim.is_constant()) {
        size->set_dim_value(dim.value());
      } else {
        size->set_dim_param(
            size_names_.emplace(dim.text(), "size_" + std::to_string(size_names_.size())).first->second);
      }
    }
  }

  const RewrittenNode& of_;
  onnx::ModelProto model_;
  std::map<std::string, std::string> size_names_;
};

}  // namespace

Result<ChangedNode> part_models(const RewrittenNode& rewritten) {
  ChangedNode out;
  out.node = name_of(rewritten.node);
  TRY(out.before, PartWriter(rewritten).write({&rewritten.node, 1}, {}));
  TRY(out.after, PartWriter(rewritten, rewritten.new_opset).write(rewritten.instead, rewritten.new_tensors));
  return out;
}

}  // namespace polyphase::legal
