// Engine: the compiled artefact: a program of steps over values, the constants they need, and what the caller must
// know. Immutable once made; a Session runs it. In memory here; engine/file.h gives the bytes.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/dim.h"
#include "base/layout.h"
#include "base/shape.h"
#include "base/tensor.h"
#include "engine/cuts.h"
#include "engine/recipes.h"
#include "ops/op.h"
#include "ops/registry.h"

namespace polyphase {

// Where a value's elements live.
enum class Storage : std::uint8_t {
  input,     // the caller's memory
  output,    // the caller's memory
  constant,  // Engine::constants
  arena,     // planned
  alias,     // inside another value: a view of it, a slice of a concat, or the input it overwrites
};

// A strided window into another value.
struct AliasOf {
  int value = -1;            // the value it lives in (itself never an alias: chains are resolved)
  Dim offset;                // elements from the base's first element
  std::vector<Dim> strides;  // elements, by logical axis of this value
};

struct EngineValue {
  std::string name;  // for people
  Type type;
  Layout layout;
  Storage storage = Storage::arena;
  // Storage::constant: index into constants; -1: steps find its elements in their packed weights only.
  int constant = -1;
  AliasOf alias;  // Storage::alias
  // Storage::constant: the value of Engine::recipes that its elements are; -1: no weight has a say in them.
  int recipe = -1;
};

enum class StepKind : std::uint8_t {
  kernel,  // run a row
  copy,    // change layout or place; the row is one of operator "identity"
  bind,    // read a tensor, bind its elements to symbols: sizes born at run time
  branch,  // run one of two blocks by a bool scalar; blocks write their results into aliases of the step's results
  loop,    // run a block while a condition holds
};

struct Step {
  StepKind kind = StepKind::kernel;
  std::string name;  // the node it came from
  std::vector<Part> parts;
  std::size_t anchor = 0;
  std::vector<int> inputs;  // values; -1: absent
  std::vector<int> outputs;
  // Rows by name, best first: up to three that share one packing, each tried for concrete sizes.
  std::vector<std::string> rows;
  // The packed constant; -1: nothing is packed, or the pack is computed by this step's `pack_at_run`.
  int packed = -1;
  // The operands that the row packs are computed values: pack them before every run of this step.
  bool pack_at_run = false;
  std::vector<std::string> symbols;  // bind: one per element
  std::vector<int> blocks;           // branch: then, else; loop: body
  bool measured = false;             // the row was chosen by measured times
};

struct Block {
  std::vector<int> inputs;   // loop: values bound by the step that runs the block; captured values are simply read
  std::vector<int> outputs;  // branch: aliases of the step's results
  std::vector<Step> steps;
};

// Bytes of a constant: raw elements of a value, or a row's packed weights.
struct EngineConstant {
  std::string name;
  std::shared_ptr<Buffer> bytes;  // 64-byte aligned
  std::string format;             // empty: raw elements; otherwise Packing::format
};

struct EnginePort {
  std::string name;  // as the caller names it
  int value = -1;
};

struct Engine {
  std::string model_name;
  std::string producer;  // "polyphase 0.1.0"
  std::string cluster;   // name_of(Cluster); "portable" if weights are raw
  std::map<std::string, DimRange, std::less<>> symbols;
  std::vector<EnginePort> inputs;
  std::vector<EnginePort> outputs;
  std::vector<EngineValue> values;
  std::vector<EngineConstant> constants;
  std::vector<Block> blocks;     // blocks[0] is the program
  std::vector<DimCheck> checks;  // tested whenever sizes change
  Recipes recipes;               // how constants follow from the model's weights, where these may be exchanged
  std::vector<EngineCut> cuts;   // of the symbolic sizes of the inputs; none: nobody has looked for them
  // What the compiler decided, for `explain` and `inspect`: one line per remark ("conv1: relu fused").
  std::vector<std::string> remarks;
};

}  // namespace polyphase
