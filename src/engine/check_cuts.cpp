// The cuts of an engine: what they say of its ports can be said of them.
#include "engine/check_parts.h"

namespace polyphase {
namespace {

constexpr std::int64_t most = std::int64_t{1} << 20;  // of ratios, steps and spoiled places

bool is_within(std::int64_t number, std::int64_t least) { return number >= least && number <= most; }

Result<void> check_states(const Engine& engine, const EngineCut& cut, const std::vector<CutState>& states,
                          const std::vector<EnginePort>& ports) {
  if (states.size() != ports.size()) return refuse_engine("the cut along '" + cut.symbol + "' is not of its ports.");
  for (std::size_t i = 0; i < states.size(); ++i) {
    const CutState& state = states[i];
    const int rank = engine.values[static_cast<std::size_t>(ports[i].value)].type.shape.rank();
    const bool sound = state.axis >= -1 && state.axis < rank && is_within(state.up, 1) && is_within(state.down, 1) &&
                       is_within(state.low, 0) && is_within(state.high, 0) &&
                       (!state.is_cut() || cut.step * state.up % state.down == 0);
    if (!sound)
      return refuse_engine("the cut along '" + cut.symbol + "' contradicts its port '" + ports[i].name + "'.");
  }
  return {};
}

}  // namespace

Result<void> check_cuts(const Engine& engine) {
  for (const EngineCut& cut : engine.cuts) {
    if (engine.symbols.find(cut.symbol) == engine.symbols.end())
      return refuse_engine("it is cut along the undeclared size '" + cut.symbol + "'.");
    if (!cut.refusal.empty()) continue;
    if (!is_within(cut.step, 1)) return refuse_engine("it is cut in steps of " + std::to_string(cut.step) + ".");
    TRY_VOID(check_states(engine, cut, cut.inputs, engine.inputs));
    TRY_VOID(check_states(engine, cut, cut.outputs, engine.outputs));
    for (const CutState& input : cut.inputs) {
      if (input.down != 1) return refuse_engine("the cut along '" + cut.symbol + "' divides an input.");
    }
  }
  return {};
}

}  // namespace polyphase
