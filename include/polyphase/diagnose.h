// Polyphase: what stands in the way of a model, and where its numbers go wrong. Over polyphase.h; nothing here is
// needed to run an engine.
#pragma once

#include "polyphase/polyphase.h"

namespace polyphase::api {

// ---------------------------------------------------------------- check

// Why some nodes of an operator cannot be taken.
struct CheckProblem {
  Error error;  // of the first such node
  std::int64_t nodes = 0;
};

// One type of operator that the model uses, nodes inside functions and branches included.
struct CheckedOperator {
  std::string domain;  // "" is ONNX's own
  std::string name;
  std::int64_t opset = 0;    // of its domain, as the model imports it
  int version = 0;           // the version of the operator that this opset means; 0: not known
  bool is_function = false;  // the model brings its definition along
  std::int64_t nodes = 0;
  std::int64_t nodes_refused = 0;      // 0: all can be compiled
  bool is_missing = false;             // Polyphase does not have the operator
  std::string first_node;              // in the order of the model
  std::string advice;                  // of a missing one: what to use instead
  std::vector<CheckProblem> problems;  // of one that is there: the first few kinds of refusal
};

// A size that stays open when the model is compiled.
struct CheckedSize {
  std::string name;
  SizeRange range;
  std::vector<std::string> inputs;  // "x[2]": where the caller's arrays give it
  std::string born_at;              // the node that reads it from data; empty: the inputs' shapes give it
  std::int64_t values = 0;          // tensors whose shape depends on it
};

// Steps that will run on an operator's plain loops.
struct CheckedSlow {
  std::string operation;  // "gather"
  std::string operands;   // types of the first: "f32[1, 3, H, W], i64[4]"
  std::int64_t steps = 0;
  std::string first_node;
  std::vector<std::string> reasons;  // what each kernel says against the first: "ROW: REASON"
};

struct CheckReport {
  std::string model_name;
  std::string producer;
  std::int64_t opset = 0;
  std::vector<Port> inputs;
  std::vector<Port> outputs;  // of a model that lacks something: those that can be computed
  std::vector<CheckedOperator> operators;
  std::vector<CheckedSize> sizes;
  std::int64_t run_time_checks = 0;  // relations between open sizes, tested whenever sizes change
  std::int64_t steps = 0;            // the engine would have
  std::vector<CheckedSlow> slow;
  std::map<std::string, std::int64_t> dtypes;  // tensors of each element type: {"f32", 120}
  std::vector<std::string> notes;              // on types, and the importer's warnings
  std::vector<Error> errors;                   // what else would end the compilation
  double seconds = 0;

  // It would compile and run.
  bool ok() const;
};

// Looks at a model without compiling it: no weight is packed, and what is missing is counted instead of ending the
// look. `options` as for compile; the passes run, because they decide which kernels are asked. Errors: the file cannot
// be read or is no sound model, or an option does not fit it.
Result<CheckReport> check(const std::string& path, const CompileOptions& options = {});

}  // namespace polyphase::api
