// Sizes to places, rows and plans.
#include "runtime/level_plan.h"

#include <algorithm>

#include "kernel/concrete.h"

namespace polyphase {
namespace {

constexpr std::size_t alignment = 64;
// No tensor beyond this: offsets and sizes in bytes then stay far inside int64.
constexpr std::int64_t max_bytes = std::int64_t{1} << 46;

class Planner {
 public:
  Planner(const Program& program, int level, const LevelPlans& lower, std::vector<std::int64_t> sizes,
          const PlanOptions& options)
      : program_(program), lower_(lower), options_(options), out_(std::make_shared<LevelPlan>()) {
    out_->level = level;
    const auto& symbols = program.tree[static_cast<std::size_t>(level)].symbols;
    for (std::size_t i = 0; i < sizes.size(); ++i) out_->bindings.emplace(symbols[i], sizes[i]);
    out_->sizes = std::move(sizes);
  }

  Result<std::shared_ptr<const LevelPlan>> plan() {
    TRY_VOID(test_checks(program_, out_->level, out_->bindings));
    TRY_VOID(place_values());
    out_->steps.resize(program_.steps.size());
    for (std::size_t i = 0; i < program_.steps.size(); ++i) {
      if (program_.steps[i].level == out_->level) TRY_VOID(plan_step(i));
    }
    plan_arena();
    if (out_->arena_bytes > options_.memory_limit_bytes) {
      return Error{ErrorCode::out_of_memory,
                   "the intermediate values need " + std::to_string(out_->arena_bytes) + " bytes for " + sizes_text() +
                       "; the limit is " + std::to_string(options_.memory_limit_bytes) + ".",
                   "Use smaller inputs, or raise the session's memory limit."};
    }
    return std::shared_ptr<const LevelPlan>(std::move(out_));
  }

 private:
  const EngineValue& value_at(std::size_t value) const { return program_.engine->values[value]; }

  std::string sizes_text() const {
    std::string text;
    for (const auto& [name, size] : out_->bindings)
      text += (text.empty() ? "" : ", ") + name + " = " + std::to_string(size);
    return text.empty() ? "the shapes of the model" : text;
  }

  Error wrong_size(const EngineValue& value) const {
    return {ErrorCode::shape_mismatch,
            "'" + value.name + "' would have the shape " + value.type.shape.text() + " with " + sizes_text() +
                ", which is negative or too large.",
            "Give inputs of other sizes."};
  }

  // ------------------------------------------------------------ values

  Result<void> place_values() {
    out_->places.resize(program_.values.size());
    for (const bool aliases : {false, true}) {
      for (std::size_t i = 0; i < program_.values.size(); ++i) {
        if (program_.values[i].level != out_->level || (value_at(i).storage == Storage::alias) != aliases) continue;
        TRY_VOID(place_value(i));
      }
    }
    return {};
  }

  Result<void> place_value(std::size_t i) {
    const EngineValue& value = value_at(i);
    Place& place = out_->places[i];
    const auto sizes = value.type.shape.evaluate(out_->bindings);
    if (!sizes.has_value()) return wrong_size(value);
    std::int64_t bytes = static_cast<std::int64_t>(size_bytes(value.type.dtype));
    for (const std::int64_t size : *sizes) {
      if (size < 0 || __builtin_mul_overflow(bytes, std::max<std::int64_t>(size, 1), &bytes) || bytes > max_bytes) {
        return wrong_size(value);
      }
    }
    place.desc = TensorDesc(value.type.dtype, *sizes, value.layout);
    if (value.storage != Storage::alias) return {};
    return place_alias(i, value, place);
  }

  Result<void> place_alias(std::size_t i, const EngineValue& value, Place& place) {
    const auto root = static_cast<std::size_t>(program_.values[i].root);
    const auto offset = value.alias.offset.evaluate(out_->bindings);
    if (!offset.has_value()) return wrong_size(value);
    for (std::size_t axis = 0; axis < value.alias.strides.size(); ++axis) {
      const auto stride = value.alias.strides[axis].evaluate(out_->bindings);
      if (!stride.has_value()) return wrong_size(value);
      place.desc.strides[axis] = *stride;
    }
    TRY_VOID(check_window(place.desc, *offset, place_of(root).desc.extent(), value.name));
    place.offset_bytes = place.desc.empty() ? 0 : *offset * static_cast<std::int64_t>(size_bytes(value.type.dtype));
    return {};
  }

  const Place& place_of(std::size_t value) const {
    const int level = program_.values[value].level;
    return level == out_->level ? out_->places[value] : lower_[static_cast<std::size_t>(level)]->places[value];
  }

  // ------------------------------------------------------------ steps

  TensorDesc operand(int value) const {
    return value < 0 ? TensorDesc() : place_of(static_cast<std::size_t>(value)).desc;
  }

  Result<void> plan_step(std::size_t index) {
    const ProgramStep& step = program_.steps[index];
    out_->steps[index] = std::make_unique<StepPlan>();
    StepPlan& plan = *out_->steps[index];
    if (step.rows.empty()) return {};
    for (const int value : step.step->inputs) plan.inputs.push_back(operand(value));
    for (const int value : step.step->outputs) plan.outputs.push_back(operand(value));
    if (std::all_of(plan.outputs.begin(), plan.outputs.end(), [](const TensorDesc& d) { return d.empty(); })) return {};
    auto desc = evaluate(step.desc, out_->bindings);
    if (!desc.has_value()) {
      return Error{ErrorCode::shape_mismatch, "an attribute cannot be computed with " + sizes_text() + ".",
                   "Give inputs of other sizes."}
          .at_node(step.desc.name);
    }
    plan.desc = std::move(*desc);
    double seconds = 0;
    plan.row = cheapest(step.rows, plan.desc, seconds);
    if (options_.show_parts && plan.row->keeps_parts) keep_parts(plan);
    plan.plan = plan.row->plan({plan.desc, plan.inputs, plan.outputs, plan.kept}, program_.target);
    const int phases = plan.row->phases == nullptr ? 1 : plan.row->phases(plan.plan);
    plan.worth_sharing = worth_sharing(seconds, phases);
    for (int phase = 0; phase < phases; ++phase) plan.tiles.push_back(plan.row->tiles(plan.plan, phase));
    if (plan.row->workspace != nullptr) plan.scratch_bytes = plan.row->workspace(plan.plan).per_worker_bytes;
    out_->scratch_bytes = std::max(out_->scratch_bytes, plan.scratch_bytes);
    return {};
  }

  void keep_parts(StepPlan& plan) {
    const StepDesc& desc = plan.desc;
    const OperandDesc& result = desc.outputs[0];
    std::size_t bytes = 0;
    for (std::size_t part = desc.anchor; part + 1 < desc.parts.size(); ++part) {
      if (desc.parts[part].yields.empty()) continue;
      plan.kept.push_back({part, TensorDesc(DType::f32, plan.outputs[0].size_span(), result.layout)});
      bytes += plan.kept.back().size_bytes();
    }
    out_->kept_bytes = std::max(out_->kept_bytes, bytes);
  }

  const Row* cheapest(const std::vector<const Row*>& rows, const StepDesc& desc, double& seconds) const {
    const Row* best = nullptr;
    for (const Row* row : rows) {
      const double cost = row->cost(desc, program_.target);
      if (best == nullptr || cost < seconds) {
        best = row;
        seconds = cost;
      }
    }
    return best;
  }

  // ------------------------------------------------------------ memory

  void plan_arena() {
    std::vector<Lifetime> blocks;
    std::vector<std::size_t*> targets;
    std::vector<std::size_t*> workspaces;  // the targets of out_->workspaces
    out_->roots.assign(program_.values.size(), 0);
    const auto add = [&](std::size_t size, int first, int last, std::size_t* target) {
      if (size == 0) return;
      blocks.push_back({size, first, last});
      targets.push_back(target);
    };
    for (std::size_t i = 0; i < program_.values.size(); ++i) {
      const ProgramValue& value = program_.values[i];
      if (value.level != out_->level || value_at(i).storage != Storage::arena || value.last_step < 0) continue;
      const TensorDesc& desc = out_->places[i].desc;
      const auto size = static_cast<std::size_t>(desc.extent()) * size_bytes(desc.dtype);
      out_->arena_roots.push_back({static_cast<int>(i), 0, size});
      add(size, value.first_step, value.last_step, &out_->roots[i]);
    }
    for (std::size_t i = 0; i < out_->steps.size(); ++i) {
      StepPlan* step = out_->steps[i].get();
      if (step == nullptr || step->row == nullptr) continue;
      const auto add_own = [&](std::size_t size, std::size_t* target) {
        const auto flat = static_cast<int>(i);
        add(size, flat, flat, target);
        if (size == 0) return;
        out_->workspaces.push_back({flat, 0, size});
        workspaces.push_back(target);
      };
      if (step->row->workspace != nullptr) add_own(step->row->workspace(step->plan).shared_bytes, &step->shared_offset);
      if (program_.steps[i].step->pack_at_run && !step->row->packing.format.empty())
        add_own(step->row->packing.size_bytes(step->desc, program_.target), &step->pack_offset);
    }
    const MemoryPlan memory = plan_memory(blocks);
    for (std::size_t i = 0; i < targets.size(); ++i) *targets[i] = memory.offsets[i];
    for (PlacedRoot& root : out_->arena_roots) root.offset_bytes = out_->roots[static_cast<std::size_t>(root.value)];
    for (std::size_t i = 0; i < workspaces.size(); ++i) out_->workspaces[i].offset_bytes = *workspaces[i];
    out_->arena_bytes = (memory.arena_bytes + alignment - 1) / alignment * alignment;
    out_->lower_bound_bytes = memory.lower_bound_bytes;
  }

  const Program& program_;
  const LevelPlans& lower_;
  const PlanOptions& options_;
  std::shared_ptr<LevelPlan> out_;
};

}  // namespace

bool worth_sharing(double seconds, int phases) {
  constexpr double seconds_worth_sharing = 8e-6;
  return seconds / std::max(1, phases - 2) > seconds_worth_sharing;
}

Result<void> test_checks(const Program& program, int level, const DimBindings& bindings) {
  for (const DimCheck& check : program.checks[static_cast<std::size_t>(level)]) {
    const auto left = check.left.evaluate(bindings);
    const auto right = check.right.evaluate(bindings);
    if (left.has_value() && right.has_value() && holds(check.relation, *left, *right)) continue;
    const auto words = [](const Dim& dim, const std::optional<std::int64_t>& value) {
      const std::string number = value.has_value() ? std::to_string(*value) : "beyond 64 bits";
      return dim.is_constant() ? number : dim.text() + " = " + number;
    };
    return Error{ErrorCode::shape_mismatch,
                 check.why + " Found " + words(check.left, left) + " and " + words(check.right, right) + ".",
                 "Give inputs whose sizes fit together."};
  }
  return {};
}

Result<std::shared_ptr<const LevelPlan>> plan_level(const Program& program, int level, const LevelPlans& lower,
                                                    std::vector<std::int64_t> sizes, const PlanOptions& options) {
  return Planner(program, level, lower, std::move(sizes), options).plan();
}

}  // namespace polyphase
