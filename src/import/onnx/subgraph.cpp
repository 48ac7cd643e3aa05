// Graphs inside nodes: what they capture, and how they become regions of the IR.
//
// A region takes every outer value that it uses as an input. Constants and sizes are not passed in; each region makes
// its own.
#include "import/onnx/subgraph.h"

#include <algorithm>

#include "import/onnx/importer.h"
#include "import/onnx/node_context.h"
#include "import/onnx/sequence.h"
#include "ops/custom.h"
#include "wire/printable.h"

namespace polyphase {

bool is_structural(std::string_view op_type) { return op_type == "If" || op_type == "Loop" || op_type == "Scan"; }

onnx::GraphProto* subgraph_of(onnx::NodeProto& node, std::string_view attribute_name) {
  for (auto& attribute : *node.mutable_attribute()) {
    if (attribute.name() == attribute_name && attribute.has_g()) return attribute.mutable_g();
  }
  return nullptr;
}

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

std::int64_t count_nodes(const onnx::GraphProto& root) {
  std::int64_t count = 0;
  for_each_graph(root, [&](const onnx::GraphProto& graph) { count += graph.node_size(); });
  return count;
}

void Importer::note_missing_below(const onnx::GraphProto& root, const Body& body) {
  for_each_graph(root, [&](const onnx::GraphProto& graph) {
    for (const auto& node : graph.node()) {
      const std::string domain(domain_of(node.domain()));
      const auto opset = body.opsets->find(domain);
      const bool is_known =
          functions_.find(node) != nullptr || registry_.find_claim(onnx_claim(domain, node.op_type())) != nullptr ||
          table_.find(domain, node.op_type()) != nullptr ||
          (domain.empty() && (is_structural(node.op_type()) || sequence_converter(node.op_type()) != nullptr));
      if (!is_known)
        missing_.add(domain, node.op_type(), opset == body.opsets->end() ? 1 : opset->second,
                     body.prefix + wire::printable(node.name()));
    }
  });
}

Result<std::vector<Capture>> Importer::captures_of(const std::vector<std::string_view>& free, Scope& scope) {
  std::vector<Capture> captures;
  for (const std::string_view free_name : free) {
    TRY(Meaning * found, look_up(free_name, scope));
    if (found->sequence != nullptr)
      return lacking("the sequence " + wire::quoted_name(free_name) + " is used inside of a graph that this node owns.",
                     "Take its tensors out (SequenceAt) before the node.");
    Capture capture{free_name, *found, false};
    Value* value = found->value;
    if (value != nullptr && value->producer != nullptr && value->producer->constant() != nullptr) {
      capture.meaning = {};
      capture.meaning.tensor = *value->producer->constant();
    } else if (value != nullptr && value->producer != nullptr && value->producer->weight() != nullptr) {
      capture.meaning = {};
      capture.meaning.tensor = *value->producer->weight();
      capture.meaning.weight = value->producer->attributes().get<std::string>("weight");
    } else if (value != nullptr) {
      const bool is_sizes =
          value->contents.has_value() && value->type.dtype == DType::i64 && value->type.shape.rank() <= 1;
      capture.as_input = !is_sizes;
    }
    captures.push_back(std::move(capture));
  }
  return captures;
}

Result<void> Importer::define_captures(const std::vector<Capture>& captures, Scope& inner) {
  for (const Capture& capture : captures) {
    Meaning meaning = capture.meaning;
    if (capture.as_input) {
      meaning.value = inner.graph->add_input(wire::printable(capture.name, 200), capture.meaning.value->type);
    } else if (meaning.value != nullptr) {
      meaning.value = inner.graph->must_add("dims",
                                            Attributes({{"values", *capture.meaning.value->contents},
                                                        {"scalar", capture.meaning.value->type.shape.rank() == 0}}),
                                            {}, wire::printable(capture.name, 200));
    }
    TRY_VOID(define(capture.name, std::move(meaning), inner));
  }
  return {};
}

Result<void> Importer::define_results(const onnx::NodeProto& node, const Node& made, std::size_t first, Scope& scope) {
  for (int i = 0; i < node.output_size(); ++i) {
    if (node.output(i).empty()) continue;
    Meaning meaning;
    meaning.value = made.output(first + static_cast<std::size_t>(i));
    TRY_VOID(define(node.output(i), std::move(meaning), scope));
  }
  return {};
}

Result<void> Importer::fill_region(onnx::GraphProto& graph, Scope& inner, bool& missing) {
  TRY_VOID(add_initializers(graph, inner));
  TRY_VOID(translate_graph(graph, inner));
  for (const auto& output : graph.output()) {
    TRY(Value * value, value_of(output.name(), inner, missing));
    if (value == nullptr && !missing) return broken_rule("a result of a subgraph has no name.");
    if (value != nullptr) inner.graph->add_output(value, output.name());
  }
  return {};
}

}  // namespace polyphase
