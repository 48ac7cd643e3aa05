// lower: Graph → Engine. Which value lives inside which other, which kernel runs each node, what is packed: recorded
// here, so that the IR stays pure.
//
//   draft      number values and steps                        graph inputs and outputs become ports
//   settle     ask the catalogue for each step                split what no row takes whole, convert layouts by copies
//   place      views, slices of a concat, overwritten inputs  a view that its readers' rows take costs nothing
//   emit       constants packed, Engine written
#pragma once

#include <atomic>
#include <functional>
#include <string>

#include "engine/engine.h"
#include "graph/graph.h"
#include "kernel/target.h"

namespace polyphase {

class EngineWriter;

// A tensor that the model names.
struct NamedWeight {
  std::vector<std::string> names;  // several: tied. The first is the attribute `weight` of its constants
  Tensor value;
  bool used = false;          // anything in the model reads it
  std::string fixed_because;  // its elements have decided what the graph is; empty: constants bear its name
};

struct LowerOptions {
  std::string model_name;
  std::string producer;
  DimBindings likely;  // sizes that kernels are chosen for where they are symbolic; missing ones are guessed
  const std::atomic<bool>* cancelled = nullptr;  // set to true from elsewhere: no further weight is packed
  int threads = 1;                               // that pack weights
  // The engine keeps how its constants follow from these, so that they can be exchanged (runtime/refit.h). The same
  // program comes out whatever their elements are.
  bool refittable = false;
  // Where the constants go as they are packed, so that they never are in memory together; the engine's lack their bytes
  // then. Null: into memory.
  EngineWriter* file = nullptr;
  // Called when the graph is read no more, before weights are packed: whose graph goes then, and with it the last hold
  // on their elements, has each in memory either as it was or as it is packed.
  std::function<void()> graph_is_read = nullptr;
  std::vector<NamedWeight> weights = {};  // all that the graph's constants name, and others of the model
};

// Errors: unsupported (an operator without kernel or reference loops), out_of_memory, cancelled, io of the file;
// refittable: what the operators find in weights.
Result<Engine> lower(const Graph& graph, const Target& target, const LowerOptions& options = {});

// For each symbolic size of the inputs, in the order of their names: where the graph may be run piece by piece.
std::vector<EngineCut> find_cuts(const Graph& graph);

// A step that lower would write, and what was decided about it.
struct ChosenStep {
  std::string node;
  std::string operation;  // "conv + relu"
  StepKind kind = StepKind::kernel;
  std::vector<Type> operands;  // those that are there
  std::vector<Type> results;
  std::vector<std::string> rows;  // best first; empty: it runs none
  bool reference = false;         // it runs the operator's plain loops
  // Of reference steps: what each kernel of the operator says against it, "ROW: REASON".
  std::vector<std::string> refusals;
};

// The steps and kernels of lower(graph, target, options), without packing a weight. Errors: as lower.
Result<std::vector<ChosenStep>> choose_kernels(const Graph& graph, const Target& target,
                                               const LowerOptions& options = {});

}  // namespace polyphase
