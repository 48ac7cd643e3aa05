// fold_constants: what follows from constants alone is computed now, by the reference loops.
//
//   %a = constant() value={1, 2}
//   %b = constant() value={3, 4}        %c = constant() value={4, 6}
//   %c = add(%a, %b)            →
//
// And a small integer tensor whose elements are known as sizes becomes those sizes: `constant` where all are numbers,
// `dims` (i64) where some are expressions.
//
// Condition: FoldBudget takes it. What follows from weights that may be exchanged later stays as it is: lower computes
// it, and remembers how.
#include <algorithm>

#include "graph/constant_nodes.h"
#include "passes/passes.h"
#include "passes/rewrite.h"
#include "passes/scaled_constants.h"

namespace polyphase {
namespace {

class Folder {
 public:
  explicit Folder(Graph& graph) : graph_(graph) {}

  bool run() {
    bool changed = false;
    for (Node* node : graph_.node_list()) {
      if (!node->regions().empty() || node->is("constant") || node->is("dims") || node->anchors("bind")) continue;
      changed = fold_contents(node) || fold_values(node) || changed;
    }
    return changed;
  }

 private:
  // A result whose elements are known as sizes.
  bool fold_contents(Node* node) {
    if (node->outputs().size() != 1 || !node->output()->contents.has_value()) return false;
    Value* result = node->output();
    const std::vector<Dim> contents = *result->contents;
    Rewrite rewrite(graph_, node);
    const bool numbers =
        std::all_of(contents.begin(), contents.end(), [](const Dim& dim) { return dim.is_constant(); });
    if (numbers) {
      const auto sizes = result->type.shape.evaluate({});
      if (!sizes.has_value()) return false;
      return rewrite.commit(result,
                            rewrite.constant(Tensor::from_integers(result->type.dtype, *sizes, integers_of(contents))));
    }
    if (result->type.dtype != DType::i64 || result->type.shape.rank() > 1) return false;
    return rewrite.commit(
        result,
        rewrite.add("dims", Attributes({{"values", contents}, {"scalar", result->type.shape.rank() == 0}}), {}));
  }

  bool fold_values(Node* node) {
    const bool known = std::all_of(node->inputs().begin(), node->inputs().end(), [](const Value* input) {
      return input == nullptr || constant_of(input) != nullptr;
    });
    if (node->inputs().empty() || (!known && !node->is("cast")) || begins_scaling(graph_, *node)) return false;
    const FoldCandidate candidate = fold_candidate(*node);
    if (!budget_.takes(candidate)) return false;
    std::optional<std::vector<Tensor>> results;
    if (known) {
      results = evaluate(*node);
    } else if (auto scaled = scaled_constant(graph_, *node)) {
      results.emplace({*std::move(scaled)});
    }
    if (!results.has_value()) return false;
    budget_.spend(candidate);
    for (std::size_t i = 0; i < results->size(); ++i) {
      if (!(node->output(i)->type == (*results)[i].type())) return false;
    }
    for (std::size_t i = 0; i < results->size(); ++i) {
      const std::string name = node->output(i)->name;
      Value* value = graph_.add_constant((*results)[i], node->name(), node);
      if (!value->contents.has_value()) value->contents = node->output(i)->contents;
      graph_.replace_uses(node->output(i), value);
      graph_.rename(node->output(i), name + ".folded");
      graph_.rename(value, name);
    }
    erase_unused(graph_, node);
    return true;
  }

  // Nothing where the data breaks a rule (an index out of range): that is said when the model runs, if it ever does.
  static std::optional<std::vector<Tensor>> evaluate(const Node& node) {
    std::vector<Tensor> running;
    for (const Part& part : node.parts()) {
      const auto attributes = part.attributes.evaluate({});
      if (!attributes.has_value() || part.op->reference == nullptr) return std::nullopt;
      std::vector<Tensor> operands;
      for (const int operand : part.operands) {
        if (operand == Part::absent) {
          operands.emplace_back();
        } else {
          operands.push_back(operand == Part::running ? running.at(0)
                                                      : *constant_of(node.input(static_cast<std::size_t>(operand))));
        }
      }
      auto results = evaluate_reference(*part.op, *attributes, operands);
      if (!results.ok()) return std::nullopt;
      running = std::move(results).value();
    }
    return running;
  }

  Graph& graph_;
  FoldBudget budget_;
};

}  // namespace

bool fold_constants(Graph& graph, const Target&) {
  return in_every_graph(graph, [](Graph& each) { return Folder(each).run(); });
}

}  // namespace polyphase
