// One walk over the model, subgraphs first; what came out is spliced into the model's bytes.
#include "export/rewrite_model.h"

#include <algorithm>
#include <map>
#include <set>

#include "export/part_model.h"
#include "export/smaller_twin.h"
#include "wire/splice_model.h"

namespace polyphase::legal {
namespace {

// Before this version of the format every initializer is an input too, so new ones are nodes.
constexpr std::int64_t initializers_are_no_inputs = 4;

class ModelRewriter {
 public:
  ModelRewriter(onnx::ModelProto& model, ModelFacts facts, const NodeRules& rules)
      : model_(model), facts_(std::move(facts)), rules_(rules) {}

  Result<Legalised> run(std::span<const std::byte> bytes) {
    out_.nodes = model_.graph().node_size();
    const std::set<std::string> read_before = names_read();
    std::map<int, std::vector<onnx::NodeProto>> instead;
    for (int i = 0; i < model_.graph().node_size(); ++i) {
      std::vector<onnx::NodeProto> nodes;
      TRY(const bool changed, settle_with_subgraphs(*model_.mutable_graph()->mutable_node(i), nodes));
      if (changed) instead[i] = std::move(nodes);
    }
    wire::ModelSplice splice;
    for (const auto& [place, nodes] : instead) {
      for (const onnx::NodeProto& node : nodes) splice.nodes[place].push_back(node.SerializeAsString());
    }
    for (const onnx::TensorProto& tensor : tensors_) {
      if (model_.ir_version() >= initializers_are_no_inputs) {
        splice.new_initializers.push_back(tensor.SerializeAsString());
      } else {
        auto& first = splice.nodes[instead.begin()->first];
        first.insert(first.begin(), constant_node(tensor).SerializeAsString());
      }
    }
    splice.dropped_initializers = initializers_without_reader(instead, read_before);
    if (rules_.new_opset().has_value()) splice.opset_imports = opset_imports(*rules_.new_opset());
    TRY(out_.model, wire::splice_model(bytes, splice));
    list_external_files(model_.graph(), splice.dropped_initializers);
    for (const onnx::TensorProto& tensor : tensors_) list_external_file(tensor);
    return std::move(out_);
  }

 private:
  static onnx::NodeProto constant_node(const onnx::TensorProto& tensor) {
    onnx::NodeProto out;
    out.set_op_type("Constant");
    out.set_name(tensor.name());
    out.add_output(tensor.name());
    auto* value = out.add_attribute();
    value->set_name("value");
    value->set_type(onnx::AttributeProto::TENSOR);
    *value->mutable_t() = tensor;
    return out;
  }

  std::vector<std::string> opset_imports(std::int64_t version) const {
    std::vector<std::string> out;
    for (auto import : model_.opset_import()) {
      if (import.domain().empty() || import.domain() == "ai.onnx") import.set_version(version);
      out.push_back(import.SerializeAsString());
    }
    return out;
  }

  // Whether the node changed; then `nodes` gets what stands in its place.
  Result<bool> settle_with_subgraphs(onnx::NodeProto& node, std::vector<onnx::NodeProto>& nodes) {
    bool inner_changed = false;
    for (auto& attribute : *node.mutable_attribute()) {
      if (attribute.has_g()) {
        TRY(const bool changed, settle_graph(*attribute.mutable_g()));
        inner_changed = inner_changed || changed;
      }
      for (auto& graph : *attribute.mutable_graphs()) {
        TRY(const bool changed, settle_graph(graph));
        inner_changed = inner_changed || changed;
      }
    }
    Settled settled;
    TRY(const bool touched, rules_.touches(node, facts_));
    std::optional<ModelFacts> before;
    if (touched && rules_.repeatable()) before = facts_;
    if (touched) TRY_VOID(rules_.settle(node, facts_, settled));
    if (settled.changes.empty()) {
      if (inner_changed) nodes.push_back(node);
      return inner_changed;
    }
    auto both = part_of(node, before, settled);
    ChangedNode part = both.ok() ? *std::move(both) : ChangedNode{name_of(node), {}, {}, 0, std::move(both).error()};
    for (const ExportChange& change : settled.changes) part.tolerance = std::max(part.tolerance, change.tolerance);
    out_.parts.push_back(std::move(part));
    for (ExportChange& change : settled.changes) out_.changes.push_back(std::move(change));
    for (onnx::TensorProto& tensor : settled.tensors) tensors_.push_back(std::move(tensor));
    for (onnx::NodeProto& made : settled.nodes) nodes.push_back(std::move(made));
    return true;
  }

  Result<bool> settle_graph(onnx::GraphProto& graph) {
    bool any_changed = false;
    std::vector<onnx::NodeProto> all;
    for (auto& node : *graph.mutable_node()) {
      TRY(const bool changed, settle_with_subgraphs(node, all));
      if (!changed) all.push_back(node);
      any_changed = any_changed || changed;
    }
    if (!any_changed) return false;
    graph.clear_node();
    for (onnx::NodeProto& node : all) *graph.add_node() = std::move(node);
    return true;
  }

  Result<ChangedNode> part_of(const onnx::NodeProto& node, const std::optional<ModelFacts>& before,
                              const Settled& settled) const {
    if (!before.has_value())
      return part_models({model_, facts_, node, settled.nodes, settled.tensors, rules_.new_opset()});
    if (const auto smaller = smaller_twin(node, *before); smaller.has_value()) {
      ModelFacts facts = *before;
      facts.add(node.input(0), {smaller->x, {}});
      const ModelFacts small_facts = facts;
      Settled small;
      if (rules_.settle(smaller->node, facts, small).ok() && same_rewrite(small, settled))
        return part_models({model_, small_facts, smaller->node, small.nodes, small.tensors, rules_.new_opset()});
    }
    return part_models({model_, *before, node, settled.nodes, settled.tensors, rules_.new_opset()});
  }

  static bool same_rewrite(const Settled& a, const Settled& b) {
    const auto same = [](const auto& one, const auto& other) {
      return one.SerializeAsString() == other.SerializeAsString();
    };
    return std::equal(a.nodes.begin(), a.nodes.end(), b.nodes.begin(), b.nodes.end(), same) &&
           std::equal(a.tensors.begin(), a.tensors.end(), b.tensors.begin(), b.tensors.end(), same);
  }

  std::set<std::string> names_read() const {
    std::set<std::string> out;
    collect_reads(model_.graph(), out);
    return out;
  }

  static void collect_reads(const onnx::NodeProto& node, std::set<std::string>& out) {
    out.insert(node.input().begin(), node.input().end());
    for (const auto& attribute : node.attribute()) {
      if (attribute.has_g()) collect_reads(attribute.g(), out);
      for (const auto& graph : attribute.graphs()) collect_reads(graph, out);
    }
  }

  static void collect_reads(const onnx::GraphProto& graph, std::set<std::string>& out) {
    for (const auto& node : graph.node()) collect_reads(node, out);
    for (const auto& output : graph.output()) out.insert(output.name());
  }

  // Weights that only rewritten nodes read.
  std::set<int> initializers_without_reader(const std::map<int, std::vector<onnx::NodeProto>>& instead,
                                            const std::set<std::string>& read_before) const {
    std::set<std::string> kept;
    for (int i = 0; i < model_.graph().node_size(); ++i) {
      const auto found = instead.find(i);
      if (found == instead.end()) collect_reads(model_.graph().node(i), kept);
    }
    for (const auto& [place, nodes] : instead) {
      for (const onnx::NodeProto& node : nodes) collect_reads(node, kept);
    }
    for (const auto& output : model_.graph().output()) kept.insert(output.name());
    for (const auto& input : model_.graph().input()) kept.insert(input.name());
    std::set<int> out;
    for (int i = 0; i < model_.graph().initializer_size(); ++i) {
      const std::string& name = model_.graph().initializer(i).name();
      if (read_before.count(name) != 0 && kept.count(name) == 0) out.insert(i);
    }
    return out;
  }

  void list_external_files(const onnx::GraphProto& graph, const std::set<int>& dropped) {
    for (int i = 0; i < graph.initializer_size(); ++i) {
      if (dropped.count(i) == 0) list_external_file(graph.initializer(i));
    }
    for (const auto& node : graph.node()) {
      for (const auto& attribute : node.attribute()) {
        if (attribute.has_t()) list_external_file(attribute.t());
        if (attribute.has_g()) list_external_files(attribute.g(), {});
        for (const auto& inner : attribute.graphs()) list_external_files(inner, {});
      }
    }
  }

  void list_external_file(const onnx::TensorProto& tensor) {
    if (tensor.data_location() != onnx::TensorProto::EXTERNAL) return;
    for (const auto& entry : tensor.external_data()) {
      if (entry.key() != "location") continue;
      auto& files = out_.external_files;
      if (std::find(files.begin(), files.end(), entry.value()) == files.end()) files.push_back(entry.value());
    }
  }

  onnx::ModelProto& model_;
  ModelFacts facts_;
  const NodeRules& rules_;
  std::vector<onnx::TensorProto> tensors_;
  Legalised out_;
};

}  // namespace

Result<Legalised> rewrite_model(std::span<const std::byte> bytes, onnx::ModelProto& model, ModelFacts facts,
                                const NodeRules& rules) {
  return ModelRewriter(model, std::move(facts), rules).run(bytes);
}

}  // namespace polyphase::legal
