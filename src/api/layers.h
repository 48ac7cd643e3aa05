// The parts of compare_layers.
#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "api/compile.h"
#include "base/tensor.h"
#include "graph/graph.h"
#include "polyphase/diagnose.h"

namespace polyphase::api {

// A value by where it stands: "VALUE", or "NODE/0:VALUE" in region 0 of a node, and so on inwards.
using Place = std::string;

// What a run showed of one value.
struct Captured {
  polyphase::Tensor tensor;
  int step = -1;
  std::string row;
};
using Captures = std::map<Place, Captured, std::less<>>;

// A tensor of the model: a named value of the imported graph that depends on the inputs.
struct LogicalTensor {
  std::string name;
  Place place;
  const polyphase::Value* value = nullptr;
};
std::vector<LogicalTensor> logical_tensors(const ImportedModel& model);
// Whether a value, those of regions too, depends on an input: neither follows from constants nor is known as a size.
std::unordered_map<const polyphase::Value*, bool> dependent_values(const Graph& graph);
// The place of every value, those of regions too.
std::unordered_map<const polyphase::Value*, Place> places_of(const Graph& graph);

// Runs the engine and keeps what it shows. `bindings` becomes the sizes that the inputs gave.
struct CapturedRun {
  Captures captures;
  double run_seconds = 0;
  double capture_seconds = 0;
};
Result<CapturedRun> capture_run(const Engine& engine, std::span<const TensorView> inputs, const LayerOptions& options);

// The values of `wanted` that the run did not show, computed from those that it did: the imported graph with concrete
// sizes, cut at every captured value, compiled as any other and run once. Added to `captures` with step -1.
Result<double> compute_swallowed(const Graph& imported, const std::vector<LogicalTensor>& wanted,
                                 std::span<const polyphase::Tensor> inputs, const CompileOptions& compile,
                                 const LayerOptions& options, Captures& captures);

// Fills in the numbers of `result`.
void compare_values(const polyphase::TensorView& found, const polyphase::TensorView& expected, double tolerance,
                    LayerResult& result);

}  // namespace polyphase::api
