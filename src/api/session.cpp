// Session's public face.
#include "api/machine.h"
#include "api/report.h"
#include "api/state.h"
#include "backends/cpu/catalogue.h"

namespace polyphase::api {

Session Access::session(std::shared_ptr<const Session::State> state) {
  Session out;
  out.state_ = std::move(state);
  return out;
}

namespace {

// An engine runs on the kernels that it was compiled for, also where the CPU has better ones: so it gives the same bits
// on every CPU. A portable one takes the best. What does not run here is left for make_program to refuse.
Target target_for(const polyphase::Engine& engine, const Workshop& workshop) {
  const auto cluster = cluster_from_name(engine.cluster);
  if (cluster.has_value() && cpu::runs_here(*cluster)) return workshop.target(*cluster, false);
  return workshop.native_target();
}

}  // namespace

Result<std::unique_ptr<polyphase::Session>> make_session(const Engine& engine, const SessionOptions& options,
                                                         bool show_parts) {
  const auto& of = Access::state(engine);
  TRY(auto program, make_program(of.engine, target_for(*of.engine, *of.workshop)));
  polyphase::Session::Options inner;
  inner.threads = options.threads > 0 ? options.threads : usable_cores();
  inner.memory_limit_bytes = options.memory_limit_bytes > 0 ? options.memory_limit_bytes : memory_bytes() / 2;
  inner.show_parts = show_parts;
  return std::make_unique<polyphase::Session>(std::move(program), inner);
}

Result<Session> Session::create(const Engine& engine, const SessionOptions& options) {
  return without_throwing([&]() -> Result<Session> {
    auto state = std::make_shared<State>();
    state->engine = engine;
    TRY(state->session, make_session(engine, options, false));
    return Access::session(std::move(state));
  });
}

namespace {

// Hands what the runtime shows to the caller's function.
class Observer final : public RunObserver {
 public:
  explicit Observer(const RunOptions& options) : options_(options) {}
  Result<void> see(int value, const polyphase::TensorView& view, int step, const Row* row) override {
    ObservedValue seen;
    seen.value = value;
    seen.step = step;
    if (row != nullptr) seen.row = row->name;
    const auto sizes = view.size_span();
    const auto strides = view.stride_span();
    seen.view = {view.dtype, {sizes.begin(), sizes.end()}, {strides.begin(), strides.end()}, view.data};
    return options_.observe(seen);
  }

 private:
  const RunOptions& options_;
};

// A list that the run adds to, one number a step.
template <typename T>
Result<void> fit_steps(std::vector<T>* list, const char* name, std::size_t steps) {
  if (list == nullptr) return {};
  if (list->empty()) list->resize(steps);
  if (list->size() == steps) return {};
  return Error{ErrorCode::invalid_argument,
               std::string(name) + " holds " + std::to_string(list->size()) + " numbers; the engine has " +
                   std::to_string(steps) + " steps.",
               "Give it one place per step."};
}

Result<std::vector<Tensor>> run_views(const Session& of, std::span<const TensorView> inputs,
                                      std::span<const TensorView> outputs, const RunOptions& options) {
  polyphase::Session& session = Access::session_of(of);
  RunRequest request;
  const polyphase::Engine& engine = *session.program().engine;
  request.inputs.reserve(inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const bool is_known = i < engine.inputs.size();
    TRY(auto inner, is_known ? inner_view(inputs[i], Subject("input", engine.inputs[i].name))
                             : inner_view(inputs[i], "input " + std::to_string(i)));
    request.inputs.push_back(inner);
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const Subject what("the memory given for output", engine.outputs[i].name);
    TRY(auto inner, inner_view(outputs[i], what));
    TRY_VOID(expect_writable(inner, what));
    request.outputs.push_back(inner);
  }
  request.cancelled = options.cancelled;
  request.deadline = options.deadline;
  request.step_seconds = options.step_seconds;
  Observer observer(options);
  if (options.observe) request.observer = &observer;
  LevelPlans plans;
  if (options.report != nullptr) request.plans = &plans;
  request.step_runs = options.step_runs;
  TRY_VOID(fit_steps(options.step_seconds, "step_seconds", session.program().steps.size()));
  TRY_VOID(fit_steps(options.step_runs, "step_runs", session.program().steps.size()));
  TRY(auto results, session.run(request));
  std::vector<Tensor> out;
  out.reserve(results.size());
  for (const polyphase::Tensor& result : results) out.push_back(Access::tensor(result));
  if (options.report != nullptr) *options.report = report_of(session, plans, Access::state(of.engine()).times.get());
  return out;
}

}  // namespace

Result<std::vector<Tensor>> Session::run(std::span<const TensorView> inputs, const RunOptions& options) const {
  return without_throwing([&] { return run_views(*this, inputs, {}, options); });
}

Result<std::vector<Tensor>> Session::run(std::initializer_list<TensorView> inputs) const {
  return run(std::span<const TensorView>(inputs.begin(), inputs.size()));
}

Result<std::vector<Tensor>> Session::run_named(std::span<const NamedView> inputs, const RunOptions& options) const {
  return without_throwing([&]() -> Result<std::vector<Tensor>> {
    const std::vector<Port>& ports = engine().inputs();
    std::vector<TensorView> ordered(ports.size());
    std::vector<bool> given(ports.size(), false);
    for (const NamedView& input : inputs) {
      std::size_t at = 0;
      std::string known;
      for (; at < ports.size() && ports[at].name != input.name; ++at) known += (at == 0 ? "" : ", ") + ports[at].name;
      if (at == ports.size()) {
        return Error{ErrorCode::invalid_argument, "there is no input '" + input.name + "'.",
                     "The model's inputs are: " + known + "."};
      }
      if (given[at])
        return Error{ErrorCode::invalid_argument, "input '" + input.name + "' is given twice.",
                     "Give each input once."};
      given[at] = true;
      ordered[at] = input.view;
    }
    for (std::size_t i = 0; i < ports.size(); ++i) {
      if (!given[i])
        return Error{ErrorCode::invalid_argument, "input '" + ports[i].name + "' is missing.",
                     "Give every input of the engine."};
    }
    return run_views(*this, ordered, {}, options);
  });
}

Result<void> Session::run_into(std::span<const TensorView> inputs, std::span<const TensorView> outputs,
                               const RunOptions& options) const {
  return without_throwing([&]() -> Result<void> {
    const std::size_t expected = engine().outputs().size();
    if (outputs.size() != expected) {
      return Error{ErrorCode::invalid_argument,
                   "the model gives " + std::to_string(expected) + " outputs, found memory for " +
                       std::to_string(outputs.size()) + ".",
                   "Give memory for every output, or for none with run()."};
    }
    TRY(const auto done, run_views(*this, inputs, outputs, options));
    static_cast<void>(done);
    return {};
  });
}

Result<std::vector<std::optional<std::vector<std::int64_t>>>> Session::output_sizes(
    const std::vector<std::vector<std::int64_t>>& input_sizes) const {
  return without_throwing([&]() -> Result<std::vector<std::optional<std::vector<std::int64_t>>>> {
    TRY(const auto plan, Access::session_of(*this).plan_for(input_sizes));
    std::vector<std::optional<std::vector<std::int64_t>>> out;
    const Program& program = Access::session_of(*this).program();
    for (const EnginePort& port : program.engine->outputs) {
      const auto value = static_cast<std::size_t>(port.value);
      out.emplace_back();
      if (program.values[value].level != 0) continue;
      const auto sizes = plan->places[value].desc.size_span();
      out.back() = std::vector<std::int64_t>(sizes.begin(), sizes.end());
    }
    return out;
  });
}

const Engine& Session::engine() const {
  CHECK(state_ != nullptr, "a Session that nobody created");
  return state_->engine;
}
int Session::threads() const { return Access::session_of(*this).threads(); }

Session::Counters Session::counters() const {
  const polyphase::Session& session = Access::session_of(*this);
  return {session.packs(), session.plans(), session.plan_hits()};
}

}  // namespace polyphase::api
