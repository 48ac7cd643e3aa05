// Checks a graph's invariants after every pass, so that each pass may rely on them.
#include <algorithm>
#include <set>

#include "graph/graph.h"

namespace polyphase {
namespace {

Error unsound(const std::string& what, const std::string& node = "") {
  return Error{ErrorCode::invalid_model, what, "This graph breaks the rules of the IR: build graphs with Graph::add.",
               node};
}

Error broken(const Node& node, const std::string& what) { return unsound(what, node.name()); }

class Verifier {
 public:
  explicit Verifier(const Graph& graph) : graph_(graph) {}

  Result<void> run() {
    for (const auto& input : graph_.inputs()) {
      if (input->producer != nullptr) return unsound("graph input '" + input->name + "' has a producer.");
      TRY_VOID(define(*input, "a graph input"));
    }
    for (const auto& node : graph_.nodes()) TRY_VOID(verify_node(*node));
    for (const Value* output : graph_.outputs()) {
      if (defined_.count(output) == 0)
        return unsound("output '" + output->name + "' is not a value of graph '" + graph_.name + "'.");
    }
    std::set<std::string> names;
    for (const std::string& name : graph_.output_names()) {
      if (!names.insert(name).second) return unsound("two outputs are named '" + name + "'.");
    }
    return verify_users();
  }

 private:
  Result<void> define(const Value& value, const std::string& where) {
    if (!names_.insert(value.name).second) return unsound("two values are named '" + value.name + "' (" + where + ").");
    if (value.layout.is_set() && value.layout.rank() != value.type.shape.rank()) {
      return unsound("value '" + value.name + "' of rank " + std::to_string(value.type.shape.rank()) +
                     " has the layout " + value.layout.text() + ".");
    }
    defined_.insert(&value);
    return {};
  }

  Result<void> verify_parts(const Node& node) const {
    if (node.parts().empty() || node.anchor() >= node.parts().size()) return broken(node, "has no anchor.");
    for (std::size_t i = 0; i < node.parts().size(); ++i) {
      const Part& part = node.parts()[i];
      if (i != node.anchor() && part.op->region_count != 0)
        return broken(node, "operator " + part.op->name + " owns graphs and cannot be fused.");
      for (const int operand : part.operands) {
        if (operand == Part::absent || (operand == Part::running && i > 0)) continue;
        if (operand < 0 || static_cast<std::size_t>(operand) >= node.inputs().size() ||
            node.input(static_cast<std::size_t>(operand)) == nullptr) {
          return broken(node, "operand " + std::to_string(operand) + " of " + part.op->name + " does not exist.");
        }
      }
      const auto completed = part.op->complete(part.attributes);
      if (!completed.ok()) return broken(node, completed.error().message);
      if (!(completed.value() == part.attributes))
        return broken(node, "attributes of " + part.op->name + " are incomplete.");
    }
    return {};
  }

  Result<void> verify_node(const Node& node) {
    for (Value* input : node.inputs()) {
      if (input == nullptr) continue;
      if (defined_.count(input) == 0)
        return broken(node, "operand '" + input->name + "' is used before it is defined.");
      if (std::find(input->users.begin(), input->users.end(), &node) == input->users.end()) {
        return broken(node, "operand '" + input->name + "' does not list this node as a user.");
      }
    }
    TRY_VOID(verify_parts(node));
    std::vector<DimCheck> checks;
    const auto types = infer_parts(node.parts(), operand_infos(node.inputs()), checks, node.regions());
    if (!types.ok()) return Error(types.error()).at_node(node.name());
    if (types->size() != node.outputs().size())
      return broken(node, "has " + std::to_string(node.outputs().size()) + " results instead of " +
                              std::to_string(types->size()) + ".");
    for (std::size_t i = 0; i < types->size(); ++i) {
      const Value& output = *node.output(i);
      if (output.producer != &node || output.index != static_cast<int>(i))
        return broken(node, "result '" + output.name + "' names another producer.");
      if (!(output.type == (*types)[i]))
        return broken(node, "result '" + output.name + "' is " + output.type.text() + "; its operands give " +
                                (*types)[i].text() + ".");
      TRY_VOID(define(output, "node '" + node.name() + "'"));
    }
    for (const auto& region : node.regions()) {
      auto verified = verify(*region);
      if (!verified.ok())
        return std::move(verified).error().within("in graph '" + region->name + "' of node '" + node.name() + "'");
    }
    return {};
  }

  Result<void> verify_users() const {
    for (const Value* value : defined_) {
      for (const Node* user : value->users) {
        if (std::find(user->inputs().begin(), user->inputs().end(), value) == user->inputs().end()) {
          return unsound("value '" + value->name + "' lists a user that does not use it.");
        }
      }
    }
    return {};
  }

  const Graph& graph_;
  std::set<const Value*> defined_;
  std::set<std::string> names_;
};

}  // namespace

Result<void> verify(const Graph& graph) { return Verifier(graph).run(); }

}  // namespace polyphase
