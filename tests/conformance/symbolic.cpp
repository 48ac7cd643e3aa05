// Symbols for sizes.
#include "conformance/symbolic.h"

namespace polyphase::test {
namespace {

Shape symbolic_shape(const std::vector<std::int64_t>& sizes, DimBindings& bindings) {
  Shape out;
  for (std::size_t axis = 0; axis < sizes.size(); ++axis) {
    if (axis == 1 || sizes[axis] <= 1) {
      out.push_back(sizes[axis]);
      continue;
    }
    const std::string name = "S" + std::to_string(sizes[axis]);
    bindings[name] = sizes[axis];
    out.push_back(Dim::symbol(name));
  }
  return out;
}

std::string check_types(const std::vector<Type>& types, const std::vector<DimCheck>& checks,
                        const DimBindings& bindings, const PreparedCase& prepared) {
  for (const DimCheck& check : checks) {
    const auto left = check.left.evaluate(bindings);
    const auto right = check.right.evaluate(bindings);
    if (!left.has_value() || !right.has_value() || !holds(check.relation, *left, *right)) {
      return "with symbols, a legal case fails the check " + check.left.text() + " " +
             std::string(name_of(check.relation)) + " " + check.right.text();
    }
  }
  for (std::size_t i = 0; i < types.size(); ++i) {
    if (types[i].shape.evaluate(bindings) != prepared.expected[i].sizes() ||
        types[i].dtype != prepared.expected[i].dtype()) {
      return "with symbols, result " + std::to_string(i) + " is " + types[i].text() + ", with numbers " +
             prepared.expected[i].type().text();
    }
  }
  return {};
}

}  // namespace

std::optional<SymbolicStep> with_symbols(const PreparedCase& prepared, const StepDesc& concrete) {
  SymbolicStep out{concrete, {}};
  DimBindings bindings;
  for (std::size_t i = 0; i < concrete.inputs.size(); ++i) {
    const bool image =
        i == 0 || prepared.follows_data[i] || concrete.parts.front().op->layout == LayoutRule::elementwise;
    if (concrete.inputs[i].present && image) {
      out.desc.inputs[i].type.shape = symbolic_shape(prepared.inputs[i].sizes(), bindings);
    }
  }
  std::vector<Type> running;
  std::vector<DimCheck> checks;
  for (const Part& part : concrete.parts) {
    std::vector<OperandInfo> infos;
    for (const int operand : part.operands) {
      const Type* type = operand == Part::running  ? &running.front()
                         : operand == Part::absent ? nullptr
                                                   : &out.desc.inputs[static_cast<std::size_t>(operand)].type;
      infos.push_back({type, nullptr});
    }
    auto types = infer_types(*part.op, part.attributes, infos, checks);
    if (!types.ok()) return std::nullopt;
    running = std::move(types).value();
  }
  for (std::size_t i = 0; i < running.size(); ++i) out.desc.outputs[i].type = running[i];
  out.wrong = check_types(running, checks, bindings, prepared);
  return out;
}

}  // namespace polyphase::test
