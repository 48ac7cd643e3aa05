// Program: an engine made ready for one device: rows found, weights packed where they were kept raw, aliases resolved,
// and for every size the moment from which it is known.
//
// Levels: sizes that follow from the inputs' shapes are of level 0. What gives birth to symbols opens a level below the
// one that is open: a bind step, a branch or loop whose results have sizes of their own (when it has run), each trip of
// a loop whose carried values change their sizes. A level that a block opens closes with the block; so levels are a
// tree. A value or step has the level of its youngest symbol. Each level is planned on its own, when its symbols are
// known, again and again in a loop, and has an arena of its own.
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
  int scope = 0;    // the level that is open when the step begins
  int enters = -1;  // loop: the level that each trip opens; -1: none
  int gives = -1;   // bind, branch, loop: the level that is open after the step; -1: `scope` still
};

struct ProgramLevel {
  int parent = -1;
  std::vector<std::string> symbols;  // all that are known here, the parent's first
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
  std::vector<ProgramLevel> tree;        // parents before children
  std::map<std::string, DimRange, std::less<>> ranges;
  std::vector<std::vector<DimCheck>> checks;  // by level
  std::uint64_t constant_bytes = 0;
  std::uint64_t packs = 0;  // weights packed while loading

  int levels() const { return static_cast<int>(tree.size()); }
  // Whether what is of `level` is known where `scope` is open.
  bool sees(int scope, int level) const {
    while (scope > level) scope = tree[static_cast<std::size_t>(scope)].parent;
    return scope == level;
  }
};

// Whether a view with these sizes and strides, `offset` elements into memory of `elements`, stays inside it. Error:
// corrupt.
Result<void> check_window(const TensorDesc& desc, std::int64_t offset, std::int64_t elements, const std::string& name);

// Resolves `engine`. Errors: corrupt (it contradicts itself), incompatible (a kernel is missing here or refuses its
// step, or the engine wants another cluster than the target has).
Result<std::shared_ptr<const Program>> make_program(std::shared_ptr<const Engine> engine, const Target& target);

}  // namespace polyphase
