// The nodes of a program, in order, converted by the table.
#include <algorithm>

#include "import/torch/importer.h"
#include "import/torch/node_words.h"
#include "import/torch/sym_expr.h"
#include "ops/custom.h"
#include "wire/printable.h"

namespace polyphase {
namespace {

constexpr std::size_t most_warnings = 100;

// Nodes that only say what the export has already made sure of, or what the input's sizes imply.
bool says_nothing(std::string_view target) {
  constexpr std::string_view names[] = {
      "torch.ops.aten._assert_async.msg",
      "torch.ops.aten._assert_tensor_metadata.default",
      "torch.ops.aten.sym_constrain_range.default",
      "torch.ops.aten.sym_constrain_range_for_size.default",
  };
  return std::find(std::begin(names), std::end(names), target) != std::end(names);
}

std::string name_of(const ProgramNode& node) {
  std::string name = node.name;
  for (const ProgramArgument& output : node.outputs) {
    for (const ProgramItem& item : output.items) {
      if (name.empty()) name = item.text;
    }
  }
  return wire::printable(name.empty() ? node.target : name, 200);
}

// The last line of the trace that names a file: where the user wrote it.
std::string place_of(const ProgramNode& node) {
  const auto begin = node.stack_trace.find("File \"");
  if (begin == std::string::npos) return "";
  const auto end = node.stack_trace.find('\n', begin);
  return wire::printable(node.stack_trace.substr(begin, end - begin), 300);
}

bool gives_tensors(const ProgramNode& node) {
  return std::any_of(node.outputs.begin(), node.outputs.end(), [](const ProgramArgument& output) {
    return std::any_of(output.items.begin(), output.items.end(),
                       [](const ProgramItem& item) { return item.kind == ProgramItem::Kind::tensor; });
  });
}

}  // namespace

std::pair<std::string, std::string> split_target(const std::string& target) {
  constexpr std::string_view prefix = "torch.ops.";
  const std::string rest = wire::printable(target.rfind(prefix, 0) == 0 ? target.substr(prefix.size()) : target);
  const auto dot = rest.find('.');
  if (dot == std::string::npos) return {"", rest};
  return {rest.substr(0, dot), rest.substr(dot + 1)};
}

std::string short_target(const std::string& target) {
  const auto [domain, operator_name] = split_target(target);
  return domain + (domain.empty() ? "" : ".") + operator_name;
}

void ProgramImporter::note_last_uses(const ProgramGraph& graph, ProgramScope& scope) {
  std::size_t number = 0;
  for (const ProgramNode& node : graph.nodes) {
    ++number;
    for (const auto& [name, argument] : node.inputs)
      for_each_tensor({argument}, [&](const std::string& used) { scope.last_use[used] = number; });
  }
  for_each_tensor(graph.outputs, [&](const std::string& used) { scope.last_use[used] = SIZE_MAX; });
}

Result<void> ProgramImporter::refuse(const ProgramNode& node, Error error) {
  const bool about_node = error.code == ErrorCode::unsupported || error.code == ErrorCode::invalid_model;
  if (options_.survey == nullptr || !about_node) return error;
  TRY_VOID(define_missing(node));
  const auto [domain, operator_name] = split_target(node.target);
  options_.survey->refuse(domain, operator_name, std::move(error));
  return {};
}

Result<Values> ProgramImporter::converted(AtenNode& node) {
  const AtenConverter& converter = node.converter();
  if (!node.meets_complex()) return converter.convert(node);
  if (converter.convert_complex != nullptr) return converter.convert_complex(node);
  return lacking("it works on complex numbers, which Polyphase does not do for this operator.",
                 "Write that part with real and imaginary parts: torch.view_as_real(x).");
}

Result<void> ProgramImporter::convert(const ProgramGraph& graph, const ProgramNode& node,
                                      const AtenConverter& converter, const std::string& name) {
  bool missing = false;
  Emitter emitter(*scope_->graph, name);
  TRY(auto arguments, arguments_of(graph, node, converter, missing, emitter));
  std::string written;
  for (const auto& [given, argument] : node.inputs) {
    if (arguments.count(given) == 0)
      return broken_program("it has no argument '" + wire::printable(given) + "'; its declaration is " +
                            converter.schema.name + " of " + std::to_string(arguments.size()) + " arguments.");
    for (const AtenParameter& parameter : converter.schema.parameters) {
      if (parameter.name == given && parameter.alias.find('!') != std::string::npos)
        for_each_tensor({argument}, [&](const std::string& tensor) { written = tensor; });
    }
  }
  if (missing) return define_missing(node);
  if (!written.empty()) TRY_VOID(check_aliases(written));
  std::vector<AtenResult> declared;
  for_each_tensor(node.outputs, [&](const std::string& output) {
    AtenResult result;
    if (const auto tensor = graph.tensors.find(output); tensor != graph.tensors.end()) {
      const auto dtype = dtype_of_parts(tensor->second.scalar_type);
      if (dtype.ok()) result.dtype = *dtype;
      result.is_complex = is_complex_type(tensor->second.scalar_type);
    }
    declared.push_back(result);
  });
  if (scope_->autocast) TRY_VOID(cast_operands(arguments, declared, emitter));
  const std::size_t warned = warnings_.size();
  const AtenMemories memories = [&](std::string_view parameter) -> Result<std::vector<AtenMemory>> {
    for (const auto& [given, argument] : node.inputs) {
      if (given == parameter && argument.items.front().kind == ProgramItem::Kind::tensor)
        return memories_of(graph, argument.items.front().text);
    }
    return std::vector<AtenMemory>{};
  };
  AtenNode context(*scope_->graph, name, converter, std::move(arguments), std::move(declared), warnings_, used_symbols_,
                   memories);
  auto results = converted(context);
  if (warned >= most_warnings) warnings_.resize(warned);
  TRY_VOID(context.finish());
  if (!results.ok()) return std::move(results).error();
  if (!written.empty()) {
    // The operand keeps its dtype and shape, and has the result from here on.
    Value* const old = scope_->names.at(written).value;
    Value*& result = results->at(0);
    if (result != old && scope_->names.at(written).storage < first_own_storage_)
      return lacking("the program changes " + wire::quoted_name(written) + ", an input or a weight, in place.",
                     "Call clone() on it before it is written, and return what changes as an output.");
    if (result->type.dtype != old->type.dtype)
      result = scope_->graph->must_add("cast", Attributes({{"to", old->type.dtype}}), {result}, name);
    scope_->names.at(written).value = result;
    TRY_VOID(write_back(graph, written, name));
  }
  return define_results(graph, node, converter, *results);
}

// The condition becomes checks when a run begins. What cannot be written as checks the operators' own rules cover.
Result<void> ProgramImporter::assert_condition(const ProgramGraph& graph, const ProgramNode& node) {
  if (node.inputs.empty() || node.inputs.front().second.items.empty()) return {};
  const ProgramItem& item = node.inputs.front().second.items.front();
  const auto condition = graph.conditions.find(item.text);
  if (item.kind != ProgramItem::Kind::symbol || condition == graph.conditions.end()) return {};
  const SymbolMeaning meaning = [this](std::string_view symbol) { return meaning_of_symbol(symbol); };
  const auto relations = parse_condition(condition->second, meaning);
  if (!relations.ok()) return {};
  std::string words = "the program demands that " + condition->second + ".";
  if (node.inputs.size() > 1 && !node.inputs[1].second.items.empty())
    words = wire::printable(node.inputs[1].second.items.front().text, 300);
  for (const SymbolicRelation& one : *relations)
    TRY_VOID(DimDemands(scope_->graph->checks()).require(one.left, one.relation, one.right, words));
  return {};
}

Result<void> ProgramImporter::translate(const ProgramGraph& graph) {
  for (const ProgramNode& node : graph.nodes) {
    ++scope_->at;
    if (++nodes_ > options_.max_nodes)
      return Error{ErrorCode::unsupported,
                   "the program has more than " + std::to_string(options_.max_nodes) +
                       " nodes once its short loops are unrolled.",
                   "Take nested loops apart."};
    TRY_VOID(translate_node(graph, node));
  }
  return {};
}

Result<void> ProgramImporter::translate_node(const ProgramGraph& graph, const ProgramNode& node) {
  const std::string name = name_of(node);
  const auto located = [&](Error&& error) {
    if (error.hint.empty() && error.code == ErrorCode::invalid_model) error.hint = broken_program_advice;
    Error out = std::move(std::move(error).at_node(name)).within("operator " + short_target(node.target));
    const std::string place = place_of(node);
    return place.empty() ? out : std::move(out).within("in " + place);
  };
  if (says_nothing(node.target)) return {};
  if (node.target == "torch.ops.aten._assert_scalar.default") {
    auto done = assert_condition(graph, node);
    if (!done.ok()) return located(std::move(done).error());
    return {};
  }
  // Arithmetic on sizes: the program holds what each such name stands for.
  const AtenConverter* const converter = table_.find(node.target);
  if (converter == nullptr && !gives_tensors(node) && !node.outputs.empty()) return {};
  const auto [domain, operator_name] = split_target(node.target);
  if (options_.survey != nullptr) options_.survey->meet(domain, operator_name, 0, name);
  auto higher = translate_higher_order(graph, node, name);
  if (!higher.ok()) return refuse(node, located(std::move(higher).error()));
  if (*higher) return {};
  const auto claimed = registry_.claims().find(torch_claim(short_target(node.target)));
  if (claimed != registry_.claims().end()) {
    auto done = convert(graph, node, claimed_converter(*claimed->second, claimed->first), name);
    if (!done.ok()) return refuse(node, located(std::move(done).error()));
    return {};
  }
  if (converter == nullptr) {
    MissingOperator& use = missing_[short_target(node.target)];
    if (use.nodes++ == 0) use.first_node = name;
    return define_missing(node);
  }
  auto done = convert(graph, node, *converter, name);
  if (!done.ok()) return refuse(node, located(std::move(done).error()));
  return {};
}

}  // namespace polyphase
