// Graph → Recipes: the nodes that follow from weights alone become a list of operators over their names.
#include "engine/file_header.h"
#include "graph/constant_nodes.h"
#include "lower/draft.h"

namespace polyphase {
namespace {

class RecipeBuilder {
 public:
  explicit RecipeBuilder(const std::vector<NamedWeight>& weights) {
    for (const NamedWeight& weight : weights) {
      names_.emplace(weight.names.front(), static_cast<int>(out_.recipes.weights.size()));
      out_.recipes.weights.push_back({.names = weight.names,
                                      .dtype = weight.value.dtype(),
                                      .sizes = weight.value.sizes(),
                                      .state = EngineWeight::State::unused,
                                      .fixed_because = weight.fixed_because});
      out_.leaves.push_back(weight.value);
    }
    out_.recipes.refittable = true;
  }

  GraphRecipes build(const Graph& graph) && {
    find(graph);
    for (const auto& [value, tensor] : tables_) {
      out_.values[value] = static_cast<int>(out_.leaves.size());
      out_.recipes.tables.push_back({tensor->dtype(), tensor->sizes()});
      out_.leaves.push_back(*tensor);
    }
    next_ = static_cast<int>(out_.leaves.size());
    add(graph);
    // A table as such is a constant like others.
    for (const auto& [value, tensor] : tables_) out_.values.erase(value);
    return std::move(out_);
  }

 private:
  // What is computed ahead, and the constants that it reads.
  void find(const Graph& graph) {
    const auto found = nodes_on_weights(graph);
    out_.nodes.insert(found.begin(), found.end());
    std::unordered_set<const Value*> known;
    for (const auto& node : graph.nodes()) {
      for (const auto& region : node->regions()) find(*region);
      if (found.count(node.get()) == 0) continue;
      for (const Value* input : node->inputs()) {
        const Tensor* table = input == nullptr ? nullptr : input->producer->constant();
        if (table != nullptr && known.insert(input).second) tables_.emplace_back(input, table);
      }
    }
  }

  void add(const Graph& graph) {
    for (const auto& node : graph.nodes()) {
      for (const auto& region : node->regions()) add(*region);
      if (node->weight() != nullptr) {
        const int weight = names_.at(node->attributes().get<std::string>("weight"));
        out_.recipes.weights[static_cast<std::size_t>(weight)].state = EngineWeight::State::used;
        out_.values[node->output()] = weight;
      }
      if (out_.nodes.count(node.get()) == 0) continue;
      RecipeNode made{node->anchor_part(), {}, {}};
      made.part.yields.clear();
      for (const Value* input : node->inputs()) made.inputs.push_back(input == nullptr ? -1 : out_.values.at(input));
      for (const auto& output : node->outputs()) {
        made.results.push_back(output->type);
        out_.values[output.get()] = next_++;
      }
      out_.recipes.nodes.push_back(std::move(made));
    }
  }

  GraphRecipes out_;
  std::map<std::string, int, std::less<>> names_;
  std::vector<std::pair<const Value*, const Tensor*>> tables_;
  int next_ = 0;
};

}  // namespace

GraphRecipes recipes_of(const Graph& graph, const std::vector<NamedWeight>& weights) {
  return RecipeBuilder(weights).build(graph);
}

}  // namespace polyphase
