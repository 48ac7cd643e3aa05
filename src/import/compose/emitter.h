// Emitter: adds the IR nodes that stand for one node of somebody else's model, all under its name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/dim.h"
#include "base/result.h"
#include "graph/graph.h"

namespace polyphase {

using Values = std::vector<Value*>;

class Emitter {
 public:
  Emitter(Graph& graph, std::string name) : graph_(graph), name_(std::move(name)) {}

  const std::string& name() const { return name_; }
  Graph& graph() { return graph_; }

  // Adds an IR node and returns its first result.
  Result<Value*> emit(std::string_view op_name, Attributes attributes, Values operands);
  // The same, for operators with several results.
  Result<Values> emit_all(std::string_view op_name, Attributes attributes, Values operands);
  Value* constant(Tensor tensor);
  Value* scalar(DType dtype, double value);
  Value* sizes_as_data(std::vector<Dim> sizes, bool scalar = false);

 private:
  Graph& graph_;
  std::string name_;
};

// Of an import that a survey could not complete: results that nothing in the graph reads become its outputs.
void output_what_nobody_reads(Graph& graph);

// It is legal and we lack it, with what works instead.
Error lacking(std::string message, std::string hint);

}  // namespace polyphase
