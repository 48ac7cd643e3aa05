// Node after node through the rules of the target, until none applies.
#include "export/legalise.h"

#include "export/describe_node.h"
#include "export/functions.h"
#include "export/replacement.h"
#include "export/rewrite_model.h"
#include "wire/external_data.h"
#include "wire/onnx_model.h"

namespace polyphase::legal {
namespace {

// Rules in a row on one node; each takes one thing away that the target does not take.
constexpr int most_rules_in_a_row = 16;

class TargetRules : public NodeRules {
 public:
  TargetRules(const onnx::ModelProto& model, const ModelFacts& facts, const LegaliseOptions& options)
      : model_(model), options_(options), facts_(facts), functions_(model) {}

  Result<bool> touches(const onnx::NodeProto& node, const ModelFacts& facts) const override {
    TRY(const ExportRule* const rule, rule_for(node, facts, nullptr));
    return rule != nullptr;
  }

  Result<void> settle(const onnx::NodeProto& node, ModelFacts& facts, Settled& out) const override {
    return settle(node, facts, out, 0);
  }

  Result<std::vector<TargetFinding>> findings() const {
    std::vector<TargetFinding> out;
    TRY_VOID(collect_findings(model_.graph(), out));
    return out;
  }

 private:
  Result<void> collect_findings(const onnx::GraphProto& graph, std::vector<TargetFinding>& out) const {
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

  // The first rule that applies; null: the target takes the node. `why` may be null.
  Result<const ExportRule*> rule_for(const onnx::NodeProto& node, const ModelFacts& facts, std::string* why) const {
    for (const ExportRule& rule : options_.target->rules) {
      if (!asks_about(rule, node, functions_, options_)) continue;
      auto reason = rule.applies(node, facts);
      if (!reason.ok()) return std::move(reason).error().at_node(name_of(node));
      if (reason->empty()) continue;
      if (why != nullptr) *why = *std::move(reason);
      return &rule;
    }
    return static_cast<const ExportRule*>(nullptr);
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
    out.changes.push_back(
        {name_of(node), std::string(rule->name), std::move(why), describe(node), std::move(after), 0});
    for (onnx::TensorProto& tensor : replacement.tensors()) out.tensors.push_back(std::move(tensor));
    for (const onnx::NodeProto& made : replacement.nodes()) TRY_VOID(settle(made, facts, out, depth + 1));
    return {};
  }

  const onnx::ModelProto& model_;
  const LegaliseOptions& options_;
  const ModelFacts& facts_;
  const Functions functions_;
};

}  // namespace

Result<std::vector<TargetFinding>> find_refused(std::span<const std::byte> model, TensorFacts facts,
                                                const LegaliseOptions& options) {
  TRY(const wire::ModelPointer parsed, wire::parse_model(model));
  wire::ExternalData external(options.folder);
  const ModelFacts known(*parsed, std::move(facts), external);
  const TargetRules rules(*parsed, known, options);
  return rules.findings();
}

Result<Legalised> legalise(std::span<const std::byte> model, TensorFacts facts, const LegaliseOptions& options) {
  TRY(const wire::ModelPointer parsed, wire::parse_model(model));
  wire::ExternalData external(options.folder);
  ModelFacts known(*parsed, std::move(facts), external);
  const TargetRules rules(*parsed, known, options);
  return rewrite_model(model, *parsed, known, rules);
}

}  // namespace polyphase::legal
