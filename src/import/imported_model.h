// What every importer is told, and what it gives.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
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
};

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
  bool complete = true;                 // false: a survey holds what is missing
};

}  // namespace polyphase
