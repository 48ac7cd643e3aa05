// Which of a model's weights may be exchanged in the engine.
#include "import/imported_model.h"

namespace polyphase {
namespace {

void forget_names(Graph& graph, const std::set<std::string, std::less<>>& names) {
  for (Node* node : graph.node_list()) {
    for (const auto& region : node->regions()) forget_names(*region, names);
    if (node->weight() == nullptr || names.count(node->attributes().get<std::string>("weight")) == 0) continue;
    const auto done = graph.set_attributes(node, Attributes({{"value", *node->weight()}}));
    CHECK(done.ok(), "the tensor stays");
  }
}

}  // namespace

bool may_be_exchanged(const Tensor& tensor) {
  if (is_float(tensor.dtype())) return true;
  if (tensor.view().element_count() > max_contents) return true;
  return is_integer(tensor.dtype()) && size_bytes(tensor.dtype()) <= 2;  // quantised weights; nobody writes sizes so
}

void fix_weights(Graph& graph, const std::set<std::string, std::less<>>& looked_at,
                 std::vector<ImportedWeight>& weights) {
  forget_names(graph, looked_at);
  for (ImportedWeight& weight : weights) {
    if (!weight.used) continue;
    if (weight.is_literal) {
      weight.fixed_because = "it is a number of the program, which the exporter has named itself";
    } else if (!may_be_exchanged(weight.value)) {
      weight.fixed_because = "integers of at most " + std::to_string(max_contents) + " elements may decide sizes";
    } else if (looked_at.count(weight.names.front()) != 0) {
      weight.fixed_because = "its elements decide how the network is computed";
    }
  }
}

}  // namespace polyphase
