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
  bool missing = false;                 // the result of an operator that we lack
  std::shared_ptr<Error> problem = {};  // a result that we do not compute
};

// "torch.ops.aten.relu.default" → ("aten", "relu.default"), printable.
std::pair<std::string, std::string> split_target(const std::string& target);

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
  Result<void> assert_condition(const ProgramGraph& graph, const ProgramNode& node);
  Result<bool> inline_graph(const ProgramNode& node);
  Result<void> define_results(const ProgramGraph& graph, const ProgramNode& node, const AtenConverter& converter,
                              const Values& results);
  Result<void> define_missing(const ProgramNode& node);
  Result<void> refuse(const ProgramNode& node, Error error);
  Result<void> check_result(const ProgramTensor& declared, const Value& value);
  Result<void> check_aliases(const std::string& written) const;
  void note_last_uses(const ProgramGraph& graph);

  // Arguments.
  Result<Value*> value_of(const std::string& name, bool& missing);
  Result<AtenScalar> scalar_of(const ProgramGraph& graph, const ProgramItem& item);
  Result<AtenArgument> argument_of(const ProgramGraph& graph, const AtenParameter& parameter,
                                   const ProgramArgument& argument, bool& missing);

  ProgramArchive& archive_;
  const TorchProgram& program_;
  const Registry& registry_;
  const ImportOptions& options_;
  const AtenTable table_;
  std::unique_ptr<Graph> graph_;
  std::unordered_map<std::string, ProgramMeaning> names_;
  std::map<std::string, Dim, std::less<>> symbols_;        // of the program, by what they became
  std::set<std::string, std::less<>> used_symbols_;        // names in our graph
  std::map<std::string, Value*, std::less<>> weights_;     // of the module that are in the graph
  std::unordered_map<std::string, std::size_t> last_use_;  // of a name, as the number of a node; outputs count as last
  std::size_t at_ = 0;                                     // the number of the node under way
  int storages_ = 0;
  int depth_ = 0;
  struct MissingOperator {
    std::int64_t nodes = 0;
    std::string first_node;
  };
  std::map<std::string, MissingOperator, std::less<>> missing_;
  std::vector<std::string> warnings_;
  std::vector<ImportedTensor> tensors_;
};

}  // namespace polyphase
