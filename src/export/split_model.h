// split_model: a model that has nodes which we lack, as a chain of models: ours, somebody else's, ours again.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "wire/cut_model.h"

namespace polyphase::legal {

// What an import says of a model: what it does not take, and the types of what it does.
struct PieceFindings {
  std::set<std::pair<std::string, std::string>> missing;  // domain, operator
  std::set<std::string> refused;                          // names of nodes
  std::map<std::string, wire::BorderTensor> types;        // by tensor
  bool complete = true;                                   // nothing is missing or refused
};
using LookInto = std::function<Result<PieceFindings>(const std::string& model)>;

struct ModelPiece {
  bool ours = false;
  std::string model;  // an ONNX file
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
  std::int64_t nodes = 0;
};

struct ModelChain {
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
  std::vector<ModelPiece> pieces;  // each needs inputs of the model and results of pieces before it
};

// As few pieces as the order of the nodes allows, each as large as it can be. Errors: the type of a tensor between two
// pieces is not known; an output is a weight.
Result<ModelChain> split_model(std::span<const std::byte> model, const std::string& folder, const LookInto& look);

}  // namespace polyphase::legal
