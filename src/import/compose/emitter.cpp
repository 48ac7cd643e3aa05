// Emitter's few ways to add a node.
#include "import/compose/emitter.h"

#include "base/check.h"

namespace polyphase {

Error lacking(std::string message, std::string hint) {
  return Error{ErrorCode::unsupported, std::move(message), std::move(hint)};
}

void output_what_nobody_reads(Graph& graph) {
  for (const auto& node : graph.nodes()) {
    for (const auto& output : node->outputs()) {
      if (output->users.empty() && node->constant() == nullptr) graph.add_output(output.get(), output->name);
    }
  }
}

Result<Value*> Emitter::emit(std::string_view op_name, Attributes attributes, Values operands) {
  TRY(Node * node, graph_.add(op_name, std::move(attributes), std::move(operands), name_));
  return node->output();
}

Result<Values> Emitter::emit_all(std::string_view op_name, Attributes attributes, Values operands) {
  TRY(Node * node, graph_.add(op_name, std::move(attributes), std::move(operands), name_));
  Values out;
  for (const auto& output : node->outputs()) out.push_back(output.get());
  return out;
}

Value* Emitter::constant(Tensor tensor) { return graph_.add_constant(std::move(tensor), name_ + "/constant"); }

Value* Emitter::scalar(DType dtype, double value) {
  return constant(Tensor::from_values(dtype, {}, std::vector<double>{value}));
}

Value* Emitter::sizes_as_data(std::vector<Dim> sizes, bool scalar) {
  CHECK(!scalar || sizes.size() == 1);
  return graph_.must_add("dims", Attributes({{"values", std::move(sizes)}, {"scalar", scalar}}), {}, name_);
}

}  // namespace polyphase
