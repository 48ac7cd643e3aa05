// The call graph of a model's functions, walked without recursion.
//
//   size(f) = sum over the nodes of f, subgraphs included, of 1 + size(callee)      saturating, so a doubling chain is
//   seen as huge depth(f) = 1 + max depth(callee)
#include "import/onnx/functions.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "onnx/onnx.pb.h"
#include "wire/printable.h"

namespace polyphase {
namespace {

constexpr std::int64_t enormous = INT64_C(1) << 60;

// The nodes of a list and of all subgraphs below them.
template <typename Nodes, typename F>
void for_each_node(const Nodes& nodes, F&& f) {
  std::vector<const onnx::GraphProto*> graphs;
  const auto visit = [&](const onnx::NodeProto& node) {
    f(node);
    for (const auto& attribute : node.attribute()) {
      if (attribute.has_g()) graphs.push_back(&attribute.g());
      for (const auto& graph : attribute.graphs()) graphs.push_back(&graph);
    }
  };
  for (const auto& node : nodes) visit(node);
  while (!graphs.empty()) {
    const onnx::GraphProto* graph = graphs.back();
    graphs.pop_back();
    for (const auto& node : graph->node()) visit(node);
  }
}

struct Measure {
  std::int64_t own = 0;                           // nodes
  std::vector<const onnx::FunctionProto*> calls;  // one entry per call
  std::size_t next = 0;                           // calls walked so far
  bool open = false;                              // on the path now
  bool done = false;
  std::int64_t size = 0;
  int depth = 1;
};

std::string called(const onnx::FunctionProto& function) { return wire::quoted_name(function.name()); }

Error too_many(std::int64_t max_nodes) {
  return Error{ErrorCode::unsupported,
               "the model has more than " + std::to_string(max_nodes) + " nodes once its functions are inlined.",
               "Export it without functions, or take nested calls apart."};
}

class CallGraph {
 public:
  explicit CallGraph(const FunctionTable& table) : table_(table) {}

  // Measures everything below `root`.
  Result<void> walk(const onnx::FunctionProto* root) {
    if (measure(root).done) return {};
    std::vector<const onnx::FunctionProto*> path{root};
    measure(root).open = true;
    while (!path.empty()) {
      Measure& here = measure(path.back());
      if (here.next == here.calls.size()) {
        here.size += here.own;
        here.open = false;
        here.done = true;
        const Measure done = here;
        path.pop_back();
        if (!path.empty()) add(measure(path.back()), done);
        continue;
      }
      const onnx::FunctionProto* callee = here.calls[here.next++];
      Measure& below = measure(callee);
      if (below.open) {
        return Error{ErrorCode::invalid_model,
                     "the function " + called(*callee) + " calls itself, directly or through others.",
                     "ONNX functions cannot be recursive: export the model again."};
      }
      if (below.done) {
        add(here, below);
      } else {
        if (path.size() >= static_cast<std::size_t>(max_call_depth)) return too_deep();
        below.open = true;
        path.push_back(callee);
      }
    }
    return measure(root).depth > max_call_depth ? Result<void>(too_deep()) : Result<void>();
  }

  std::int64_t size(const onnx::FunctionProto* function) { return measure(function).size; }

 private:
  static Error too_deep() {
    return Error{ErrorCode::unsupported,
                 "functions call functions more than " + std::to_string(max_call_depth) + " deep.",
                 "Inline them first: onnx.inliner.inline_local_functions(model)."};
  }

  static void add(Measure& caller, const Measure& callee) {
    caller.size = std::min(enormous, caller.size + callee.size);
    caller.depth = std::max(caller.depth, callee.depth + 1);
  }

  Measure& measure(const onnx::FunctionProto* function) {
    const auto [found, fresh] = measures_.try_emplace(function);
    Measure& result = found->second;
    if (fresh) {
      for_each_node(function->node(), [&](const onnx::NodeProto& node) {
        ++result.own;
        const onnx::FunctionProto* callee = table_.find(node);
        if (callee != nullptr) result.calls.push_back(callee);
      });
    }
    return result;
  }

  const FunctionTable& table_;
  std::unordered_map<const onnx::FunctionProto*, Measure> measures_;
};

}  // namespace

Result<FunctionTable> FunctionTable::of(onnx::ModelProto& model, std::int64_t max_nodes) {
  if (model.functions_size() > max_functions) {
    return Error{ErrorCode::unsupported,
                 "the model has " + std::to_string(model.functions_size()) + " functions; at most " +
                     std::to_string(max_functions) + " are taken.",
                 "Inline them first: onnx.inliner.inline_local_functions(model)."};
  }
  FunctionTable table;
  for (auto& function : *model.mutable_functions()) {
    const auto key = std::make_tuple(std::string(domain_of(function.domain())), function.name(), function.overload());
    if (!table.functions_.emplace(key, &function).second) {
      return Error{ErrorCode::invalid_model, "two functions have the name " + called(function) + ".",
                   "Export the model again."};
    }
  }
  CallGraph calls(table);
  for (const auto& function : model.functions()) TRY_VOID(calls.walk(&function));
  std::int64_t total = 0;
  for_each_node(model.graph().node(), [&](const onnx::NodeProto& node) {
    const onnx::FunctionProto* callee = table.find(node);
    total = std::min(enormous, total + 1 + (callee == nullptr ? 0 : calls.size(callee)));
  });
  if (total > max_nodes) return too_many(max_nodes);
  return table;
}

onnx::FunctionProto* FunctionTable::find(const onnx::NodeProto& node) const {
  if (functions_.empty()) return nullptr;
  const auto found =
      functions_.find(std::make_tuple(std::string(domain_of(node.domain())), node.op_type(), node.overload()));
  return found == functions_.end() ? nullptr : found->second;
}

}  // namespace polyphase
