// Engine's public face: files, ports, and what `inspect` shows.
#include <algorithm>

#include "api/machine.h"
#include "api/state.h"
#include "backends/cpu/catalogue.h"
#include "base/lasting.h"
#include "engine/file.h"
#include "engine/program.h"
#include "ops/custom.h"
#include "runtime/refit.h"

namespace polyphase::api {

std::string_view version() { return POLYPHASE_VERSION; }

Error no_more_memory() {
  try {
    return {ErrorCode::out_of_memory, "the system has no more memory.",
            "Use a smaller model or smaller inputs, or a machine with more memory."};
  } catch (const std::bad_alloc&) {
    return {ErrorCode::out_of_memory, "out of memory.", "Use less of it."};
  }
}

Workshop::Workshop(Registry registry) : registry_(std::move(registry)) {
  for (const Cluster cluster : all_clusters) {
    catalogues_.emplace(cluster, Catalogue(cpu::rows_of(cluster), registry_));
  }
}

Target Workshop::target(Cluster cluster, bool portable) const {
  return cpu::target_of(cluster, portable, catalogues_.at(cluster));
}

Target Workshop::native_target() const { return target(cpu::native_cluster(), false); }

std::shared_ptr<const Workshop> built_in_workshop() {
  static const auto& workshop = lasting(std::make_shared<const Workshop>(Registry::built_in()));
  return workshop;
}

std::vector<std::string> sizes_text(const Shape& shape) {
  std::vector<std::string> out;
  for (const Dim& dim : shape) out.push_back(dim.text());
  return out;
}

namespace {

std::vector<Port> ports_of(const polyphase::Engine& engine, const std::vector<EnginePort>& ports) {
  std::vector<Port> out;
  for (const EnginePort& port : ports) {
    const Type& type = engine.values[static_cast<std::size_t>(port.value)].type;
    out.push_back({port.name, type.dtype, sizes_text(type.shape), port.value});
  }
  return out;
}

std::string storage_text(const polyphase::Engine& engine, const EngineValue& value) {
  switch (value.storage) {
    case Storage::input:
      return "input";
    case Storage::output:
      return "output";
    case Storage::constant:
      return "constant";
    case Storage::arena:
      return "arena";
    case Storage::alias:
      break;
  }
  return "alias of " + engine.values[static_cast<std::size_t>(value.alias.value)].name;
}

// Raw elements belong to the values that name them; packed ones to the constants that a step reads and nobody holds
// raw.
std::vector<ConstantInfo> constants_of(const polyphase::Engine& engine) {
  std::vector<ConstantInfo> out;
  for (const EngineConstant& constant : engine.constants)
    out.push_back({constant.name, constant.format, constant.bytes->size_bytes(), {}, {}});
  const auto at = [&](int index) -> ConstantInfo& { return out[static_cast<std::size_t>(index)]; };
  for (std::size_t i = 0; i < engine.values.size(); ++i) {
    if (engine.values[i].constant >= 0) at(engine.values[i].constant).values.push_back(static_cast<int>(i));
  }
  const auto add = [](std::vector<int>& to, int item) {
    if (std::find(to.begin(), to.end(), item) == to.end()) to.push_back(item);
  };
  int flat = 0;
  for (const auto& [step, block] : steps_in_order(engine)) {
    if (step->packed >= 0) add(at(step->packed).steps, flat);
    for (const int input : step->inputs) {
      if (input < 0) continue;
      const EngineValue& value = engine.values[static_cast<std::size_t>(input)];
      if (value.constant >= 0) add(at(value.constant).steps, flat);
      const bool is_packed = value.storage == Storage::constant && value.constant < 0 && step->packed >= 0;
      if (is_packed) add(at(step->packed).values, input);
    }
    ++flat;
  }
  return out;
}

StepInfo step_info(const Step& step, int block) {
  constexpr std::string_view kinds[] = {"kernel", "copy", "bind", "branch", "loop"};
  StepInfo out;
  out.kind = kinds[static_cast<std::size_t>(step.kind)];
  out.node = step.name;
  for (const Part& part : step.parts) out.operation += (out.operation.empty() ? "" : " + ") + part.op->name;
  out.rows = step.rows;
  out.reference = !step.rows.empty() && step.rows.front() == reference_row.name;
  out.inputs = step.inputs;
  out.outputs = step.outputs;
  out.block = block;
  out.blocks = step.blocks;
  out.measured = step.measured;
  return out;
}

}  // namespace

std::vector<std::pair<const Step*, int>> steps_in_order(const polyphase::Engine& engine) {
  std::vector<std::pair<const Step*, int>> out;
  const auto append = [&](const auto& self, int block) -> void {
    for (const Step& step : engine.blocks[static_cast<std::size_t>(block)].steps) {
      out.emplace_back(&step, block);
      for (const int nested : step.blocks) self(self, nested);
    }
  };
  append(append, 0);
  return out;
}

Engine Access::engine(std::shared_ptr<const Workshop> workshop, polyphase::Engine compiled,
                      std::shared_ptr<RowTimes> times) {
  auto state = std::make_shared<Engine::State>();
  state->workshop = std::move(workshop);
  state->inputs = ports_of(compiled, compiled.inputs);
  state->outputs = ports_of(compiled, compiled.outputs);
  state->engine = std::make_shared<const polyphase::Engine>(std::move(compiled));
  state->times = std::move(times);
  Engine out;
  out.state_ = std::move(state);
  return out;
}

Result<Engine> Engine::load(const std::string& path, const std::vector<Plugin>& plugins) {
  return without_throwing([&]() -> Result<Engine> {
    TRY(auto workshop, workshop_of(plugins));
    TRY(polyphase::Engine engine, read_engine(path, workshop->registry()));
    return Access::engine(std::move(workshop), std::move(engine));
  });
}

Result<Engine> Engine::from_bytes(std::span<const std::byte> bytes, const std::vector<Plugin>& plugins) {
  return without_throwing([&]() -> Result<Engine> {
    TRY(auto workshop, workshop_of(plugins));
    TRY(const std::shared_ptr<Buffer> copy, Buffer::allocate(bytes.size()));
    std::copy(bytes.begin(), bytes.end(), copy->data());
    TRY(polyphase::Engine engine, read_engine_bytes(copy, "the bytes given", workshop->registry()));
    return Access::engine(std::move(workshop), std::move(engine));
  });
}

Result<std::vector<std::byte>> Engine::to_bytes() const {
  return without_throwing(
      [&]() -> Result<std::vector<std::byte>> { return engine_bytes(*Access::state(*this).engine); });
}

Result<void> Engine::save(const std::string& path) const {
  return without_throwing([&]() -> Result<void> { return write_engine(*Access::state(*this).engine, path); });
}

namespace {

// Any CPU packs for any target.
Target packing_target(const polyphase::Engine& engine, const Workshop& workshop) {
  const auto cluster = cluster_from_name(engine.cluster);
  return cluster.has_value() ? workshop.target(*cluster, false) : workshop.target(Cluster::scalar, true);
}

}  // namespace

Result<Engine> Engine::refit(std::span<const NamedView> weights, RefitReport* report) const {
  return without_throwing([&]() -> Result<Engine> {
    const State& state = Access::state(*this);
    std::vector<NewWeight> given;
    for (const NamedView& weight : weights) {
      TRY(const polyphase::TensorView inner, inner_view(weight.view, "weight '" + weight.name + "'"));
      given.push_back({weight.name, inner});
    }
    auto next = std::make_shared<State>();
    next->workshop = state.workshop;
    next->inputs = state.inputs;
    next->outputs = state.outputs;
    next->spare = state.spare != nullptr ? state.spare : std::make_shared<SpareMemory>();
    TRY(RefitOutcome done, polyphase::refit(state.engine, packing_target(*state.engine, *state.workshop), given,
                                            usable_cores(), next->spare.get()));
    next->engine = std::move(done.engine);
    if (report != nullptr)
      *report = {std::move(done.exchanged), std::move(done.left_out), std::move(done.without_effect)};
    Engine out;
    out.state_ = std::move(next);
    return out;
  });
}

const std::vector<Port>& Engine::inputs() const { return Access::state(*this).inputs; }
const std::vector<Port>& Engine::outputs() const { return Access::state(*this).outputs; }

EngineInfo Engine::info() const {
  const polyphase::Engine& engine = *Access::state(*this).engine;
  EngineInfo out;
  out.model_name = engine.model_name;
  out.producer = engine.producer;
  out.cluster = engine.cluster;
  for (const auto& [name, range] : engine.symbols) out.dims[name] = {range.low, range.high};
  for (const EngineValue& value : engine.values) {
    out.values.push_back({value.name, value.type.dtype, sizes_text(value.type.shape), value.layout.text(),
                          storage_text(engine, value), value.storage == Storage::alias ? value.alias.value : -1});
  }
  for (const auto& [step, block] : steps_in_order(engine)) out.steps.push_back(step_info(*step, block));
  out.constants = constants_of(engine);
  for (const ConstantInfo& constant : out.constants) out.constant_bytes += constant.size_bytes;
  out.remarks = engine.remarks;
  for (const OpDef* op : plugin_operators(engine)) out.plugins.push_back({op->name, op->custom->version()});
  out.refittable = engine.recipes.refittable;
  for (const EngineWeight& weight : engine.recipes.weights) {
    out.weights.push_back(
        {weight.names, weight.dtype, weight.sizes, weight.state != EngineWeight::State::unused, weight.fixed_because});
  }
  return out;
}

}  // namespace polyphase::api
