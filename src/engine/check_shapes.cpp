// Types of results, inferred again from parts and operands: a stored shape is believed only if it follows.
#include <algorithm>

#include "engine/check_parts.h"

namespace polyphase {
namespace {

const Type& type_of(const Engine& engine, int value) { return engine.values[static_cast<std::size_t>(value)].type; }

Result<std::vector<Type>> infer_step(const Engine& engine, const Step& step, std::vector<DimCheck>& checks) {
  std::vector<Type> running;
  for (const Part& part : step.parts) {
    std::vector<OperandInfo> infos(part.operands.size());
    for (std::size_t i = 0; i < part.operands.size(); ++i) {
      const int operand = part.operands[i];
      if (operand == Part::running) infos[i].type = running.empty() ? nullptr : &running.front();
      if (operand < 0) continue;
      const int value = step.inputs[static_cast<std::size_t>(operand)];
      if (value >= 0) infos[i].type = &type_of(engine, value);
    }
    TRY(std::vector<Type> types, infer_types(*part.op, part.attributes, infos, checks));
    running = std::move(types);
  }
  return running;
}

// `stored` must be `expected` for all sizes, or for those that a check then lets through.
Result<void> match(const Type& stored, const Type& expected, const std::string& what, std::vector<DimCheck>& checks) {
  const auto refuse = [&] {
    return refuse_engine(what + " is stored as " + stored.text() + " but its operator gives " + expected.text() + ".");
  };
  if (stored.dtype != expected.dtype || stored.shape.rank() != expected.shape.rank()) return refuse();
  for (int axis = 0; axis < stored.shape.rank(); ++axis) {
    const Dim& left = stored.shape[axis];
    const Dim& right = expected.shape[axis];
    if (left == right) continue;
    if (surely_different(left, right)) return refuse();
    checks.push_back(
        {left, DimCheck::Relation::equal, right,
         "axis " + std::to_string(axis) + " of " + what + " (" + left.text() + ") must be " + right.text()});
  }
  return {};
}

Result<void> check_step(const Engine& engine, const Step& step, std::vector<DimCheck>& checks) {
  const std::string who = "step '" + step.name + "'";
  if (step.kind == StepKind::branch || step.kind == StepKind::loop) return {};
  if (step.parts.empty()) return {};
  auto types = infer_step(engine, step, checks);
  if (!types.ok()) return refuse_engine(who + ": " + types.error().message);
  if (types->size() != step.outputs.size()) {
    return refuse_engine(who + " has " + std::to_string(step.outputs.size()) + " results but its operator gives " +
                         std::to_string(types->size()) + ".");
  }
  for (std::size_t i = 0; i < types->size(); ++i) {
    const int value = step.outputs[i];
    TRY_VOID(match(type_of(engine, value), (*types)[i], "the result " + name_of_value(engine, value) + " of " + who,
                   checks));
  }
  return {};
}

Result<void> check_bind(const Engine& engine, const Step& step) {
  if (step.kind != StepKind::bind) return {};
  const int value = step.inputs.size() == 1 ? step.inputs.front() : -1;
  const auto count = value < 0 ? std::nullopt : type_of(engine, value).shape.element_count().constant();
  if (value < 0 || !is_integer(type_of(engine, value).dtype) ||
      count != static_cast<std::int64_t>(step.symbols.size())) {
    return refuse_engine("step '" + step.name + "' binds " + std::to_string(step.symbols.size()) +
                         " sizes from a tensor of another kind.");
  }
  return {};
}

}  // namespace

Result<void> check_shapes(Engine& engine) {
  std::vector<DimCheck> found;
  for (const Block& block : engine.blocks) {
    for (const Step& step : block.steps) {
      TRY_VOID(check_bind(engine, step));
      TRY_VOID(check_step(engine, step, found));
    }
  }
  for (DimCheck& check : found) {
    const bool known = std::any_of(engine.checks.begin(), engine.checks.end(), [&](const DimCheck& have) {
      return have.left == check.left && have.relation == check.relation && have.right == check.right;
    });
    if (!known) engine.checks.push_back(std::move(check));
  }
  return {};
}

}  // namespace polyphase
