// What every importer is told, and what it gives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/dim.h"
#include "graph/graph.h"
#include "import/survey.h"

namespace polyphase {

struct ImportOptions {
  // Symbolic size → the values it may take, both ends included; equal ends fix it.
  std::map<std::string, DimRange, std::less<>> dims = {};
  // Input name → its sizes: constants, or symbols by the caller's own names.
  std::map<std::string, std::vector<Dim>, std::less<>> shapes = {};
  // Names that `shapes` was written with, also those that `dims` has turned into numbers there.
  std::set<std::string, std::less<>> shape_names = {};
  // The most nodes, counted after functions are inlined: a small file can ask for 2^40 of them.
  std::int64_t max_nodes = 4'000'000;
  // If set: filled while importing. What cannot be converted is then noted there and is no Error; the graph holds the
  // rest, and what nobody in it reads is an output.
  OperatorSurvey* survey = nullptr;
  // The model's weights may be exchanged in the engine: its constants bear their names (attribute `weight`), unless
  // their elements decide how the network is computed.
  bool refittable = false;
};

// A tensor that the model names and carries: an initialiser of ONNX's main graph, a parameter or buffer of a module.
struct ImportedWeight {
  std::vector<std::string> names;  // several where the model has one tensor under several names
  Tensor value;
  bool used = false;        // anything reads it
  bool is_literal = false;  // a number of the program that the exporter keeps among the weights
  // Why it cannot be exchanged; empty: constants of the graph have the first name as their `weight`.
  std::string fixed_because = {};
};

// Whether its elements can be hidden from passes: small integer tensors may decide sizes, so they cannot.
bool may_be_exchanged(const Tensor& tensor);
// Takes the name from the weights of the graph whose elements the import has looked at, and says so in `weights`.
void fix_weights(Graph& graph, const std::set<std::string, std::less<>>& looked_at,
                 std::vector<ImportedWeight>& weights);

// A tensor of the model and what it became.
struct ImportedTensor {
  std::string name;   // in the model; inside a function behind the call's name and '/'
  std::string graph;  // Graph::name of the graph that holds the value
  std::string value;  // Value::name there
};

struct ImportedModel {
  std::unique_ptr<Graph> graph;
  std::string name;      // of the model's graph
  std::string producer;  // "pytorch 2.9.0"; empty if the file does not say
  std::int64_t opset = 0;
  std::vector<std::string> warnings;
  std::vector<ImportedTensor> tensors;  // in the order of their definition
  std::vector<ImportedWeight> weights;  // ImportOptions::refittable: in the model's order
  // Memory of the caller's that constants lie in: the engine keeps copies of what it needs of it.
  std::vector<std::span<const std::byte>> lent;
  bool complete = true;  // false: a survey holds what is missing
};

}  // namespace polyphase
