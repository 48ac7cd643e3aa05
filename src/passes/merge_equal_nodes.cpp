// merge_equal_nodes: what is computed twice from the same operands is computed once.
//
//   %a = relu(%x)                       %a = relu(%x)
//   %b = relu(%x)           →           %c = add(%a, %a)
//   %c = add(%a, %b)
//
// Condition: the same parts with equal attributes on the very same operands. Constants compare by their elements.
#include <functional>
#include <unordered_map>

#include "passes/passes.h"
#include "passes/rewrite.h"

namespace polyphase {
namespace {

std::size_t mix(std::size_t seed, std::size_t value) { return (seed ^ value) * 0x9e3779b97f4a7c15ULL + (seed >> 29); }

// Large weights are told apart by their sizes and a sample; equality is decided by Attributes::operator==.
std::size_t hash_tensor(const Tensor& tensor) {
  std::size_t hash = static_cast<std::size_t>(tensor.dtype());
  for (const std::int64_t size : tensor.sizes()) hash = mix(hash, static_cast<std::size_t>(size));
  const TensorView& view = tensor.view();
  if (!view.is_row_major()) return hash;
  const auto bytes = static_cast<std::size_t>(view.element_count()) * size_bytes(view.dtype);
  const std::size_t step = bytes / 256 + 1;
  for (std::size_t i = 0; i < bytes; i += step) hash = mix(hash, static_cast<std::size_t>(view.data[i]));
  return hash;
}

std::size_t hash_node(const Node& node) {
  std::size_t hash = node.anchor();
  for (const Part& part : node.parts()) {
    hash = mix(hash, std::hash<std::string>{}(part.op->name));
    for (const int operand : part.operands) hash = mix(hash, static_cast<std::size_t>(operand + 2));
    for (const auto& [name, value] : part.attributes.values()) {
      const auto* tensor = std::get_if<Tensor>(&value);
      hash = mix(hash, tensor != nullptr ? hash_tensor(*tensor) : std::hash<std::string>{}(print_attribute(value)));
    }
  }
  for (const Value* input : node.inputs()) hash = mix(hash, std::hash<const Value*>{}(input));
  return hash;
}

bool same_node(const Node& a, const Node& b) {
  if (a.anchor() != b.anchor() || a.parts().size() != b.parts().size() || a.inputs() != b.inputs()) return false;
  for (std::size_t i = 0; i < a.parts().size(); ++i) {
    const Part& left = a.parts()[i];
    const Part& right = b.parts()[i];
    if (left.op != right.op || left.operands != right.operands || !(left.attributes == right.attributes)) return false;
  }
  for (std::size_t i = 0; i < a.outputs().size(); ++i) {
    const Value& left = *a.output(i);
    const Value& right = *b.output(i);
    if (!(left.type == right.type) || !(left.layout == right.layout)) return false;
  }
  return a.outputs().size() == b.outputs().size();
}

bool merge(Graph& graph) {
  std::unordered_multimap<std::size_t, Node*> seen;
  bool changed = false;
  for (Node* node : graph.node_list()) {
    if (!node->regions().empty() || node->anchors("bind")) continue;
    const std::size_t hash = hash_node(*node);
    Node* twin = nullptr;
    const auto [first, last] = seen.equal_range(hash);
    for (auto it = first; it != last && twin == nullptr; ++it) {
      if (same_node(*it->second, *node)) twin = it->second;
    }
    if (twin == nullptr) {
      seen.emplace(hash, node);
      continue;
    }
    for (std::size_t i = 0; i < node->outputs().size(); ++i) graph.replace_uses(node->output(i), twin->output(i));
    graph.erase(node);
    changed = true;
  }
  return changed;
}

}  // namespace

bool merge_equal_nodes(Graph& graph, const Target&) { return in_every_graph(graph, merge); }

}  // namespace polyphase
