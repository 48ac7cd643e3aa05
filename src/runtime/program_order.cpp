// The order of steps, how long values live, and from when sizes are known.
#include "runtime/program_parts.h"

#include <algorithm>

namespace polyphase {
namespace {

class Blocks {
 public:
  explicit Blocks(Program& program) : program_(program) {}

  Result<void> flatten() {
    program_.blocks.resize(engine().blocks.size());
    if (engine().blocks.empty()) return damaged_engine("it has no program");
    std::vector<bool> seen(engine().blocks.size(), false);
    return flatten_block(0, seen);
  }

 private:
  const Engine& engine() const { return *program_.engine; }
  bool is_value(int value) const { return value >= 0 && static_cast<std::size_t>(value) < engine().values.size(); }
  const EngineValue& value_at(int value) const { return engine().values[static_cast<std::size_t>(value)]; }
  ProgramValue& place_of(int value) { return program_.values[static_cast<std::size_t>(value)]; }

  Result<void> flatten_block(std::size_t block, std::vector<bool>& seen) {
    if (seen[block]) return damaged_engine("block " + std::to_string(block) + " is run from two places");
    seen[block] = true;
    for (const Step& step : engine().blocks[block].steps) {
      const auto flat = static_cast<int>(program_.steps.size());
      program_.blocks[block].push_back(flat);
      program_.steps.emplace_back();
      program_.steps.back().step = &step;
      TRY_VOID(touch_values(step, flat));
      for (const int nested : step.blocks) {
        if (nested <= 0 || static_cast<std::size_t>(nested) >= seen.size())
          return damaged_engine("step '" + step.name + "' runs no block");
        TRY_VOID(flatten_block(static_cast<std::size_t>(nested), seen));
      }
      // What the step reads must outlive its blocks, and what it gives exists before they write it.
      if (!step.blocks.empty()) TRY_VOID(touch_values(step, static_cast<int>(program_.steps.size()) - 1));
    }
    return {};
  }

  Result<void> touch_values(const Step& step, int flat) {
    const auto touch = [&](int value) {
      ProgramValue& root = place_of(place_of(value).root);
      root.first_step = std::min(root.first_step, flat);
      root.last_step = std::max(root.last_step, flat);
    };
    for (const int input : step.inputs) {
      if (input == -1) continue;
      if (!is_value(input)) return damaged_engine("step '" + step.name + "' reads a value that is not there");
      touch(input);
    }
    for (const int output : step.outputs) {
      if (!is_value(output)) return damaged_engine("step '" + step.name + "' writes a value that is not there");
      const Storage storage = value_at(place_of(output).root).storage;
      if (storage != Storage::arena && storage != Storage::output) {
        return damaged_engine("step '" + step.name + "' writes '" + value_at(output).name +
                              "', which is not its to write");
      }
      touch(output);
    }
    return {};
  }
  Program& program_;
};

class Levels {
 public:
  explicit Levels(Program& program) : program_(program) {}

  Result<std::map<std::string, int, std::less<>>> find() {
    TRY_VOID(find_levels());
    return std::move(level_of_symbol_);
  }

 private:
  const Engine& engine() const { return *program_.engine; }
  bool is_value(int value) const { return value >= 0 && static_cast<std::size_t>(value) < engine().values.size(); }
  const EngineValue& value_at(int value) const { return engine().values[static_cast<std::size_t>(value)]; }
  ProgramValue& place_of(int value) { return program_.values[static_cast<std::size_t>(value)]; }

  Result<int> level_of(const Dim& dim) const {
    if (dim.is_constant()) return 0;
    std::map<std::string, DimRange, std::less<>> used;
    dim.collect_symbols(used);
    int level = 0;
    for (const auto& [name, range] : used) {
      const auto found = level_of_symbol_.find(name);
      if (found == level_of_symbol_.end()) return damaged_engine("no input and no step gives the size " + name);
      level = std::max(level, found->second);
    }
    return level;
  }

  Result<int> level_of(const std::vector<Dim>& dims) const {
    int level = 0;
    for (const Dim& dim : dims) {
      TRY(const int own, level_of(dim));
      level = std::max(level, own);
    }
    return level;
  }

  void give_birth(const std::string& name, int level) {
    if (level_of_symbol_.emplace(name, level).second) program_.symbols.push_back(name);
  }

  Result<void> find_levels() {
    for (const EnginePort& input : engine().inputs) {
      std::map<std::string, DimRange, std::less<>> used;
      for (const Dim& dim : value_at(input.value).type.shape) dim.collect_symbols(used);
      for (const auto& [name, range] : used) give_birth(name, 0);
    }
    program_.symbols_known.push_back(program_.symbols.size());
    for (const ProgramStep& step : program_.steps) {
      if (step.step->kind != StepKind::bind) continue;
      for (const std::string& name : step.step->symbols) give_birth(name, program_.levels());
      program_.symbols_known.push_back(program_.symbols.size());
    }
    TRY_VOID(level_values());
    return level_checks();
  }

  Result<void> level_values() {
    const auto roots_first = [&](bool alias) -> Result<void> {
      for (std::size_t i = 0; i < program_.values.size(); ++i) {
        const EngineValue& value = engine().values[i];
        if ((value.storage == Storage::alias) != alias) continue;
        ProgramValue& place = program_.values[i];
        TRY(place.level, level_of(value.type.shape.dims()));
        if (!alias) continue;
        TRY(const int view, level_of(place.strides));
        TRY(const int offset, level_of(value.alias.offset));
        place.level = std::max({place.level, view, offset, place_of(place.root).level});
      }
      return {};
    };
    TRY_VOID(roots_first(false));
    return roots_first(true);
  }

  Result<void> level_checks() {
    program_.checks.resize(static_cast<std::size_t>(program_.levels()));
    for (const DimCheck& check : engine().checks) {
      TRY(const int left, level_of(check.left));
      TRY(const int right, level_of(check.right));
      program_.checks[static_cast<std::size_t>(std::max(left, right))].push_back(check);
    }
    return {};
  }
  Program& program_;
  std::map<std::string, int, std::less<>> level_of_symbol_;
};

}  // namespace

Result<void> resolve_blocks(Program& program) { return Blocks(program).flatten(); }

Result<std::map<std::string, int, std::less<>>> resolve_levels(Program& program) { return Levels(program).find(); }

}  // namespace polyphase
