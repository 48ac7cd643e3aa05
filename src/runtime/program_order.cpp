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
      // What the step reads must outlive its blocks, and what it gives exists before they write it. What the blocks
      // take and give is there from the first trip to the last.
      if (!step.blocks.empty()) {
        TRY_VOID(touch_values(step, static_cast<int>(program_.steps.size()) - 1));
        for (const int nested : step.blocks) {
          TRY_VOID(touch_ports(engine().blocks[static_cast<std::size_t>(nested)], flat));
          TRY_VOID(touch_ports(engine().blocks[static_cast<std::size_t>(nested)],
                               static_cast<int>(program_.steps.size()) - 1));
        }
      }
    }
    return {};
  }

  void touch(int value, int flat) {
    ProgramValue& root = place_of(place_of(value).root);
    root.first_step = std::min(root.first_step, flat);
    root.last_step = std::max(root.last_step, flat);
  }

  Result<void> touch_ports(const Block& block, int flat) {
    for (const auto* ports : {&block.inputs, &block.outputs}) {
      for (const int value : *ports) {
        if (!is_value(value)) return damaged_engine("a block takes or gives a value that is not there");
        touch(value, flat);
      }
    }
    for (const int value : block.inputs) {
      const Storage storage = value_at(place_of(value).root).storage;
      if (storage != Storage::arena && storage != Storage::output)
        return damaged_engine("a block takes '" + value_at(value).name + "', which is not its to write");
    }
    return {};
  }

  Result<void> touch_values(const Step& step, int flat) {
    for (const int input : step.inputs) {
      if (input == -1) continue;
      if (!is_value(input)) return damaged_engine("step '" + step.name + "' reads a value that is not there");
      touch(input, flat);
    }
    for (const int output : step.outputs) {
      if (!is_value(output)) return damaged_engine("step '" + step.name + "' writes a value that is not there");
      const Storage storage = value_at(place_of(output).root).storage;
      if (storage != Storage::arena && storage != Storage::output) {
        return damaged_engine("step '" + step.name + "' writes '" + value_at(output).name +
                              "', which is not its to write");
      }
      touch(output, flat);
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

  // The younger of two levels, if one knows what the other knows.
  Result<int> younger(int a, int b, const std::string& where) const {
    if (!program_.sees(std::max(a, b), std::min(a, b)))
      return damaged_engine(where + " depends on sizes that are never known together");
    return std::max(a, b);
  }

  Result<int> level_of(const Dim& dim) const {
    if (dim.is_constant()) return 0;
    std::map<std::string, DimRange, std::less<>> used;
    dim.collect_symbols(used);
    int level = 0;
    for (const auto& [name, range] : used) {
      const auto found = level_of_symbol_.find(name);
      if (found == level_of_symbol_.end()) return damaged_engine("no input and no step gives the size " + name);
      TRY(level, younger(level, found->second, "the size " + dim.text()));
    }
    return level;
  }

  Result<int> level_of(const std::vector<Dim>& dims) const {
    int level = 0;
    for (const Dim& dim : dims) {
      TRY(const int own, level_of(dim));
      TRY(level, younger(level, own, "a shape"));
    }
    return level;
  }

  void give_birth(ProgramLevel& level, const std::string& name) {
    if (level_of_symbol_.emplace(name, static_cast<int>(program_.tree.size())).second) level.symbols.push_back(name);
  }

  int open_level(int parent, const std::vector<std::string>& names) {
    ProgramLevel level{parent, program_.tree[static_cast<std::size_t>(parent)].symbols};
    for (const std::string& name : names) give_birth(level, name);
    program_.tree.push_back(std::move(level));
    return program_.levels() - 1;
  }

  static Result<std::vector<std::string>> names_in(const Step& step, std::string_view attribute) {
    std::vector<std::string> out;
    if (step.parts.empty() || !step.parts.front().attributes.has(attribute)) return out;
    for (const Dim& dim : step.parts.front().attributes.get<std::vector<Dim>>(attribute)) {
      if (!dim.is_symbol()) return damaged_engine("step '" + step.name + "' gives no name to a size");
      out.push_back(dim.symbol_name());
    }
    return out;
  }

  Result<void> find_levels() {
    ProgramLevel given;
    for (const EnginePort& input : engine().inputs) {
      std::map<std::string, DimRange, std::less<>> used;
      for (const Dim& dim : value_at(input.value).type.shape) dim.collect_symbols(used);
      for (const auto& [name, range] : used) give_birth(given, name);
    }
    program_.tree.push_back(std::move(given));
    ends_.assign(program_.blocks.size(), 0);
    TRY_VOID(open_levels(0, 0));
    TRY_VOID(level_values());
    TRY_VOID(check_scopes());
    return level_checks();
  }

  Result<void> open_levels(std::size_t block, int scope) {
    for (const int flat : program_.blocks[block]) {
      ProgramStep& step = program_.steps[static_cast<std::size_t>(flat)];
      step.scope = scope;
      TRY(const auto entering, names_in(*step.step, "entering"));
      const bool runs_blocks = !step.step->blocks.empty();
      if (runs_blocks && !entering.empty()) step.enters = open_level(scope, entering);
      for (const int nested : step.step->blocks)
        TRY_VOID(open_levels(static_cast<std::size_t>(nested), step.enters < 0 ? scope : step.enters));
      TRY(std::vector<std::string> born, names_in(*step.step, "born"));
      if (step.step->kind == StepKind::bind) born = step.step->symbols;
      const bool gives = step.step->kind == StepKind::bind || (runs_blocks && !born.empty());
      if (gives) scope = step.gives = open_level(scope, born);
    }
    ends_[block] = scope;
    return {};
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
        const std::string where = "the view '" + value.name + "'";
        TRY(place.level, younger(place.level, view, where));
        TRY(place.level, younger(place.level, offset, where));
        TRY(place.level, younger(place.level, place_of(place.root).level, where));
      }
      return {};
    };
    TRY_VOID(roots_first(false));
    return roots_first(true);
  }

  // Every value that a step touches has its sizes by then.
  Result<void> check_scopes() {
    const auto known = [&](int value, int scope) -> Result<void> {
      if (value < 0 || program_.sees(scope, place_of(value).level)) return {};
      return damaged_engine("'" + value_at(value).name + "' is used where its sizes are not known");
    };
    for (const ProgramStep& step : program_.steps) {
      for (const int value : step.step->inputs) TRY_VOID(known(value, step.scope));
      const bool after = !step.step->blocks.empty() && step.gives >= 0;
      for (const int value : step.step->outputs) TRY_VOID(known(value, after ? step.gives : step.scope));
      for (const int nested : step.step->blocks) {
        const Block& block = engine().blocks[static_cast<std::size_t>(nested)];
        for (const int value : block.inputs) TRY_VOID(known(value, step.enters < 0 ? step.scope : step.enters));
        for (const int value : block.outputs) TRY_VOID(known(value, ends_[static_cast<std::size_t>(nested)]));
      }
    }
    return {};
  }

  Result<void> level_checks() {
    program_.checks.resize(static_cast<std::size_t>(program_.levels()));
    for (const DimCheck& check : engine().checks) {
      TRY(const int left, level_of(check.left));
      TRY(const int right, level_of(check.right));
      TRY(const int level, younger(left, right, "a check"));
      program_.checks[static_cast<std::size_t>(level)].push_back(check);
    }
    return {};
  }
  Program& program_;
  std::map<std::string, int, std::less<>> level_of_symbol_;
  std::vector<int> ends_;  // by block: the level that is open at its end
};

}  // namespace

Result<void> resolve_blocks(Program& program) { return Blocks(program).flatten(); }

Result<std::map<std::string, int, std::less<>>> resolve_levels(Program& program) { return Levels(program).find(); }

}  // namespace polyphase
