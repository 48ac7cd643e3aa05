// Subgraphs of ONNX nodes (branches, bodies): walking them, and what of the outer bodies they use.
#pragma once

#include <string_view>
#include <unordered_set>
#include <vector>

#include "base/result.h"
#include "onnx/onnx.pb.h"

namespace polyphase {

// The graph that the node has as an attribute; null: it has none.
onnx::GraphProto* subgraph_of(onnx::NodeProto& node, std::string_view attribute_name);

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
                        std::unordered_set<std::string_view>& known);

// Nodes in the graph and below it.
std::int64_t count_nodes(const onnx::GraphProto& root);

}  // namespace polyphase
