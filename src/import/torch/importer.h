// ProgramImporter: one import of a program under way.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "graph/graph.h"
#include "import/compose/fixed_values.h"
#include "import/imported_model.h"
#include "import/torch/archive.h"
#include "import/torch/aten_node.h"
#include "import/torch/converter.h"
#include "import/torch/program.h"
#include "import/torch/sym_expr.h"

namespace polyphase {

// What a name of the program stands for.
struct ProgramMeaning {
  Value* value = nullptr;               // null while a weight waits for its first use
  std::string weight = {};              // the weight's name in the module
  int storage = -1;                     // names with one number share memory in PyTorch
  const ProgramNode* view = nullptr;    // the node that made it a view of another name, if it did
  bool missing = false;                 // the result of an operator that we lack
  std::shared_ptr<Error> problem = {};  // a result that we do not compute
};

using ProgramMeanings = std::vector<ProgramMeaning>;
struct ProgramCall;
struct ProgramLoop;

// One graph of the program under way: the program's own, or one that a node owns. Names are the graph's own.
struct ProgramScope {
  Graph* graph = nullptr;         // where its nodes go
  ProgramScope* outer = nullptr;  // of the node that owns it
  std::unordered_map<std::string, ProgramMeaning> names = {};
  std::unordered_map<std::string, std::size_t> last_use = {};  // of a name, as the number of a node; outputs: SIZE_MAX
  std::size_t at = 0;                                          // the number of the node under way
  bool autocast = false;                                       // operands take the dtype that results are declared in
};

class ProgramImporter {
 public:
  ProgramImporter(ProgramArchive& archive, const TorchProgram& program, const Registry& registry,
                  const ImportOptions& options)
      : archive_(archive), program_(program), registry_(registry), options_(options) {}

  Result<ImportedModel> run();

 private:
  // importer.cpp: the program around the nodes.
  Result<void> add_inputs();
  Result<void> add_input(const ProgramInput& input, const std::string& name);
  Result<Shape> input_shape(const ProgramTensor& tensor, const std::string& name);
  Result<Dim> input_size(const ProgramNumber& size, const std::string& input, int axis, const std::vector<Dim>* asked);
  Result<void> check_options() const;
  Result<void> add_guards();
  Result<void> add_outputs();
  Result<void> list_weights();
  // The name under which the weight may be exchanged in the engine; empty: it may not.
  std::string weight_in_use(const std::string& target);
  Result<void> refuse_changes() const;
  Result<Dim> meaning_of_symbol(std::string_view symbol);
  DimRange range_of(std::string_view symbol) const;
  Error missing_error() const;
  void finish_survey(ImportedModel& imported);

  // translate.cpp: the nodes.
  Result<void> translate(const ProgramGraph& graph);
  Result<void> translate_node(const ProgramGraph& graph, const ProgramNode& node);
  Result<void> convert(const ProgramGraph& graph, const ProgramNode& node, const AtenConverter& converter,
                       const std::string& name);
  static Result<Values> converted(AtenNode& node);
  Result<void> assert_condition(const ProgramGraph& graph, const ProgramNode& node);
  Result<void> refuse(const ProgramNode& node, Error error);
  static void note_last_uses(const ProgramGraph& graph, ProgramScope& scope);

  // arguments.cpp: what they are given.
  Result<Value*> value_of(const std::string& name, bool& missing);
  Result<AtenScalar> scalar_of(const ProgramGraph& graph, const ProgramItem& item, Emitter& node);
  Result<AtenArgument> argument_of(const ProgramGraph& graph, const AtenParameter& parameter,
                                   const ProgramArgument& argument, bool& missing, Emitter& node);
  Result<std::map<std::string, AtenArgument, std::less<>>> arguments_of(const ProgramGraph& graph,
                                                                        const ProgramNode& node,
                                                                        const AtenConverter& converter, bool& missing,
                                                                        Emitter& emitter);
  static Result<bool> holds_pairs(const ProgramGraph& graph, const std::string& name, const Value* value);
  static Result<void> cast_operands(std::map<std::string, AtenArgument, std::less<>>& arguments,
                                    const std::vector<AtenResult>& declared, Emitter& node);

  // results.cpp: what they give.
  Result<void> define_number(const ProgramGraph& graph, const ProgramItem& item, Value* value, Emitter& node);
  Result<void> define_results(const ProgramGraph& graph, const ProgramNode& node, const AtenConverter& converter,
                              const Values& results);
  Result<void> define_missing(const ProgramNode& node);
  Result<void> define_tensor(const ProgramGraph& graph, const std::string& name, ProgramMeaning meaning);
  Result<void> check_result(const ProgramTensor& declared, const Value& value);

  // write_back.cpp: writes through views: what a view was made of takes over what was written into the view.
  Result<void> check_aliases(const std::string& written) const;
  const std::string* viewed_by(const std::string& name) const;
  Result<void> write_back(const ProgramGraph& graph, const std::string& written, const std::string& node_name);
  Result<Value*> put_back(const ProgramGraph& graph, const ProgramNode& view, Value* base, Value* part,
                          const std::string& node_name);

  // higher_order.cpp: nodes that own graphs.
  Result<bool> translate_higher_order(const ProgramGraph& graph, const ProgramNode& node, const std::string& name);
  Result<ProgramCall> call_of(const ProgramGraph& graph, const ProgramNode& node, const std::string& name);
  Result<void> define_call(const ProgramGraph& graph, const ProgramNode& node, const ProgramMeanings& results);
  // The graph in the place of its node, or as a region of it.
  Result<ProgramMeanings> enter(const ProgramGraph& inner, const ProgramMeanings& given, Graph& into, bool autocast);
  Result<ProgramMeanings> inlined(const ProgramGraph& inner, const ProgramMeanings& given) {
    return enter(inner, given, *scope_->graph, scope_->autocast);
  }
  Result<ProgramMeanings> branch(const ProgramCall& call, const std::string& name);
  Result<Value*> condition_of(const ProgramGraph& graph, const ProgramItem& item, Emitter& emitter);

  // loops.cpp
  Result<ProgramMeanings> while_loop(const ProgramCall& call, const std::string& name);
  Result<ProgramMeanings> scan(const ProgramCall& call, const std::string& name, std::size_t carried);
  Result<ProgramMeanings> loop(const ProgramLoop& loop, const std::string& name);
  Result<ProgramMeanings> unrolled(const ProgramLoop& loop, std::int64_t trips, const std::string& name);

  // memories.cpp: where PyTorch keeps the elements.
  Result<Dim> number_of(const ProgramNumber& number);
  Result<std::vector<AtenMemory>> memories_of(const ProgramGraph& graph, const std::string& name);

  // regions.cpp
  Graph& new_region(std::string name);
  std::unique_ptr<Graph> finished(const Graph& region);
  Result<ProgramMeanings> add_owner(std::string_view op_name, Attributes attributes, Values operands,
                                    const std::string& name, const std::vector<Graph*>& regions);
  Result<ProgramMeanings> captured(const ProgramMeanings& given, Graph& region, Values* operands);
  Result<void> add_outputs(const ProgramMeanings& results, Graph& region);

  ProgramArchive& archive_;
  const TorchProgram& program_;
  const Registry& registry_;
  const ImportOptions& options_;
  const AtenTable table_;
  std::unique_ptr<Graph> graph_;
  ProgramScope main_;
  ProgramScope* scope_ = &main_;
  std::map<std::pair<const Graph*, std::string>, Value*> weights_;  // of the module that are in a graph
  std::map<std::string, Dim, std::less<>> symbols_;                 // of the program, by what they became
  std::map<std::string, Value*, std::less<>> reals_;                // symbolic floats that data tell, f64 of rank 0
  std::set<std::string, std::less<>> used_symbols_;                 // names in our graph
  FixedValues fixed_;
  std::vector<std::unique_ptr<Graph>> regions_;  // not yet a node's, or tries: fixed_ remembers values by address
  int storages_ = 0;
  int first_own_storage_ = 0;  // those below are inputs and weights
  std::int64_t nodes_ = 0;     // translated so far
  int depth_ = 0;
  struct MissingOperator {
    std::int64_t nodes = 0;
    std::string first_node;
  };
  std::map<std::string, MissingOperator, std::less<>> missing_;
  std::vector<std::string> warnings_;
  std::vector<ImportedTensor> tensors_;
  std::vector<ImportedWeight> exchangeable_;
  std::map<std::string, std::size_t, std::less<>> exchangeable_at_;  // by each name
};

}  // namespace polyphase
