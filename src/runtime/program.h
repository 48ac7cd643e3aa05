// Program: an engine made ready for one device: rows found, weights packed where they were kept raw, aliases resolved,
// and for every size the moment from which it is known.
//
// Levels: sizes that follow from the inputs' shapes are of level 0; the i-th bind step (in order of steps) gives birth
// to the symbols of level i + 1. A value or step has the level of its youngest symbol. Each level is planned on its
// own, when its symbols are known, and has an arena of its own.
#pragma once

#include <climits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "kernel/catalogue.h"
#include "kernel/step_desc.h"
#include "kernel/target.h"

namespace polyphase {

struct ProgramStep {
  const Step* step = nullptr;
  StepDesc desc;                         // symbolic
  std::vector<const Row*> rows;          // best first; empty for bind, branch, loop
  std::vector<int> packed_operands;      // indices into desc.inputs that lie in the pack
  std::shared_ptr<const Buffer> packed;  // null: nothing is packed, or at every run
  int level = 0;
};

struct ProgramValue {
  int root = -1;  // the value that owns the memory; itself unless an alias
  int level = 0;
  int port = -1;             // Storage::input and output: position among the engine's
  bool is_constant = false;  // Storage::constant, or a view of one that depends on no size
  TensorView constant;       // then; data is null if its elements are only in packs
  int first_step = INT_MAX;  // of a root: steps that touch it or its aliases
  int last_step = -1;
  std::vector<Dim> strides;  // elements, by logical axis
};

struct Program {
  std::shared_ptr<const Engine> engine;
  Target target;
  std::vector<ProgramStep> steps;        // all blocks: nested blocks follow the step that runs them
  std::vector<std::vector<int>> blocks;  // steps of each block of the engine
  std::vector<ProgramValue> values;      // by engine value
  // Symbols in order of birth, and how many are known at each level.
  std::vector<std::string> symbols;
  std::vector<std::size_t> symbols_known;
  std::map<std::string, DimRange, std::less<>> ranges;
  std::vector<std::vector<DimCheck>> checks;  // by level
  std::uint64_t constant_bytes = 0;
  std::uint64_t packs = 0;  // weights packed while loading

  int levels() const { return static_cast<int>(symbols_known.size()); }
};

// Whether a view with these sizes and strides, `offset` elements into memory of `elements`, stays inside it. Error:
// corrupt.
Result<void> check_window(const TensorDesc& desc, std::int64_t offset, std::int64_t elements, const std::string& name);

// Resolves `engine`. Errors: corrupt (it contradicts itself), incompatible (a kernel is missing here or refuses its
// step, or the engine wants another cluster than the target has).
Result<std::shared_ptr<const Program>> make_program(std::shared_ptr<const Engine> engine, const Target& target);

}  // namespace polyphase
