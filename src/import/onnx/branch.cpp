// If: the branch taken in place where the condition is fixed, else an `if` node that owns both branches as graphs with
// the same inputs: every outer value that either of them uses.
#include <unordered_set>

#include "import/compose/regions.h"
#include "import/onnx/importer.h"
#include "import/onnx/node_context.h"
#include "import/onnx/subgraph.h"

namespace polyphase {
namespace {

Result<void> check_branch(const onnx::NodeProto& node, const onnx::GraphProto* branch, const char* which) {
  if (branch == nullptr) return broken_rule(std::string("the attribute ") + which + " (a graph) is missing.");
  if (branch->input_size() != 0)
    return broken_rule(std::string(which) + " has inputs of its own; the branches of If have none.");
  if (branch->output_size() < node.output_size()) {
    return broken_rule(std::string(which) + " gives " + std::to_string(branch->output_size()) +
                       " results, the node has " + std::to_string(node.output_size()) + ".");
  }
  return {};
}

}  // namespace

Result<void> Importer::branch(onnx::NodeProto& node, const std::string& name, Scope& scope) {
  bool missing = false;
  TRY(const Values operands, operands_of(node, scope, missing));
  if (operands.size() != 1)
    return broken_rule("If takes one operand, the condition; found " + std::to_string(operands.size()) + ".");
  onnx::GraphProto* then_graph = subgraph_of(node, "then_branch");
  onnx::GraphProto* else_graph = subgraph_of(node, "else_branch");
  TRY_VOID(check_branch(node, then_graph, "then_branch"));
  TRY_VOID(check_branch(node, else_graph, "else_branch"));
  if (missing) {
    note_missing_below(*then_graph, *scope.body);
    note_missing_below(*else_graph, *scope.body);
    return define_missing(node, scope);
  }
  Value* condition = operands.front();
  const auto count = condition->type.shape.element_count().constant();
  if (condition->type.dtype != DType::boolean || (count.has_value() && *count != 1)) {
    return broken_rule("the condition of If must be one bool, found " + condition->type.text() + ".");
  }
  ++depth_;
  const auto fixed = fixed_.of(condition);
  if (fixed.has_value()) {
    const bool taken = load_integer(fixed->view().data, DType::boolean) != 0;
    TRY_VOID(inline_branch(node, taken ? *then_graph : *else_graph, scope));
  } else {
    TRY_VOID(make_branch(node, *then_graph, *else_graph, name, condition, scope));
  }
  --depth_;
  return {};
}

Result<void> Importer::inline_branch(onnx::NodeProto& node, onnx::GraphProto& taken, Scope& scope) {
  Scope inner{scope.graph, scope.body, &scope, {}};
  TRY_VOID(add_initializers(taken, inner));
  TRY_VOID(translate_graph(taken, inner));
  for (int i = 0; i < node.output_size(); ++i) {
    if (node.output(i).empty()) continue;
    bool missing = false;
    TRY(Meaning meaning, meaning_of(taken.output(i).name(), inner, missing));
    if (!meaning.is_there() && !meaning.is_empty_optional && !missing)
      return broken_rule("result " + std::to_string(i) + " of the branch taken has no name.");
    TRY_VOID(define(node.output(i), std::move(meaning), scope));
  }
  return {};
}

Result<std::unique_ptr<Graph>> Importer::make_region(onnx::GraphProto& graph, std::string region_name,
                                                     const std::vector<Capture>& captures, const Scope& scope,
                                                     bool& missing) {
  auto region = std::make_unique<Graph>(registry_);
  region->name = std::move(region_name);
  Scope inner{region.get(), scope.body, nullptr, {}};
  TRY_VOID(define_captures(captures, inner));
  TRY_VOID(fill_region(graph, inner, missing));
  return region;
}

Result<void> Importer::make_branch(onnx::NodeProto& node, onnx::GraphProto& then_graph, onnx::GraphProto& else_graph,
                                   const std::string& name, Value* condition, Scope& scope) {
  std::vector<std::string_view> free;
  std::unordered_set<std::string_view> known;
  collect_free_names(then_graph, free, known);
  collect_free_names(else_graph, free, known);
  if (condition->type.shape.rank() != 0) {
    TRY(Node * scalar,
        scope.graph->add("reshape", Attributes({{"shape", std::vector<Dim>{}}}), {condition}, name + "/condition"));
    condition = scalar->output();
  }
  TRY(const std::vector<Capture> captures, captures_of(free, scope));
  Values operands{condition};
  for (const Capture& capture : captures) {
    if (capture.as_input) operands.push_back(capture.meaning.value);
  }
  bool missing = false;
  std::vector<std::unique_ptr<Graph>> regions(2);
  TRY(regions[0], make_region(then_graph, name + "/then", captures, scope, missing));
  TRY(regions[1], make_region(else_graph, name + "/else", captures, scope, missing));
  if (missing) return define_missing(node, scope);
  if (regions[0]->outputs().size() != regions[1]->outputs().size())
    return broken_rule("the branches give " + std::to_string(regions[0]->outputs().size()) + " and " +
                       std::to_string(regions[1]->outputs().size()) + " results.");
  TRY(Attributes attributes,
      attributes_of_branches(*regions[0], *regions[1], [&] { return Dim::symbol(fresh_symbol(name)); }));
  TRY(Node * made,
      scope.graph->add("if", std::move(attributes), std::move(operands), name, nullptr, std::move(regions)));
  return define_results(node, *made, 0, scope);
}

}  // namespace polyphase
