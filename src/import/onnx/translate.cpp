// The nodes of every body, in order: converted by the table, or a function's body in their place.
#include <algorithm>

#include "import/onnx/importer.h"
#include "import/onnx/node_context.h"
#include "import/onnx/opsets.h"
#include "import/onnx/sequence.h"
#include "onnx/onnx.pb.h"
#include "ops/custom.h"
#include "wire/printable.h"

namespace polyphase {
namespace {

constexpr int max_body_depth = 400;  // functions and subgraphs inside one another; each takes a frame of ours

std::string name_of(const onnx::NodeProto& node, std::size_t index, const Body& body) {
  std::string name = node.name();
  for (int i = 0; name.empty() && i < node.output_size(); ++i) name = node.output(i);
  if (name.empty()) name = node.op_type() + "_" + std::to_string(index);
  return body.prefix + wire::printable(name, 200);
}

std::string described(const onnx::NodeProto& node, int version) {
  const std::string_view domain = domain_of(node.domain());
  return (domain.empty() ? "" : wire::printable(domain) + ".") + wire::printable(node.op_type()) +
         (version > 0 ? ", version " + std::to_string(version) : "");
}

// Operands up to the last that is there.
int operand_count(const onnx::NodeProto& node) {
  int count = node.input_size();
  while (count > 0 && node.input(count - 1).empty()) --count;
  return count;
}

int result_count(const onnx::NodeProto& node) {
  int count = node.output_size();
  while (count > 0 && node.output(count - 1).empty()) --count;
  return count;
}

}  // namespace

Result<void> Importer::define(std::string_view name, Meaning meaning, Scope& scope) {
  const Value* value = meaning.value;
  if (scope.names.emplace(name, std::move(meaning)).second) {
    if (value != nullptr && value->producer != nullptr)
      named_.push_back({scope.body->prefix + std::string(name), scope.graph->name, value->name});
    return {};
  }
  return broken_rule("the name " + wire::quoted_name(name) +
                     " is given to two values; every value needs a name of its own.");
}

Result<Meaning*> Importer::look_up(std::string_view name, Scope& scope) {
  for (Scope* at = &scope; at != nullptr; at = at->outer) {
    const auto found = at->names.find(name);
    if (found == at->names.end()) continue;
    if (options_.refittable && at == main_scope_) used_weights_.emplace(name);
    return &found->second;
  }
  return broken_rule(
      "the value " + wire::quoted_name(name) + " is used, but no input, initializer or earlier node gives it.",
      "Nodes must stand in an order in which every value comes before its use, without cycles: check the model with "
      "onnx.checker.check_model.");
}

Result<Value*> Importer::value_of(std::string_view name, Scope& scope, bool& missing) {
  if (name.empty()) return static_cast<Value*>(nullptr);
  TRY(Meaning * meaning, look_up(name, scope));
  if (meaning->problem != nullptr) return Error(*meaning->problem);
  if (meaning->missing) missing = true;
  if (meaning->sequence != nullptr || meaning->is_empty_optional)
    return lacking("the value " + wire::quoted_name(name) + " is " +
                       (meaning->sequence != nullptr ? "a sequence" : "an optional that holds nothing") +
                       "; here it must be a tensor.",
                   "Take the tensors out of it (SequenceAt), or return them one by one.");
  if (meaning->value == nullptr && meaning->tensor.has_value()) {
    meaning->value = scope.graph->add_constant(*meaning->tensor, wire::printable(name, 200), nullptr, meaning->weight);
  }
  return meaning->value;
}

Result<Values> Importer::operands_of(const onnx::NodeProto& node, Scope& scope, bool& missing) {
  Values operands;
  const int count = operand_count(node);
  operands.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) {
    TRY(Value * operand, value_of(node.input(i), scope, missing));
    operands.push_back(operand);
  }
  return operands;
}

Result<std::vector<NamedAttribute>> Importer::attributes_of(onnx::NodeProto& node, const Scope& scope) const {
  std::vector<NamedAttribute> attributes;
  std::set<std::string_view> seen;
  for (auto& attribute : *node.mutable_attribute()) {
    if (!seen.insert(attribute.name()).second)
      return broken_rule("the attribute " + wire::quoted_name(attribute.name()) + " is there twice.");
    if (attribute.ref_attr_name().empty()) {
      attributes.push_back({attribute.name(), &attribute});
      continue;
    }
    if (scope.body->attributes == nullptr) {
      return broken_rule("the attribute " + wire::quoted_name(attribute.name()) + " refers to a function's attribute " +
                         wire::quoted_name(attribute.ref_attr_name()) + ", but the node is in no function.");
    }
    const auto found = scope.body->attributes->find(attribute.ref_attr_name());
    // If the caller left it out, the operator's default holds.
    if (found != scope.body->attributes->end()) attributes.push_back({attribute.name(), found->second});
  }
  return attributes;
}

Result<void> Importer::define_missing(const onnx::NodeProto& node, Scope& scope) {
  for (const std::string& output : node.output()) {
    Meaning meaning;
    meaning.missing = true;
    if (!output.empty()) TRY_VOID(define(output, std::move(meaning), scope));
  }
  return {};
}

Result<void> Importer::translate_graph(onnx::GraphProto& graph, Scope& scope) {
  std::size_t index = 0;
  for (auto& node : *graph.mutable_node()) TRY_VOID(translate_node(node, scope, index++));
  return {};
}

Result<void> Importer::translate_body(onnx::FunctionProto& function, Scope& scope) {
  std::size_t index = 0;
  for (auto& node : *function.mutable_node()) TRY_VOID(translate_node(node, scope, index++));
  return {};
}

Result<void> Importer::translate_node(onnx::NodeProto& node, Scope& scope, std::size_t index) {
  const std::string name = name_of(node, index, *scope.body);
  const auto located = [&](Error&& error, int version) {
    if (error.hint.empty() && error.code == ErrorCode::invalid_model) error.hint = rule_broken_advice;
    return std::move(std::move(error).at_node(name)).within("operator " + described(node, version));
  };
  if (depth_ >= max_body_depth)
    return located(lacking("functions and subgraphs lie more than " + std::to_string(max_body_depth) + " deep.",
                           "Flatten the model."),
                   0);
  const std::string domain(domain_of(node.domain()));
  const auto opset = scope.body->opsets->find(domain);
  const std::int64_t domain_version = opset == scope.body->opsets->end() ? 1 : opset->second;
  OperatorSurvey* survey = options_.survey;
  if (survey != nullptr) survey->meet(domain, node.op_type(), domain_version, name);
  if (registry_.find_claim(onnx_claim(domain, node.op_type())) != nullptr) {
    if (survey != nullptr) survey->use(domain, node.op_type()).version = static_cast<int>(domain_version);
    auto done = convert(node, claimed_converter(domain, node.op_type()), 1, name, scope);
    if (!done.ok()) return refuse(node, located(std::move(done).error(), 0), scope);
    return {};
  }
  if (onnx::FunctionProto* function = functions_.find(node); function != nullptr) {
    if (survey != nullptr) survey->use(domain, node.op_type()).is_function = true;
    auto done = call(node, *function, name, scope);
    if (!done.ok())
      return std::move(done).error().within("in function " + wire::quoted_name(function->name()) + ", called by '" +
                                            name + "'");
    return {};
  }
  if (opset == scope.body->opsets->end() && domain.empty())
    return located(broken_rule("the opset of this node's domain is not imported."), 0);
  if (domain.empty() && is_structural(node.op_type())) {
    const int depth = depth_;
    auto done = node.op_type() == "If"     ? branch(node, name, scope)
                : node.op_type() == "Loop" ? loop(node, name, scope)
                                           : scan(node, name, static_cast<int>(domain_version), scope);
    depth_ = depth;
    if (!done.ok()) return refuse(node, located(std::move(done).error(), 0), scope);
    return {};
  }
  const bool of_sequences = domain.empty() && is_of_sequences(node, scope);
  const Converter* converter = of_sequences ? sequence_converter(node.op_type()) : table_.find(domain, node.op_type());
  const int version = converter == nullptr ? 0 : version_at(*converter, domain_version);
  if (converter == nullptr || version == 0) {
    const bool too_early = converter != nullptr;
    missing_.add(domain, node.op_type(), domain_version, name,
                 too_early
                     ? "it exists from opset " + std::to_string(converter->versions.front()) + " on; export with that"
                     : "");
    return define_missing(node, scope);
  }
  if (survey != nullptr) survey->use(domain, node.op_type()).version = version;
  auto done =
      of_sequences ? sequence(node, *converter, version, name, scope) : convert(node, *converter, version, name, scope);
  if (!done.ok()) return refuse(node, located(std::move(done).error(), version), scope);
  return {};
}

// The end of the import; with a survey, a note.
Result<void> Importer::refuse(const onnx::NodeProto& node, Error error, Scope& scope) {
  const bool about_node = error.code == ErrorCode::unsupported || error.code == ErrorCode::invalid_model;
  if (options_.survey == nullptr || !about_node) return error;
  TRY_VOID(define_missing(node, scope));
  options_.survey->refuse(domain_of(node.domain()), node.op_type(), std::move(error));
  return {};
}

Result<void> check_operands(const Converter& converter, const std::vector<bool>& present) {
  for (std::size_t i = 0; i < static_cast<std::size_t>(converter.min_inputs); ++i) {
    if (i >= present.size() || !present[i]) {
      return broken_rule("operand " + std::to_string(i) + " is missing; the operator needs " +
                         std::to_string(converter.min_inputs) + ".");
    }
  }
  if (present.size() > static_cast<std::size_t>(converter.max_inputs)) {
    return broken_rule("the node has " + std::to_string(present.size()) + " operands; the operator takes at most " +
                       std::to_string(converter.max_inputs) + ".");
  }
  return {};
}

Result<void> Importer::convert(onnx::NodeProto& node, const Converter& converter, int version, const std::string& name,
                               Scope& scope) {
  bool missing = false;
  TRY(Values operands, operands_of(node, scope, missing));
  if (missing) return define_missing(node, scope);
  std::vector<bool> present;
  for (const Value* operand : operands) present.push_back(operand != nullptr);
  TRY_VOID(check_operands(converter, present));
  TRY(std::vector<NamedAttribute> attributes, attributes_of(node, scope));
  const auto wanted = static_cast<std::size_t>(result_count(node));
  NodeContext context(*this, *scope.graph, converter, version, name, std::move(operands), wanted,
                      std::move(attributes));
  auto results = converter.convert(context);
  TRY_VOID(context.finish());
  if (!results.ok()) return std::move(results).error();
  for (std::size_t i = 0; i < wanted; ++i) {
    const std::string& output = node.output(static_cast<int>(i));
    if (output.empty()) continue;
    Meaning meaning;
    if (i < results->size() && (*results)[i] != nullptr) {
      meaning.value = (*results)[i];
    } else {
      meaning.problem =
          std::make_shared<Error>(lacking("result " + std::to_string(i) + " (" + wire::quoted_name(output) +
                                              ") of this operator is not computed, but something uses it.",
                                          "Export the model so that only result 0 is used.")
                                      .at_node(name));
    }
    TRY_VOID(define(output, std::move(meaning), scope));
  }
  return {};
}

Result<void> Importer::call(onnx::NodeProto& node, onnx::FunctionProto& function, const std::string& name,
                            Scope& scope) {
  TRY(const std::vector<NamedAttribute> given, attributes_of(node, scope));
  std::map<std::string_view, onnx::AttributeProto*> attributes;
  for (auto& attribute : *function.mutable_attribute_proto()) attributes[attribute.name()] = &attribute;
  for (const NamedAttribute& attribute : given) attributes[attribute.name] = attribute.proto;
  for (const std::string& required : function.attribute()) {
    if (attributes.count(required) == 0)
      return broken_rule("the function's attribute " + wire::quoted_name(required) + " is not given.").at_node(name);
  }
  TRY(const Opsets opsets, opsets_of(function, opsets_));
  const Body body{&opsets, &attributes, name + "/"};
  Scope inner{scope.graph, &body, nullptr, {}};
  const int count = operand_count(node);
  if (count > function.input_size()) {
    return broken_rule("the node has " + std::to_string(count) + " operands; the function takes " +
                       std::to_string(function.input_size()) + ".")
        .at_node(name);
  }
  for (int i = 0; i < function.input_size(); ++i) {
    Meaning meaning;
    if (i < count) {
      bool operand_missing = false;
      auto given_meaning = meaning_of(node.input(i), scope, operand_missing);
      if (!given_meaning.ok()) return std::move(given_meaning).error().at_node(name);
      meaning = std::move(given_meaning).value();
    }
    TRY_VOID(define(function.input(i), std::move(meaning), inner));
  }
  if (node.output_size() > function.output_size()) {
    return broken_rule("the node has " + std::to_string(node.output_size()) + " results; the function gives " +
                       std::to_string(function.output_size()) + ".")
        .at_node(name);
  }
  ++depth_;
  TRY_VOID(translate_body(function, inner));
  --depth_;
  for (int i = 0; i < node.output_size(); ++i) {
    if (node.output(i).empty()) continue;
    bool result_missing = false;
    TRY(Meaning meaning, meaning_of(function.output(i), inner, result_missing));
    if (!meaning.is_there() && !meaning.is_empty_optional && !result_missing)
      return broken_rule("the function's result " + std::to_string(i) + " has no name or no value.").at_node(name);
    TRY_VOID(define(node.output(i), std::move(meaning), scope));
  }
  return {};
}

}  // namespace polyphase
