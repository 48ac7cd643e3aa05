// Draft: a program while lower works on it. Like an Engine, but values know who reads and writes them, and what lives
// inside what is kept as a tree of views, so that placing a value inside another moves everything that lives in it.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "engine/engine.h"
#include "graph/graph.h"
#include "kernel/catalogue.h"
#include "kernel/concrete.h"
#include "lower/lower.h"
#include "lower/view.h"

namespace polyphase {

struct DraftValue {
  std::string name;
  Type type;
  Layout layout;
  Storage storage = Storage::arena;  // of a root; alias is told by `parent`
  Tensor constant;                   // Storage::constant: in the layout's dense order
  int recipe = -1;                   // Storage::constant: what of Draft::recipes it is; -1: it stays as it is
  int parent = -1;                   // the value it is a view of
  View view;                         // how
  std::vector<int> children;
  int writer = -1;           // the step that gives it; -1: an input, a constant, or written through windows
  std::vector<int> readers;  // steps; once per step
  bool kept = false;         // a loop's body reads it again at every trip: never overwritten
  bool pinned = false;       // its place is given (graph outputs, branch results): only others can move into it
};

struct DraftStep {
  StepKind kind = StepKind::kernel;
  std::string name;
  std::vector<Part> parts;
  std::size_t anchor = 0;
  std::vector<int> inputs;
  std::vector<int> outputs;
  std::vector<std::string> symbols;
  std::vector<int> blocks;
  int block = 0;
  bool removed = false;
  bool is_view = false;         // moves elements only: may vanish
  std::vector<RowAnswer> rows;  // settled: best first

  bool bare() const { return parts.size() == 1; }
  const OpDef& op() const { return *parts[anchor].op; }
  bool settled() const { return !rows.empty(); }
};

struct DraftBlock {
  std::vector<int> steps;   // in order
  std::vector<int> inputs;  // loop: iteration, condition, carried values
  std::vector<int> outputs;
};

struct Draft {
  Draft(const Registry& operators, const Target& aim) : registry(operators), target(aim) {}
  const Registry& registry;
  Target target;
  std::map<std::string, DimRange, std::less<>> symbols;
  std::set<std::string, std::less<>> born;  // symbols that bind steps give
  DimBindings likely;
  std::vector<DraftValue> values;
  std::vector<DraftStep> steps;
  std::vector<DraftBlock> blocks;
  std::vector<EnginePort> inputs;
  std::vector<EnginePort> outputs;
  std::vector<DimCheck> checks;
  std::vector<std::string> remarks;
  Recipes recipes;
  std::vector<Tensor> leaves;  // of the recipes: weights, then tables

  DraftValue& value(int i) { return values[static_cast<std::size_t>(i)]; }
  const DraftValue& value(int i) const { return values[static_cast<std::size_t>(i)]; }
  DraftStep& step(int i) { return steps[static_cast<std::size_t>(i)]; }
  const DraftStep& step(int i) const { return steps[static_cast<std::size_t>(i)]; }

  int add_value(std::string name, Type type, Layout layout);
  // Adds the step to its block before step `before` (-1: at the end) and enters it with its values.
  int add_step(DraftStep step, int before = -1);
  // A copy of `from` into `to`.
  int add_copy(int from, int to, int block, int before, const std::string& name);
  void remove_step(int step);
  void set_input(int step, std::size_t i, int value);
  void set_output(int step, std::size_t i, int value);
  // Puts the value into another as a view of it, and out again.
  void put_into(int value, int parent, View view);
  void take_out(int value);

  int root_of(int value) const;
  std::vector<int> tree_of(int value) const;  // it and all that live in it
  // Where it lies in its root; nothing if a view on the way cannot be expressed by strides.
  std::optional<Placement> placement(int value) const;
  OperandDesc operand(int value, TensorView* constant_view) const;
  std::vector<int> order() const;  // alive steps, blocks after the steps that run them

  void remark(const DraftStep& step, std::string_view what);
};

// Numbers values and steps. `options.likely` completes `draft.likely`. Errors: unsupported (a size born in a region is
// used outside of it); what operators find in weights.
Result<Draft> make_draft(const Graph& graph, const Target& target, const LowerOptions& options);

// What follows from weights, of a graph and those in it.
struct GraphRecipes {
  Recipes recipes;
  std::vector<Tensor> leaves;                    // weights, then tables
  std::unordered_map<const Value*, int> values;  // by what computes it
  std::unordered_set<const Node*> nodes;         // that are no steps
};
GraphRecipes recipes_of(const Graph& graph, const std::vector<NamedWeight>& weights);
// Rows for every step; new steps where one is split or copies are needed. Errors: unsupported.
Result<void> settle(Draft& draft);
// Views, windows of concats, overwritten inputs.
Result<void> place(Draft& draft);

// Asking the catalogue.
struct Asked {
  StepDesc desc;
  std::vector<TensorView> constants;  // what desc.inputs[i].value points at
};
// The step as rows see it; the result must not be moved once made.
std::unique_ptr<Asked> describe(const Draft& draft, const DraftStep& step);
// The rows that take it as it stands, best first; empty: none.
std::vector<RowAnswer> ask(const Draft& draft, const DraftStep& step);
// Rows for a bare step, its layouts changed by copies where only that brings a kernel. Error: no row at all.
Result<void> settle_step(Draft& draft, int step);

}  // namespace polyphase
