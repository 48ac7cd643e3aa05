// Two questions for each call: whether it is chosen, and whether its function's operators mean the same in the model.
#include "export/inline_calls.h"

#include <algorithm>

#include "export/function_body.h"
#include "export/functions.h"
#include "export/opset_history.h"
#include "export/rule.h"
#include "wire/external_data.h"
#include "wire/onnx_model.h"
#include "wire/splice_model.h"

namespace polyphase::legal {
namespace {

// The history begins behind it.
constexpr std::int64_t oldest_known_opset = 7;

template <typename Nodes, typename F>
void for_each_node(const Nodes& nodes, F&& visit) {
  for (const auto& node : nodes) {
    visit(node);
    for (const auto& attribute : node.attribute()) {
      if (attribute.has_g()) for_each_node(attribute.g().node(), visit);
      for (const auto& graph : attribute.graphs()) for_each_node(graph.node(), visit);
    }
  }
}

// Whether a node of ONNX's own that was written for one opset says the same in the other.
bool same_in_both(const std::string& op_type, std::int64_t written, std::int64_t read) {
  if (written == read) return true;
  if (std::min(written, read) < oldest_known_opset) return false;
  for (const OperatorVersion& step : operator_versions()) {
    if (step.op_type != op_type || step.version <= std::min(written, read) || step.version > std::max(written, read))
      continue;
    const bool only_more = step.form == VersionForm::same || step.form == VersionForm::grown;
    if (read < written || !only_more || step.old_types != 0) return false;
  }
  return true;
}

class CallInliner {
 public:
  CallInliner(const onnx::ModelProto& model, const LegaliseOptions& options, const std::set<std::string>* places,
              wire::ExternalData& external)
      : model_(model), options_(options), places_(places), functions_(model), names_(model, {}, external) {}

  Result<InlinedModel> run(std::span<const std::byte> bytes) {
    out_.nodes = model_.graph().node_size();
    wire::ModelSplice splice;
    std::set<const onnx::FunctionProto*> called_after;
    for (int i = 0; i < model_.graph().node_size(); ++i) {
      std::vector<onnx::NodeProto> nodes;
      TRY(const bool changed, expand(model_.graph().node(i), std::to_string(i), nodes));
      collect_called(nodes, called_after);
      if (!changed) continue;
      for (const onnx::NodeProto& node : nodes) splice.nodes[i].push_back(node.SerializeAsString());
    }
    if (splice.nodes.empty()) return std::move(out_);
    std::set<const onnx::FunctionProto*> called_before;
    collect_called(model_.graph().node(), called_before);
    for (int i = 0; i < model_.functions_size(); ++i) {
      const onnx::FunctionProto* const function = &model_.functions(i);
      if (called_before.count(function) != 0 && called_after.count(function) == 0) splice.dropped_functions.insert(i);
    }
    if (!new_imports_.empty()) splice.opset_imports = opset_imports();
    TRY(out_.model, wire::splice_model(bytes, splice));
    return std::move(out_);
  }

 private:
  // The node, or what it becomes, at the end of `nodes`. Whether it is something else.
  Result<bool> expand(const onnx::NodeProto& node, const std::string& place, std::vector<onnx::NodeProto>& nodes) {
    if (!calls_.empty()) out_.places[name_of(node)].insert(calls_.begin(), calls_.end());
    const onnx::FunctionProto* const function = functions_.find(node);
    if (function != nullptr && (places_ != nullptr ? places_->count(place) != 0 : is_asked_about(*function))) {
      TRY_VOID(expect_same_operators(*function, node));
      out_.calls.push_back({name_of(node), function->name()});
      calls_.push_back(place);
      int i = 0;
      for (const onnx::NodeProto& inner : function_body(*function, node, names_))
        TRY_VOID(expand(inner, place + "." + std::to_string(i++), nodes));
      calls_.pop_back();
      return true;
    }
    onnx::NodeProto copy = node;
    bool changed = false;
    int graphs = 0;
    for (auto& attribute : *copy.mutable_attribute()) {
      if (attribute.has_g()) {
        TRY(const bool inside, expand_graph(*attribute.mutable_g(), place + "/" + std::to_string(graphs++)));
        changed = changed || inside;
      }
      for (auto& graph : *attribute.mutable_graphs()) {
        TRY(const bool inside, expand_graph(graph, place + "/" + std::to_string(graphs++)));
        changed = changed || inside;
      }
    }
    nodes.push_back(std::move(copy));
    return changed;
  }

  Result<bool> expand_graph(onnx::GraphProto& graph, const std::string& place) {
    std::vector<onnx::NodeProto> nodes;
    bool any = false;
    int i = 0;
    for (const auto& node : graph.node()) {
      TRY(const bool changed, expand(node, place + "." + std::to_string(i++), nodes));
      any = any || changed;
    }
    if (!any) return false;
    graph.clear_node();
    for (onnx::NodeProto& node : nodes) *graph.add_node() = std::move(node);
    return true;
  }

  // Some rule, about some node in it or in what it calls.
  bool is_asked_about(const onnx::FunctionProto& function) {
    if (const auto found = asked_.find(&function); found != asked_.end()) return found->second;
    bool asked = false;
    for_each_node(function.node(), [&](const onnx::NodeProto& node) {
      const onnx::FunctionProto* const inner = functions_.find(node);
      if (inner != nullptr) asked = asked || is_asked_about(*inner);
      for (const ExportRule& rule : options_.target->rules)
        asked = asked || asks_about(rule, node, functions_, options_);
    });
    return asked_[&function] = asked;
  }

  template <typename Nodes>
  void collect_called(const Nodes& nodes, std::set<const onnx::FunctionProto*>& out) {
    for_each_node(nodes, [&](const onnx::NodeProto& node) {
      const onnx::FunctionProto* const function = functions_.find(node);
      if (function != nullptr && out.insert(function).second) collect_called(function->node(), out);
    });
  }

  template <typename Imports>
  static std::optional<std::int64_t> version_in(const Imports& imports, const std::string& domain) {
    for (const auto& import : imports) {
      if (is_own_domain(domain) ? is_own_domain(import.domain()) : import.domain() == domain) return import.version();
    }
    return std::nullopt;
  }

  Result<void> expect_same_operators(const onnx::FunctionProto& function, const onnx::NodeProto& call) {
    std::optional<Error> problem;
    for_each_node(function.node(), [&](const onnx::NodeProto& node) {
      const auto written = version_in(function.opset_import(), node.domain());
      if (!written.has_value()) return;
      const auto read = version_in(model_.opset_import(), node.domain());
      const std::int64_t other = read.has_value() ? *read : new_imports_.emplace(node.domain(), *written).first->second;
      if (functions_.find(node) != nullptr) return;
      if (is_own_domain(node.domain()) ? same_in_both(node.op_type(), *written, other) : *written == other) return;
      problem = Error{ErrorCode::unsupported,
                      "it calls the function '" + function.name() + "', whose " + node.op_type() +
                          " is that of version " + std::to_string(*written) + ", and the model has version " +
                          std::to_string(other) + ", so the function's nodes cannot stand in the model.",
                      "Inline the model's functions first: onnx.inliner.inline_local_functions(model, "
                      "convert_version=True)."}
                    .at_node(name_of(call));
    });
    if (problem.has_value()) return *std::move(problem);
    return {};
  }

  std::vector<std::string> opset_imports() const {
    std::vector<std::string> out;
    for (const auto& import : model_.opset_import()) out.push_back(import.SerializeAsString());
    for (const auto& [domain, version] : new_imports_) {
      onnx::OperatorSetIdProto import;
      import.set_domain(domain);
      import.set_version(version);
      out.push_back(import.SerializeAsString());
    }
    return out;
  }

  const onnx::ModelProto& model_;
  const LegaliseOptions& options_;
  const std::set<std::string>* places_;
  const Functions functions_;
  ModelFacts names_;
  std::map<const onnx::FunctionProto*, bool> asked_;
  std::map<std::string, std::int64_t> new_imports_;  // domains that only functions import
  std::vector<std::string> calls_;                   // places of those that are being expanded
  InlinedModel out_;
};

}  // namespace

Result<InlinedModel> inline_calls(std::span<const std::byte> model, const LegaliseOptions& options,
                                  const std::set<std::string>* places) {
  TRY(const wire::ModelPointer parsed, wire::parse_model(model));
  if (parsed->functions_size() == 0) return InlinedModel();
  wire::ExternalData external(options.folder);
  return CallInliner(*parsed, options, places, external).run(model);
}

}  // namespace polyphase::legal
