// The order of a program: blocks form a tree, every value is written once and before it is read.
#include "engine/check.h"

#include <algorithm>

#include "engine/check_parts.h"

namespace polyphase {
namespace {

constexpr int max_block_depth = 32;

// Lower-case letters, digits and _ / . : what rows, formats and operators are called.
bool is_plain(std::string_view name) {
  return !name.empty() && name.size() <= 100 && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '/' || c == '.';
  });
}

class OrderChecker {
 public:
  explicit OrderChecker(const Engine& engine)
      : engine_(engine),
        written_(engine.values.size(), false),
        defined_(engine.values.size(), false),
        block_used_(engine.blocks.size(), false) {}

  Result<void> check() {
    if (engine_.blocks.empty()) return refuse_engine("it has no steps.");
    for (const EnginePort& port : engine_.inputs) TRY_VOID(define(port.value, "the caller"));
    for (std::size_t i = 0; i < engine_.values.size(); ++i) {
      if (engine_.values[i].storage == Storage::constant) defined_[i] = true;
    }
    TRY_VOID(block(0, 0));
    for (std::size_t i = 0; i < block_used_.size(); ++i) {
      if (!block_used_[i]) return refuse_engine("no step runs block " + std::to_string(i) + ".");
    }
    for (const EnginePort& port : engine_.outputs) {
      if (!readable(port.value)) return refuse_engine("output '" + port.name + "' is never written.");
    }
    return {};
  }

 private:
  bool valid(int value) const { return value >= 0 && static_cast<std::size_t>(value) < engine_.values.size(); }
  int root_of(int value) const {
    const EngineValue& item = engine_.values[static_cast<std::size_t>(value)];
    return item.storage == Storage::alias ? item.alias.value : value;
  }

  // A window of a base can be read once something was written there: the base itself, or any other window of it.
  bool readable(int value) const {
    return defined_[static_cast<std::size_t>(value)] || defined_[static_cast<std::size_t>(root_of(value))];
  }

  Result<void> define(int value, const std::string& who) {
    if (written_[static_cast<std::size_t>(value)]) {
      return refuse_engine("value " + name_of_value(engine_, value) + " is written a second time, by " + who + ".");
    }
    written_[static_cast<std::size_t>(value)] = true;
    defined_[static_cast<std::size_t>(value)] = true;
    defined_[static_cast<std::size_t>(root_of(value))] = true;
    return {};
  }

  Result<void> read(int value, const std::string& who) {
    if (!valid(value))
      return refuse_engine(who + " reads value " + std::to_string(value) + " of " +
                           std::to_string(engine_.values.size()) + ".");
    if (!readable(value))
      return refuse_engine(who + " reads " + name_of_value(engine_, value) + " before it is written.");
    return {};
  }

  Result<void> block(std::size_t index, int depth) {
    if (depth > max_block_depth) return refuse_engine("blocks are nested more than 32 deep.");
    if (block_used_[index]) return refuse_engine("block " + std::to_string(index) + " is run by two steps.");
    block_used_[index] = true;
    const Block& item = engine_.blocks[index];
    const std::string who = "block " + std::to_string(index);
    for (const int value : item.inputs) {
      if (!valid(value))
        return refuse_engine(who + " takes value " + std::to_string(value) + " of " +
                             std::to_string(engine_.values.size()) + ".");
      if (index != 0) TRY_VOID(define(value, who));
    }
    for (const Step& one : item.steps) TRY_VOID(step(one, depth));
    for (const int value : item.outputs) TRY_VOID(read(value, who));
    return {};
  }

  Result<void> step(const Step& item, int depth) {
    const std::string who = "step '" + item.name + "'";
    for (const int value : item.inputs) {
      if (value != -1) TRY_VOID(read(value, who));
    }
    TRY_VOID(parts(item, who));
    const bool runs_row = item.kind == StepKind::kernel || item.kind == StepKind::copy;
    if (runs_row) TRY_VOID(kernel(item, who));
    if (!runs_row && (item.packed != -1 || item.pack_at_run || !item.rows.empty())) {
      return refuse_engine(who + " runs no kernel but names one.");
    }
    if (item.kind == StepKind::bind) {
      for (const std::string& symbol : item.symbols) {
        if (engine_.symbols.find(symbol) == engine_.symbols.end())
          return refuse_engine(who + " binds the undeclared size '" + symbol + "'.");
      }
    } else if (!item.symbols.empty()) {
      return refuse_engine(who + " binds sizes but is no bind step.");
    }
    TRY_VOID(blocks(item, who, depth));
    for (const int value : item.outputs) {
      if (!valid(value))
        return refuse_engine(who + " writes value " + std::to_string(value) + " of " +
                             std::to_string(engine_.values.size()) + ".");
      const Storage storage = engine_.values[static_cast<std::size_t>(root_of(value))].storage;
      if (storage == Storage::input || storage == Storage::constant) {
        return refuse_engine(who + " writes " + name_of_value(engine_, value) + ", which is " +
                             (storage == Storage::input ? "an input." : "a constant."));
      }
      TRY_VOID(define(value, who));
    }
    return {};
  }

  // Of steps of every kind: shapes are inferred from what parts name.
  static Result<void> parts(const Step& item, const std::string& who) {
    for (std::size_t i = 0; i < item.parts.size(); ++i) {
      for (const int operand : item.parts[i].operands) {
        const bool known = (operand >= 0 && static_cast<std::size_t>(operand) < item.inputs.size()) ||
                           operand == Part::absent || (operand == Part::running && i > 0);
        if (!known) return refuse_engine(who + " has a part with operand " + std::to_string(operand) + ".");
      }
    }
    return {};
  }

  Result<void> kernel(const Step& item, const std::string& who) {
    if (item.parts.empty() || item.anchor >= item.parts.size())
      return refuse_engine(who + " has no anchor among its parts.");
    if (item.rows.empty() || item.rows.size() > 3)
      return refuse_engine(who + " names " + std::to_string(item.rows.size()) + " kernels.");
    for (const std::string& row : item.rows) {
      if (!is_plain(row)) return refuse_engine(who + " names a kernel that is no plain word.");
    }
    // Rows look for the tensor that enters the chain here.
    const std::vector<int>& first = item.parts.front().operands;
    if (!first.empty() && (first.front() < 0 || item.inputs[static_cast<std::size_t>(first.front())] < 0)) {
      return refuse_engine(who + " lacks its first operand.");
    }
    if (item.packed == -1) return {};
    if (item.pack_at_run || item.packed < 0 || static_cast<std::size_t>(item.packed) >= engine_.constants.size()) {
      return refuse_engine(who + " names packed constant " + std::to_string(item.packed) + " of " +
                           std::to_string(engine_.constants.size()) + ".");
    }
    if (!is_plain(engine_.constants[static_cast<std::size_t>(item.packed)].format)) {
      return refuse_engine(who + " takes packed weights whose format is no plain word.");
    }
    return {};
  }

  Result<void> blocks(const Step& item, const std::string& who, int depth) {
    const std::size_t expected = item.kind == StepKind::branch ? 2 : item.kind == StepKind::loop ? 1 : 0;
    if (item.blocks.size() != expected) {
      return refuse_engine(who + " runs " + std::to_string(item.blocks.size()) + " blocks, expected " +
                           std::to_string(expected) + ".");
    }
    for (const int index : item.blocks) {
      if (index <= 0 || static_cast<std::size_t>(index) >= engine_.blocks.size()) {
        return refuse_engine(who + " runs block " + std::to_string(index) + " of " +
                             std::to_string(engine_.blocks.size()) + ".");
      }
      // What a block writes is seen in it alone: a branch not taken has written nothing.
      const std::vector<bool> before = defined_;
      TRY_VOID(block(static_cast<std::size_t>(index), depth + 1));
      defined_ = before;
    }
    return {};
  }

  const Engine& engine_;
  std::vector<bool> written_;  // by a step or the caller, anywhere
  std::vector<bool> defined_;  // readable at this point
  std::vector<bool> block_used_;
};

}  // namespace

Result<void> check_order(const Engine& engine) { return OrderChecker(engine).check(); }

Result<void> check_engine(Engine& engine, const Registry& registry) {
  for (const Block& block : engine.blocks) {
    for (const Step& step : block.steps) {
      for (const Part& part : step.parts) {
        if (part.op == nullptr || registry.find(part.op->name) != part.op) {
          return refuse_engine("step '" + step.name + "' uses an operator of another registry.");
        }
      }
    }
  }
  TRY_VOID(check_values(engine));
  TRY_VOID(check_recipes(engine));
  TRY_VOID(check_order(engine));
  TRY_VOID(check_control(engine));
  TRY_VOID(check_cuts(engine));
  return check_shapes(engine);
}

}  // namespace polyphase
