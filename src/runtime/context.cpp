// One run: inputs staged where their strides demand it, steps in order, outputs handed over.
#include "runtime/context.h"

#include <algorithm>

#include "base/shape_binding.h"

namespace polyphase {
namespace {

bool is_aligned(const void* data, DType dtype) {
  return reinterpret_cast<std::uintptr_t>(data) % size_bytes(dtype) == 0;
}

// What a tile needs to know; shared by the workers of one phase.
struct Phase {
  const Row* row;
  const StepPlan* plan;
  Pointers pointers;
  int phase;
  const RunRequest* request;
  std::atomic<Fault> fault{nullptr};
  std::atomic<bool> stop{false};
};

bool run_tile(void* state, std::int64_t tile, std::byte* scratch) {
  Phase& phase = *static_cast<Phase*>(state);
  if (phase.stop.load(std::memory_order_relaxed)) return false;
  const RunRequest& request = *phase.request;
  if ((request.cancelled != nullptr && request.cancelled->load(std::memory_order_relaxed)) ||
      (request.deadline.has_value() && std::chrono::steady_clock::now() > *request.deadline)) {
    phase.stop.store(true, std::memory_order_relaxed);
    return false;
  }
  const Fault fault = phase.row->run(phase.plan->plan, phase.pointers, phase.phase, tile, scratch);
  if (fault == nullptr) return true;
  phase.fault.store(fault);
  return false;
}

}  // namespace

const Place& Context::place_of(int value) const {
  const int level = session_.program().values[static_cast<std::size_t>(value)].level;
  return plans_[static_cast<std::size_t>(level)]->places[static_cast<std::size_t>(value)];
}

std::byte* Context::data_of(int value) const {
  const Program& program = session_.program();
  const auto root = static_cast<std::size_t>(program.values[static_cast<std::size_t>(value)].root);
  const ProgramValue& owner = program.values[root];
  std::byte* base = nullptr;
  switch (program.engine->values[root].storage) {
    case Storage::input:
      base = const_cast<std::byte*>(inputs_[static_cast<std::size_t>(owner.port)]);
      break;
    case Storage::output:
      base = outputs_[static_cast<std::size_t>(owner.port)].view().data;
      break;
    case Storage::constant:
      base = owner.constant.data;
      break;
    case Storage::arena: {
      const auto level = static_cast<std::size_t>(owner.level);
      base = arenas_[level].data() + plans_[level]->roots[root];
      break;
    }
    case Storage::alias:
      break;
  }
  return base == nullptr ? nullptr : base + place_of(value).offset_bytes;
}

Result<std::vector<Tensor>> Context::run(const RunRequest& request, std::shared_ptr<const LevelPlan> plan) {
  request_ = &request;
  plans_.assign(static_cast<std::size_t>(session_.program().levels()), nullptr);
  const std::size_t ports = session_.program().engine->outputs.size();
  inputs_.assign(request.inputs.size(), nullptr);
  staged_.assign(request.inputs.size(), Tensor());
  outputs_.assign(ports, Tensor());
  if (request.observer != nullptr) shown_.assign(session_.program().values.size(), false);
  TRY_VOID(enter(std::move(plan)));
  TRY_VOID(stage_inputs());
  TRY_VOID(run_block(0));
  for (std::size_t port = 0; port < ports; ++port) {
    if (!outputs_[port].valid()) {
      return Error{
          ErrorCode::invalid_model,
          "output '" + session_.program().engine->outputs[port].name + "' has a size that no step of this run gave.",
          "Compile the model again."};
    }
  }
  hand_out();
  if (request.plans != nullptr) *request.plans = plans_;
  return std::move(outputs_);
}

// Room for the level's values, and its outputs, whose sizes are known from here on.
Result<void> Context::enter(std::shared_ptr<const LevelPlan> plan) {
  const auto level = static_cast<std::size_t>(plan->level);
  if (arenas_.size() <= level) arenas_.resize(level + 1);
  std::uint64_t total = plan->arena_bytes;
  plans_[level] = nullptr;
  for (const auto& lower : plans_) total += lower == nullptr ? 0 : lower->arena_bytes;
  if (total > session_.options_.memory_limit_bytes) {
    return Error{ErrorCode::out_of_memory,
                 "the intermediate values need " + std::to_string(total) + " bytes; the limit is " +
                     std::to_string(session_.options_.memory_limit_bytes) + ".",
                 "Use smaller inputs, or raise the session's memory limit."};
  }
  TRY_VOID(arenas_[level].hold(plan->arena_bytes, "the arena of intermediate values"));
  TRY_VOID(scratch_.hold(plan->scratch_bytes, "the scratch memory of kernels"));
  TRY_VOID(kept_.hold(plan->kept_bytes, "what the parts of a step yield"));
  plans_[level] = std::move(plan);
  const Engine& engine = *session_.program().engine;
  for (std::size_t port = 0; port < engine.outputs.size(); ++port) {
    const auto value = static_cast<std::size_t>(engine.outputs[port].value);
    if (session_.program().values[value].level == static_cast<int>(level)) TRY_VOID(make_output(port));
  }
  return {};
}

Result<void> Context::stage_inputs() {
  const Engine& engine = *session_.program().engine;
  for (std::size_t port = 0; port < request_->inputs.size(); ++port) {
    const TensorView& given = request_->inputs[port];
    inputs_[port] = given.data;
    if (given.empty() || (given.is_row_major() && is_aligned(given.data, given.dtype))) continue;
    TRY(staged_[port],
        session_.results_->take(given.dtype, given.size_span(), Subject("a copy of input", engine.inputs[port].name)));
    copy_elements(given, staged_[port].view());
    inputs_[port] = staged_[port].view().data;
  }
  return {};
}

Result<void> Context::make_output(std::size_t port) {
  const EnginePort& output = session_.program().engine->outputs[port];
  const TensorDesc& desc = place_of(output.value).desc;
  const Subject what("output", output.name);
  if (!request_->outputs.empty() && request_->outputs[port].data != nullptr) {
    const TensorView& given = request_->outputs[port];
    if (given.dtype != desc.dtype) {
      return Error{ErrorCode::invalid_argument,
                   "output '" + output.name + "' is " + std::string(name_of(desc.dtype)) + "; the memory given is " +
                       std::string(name_of(given.dtype)) + ".",
                   "Give memory of that dtype."};
    }
    DimBindings none;
    const Shape shape = Shape::from_sizes({desc.size_span().begin(), desc.size_span().end()});
    TRY_VOID(bind_shape(shape, given.size_span(), Subject("the memory given for output", output.name), none));
    if (given.is_row_major() && is_aligned(given.data, given.dtype)) {
      outputs_[port] = Tensor(Buffer::borrow(nullptr, given.data, 0), given);
      return {};
    }
  }
  TRY(outputs_[port], session_.results_->take(desc.dtype, desc.size_span(), what));
  return {};
}

// Results that could not be written where the caller wants them, because of his strides.
void Context::hand_out() {
  for (std::size_t port = 0; port < request_->outputs.size(); ++port) {
    const TensorView& given = request_->outputs[port];
    if (given.data != nullptr && given.data != outputs_[port].view().data) copy_elements(outputs_[port].view(), given);
  }
  staged_.clear();
}

Result<void> Context::stopped() const {
  if (request_->cancelled != nullptr && request_->cancelled->load(std::memory_order_relaxed)) {
    return Error{ErrorCode::cancelled, "the run was cancelled.", "Run it again to have its results."};
  }
  if (request_->deadline.has_value() && std::chrono::steady_clock::now() > *request_->deadline) {
    return Error{ErrorCode::cancelled, "the run did not end before its deadline.",
                 "Give it more time, more threads or smaller inputs."};
  }
  return {};
}

Result<void> Context::run_block(std::size_t block) {
  for (const int index : session_.program().blocks[block]) {
    TRY_VOID(stopped());
    if (request_->observer != nullptr) {
      TRY_VOID(run_observed(index));
      continue;
    }
    if (request_->step_seconds == nullptr) {
      TRY_VOID(run_step(index));
      continue;
    }
    const auto start = std::chrono::steady_clock::now();
    TRY_VOID(run_step(index));
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    (*request_->step_seconds)[static_cast<std::size_t>(index)] += taken.count();
    if (request_->step_runs != nullptr) ++(*request_->step_runs)[static_cast<std::size_t>(index)];
  }
  return {};
}

Result<void> Context::run_observed(int index) {
  const Step& step = *session_.program().steps[static_cast<std::size_t>(index)].step;
  for (const int value : step.inputs) {
    if (value >= 0 && !shown_[static_cast<std::size_t>(value)]) TRY_VOID(show(value, index, false));
  }
  TRY_VOID(run_step(index));
  TRY_VOID(show_parts(index));
  for (const int value : step.outputs) TRY_VOID(show(value, index, true));
  return {};
}

Result<void> Context::show_parts(int index) {
  const ProgramStep& step = session_.program().steps[static_cast<std::size_t>(index)];
  const StepPlan& plan = *plans_[static_cast<std::size_t>(step.level)]->steps[static_cast<std::size_t>(index)];
  for (std::size_t i = 0; i < plan.kept.size(); ++i) {
    const KeptPart& kept = plan.kept[i];
    TRY_VOID(request_->observer->see_part(index, kept.part, {kept.desc, kept_pointers_[i]}, *plan.row));
  }
  return {};
}

Result<void> Context::show(int value, int index, bool is_result) {
  shown_[static_cast<std::size_t>(value)] = true;
  const Program& program = session_.program();
  const ProgramValue& known = program.values[static_cast<std::size_t>(value)];
  const Storage root = program.engine->values[static_cast<std::size_t>(known.root)].storage;
  if (root == Storage::constant || (!is_result && root == Storage::input)) return {};
  const ProgramStep& step = program.steps[static_cast<std::size_t>(index)];
  const auto level = static_cast<std::size_t>(step.level);
  const Row* row = level < plans_.size() ? plans_[level]->steps[static_cast<std::size_t>(index)]->row : nullptr;
  const TensorView view = view_of(value);
  if (view.data == nullptr) return {};
  return request_->observer->see(value, view, index, is_result ? row : nullptr);
}

Result<void> Context::run_step(int index) {
  const ProgramStep& step = session_.program().steps[static_cast<std::size_t>(index)];
  if (plans_[static_cast<std::size_t>(step.level)] == nullptr) {
    return Error{ErrorCode::invalid_model, "a size is used before the step that gives it.", "Compile the model again."}
        .at_node(step.desc.name);
  }
  switch (step.step->kind) {
    case StepKind::kernel:
    case StepKind::copy:
      return run_row(step, *plans_[static_cast<std::size_t>(step.level)]->steps[static_cast<std::size_t>(index)]);
    case StepKind::bind:
      return run_bind(step);
    case StepKind::branch:
      return run_branch(step);
    case StepKind::loop:
      return run_loop(step);
  }
  return {};
}

Result<void> Context::run_row(const ProgramStep& step, const StepPlan& plan) {
  if (plan.row == nullptr) return {};
  input_pointers_.clear();
  output_pointers_.clear();
  for (const int value : step.step->inputs) input_pointers_.push_back(value < 0 ? nullptr : data_of(value));
  for (const int value : step.step->outputs) output_pointers_.push_back(data_of(value));
  kept_pointers_.clear();
  std::byte* kept = kept_.data();
  for (const KeptPart& part : plan.kept) {
    kept_pointers_.push_back(kept);
    kept += part.size_bytes();
  }
  std::byte* arena = arenas_[static_cast<std::size_t>(step.level)].data();
  const std::byte* packed = step.packed == nullptr ? nullptr : step.packed->data();
  if (step.step->pack_at_run && !plan.row->packing.format.empty()) {
    std::vector<TensorView> views;
    for (const int operand : step.packed_operands) {
      const int value = step.step->inputs[static_cast<std::size_t>(operand)];
      views.push_back(value < 0 ? TensorView() : view_of(value));
    }
    plan.row->packing.pack(plan.desc, session_.program().target, views, {}, arena + plan.pack_offset);
    packed = arena + plan.pack_offset;
    session_.run_packs_.fetch_add(1);
  }
  for (const int operand : step.packed_operands) input_pointers_[static_cast<std::size_t>(operand)] = nullptr;
  Phase phase{.row = plan.row,
              .plan = &plan,
              .pointers = {input_pointers_.data(), output_pointers_.data(), packed, arena + plan.shared_offset,
                           kept_pointers_.data()},
              .phase = 0,
              .request = request_};
  for (std::size_t i = 0; i < plan.tiles.size(); ++i) {
    phase.phase = static_cast<int>(i);
    session_.pool_.run(plan.worth_sharing ? desk_ : nullptr, {run_tile, &phase, plan.tiles[i], plan.scratch_bytes},
                       scratch_.data());
    if (const Fault fault = phase.fault.load()) return fault_of(step, plan, fault);
    if (phase.stop.load()) return stopped();
  }
  return {};
}

// The reference loops, and kernels of plugins, say precisely what is wrong, but a row can only return fixed words: so
// they are asked again.
Error Context::fault_of(const ProgramStep& step, const StepPlan& plan, const char* fault) {
  if (plan.row->reference || plan.row == &plugin_row) {
    std::vector<TensorView> inputs;
    std::vector<TensorView> outputs;
    for (const int operand : plan.desc.anchor_part().operands) {
      const int value = operand < 0 ? -1 : step.step->inputs[static_cast<std::size_t>(operand)];
      inputs.push_back(value < 0 ? TensorView() : view_of(value));
    }
    for (const int value : step.step->outputs) outputs.push_back(view_of(value));
    const Part& part = plan.desc.anchor_part();
    auto again = run_reference(*part.op, {part.attributes, inputs, outputs});
    if (!again.ok()) return std::move(again).error().at_node(step.desc.name);
  }
  return Error{ErrorCode::invalid_argument, std::string(fault) + ".",
               "The data given does not fit the model: check the values of the inputs."}
      .at_node(step.desc.name);
}

}  // namespace polyphase
