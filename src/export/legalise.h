// legalise: an ONNX model becomes one that another engine takes; what that engine takes already stays byte for byte.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "export/model_facts.h"
#include "export/rule.h"

namespace polyphase::legal {

struct LegaliseOptions {
  const ExportTarget* target = nullptr;
  std::set<std::string, std::less<>> without_rules;  // by name
  std::optional<std::filesystem::path> folder;       // of files that hold weights
};

// One use of a rule. A node that several rules rewrite gives several.
struct ExportChange {
  std::string node;
  std::string rule;
  std::string why;     // what the target cannot take
  std::string before;  // "ConvTranspose{strides: [2, 2], output_padding: [1, 1]}"
  std::string after;   // "Pad, ConvTranspose{…}"
  // How far results may be apart, in units of the largest: of several nodes each rounds. 0: they are equal.
  double tolerance = 0;
};

// A rewritten node alone, and what stands in its place, as ONNX models whose inputs are the node's operands. Where x is
// large and its size does not matter, it is smaller here.
struct ChangedNode {
  std::string node;
  std::string before;
  std::string after;
  double tolerance = 0;          // the largest of its changes
  std::optional<Error> unknown;  // why the two cannot be made
};

struct Legalised {
  std::string model;
  std::vector<ExportChange> changes;
  std::vector<ChangedNode> parts;
  std::int64_t nodes = 0;                   // of the main graph, before
  std::vector<std::string> external_files;  // that the model names, relative to its folder
};

// A node that a rule applies to.
struct TargetFinding {
  std::string node;
  std::string operation;
  const ExportRule* rule = nullptr;
  std::string why;
};
// Every node, those of subgraphs too, that the target does not take, with the first rule that applies to it. Errors: as
// legalise.
Result<std::vector<TargetFinding>> find_refused(std::span<const std::byte> model, TensorFacts facts,
                                                const LegaliseOptions& options);

// `facts` are the types of the model's tensors, by name. Errors: those of parsing; a rule that the model needs cannot
// be followed, with the node.
Result<Legalised> legalise(std::span<const std::byte> model, TensorFacts facts, const LegaliseOptions& options);

}  // namespace polyphase::legal
