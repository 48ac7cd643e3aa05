// Polyphase: models made fit for the engines of others. What such an engine refuses or gets wrong is rewritten into
// what it takes; every other node stays byte for byte. Over polyphase.h; docs/export_rules.md lists the rules.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "polyphase/polyphase.h"

namespace polyphase::api {

struct ExportOptions {
  std::string target;  // "onnx", "onnxruntime": export_targets() lists them
  // The opset of ONNX's own operators that the model is to be written in; 0: the model's own. docs/opsets.md lists what
  // is rewritten.
  std::int64_t opset = 0;
  // Rules that are left out, by name: to see what the target says without them.
  std::set<std::string> without_rules;
  // Called as stages begin.
  std::function<void(std::string_view stage, double done)> progress;
};

// One use of a rule. A node that several rules rewrite has several.
struct ExportedChange {
  std::string node;
  std::string rule;
  std::string why;     // what the target cannot take
  std::string before;  // "ConvTranspose{strides: [2, 2], output_padding: [1, 1]}"
  std::string after;   // "Pad, ConvTranspose{…}"
  // How far the node's results may be from those before, in units of the largest: where several nodes stand for one,
  // each of them rounds. 0: they are equal.
  double tolerance = 0;
};

struct ExportReport {
  std::string target;
  std::int64_t opset = 0;  // of what came out
  std::vector<ExportedChange> changes;
  std::int64_t nodes = 0;  // of the main graph, before
  std::int64_t rewritten_nodes = 0;
  // How it was made sure that nothing else changed: both models, or each rewritten node and what stands in its place,
  // run in the interpreter on inputs of whole numbers, and every output is equal bit for bit; where a change has a
  // tolerance, the nodes are compared, and that one within it.
  bool whole_model_compared = false;
  std::int64_t nodes_compared = 0;
  std::int64_t runs = 0;  // of sizes, where some are open
  std::vector<std::string> notes;
  double seconds = 0;
};

struct ExportedModel {
  std::string model;  // an ONNX file
  ExportReport report;
  std::string folder;                       // of the model that was given
  std::vector<std::string> external_files;  // that hold weights, relative to it
};

// Errors: those of reading the file; invalid_argument: no such target or rule; unsupported: the file is no ONNX model,
// a rule cannot be followed at a node, or what came out could not be compared.
Result<ExportedModel> export_model(const std::string& path, const ExportOptions& options);

// Writes the model, which takes its name when it is complete, and copies the files that hold its weights beside it
// unless they are there. Errors: io; invalid_argument: other bytes lie where such a file must go.
Result<void> save_exported(const ExportedModel& exported, const std::string& path);

// A node that a target does not take as it is.
struct ExportFinding {
  std::string node;
  std::string operation;
  std::string rule;
  std::string why;
  std::string doc;       // of the rule: what becomes of the node
  bool rewrites = true;  // false: no rewrite helps, and the export refuses the model
};
// What a target would refuse or get wrong of a model, in the order of its nodes; nothing is written. Errors: as
// export_model, but for what only a rewrite can meet.
Result<std::vector<ExportFinding>> check_for(const std::string& path, const std::string& target);

struct ExportRuleInfo {
  std::string name;
  std::string operation;  // "ConvTranspose"
  std::string versions;
  std::string source;
  std::string doc;
  bool rewrites = true;  // false: the export refuses such a node
};
struct ExportTargetInfo {
  std::string name;
  std::string title;
  std::string checked;
  std::vector<ExportRuleInfo> rules;
};
// All targets and their rules, in the order in which the rules are tried.
std::vector<ExportTargetInfo> export_targets();

// A version of one of ONNX's operators that changed its form or its meaning, and what an export does about that.
struct OpsetStepInfo {
  std::string operation;
  std::int64_t version = 0;  // the opset that brought it
  std::string doc;           // what is so from that opset on
  bool up = false;           // a rule of its own goes there
  bool down = false;         // and back
  double tolerance = 0;      // of the way back
};
// In the order of their families.
std::vector<OpsetStepInfo> opset_steps();

}  // namespace polyphase::api
