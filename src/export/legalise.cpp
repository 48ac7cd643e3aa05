// Node after node through the rules of the target, until none applies.
#include "export/legalise.h"

#include <algorithm>

#include "export/describe_node.h"
#include "export/part_model.h"
#include "export/replacement.h"
#include "export/smaller_twin.h"
#include "wire/external_data.h"
#include "wire/onnx_model.h"
#include "wire/splice_model.h"

namespace polyphase::legal {
namespace {

// Rules in a row on one node; each takes one thing away that the target does not take.
constexpr int most_rules_in_a_row = 16;

bool is_own_domain(const std::string& domain) { return domain.empty() || domain == "ai.onnx"; }

// What rules made of a node.
struct Settled {
  std::vector<onnx::NodeProto> nodes;
  std::vector<onnx::TensorProto> tensors;
  std::vector<ExportChange> changes;
};

class Legaliser {
 public:
  Legaliser(onnx::ModelProto& model, TensorFacts facts, const LegaliseOptions& options)
      : model_(model), options_(options), external_(options.folder), facts_(model, std::move(facts), external_) {}

  Result<Legalised> run(std::span<const std::byte> bytes) {
    TRY_VOID(look_into_functions());
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
    for (const onnx::TensorProto& tensor : tensors_) splice.new_initializers.push_back(tensor.SerializeAsString());
    splice.dropped_initializers = initializers_without_reader(instead, read_before);
    TRY(out_.model, wire::splice_model(bytes, splice));
    list_external_files(model_.graph(), splice.dropped_initializers);
    for (const onnx::TensorProto& tensor : tensors_) list_external_file(tensor);
    return std::move(out_);
  }

  Result<std::vector<TargetFinding>> findings() {
    TRY_VOID(look_into_functions());
    std::vector<TargetFinding> out;
    TRY_VOID(collect_findings(model_.graph(), out));
    return out;
  }

 private:
  Result<void> collect_findings(const onnx::GraphProto& graph, std::vector<TargetFinding>& out) {
    for (const auto& node : graph.node()) {
      std::string why;
      TRY(const ExportRule* const rule, rule_for(node, facts_, &why));
      if (rule != nullptr) out.push_back({name_of(node), describe(node), rule, std::move(why)});
      for (const auto& attribute : node.attribute()) {
        if (attribute.has_g()) TRY_VOID(collect_findings(attribute.g(), out));
        for (const auto& inner : attribute.graphs()) TRY_VOID(collect_findings(inner, out));
      }
    }
    return {};
  }

  // A function's body stands for many nodes, whose types differ from call to call.
  Result<void> look_into_functions() {
    for (const auto& function : model_.functions()) functions_.emplace(function.domain(), function.name());
    for (const auto& function : model_.functions()) {
      for (const auto& node : function.node()) {
        for (const ExportRule& rule : options_.target->rules) {
          if (!asks_about(rule, node)) continue;
          return Error{ErrorCode::unsupported,
                       "it stands in the function '" + function.name() +
                           "', whose nodes all calls share, so nobody can say whether the rule " +
                           std::string(rule.name) + " applies.",
                       "Inline the model's functions first: onnx.inliner.inline_local_functions."}
              .at_node(name_of(node));
        }
      }
    }
    return {};
  }

  bool asks_about(const ExportRule& rule, const onnx::NodeProto& node) const {
    if (rule.op_type != node.op_type() || options_.without_rules.count(rule.name) != 0) return false;
    if (rule.domain.empty() ? !is_own_domain(node.domain()) : rule.domain != node.domain()) return false;
    return functions_.count({node.domain(), node.op_type()}) == 0;
  }

  // The first rule that applies; null: the target takes the node. `why` may be null.
  Result<const ExportRule*> rule_for(const onnx::NodeProto& node, const ModelFacts& facts, std::string* why) const {
    for (const ExportRule& rule : options_.target->rules) {
      if (!asks_about(rule, node)) continue;
      auto reason = rule.applies(node, facts);
      if (!reason.ok()) return std::move(reason).error().at_node(name_of(node));
      if (reason->empty()) continue;
      if (why != nullptr) *why = *std::move(reason);
      return &rule;
    }
    return static_cast<const ExportRule*>(nullptr);
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
    TRY(const ExportRule* const rule, rule_for(node, facts_, nullptr));
    if (rule == nullptr) {
      if (inner_changed) nodes.push_back(node);
      return inner_changed;
    }
    const ModelFacts before = facts_;
    Settled settled;
    TRY_VOID(settle(node, facts_, settled, 0));
    TRY(ChangedNode part, part_of(node, before, settled));
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

  // Rule after rule, and on what they make.
  Result<void> settle(const onnx::NodeProto& node, ModelFacts& facts, Settled& out, int depth) const {
    CHECK(depth < most_rules_in_a_row, "rules that undo each other");
    std::string why;
    TRY(const ExportRule* const rule, rule_for(node, facts, &why));
    if (rule == nullptr) {
      out.nodes.push_back(node);
      return {};
    }
    if (rule->rewrite == nullptr)
      return Error{ErrorCode::unsupported,
                   std::string(options_.target->title) + " does not take it (rule " + std::string(rule->name) +
                       "): " + why + ".",
                   std::string(rule->doc)}
          .at_node(name_of(node));
    Replacement replacement(node, facts);
    if (auto done = rule->rewrite(node, replacement); !done.ok())
      return std::move(std::move(done).error().at_node(name_of(node))).within("by the rule " + std::string(rule->name));
    std::string after;
    for (const onnx::NodeProto& made : replacement.nodes()) after += (after.empty() ? "" : ", ") + describe(made);
    out.changes.push_back({name_of(node), std::string(rule->name), std::move(why), describe(node), std::move(after)});
    for (onnx::TensorProto& tensor : replacement.tensors()) out.tensors.push_back(std::move(tensor));
    for (const onnx::NodeProto& made : replacement.nodes()) TRY_VOID(settle(made, facts, out, depth + 1));
    return {};
  }

  Result<ChangedNode> part_of(const onnx::NodeProto& node, const ModelFacts& before, const Settled& settled) const {
    if (const auto smaller = smaller_twin(node, before); smaller.has_value()) {
      ModelFacts facts = before;
      facts.add(node.input(0), {smaller->x, {}});
      const ModelFacts small_facts = facts;
      Settled small;
      if (settle(smaller->node, facts, small, 0).ok() && same_rewrite(small, settled))
        return part_models({model_, small_facts, smaller->node, small.nodes, small.tensors});
    }
    return part_models({model_, before, node, settled.nodes, settled.tensors});
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
  const LegaliseOptions& options_;
  wire::ExternalData external_;
  ModelFacts facts_;
  std::set<std::pair<std::string, std::string>> functions_;  // domain, name
  std::vector<onnx::TensorProto> tensors_;
  Legalised out_;
};

}  // namespace

Result<std::vector<TargetFinding>> find_refused(std::span<const std::byte> model, TensorFacts facts,
                                                const LegaliseOptions& options) {
  TRY(const wire::ModelPointer parsed, wire::parse_model(model));
  return Legaliser(*parsed, std::move(facts), options).findings();
}

Result<Legalised> legalise(std::span<const std::byte> model, TensorFacts facts, const LegaliseOptions& options) {
  TRY(const wire::ModelPointer parsed, wire::parse_model(model));
  return Legaliser(*parsed, std::move(facts), options).run(model);
}

}  // namespace polyphase::legal
