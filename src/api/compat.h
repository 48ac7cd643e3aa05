// The parts of compat: what flows through a model on random inputs, and one operator alone.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "api/compile.h"
#include "api/layers.h"
#include "polyphase/diagnose.h"

namespace polyphase::api {

// One set of numbers for the model's open sizes.
using OpenSizes = DimBindings;

// Runs the model on random inputs and keeps the tensors that tests need.
class Flow {
 public:
  // Compiles the model with `wanted`, values of its main graph, as outputs. Where that fails the interpreter runs the
  // model instead, and `notes` says so.
  static Result<Flow> create(const Graph& graph, std::vector<const polyphase::Value*> wanted,
                             std::shared_ptr<const Workshop> workshop, const CompileOptions& compile,
                             const CompatOptions& options, std::vector<std::string>& notes);

  // The sets that are tested: of the options where they name sizes, else the least, a middle and an odd one near to
  // which the model's own checks hold. A model without open sizes has one empty set. Errors: an option names no size.
  Result<std::vector<OpenSizes>> size_sets(std::vector<std::string>& notes) const;

  struct Seen {
    DimBindings bindings;  // of all symbols that the inputs and the tensors tell
    std::unordered_map<const polyphase::Value*, polyphase::Tensor> tensors;
    std::string failure;  // why some are not there; empty: none is missing
  };
  Result<Seen> run(const OpenSizes& sizes) const;

 private:
  Result<std::vector<std::vector<std::int64_t>>> input_sizes(const OpenSizes& sizes) const;
  Result<void> fits(const OpenSizes& sizes) const;
  std::optional<OpenSizes> choose(int which, std::vector<std::string>& notes) const;

  const Graph* graph_ = nullptr;
  std::vector<const polyphase::Value*> wanted_;
  std::size_t first_wanted_ = 0;  // among the engine's outputs
  const CompatOptions* options_ = nullptr;
  std::vector<Port> ports_;
  std::shared_ptr<polyphase::Session> session_;  // null: the interpreter runs
};

// Gives `bindings` what the sizes of a tensor of this shape tell.
void learn_sizes(const Shape& shape, const std::vector<std::int64_t>& sizes, DimBindings& bindings);

// An operator and what flowed into it: operand by operand; invalid where the node has none.
struct NodeUse {
  const Node* node = nullptr;
  std::vector<polyphase::Tensor> operands;
  std::vector<bool> constant;
  const DimBindings* bindings = nullptr;
};

// The operator alone, compiled once for all sizes where its shapes allow that.
class Trial {
 public:
  Trial(std::shared_ptr<const Workshop> workshop, const CompileOptions& compile, const CompatOptions& options)
      : workshop_(std::move(workshop)), compile_(compile), options_(options) {}
  // Fills in everything but `sizes`.
  void run(const NodeUse& use, CompatCase& result);

 private:
  Result<void> prepare(const NodeUse& use);
  struct Built;

  std::shared_ptr<const Workshop> workshop_;
  const CompileOptions& compile_;
  const CompatOptions& options_;
  std::shared_ptr<const Built> open_;  // serves further sizes
};

// The node alone as a graph whose inputs are the operands that are no constants, and those operands. `open`: its sizes
// stay open; false where they cannot, or where it has none.
struct CutNode {
  std::unique_ptr<Graph> graph;
  std::vector<std::size_t> inputs;  // which operands they are
  bool open = false;
};
Result<CutNode> cut_node(const NodeUse& use, const Registry& registry, bool open);

}  // namespace polyphase::api
