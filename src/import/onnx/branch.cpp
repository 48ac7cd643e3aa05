// If: the branch taken in place where the condition is fixed, else an `if` node that owns both branches as graphs.
//
// Both graphs have the same inputs: every outer value that either of them uses. Constants and sizes are not passed in;
// each graph makes its own.
#include <algorithm>
#include <unordered_set>

#include "import/onnx/importer.h"
#include "import/onnx/node_context.h"
#include "onnx/onnx.pb.h"
#include "wire/printable.h"

namespace polyphase {
namespace {

onnx::GraphProto* branch_of(onnx::NodeProto& node, std::string_view attribute_name) {
  for (auto& attribute : *node.mutable_attribute()) {
    if (attribute.name() == attribute_name && attribute.has_g()) return attribute.mutable_g();
  }
  return nullptr;
}

// Visits this graph and all graphs below it.
template <typename F>
void for_each_graph(const onnx::GraphProto& root, F&& f) {
  std::vector<const onnx::GraphProto*> open{&root};
  while (!open.empty()) {
    const onnx::GraphProto* graph = open.back();
    open.pop_back();
    f(*graph);
    for (const auto& node : graph->node()) {
      for (const auto& attribute : node.attribute()) {
        if (attribute.has_g()) open.push_back(&attribute.g());
        for (const auto& below : attribute.graphs()) open.push_back(&below);
      }
    }
  }
}

// Names used in the graph and not given there, in the order of their first use.
void collect_free_names(const onnx::GraphProto& root, std::vector<std::string_view>& free,
                        std::unordered_set<std::string_view>& known) {
  std::unordered_set<std::string_view> given;
  for_each_graph(root, [&](const onnx::GraphProto& graph) {
    for (const auto& node : graph.node()) given.insert(node.output().begin(), node.output().end());
    for (const auto& tensor : graph.initializer()) given.insert(tensor.name());
    for (const auto& tensor : graph.sparse_initializer()) given.insert(tensor.values().name());
    for (const auto& input : graph.input()) given.insert(input.name());
  });
  const auto use = [&](std::string_view name) {
    if (!name.empty() && given.count(name) == 0 && known.insert(name).second) free.push_back(name);
  };
  for_each_graph(root, [&](const onnx::GraphProto& graph) {
    for (const auto& node : graph.node()) std::for_each(node.input().begin(), node.input().end(), use);
    for (const auto& output : graph.output()) use(output.name());
  });
}

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

void Importer::note_missing_below(const onnx::GraphProto& root, const Body& body) {
  for_each_graph(root, [&](const onnx::GraphProto& graph) {
    for (const auto& node : graph.node()) {
      const std::string domain(domain_of(node.domain()));
      const auto opset = body.opsets->find(domain);
      const bool is_known =
          functions_.find(node) != nullptr || table_.find(domain, node.op_type()) != nullptr || node.op_type() == "If";
      if (!is_known)
        missing_.add(domain, node.op_type(), opset == body.opsets->end() ? 1 : opset->second,
                     body.prefix + wire::printable(node.name()));
    }
  });
}

Result<void> Importer::branch(onnx::NodeProto& node, const std::string& name, Scope& scope) {
  bool missing = false;
  TRY(const Values operands, operands_of(node, scope, missing));
  if (operands.size() != 1)
    return broken_rule("If takes one operand, the condition; found " + std::to_string(operands.size()) + ".");
  onnx::GraphProto* then_graph = branch_of(node, "then_branch");
  onnx::GraphProto* else_graph = branch_of(node, "else_branch");
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
    Meaning meaning;
    TRY(meaning.value, value_of(taken.output(i).name(), inner, meaning.missing));
    if (meaning.value == nullptr && !meaning.missing)
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
  for (const Capture& capture : captures) {
    Meaning meaning = capture.meaning;
    if (capture.as_input) {
      meaning.value = region->add_input(wire::printable(capture.name, 200), capture.meaning.value->type);
    } else if (meaning.value != nullptr) {
      meaning.value = region->must_add("dims",
                                       Attributes({{"values", *capture.meaning.value->contents},
                                                   {"scalar", capture.meaning.value->type.shape.rank() == 0}}),
                                       {}, wire::printable(capture.name, 200));
    }
    TRY_VOID(define(capture.name, std::move(meaning), inner));
  }
  TRY_VOID(add_initializers(graph, inner));
  TRY_VOID(translate_graph(graph, inner));
  for (const auto& output : graph.output()) {
    TRY(Value * value, value_of(output.name(), inner, missing));
    if (value == nullptr && !missing) return broken_rule("a result of a branch has no name.");
    if (value != nullptr) region->add_output(value, output.name());
  }
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
  std::vector<Capture> captures;
  Values operands{condition};
  for (const std::string_view free_name : free) {
    TRY(Meaning * found, look_up(free_name, scope));
    Capture capture{free_name, *found, false};
    Value* value = found->value;
    if (value != nullptr && value->producer != nullptr && value->producer->constant() != nullptr) {
      capture.meaning = {};
      capture.meaning.tensor = *value->producer->constant();
    } else if (value != nullptr) {
      const bool is_sizes =
          value->contents.has_value() && value->type.dtype == DType::i64 && value->type.shape.rank() <= 1;
      capture.as_input = !is_sizes;
      if (!is_sizes) operands.push_back(value);
    }
    captures.push_back(std::move(capture));
  }
  bool missing = false;
  std::vector<std::unique_ptr<Graph>> regions(2);
  TRY(regions[0], make_region(then_graph, name + "/then", captures, scope, missing));
  TRY(regions[1], make_region(else_graph, name + "/else", captures, scope, missing));
  if (missing) return define_missing(node, scope);
  TRY(Node * made, scope.graph->add("if", {}, std::move(operands), name, nullptr, std::move(regions)));
  for (int i = 0; i < node.output_size(); ++i) {
    if (node.output(i).empty()) continue;
    Meaning meaning;
    meaning.value = made->output(static_cast<std::size_t>(i));
    TRY_VOID(define(node.output(i), std::move(meaning), scope));
  }
  return {};
}

}  // namespace polyphase
