// Importer: one import under way: the model, the graph so far, and what all bodies share.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "graph/graph.h"
#include "import/compose/fixed_values.h"
#include "import/onnx/converter.h"
#include "import/onnx/functions.h"
#include "import/onnx/import_onnx.h"
#include "import/onnx/missing.h"
#include "import/onnx/scope.h"
#include "wire/external_data.h"
#include "wire/onnx_tensor.h"

namespace onnx {
class AttributeProto;
class FunctionProto;
class GraphProto;
class ModelProto;
class NodeProto;
class SparseTensorProto;
class TensorProto;
class ValueInfoProto;
}  // namespace onnx

namespace polyphase {

// A name of an outer body that a region uses.
struct Capture {
  std::string_view name;
  Meaning meaning;
  bool as_input = false;  // else the region makes its own copy: a constant, or sizes
};

// What Loop and Scan have in common: a body whose inputs from `first_input` on are carried, then slices of other
// tensors.
struct LoopParts {
  struct Slice {
    Value* of = nullptr;
    std::int64_t axis = 0;
    bool reversed = false;
  };
  onnx::GraphProto* body = nullptr;
  bool counts = false;  // the body takes the iteration and the condition first, and gives the condition
  Values carried;
  std::vector<Slice> slices;
  Value* trips = nullptr;      // null: no limit
  Value* condition = nullptr;  // null: none, and the body's is not read
};

// Operators that the importer handles itself, since they own graphs or their operands are no tensors.
bool is_structural(std::string_view op_type);

class Importer {
 public:
  Importer(onnx::ModelProto& model, wire::LargeData data, const Registry& registry, const ImportOptions& options,
           const std::optional<std::filesystem::path>& folder)
      : model_(model), registry_(registry), options_(options), external_(folder, std::move(data)) {}

  Result<ImportedModel> run();

  // For NodeContext and the converters.
  Result<Tensor> take(onnx::TensorProto& proto);  // again and again: functions are inlined more than once
  Result<Tensor> take(onnx::SparseTensorProto& proto);
  FixedValues& fixed() { return fixed_; }
  std::string fresh_symbol(std::string_view wish);
  // What `bind` made of a value; null until then.
  Value*& bound(Value* value) { return bound_[value]; }
  void warn(std::string text);

 private:
  // importer.cpp: the model around the nodes.
  Result<void> read_versions(ImportedModel& imported);
  Result<void> add_inputs(Scope& scope);
  Result<void> add_initializers(onnx::GraphProto& graph, Scope& scope);
  Result<void> add_outputs(Scope& scope);
  void compare_declared_type(const onnx::ValueInfoProto& declared, const Value& value);

  // translate.cpp: the nodes.
  Result<void> translate_graph(onnx::GraphProto& graph, Scope& scope);
  Result<void> translate_body(onnx::FunctionProto& function, Scope& scope);
  Result<void> translate_node(onnx::NodeProto& node, Scope& scope, std::size_t index);
  Result<void> convert(onnx::NodeProto& node, const Converter& converter, int version, const std::string& name,
                       Scope& scope);
  Result<void> call(onnx::NodeProto& node, onnx::FunctionProto& function, const std::string& name, Scope& scope);
  Result<void> branch(onnx::NodeProto& node, const std::string& name, Scope& scope);
  Result<void> inline_branch(onnx::NodeProto& node, onnx::GraphProto& taken, Scope& scope);
  Result<void> make_branch(onnx::NodeProto& node, onnx::GraphProto& then_graph, onnx::GraphProto& else_graph,
                           const std::string& name, Value* condition, Scope& scope);
  Result<std::unique_ptr<Graph>> make_region(onnx::GraphProto& graph, std::string region_name,
                                             const std::vector<Capture>& captures, const Scope& scope, bool& missing);

  // loop.cpp, scan.cpp
  Result<void> loop(onnx::NodeProto& node, const std::string& name, Scope& scope);
  Result<void> unroll(onnx::NodeProto& node, onnx::GraphProto& body, std::int64_t trips, const std::string& name,
                      Scope& scope);
  Result<void> scan(onnx::NodeProto& node, const std::string& name, int version, Scope& scope);
  Result<Node*> make_loop(LoopParts parts, const std::string& name, Scope& scope, bool& missing);
  Result<std::unique_ptr<Graph>> make_body(const LoopParts& parts, const std::vector<Type>& types,
                                           const std::vector<Capture>& captures, const std::string& name,
                                           const Scope& scope, bool& missing);

  // sequence.cpp
  Result<void> sequence(onnx::NodeProto& node, const Converter& converter, int version, const std::string& name,
                        Scope& scope);
  // Like value_of, for names that may stand for a sequence or an optional.
  Result<Meaning> meaning_of(std::string_view name, Scope& scope, bool& missing);
  bool is_of_sequences(const onnx::NodeProto& node, Scope& scope);

  // subgraph.cpp
  Result<std::vector<Capture>> captures_of(const std::vector<std::string_view>& free, Scope& scope);
  Result<void> define_captures(const std::vector<Capture>& captures, Scope& inner);
  Result<void> fill_region(onnx::GraphProto& graph, Scope& inner, bool& missing);
  // Names the node's results, the first of which is result `first` of `made`.
  Result<void> define_results(const onnx::NodeProto& node, const Node& made, std::size_t first, Scope& scope);
  void note_missing_below(const onnx::GraphProto& graph, const Body& body);
  Result<std::vector<NamedAttribute>> attributes_of(onnx::NodeProto& node, const Scope& scope) const;
  Result<Values> operands_of(const onnx::NodeProto& node, Scope& scope, bool& missing);
  Result<Meaning*> look_up(std::string_view name, Scope& scope);
  Result<Value*> value_of(std::string_view name, Scope& scope, bool& missing);
  Result<void> define(std::string_view name, Meaning meaning, Scope& scope);
  Result<void> define_missing(const onnx::NodeProto& node, Scope& scope);
  Result<void> refuse(const onnx::NodeProto& node, Error error, Scope& scope);
  void finish_survey(ImportedModel& imported);

  onnx::ModelProto& model_;
  const Registry& registry_;
  const ImportOptions& options_;
  wire::ExternalData external_;
  wire::DenseBudget dense_budget_;
  ConverterTable table_;
  FunctionTable functions_;
  MissingOperators missing_;
  FixedValues fixed_;
  Opsets opsets_;
  std::unique_ptr<Graph> graph_;
  std::set<std::string, std::less<>> symbols_;
  std::unordered_map<const onnx::TensorProto*, Tensor> tensors_;
  std::unordered_map<const onnx::SparseTensorProto*, Tensor> sparse_tensors_;
  std::unordered_map<const Value*, Value*> bound_;
  std::vector<std::string> warnings_;
  std::vector<ImportedTensor> named_;
  const Scope* main_scope_ = nullptr;
  std::vector<ImportedWeight> weights_;
  std::set<std::string, std::less<>> used_weights_;  // names of the main graph that anything looked up
  std::vector<std::unique_ptr<Graph>> discarded_;    // tries: others remember values of theirs by address
  int depth_ = 0;                                    // bodies inside one another
  std::int64_t held_in_sequences_ = 0;               // entries of all lists made so far
};

}  // namespace polyphase
