// remove_dead_nodes: what no output needs, goes.
//
//   %a = relu(%x)                       %b = abs(%x)
//   %b = abs(%x)            →           return %b
//   return %b
//
// A node that gives names to sizes (bind, an if or loop with sizes born in it) stays as long as one of its names is
// written anywhere else.
#include <set>

#include "passes/passes.h"
#include "passes/rewrite.h"

namespace polyphase {
namespace {

using Symbols = std::map<std::string, DimRange, std::less<>>;

void collect_from_node(const Node& node, Symbols& into) {
  for (const Part& part : node.parts()) part.attributes.collect_symbols(into);
  for (const auto& output : node.outputs()) {
    for (const Dim& dim : output->type.shape) dim.collect_symbols(into);
    for (const Dim& dim : output->contents.value_or(std::vector<Dim>{})) dim.collect_symbols(into);
  }
  for (const auto& region : node.regions()) region->collect_symbols(into);
}

bool names_needed_size(const Node& bind, const Symbols& written) {
  Symbols born;
  bind.attributes().collect_symbols(born);
  for (const auto& [name, range] : born) {
    if (written.count(name) != 0) return true;
  }
  return false;
}

bool sweep(Graph& graph) {
  std::set<const Node*> needed;
  std::vector<const Node*> pending;
  const auto need = [&](const Node* node) {
    if (node != nullptr && needed.insert(node).second) pending.push_back(node);
  };
  const auto follow = [&] {
    while (!pending.empty()) {
      const Node* node = pending.back();
      pending.pop_back();
      for (const Value* input : node->inputs()) need(input == nullptr ? nullptr : input->producer);
    }
  };
  for (const Value* output : graph.outputs()) need(output->producer);
  follow();
  // A needed size may keep a bind, whose operands may be sized by another bind.
  for (bool grew = true; grew;) {
    Symbols written;
    for (const Node* node : needed) {
      if (!node->anchors("bind")) collect_from_node(*node, written);
    }
    const std::size_t before = needed.size();
    for (const auto& node : graph.nodes()) {
      if (gives_names(*node) && names_needed_size(*node, written)) need(node.get());
    }
    follow();
    grew = needed.size() != before;
  }
  std::vector<Node*> nodes = graph.node_list();
  bool changed = false;
  for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {
    if (needed.count(*node) != 0) continue;
    graph.erase(*node);
    changed = true;
  }
  return changed;
}

}  // namespace

bool remove_dead_nodes(Graph& graph, const Target&) {
  // Outer graphs first would do as well: a region lives as long as its node.
  bool changed = false;
  for (Node* node : graph.node_list()) {
    for (const auto& region : node->regions()) changed = remove_dead_nodes(*region, {}) || changed;
  }
  return sweep(graph) || changed;
}

}  // namespace polyphase
