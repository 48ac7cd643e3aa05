// A deep copy of a graph; constants share their bytes.
#include "graph/graph.h"

namespace polyphase {

std::unique_ptr<Graph> clone(const Graph& graph) {
  auto copy = std::make_unique<Graph>(graph.registry());
  copy->name = graph.name;
  std::unordered_map<const Value*, Value*> twin;
  for (const auto& input : graph.inputs()) {
    Value* value = copy->add_input(input->name, input->type);
    value->layout = input->layout;
    value->contents = input->contents;
    twin[input.get()] = value;
  }
  for (const auto& node : graph.nodes()) {
    std::vector<Value*> inputs;
    for (Value* input : node->inputs()) inputs.push_back(input == nullptr ? nullptr : twin.at(input));
    std::vector<std::unique_ptr<Graph>> regions;
    for (const auto& region : node->regions()) regions.push_back(clone(*region));
    auto added =
        copy->add_parts(node->parts(), node->anchor(), std::move(inputs), node->name(), nullptr, std::move(regions));
    CHECK(added.ok(), "the original was legal");
    for (std::size_t i = 0; i < node->outputs().size(); ++i) {
      Value* value = added.value()->output(i);
      copy->rename(value, node->output(i)->name);
      value->layout = node->output(i)->layout;
      value->contents = node->output(i)->contents;
      twin[node->output(i)] = value;
    }
  }
  for (std::size_t i = 0; i < graph.outputs().size(); ++i)
    copy->add_output(twin.at(graph.outputs()[i]), graph.output_names()[i]);
  copy->checks() = graph.checks();
  return copy;
}

}  // namespace polyphase
