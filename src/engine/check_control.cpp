// Steps that run blocks: their blocks take and give what the step's operator says.
#include "engine/check_parts.h"

namespace polyphase {
namespace {

class ControlChecker {
 public:
  ControlChecker(const Engine& engine, const Step& step)
      : engine_(engine), step_(step), who_("step '" + step.name + "'") {}

  Result<void> check() {
    const bool loop = step_.kind == StepKind::loop;
    if (step_.parts.size() != 1 || step_.parts[0].op->name != (loop ? "loop" : "if"))
      return refuse_engine(who_ + " runs blocks but is no " + (loop ? "loop." : "if."));
    for (const int operand : step_.parts[0].operands) {
      if (operand != Part::absent && (operand < 0 || static_cast<std::size_t>(operand) >= step_.inputs.size()))
        return refuse_engine(who_ + " has a part with operand " + std::to_string(operand) + ".");
    }
    const Attributes& attributes = step_.parts[0].attributes;
    const auto completed = step_.parts[0].op->complete(attributes);
    if (!completed.ok() || !(*completed == attributes)) return refuse_engine(who_ + " lacks attributes.");
    TRY_VOID(names("born"));
    if (attributes.get<std::vector<Dim>>("born").size() != attributes.get<std::vector<std::int64_t>>("born_at").size())
      return refuse_engine(who_ + " names sizes without places.");
    for (const std::int64_t axis : attributes.get<std::vector<std::int64_t>>("born_at")) {
      if (axis < 0 || axis >= axes_of_results()) return refuse_engine(who_ + " names a size of no result.");
    }
    return loop ? check_loop() : check_branch();
  }

 private:
  // The value of operand i; -1: absent.
  int input(std::size_t i) const {
    const std::vector<int>& operands = step_.parts[0].operands;
    return i < operands.size() && operands[i] >= 0 ? step_.inputs[static_cast<std::size_t>(operands[i])] : -1;
  }
  const Type& type(int value) const { return engine_.values[static_cast<std::size_t>(value)].type; }

  Result<void> names(std::string_view attribute) const {
    for (const Dim& dim : step_.parts[0].attributes.get<std::vector<Dim>>(attribute)) {
      if (!dim.is_symbol() || engine_.symbols.find(dim.symbol_name()) == engine_.symbols.end())
        return refuse_engine(who_ + " gives birth to the undeclared size '" + dim.text() + "'.");
    }
    return {};
  }
  std::int64_t axes_of_results() const {
    std::int64_t axes = 0;
    for (const int value : step_.outputs) axes += type(value).shape.rank();
    return axes;
  }
  Result<void> one(int value, DType dtype, const char* role) const {
    if (value >= 0 && type(value).dtype == dtype && type(value).shape.element_count() == 1) return {};
    return refuse_engine(who_ + " has no " + std::string(name_of(dtype)) + " of one element as its " + role + ".");
  }
  Result<void> alike(int a, int b, int more_axes) const {
    if (a >= 0 && b >= 0 && type(a).dtype == type(b).dtype && type(a).shape.rank() == type(b).shape.rank() + more_axes)
      return {};
    return refuse_engine(who_ + " moves a value of one type into another.");
  }

  Result<void> check_branch() const {
    TRY_VOID(one(input(0), DType::boolean, "condition"));
    for (const int index : step_.blocks) {
      const Block& block = engine_.blocks[static_cast<std::size_t>(index)];
      if (block.outputs.size() != step_.outputs.size() || !block.inputs.empty())
        return refuse_engine(who_ + " has a block that takes or gives another number of values.");
      for (std::size_t i = 0; i < block.outputs.size(); ++i) TRY_VOID(alike(step_.outputs[i], block.outputs[i], 0));
    }
    return {};
  }

  Result<void> check_loop() const {
    TRY_VOID(names("entering"));
    const Block& block = engine_.blocks[static_cast<std::size_t>(step_.blocks[0])];
    const std::int64_t count = step_.parts[0].attributes.get<std::int64_t>("carried");
    const auto carried = static_cast<std::size_t>(count);
    if (count < 0 || carried > step_.outputs.size() || block.inputs.size() != carried + 2 ||
        block.outputs.size() != step_.outputs.size() + 1)
      return refuse_engine(who_ + " has a block that takes or gives another number of values.");
    if (input(0) >= 0) TRY_VOID(one(input(0), DType::i64, "trip count"));
    if (input(1) >= 0) TRY_VOID(one(input(1), DType::boolean, "condition"));
    TRY_VOID(one(block.inputs[0], DType::i64, "iteration"));
    TRY_VOID(one(block.inputs[1], DType::boolean, "condition"));
    TRY_VOID(one(block.outputs[0], DType::boolean, "condition"));
    for (std::size_t i = 0; i < carried; ++i) {
      TRY_VOID(alike(input(i + 2), step_.outputs[i], 0));
      TRY_VOID(alike(block.inputs[i + 2], step_.outputs[i], 0));
      TRY_VOID(alike(block.outputs[i + 1], step_.outputs[i], 0));
    }
    for (std::size_t i = carried; i < step_.outputs.size(); ++i)
      TRY_VOID(alike(step_.outputs[i], block.outputs[i + 1], 1));
    return {};
  }

  const Engine& engine_;
  const Step& step_;
  std::string who_;
};

}  // namespace

Result<void> check_control(const Engine& engine) {
  for (const Block& block : engine.blocks) {
    for (const Step& step : block.steps) {
      if (step.kind == StepKind::branch || step.kind == StepKind::loop) TRY_VOID(ControlChecker(engine, step).check());
    }
  }
  return {};
}

}  // namespace polyphase
