// The nodes of a program, in order: arguments resolved, converted by the table, results held against what the program
// declares.
#include <algorithm>

#include "import/torch/importer.h"
#include "wire/printable.h"

namespace polyphase {
namespace {

constexpr int max_inlined_depth = 60;
constexpr std::size_t most_warnings = 100;

// Nodes that only say what the export has already made sure of, or what the input's sizes imply.
bool says_nothing(std::string_view target) {
  constexpr std::string_view names[] = {
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

// "torch.ops.aten.relu.default" → "aten.relu.default"
std::string short_target(const std::string& target) {
  const auto [domain, operator_name] = split_target(target);
  return domain + (domain.empty() ? "" : ".") + operator_name;
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

template <typename F>
void for_each_tensor(const std::vector<ProgramArgument>& arguments, F&& f) {
  for (const ProgramArgument& argument : arguments) {
    for (const ProgramItem& item : argument.items) {
      if (item.kind == ProgramItem::Kind::tensor) f(item.text);
    }
  }
}

}  // namespace

std::pair<std::string, std::string> split_target(const std::string& target) {
  constexpr std::string_view prefix = "torch.ops.";
  const std::string rest = wire::printable(target.rfind(prefix, 0) == 0 ? target.substr(prefix.size()) : target);
  const auto dot = rest.find('.');
  if (dot == std::string::npos) return {"", rest};
  return {rest.substr(0, dot), rest.substr(dot + 1)};
}

void ProgramImporter::note_last_uses(const ProgramGraph& graph) {
  std::size_t number = 0;
  for (const ProgramNode& node : graph.nodes) {
    ++number;
    for (const auto& [name, argument] : node.inputs)
      for_each_tensor({argument}, [&](const std::string& used) { last_use_[used] = number; });
  }
  for_each_tensor(graph.outputs, [&](const std::string& used) { last_use_[used] = SIZE_MAX; });
}

Result<Value*> ProgramImporter::value_of(const std::string& name, bool& missing) {
  const auto found = names_.find(name);
  if (found == names_.end())
    return Error{ErrorCode::corrupt, "the value " + wire::quoted_name(name) + " is used, but nothing before gives it.",
                 "Save the program again."};
  ProgramMeaning& meaning = found->second;
  if (meaning.problem != nullptr) return Error(*meaning.problem);
  missing = missing || meaning.missing;
  if (meaning.value == nullptr && !meaning.weight.empty()) {
    Value*& weight = weights_[meaning.weight];  // tied: several names, one weight
    if (weight == nullptr) {
      TRY(Tensor tensor, archive_.tensor(meaning.weight));
      weight = graph_->add_constant(std::move(tensor), wire::printable(meaning.weight, 200));
      tensors_.push_back({meaning.weight, graph_->name, weight->name});
    }
    meaning.value = weight;
  }
  return meaning.value;
}

Result<AtenScalar> ProgramImporter::scalar_of(const ProgramGraph& graph, const ProgramItem& item) {
  using Kind = ProgramItem::Kind;
  AtenScalar out;
  if (item.kind == Kind::integer || item.kind == Kind::boolean) {
    out.kind = item.kind == Kind::boolean ? AtenScalar::Kind::boolean : AtenScalar::Kind::integer;
    out.size = item.integer;
    out.value = static_cast<double>(item.integer);
    return out;
  }
  if (item.kind == Kind::real) {
    out.kind = AtenScalar::Kind::real;
    out.value = item.real;
    return out;
  }
  if (item.kind != Kind::symbol)
    return broken_program("a number is expected, found " + wire::quoted_name(item.text) + ".");
  const SymbolMeaning meaning = [this](std::string_view symbol) { return meaning_of_symbol(symbol); };
  if (const auto found = graph.symbols.find(item.text); found != graph.symbols.end()) {
    if (found->second.number.has_value()) {
      out.size = *found->second.number;
    } else {
      TRY(out.size, parse_symbolic(found->second.expression, meaning));
    }
    if (out.size.is_constant()) out.value = static_cast<double>(out.size.value());
    return out;
  }
  return lacking("the number " + wire::quoted_name(item.text) + " is a float or a condition that follows from sizes.",
                 "Compute it from fixed numbers, or export the program with fixed sizes.");
}

Result<AtenArgument> ProgramImporter::argument_of(const ProgramGraph& graph, const AtenParameter& parameter,
                                                  const ProgramArgument& argument, bool& missing) {
  using Kind = ProgramItem::Kind;
  AtenArgument out;
  out.list = argument.list;
  if (!argument.list && argument.items.front().kind == Kind::none) {
    if (parameter.type.find('?') == std::string::npos)
      return broken_program("argument '" + parameter.name + "' is None; it must be " + parameter.type + ".");
    out.none = true;
    return out;
  }
  const bool wants_tensor = parameter.type.rfind("Tensor", 0) == 0;
  const bool wants_text = parameter.type.rfind("str", 0) == 0;
  for (const ProgramItem& item : argument.items) {
    const auto refused = [&] {
      return broken_program("argument '" + parameter.name + "' must be " + parameter.type + ", found " +
                            wire::quoted_name(item.text) + ".");
    };
    switch (item.kind) {
      case Kind::tensor: {
        if (!wants_tensor) return refused();
        TRY(Value * value, value_of(item.text, missing));
        out.tensors.push_back(value);
        break;
      }
      case Kind::none:
        if (!wants_tensor) return refused();
        out.tensors.push_back(nullptr);
        break;
      case Kind::integer:
      case Kind::boolean:
      case Kind::real:
      case Kind::symbol: {
        if (wants_text || (wants_tensor && argument.list)) return refused();
        TRY(AtenScalar scalar, scalar_of(graph, item));
        out.code = item.integer;
        out.scalars.push_back(std::move(scalar));
        break;
      }
      case Kind::text:
        if (!wants_text) return refused();
        out.text = item.text;
        break;
      case Kind::dtype:
      case Kind::memory_format:
      case Kind::layout:
        out.code = item.integer;
        break;
      case Kind::device:
        out.text = item.text;
        break;
      case Kind::graph:
      case Kind::other:
        return refused();
    }
  }
  const bool plain = parameter.type.find('[') == std::string::npos;
  if (plain && argument.items.size() != 1) return broken_program("argument '" + parameter.name + "' is a list.");
  const bool wants_number = parameter.type.rfind("SymInt", 0) == 0 || parameter.type.rfind("int", 0) == 0 ||
                            parameter.type.rfind("float", 0) == 0 || parameter.type.rfind("bool", 0) == 0 ||
                            parameter.type.rfind("Scalar", 0) == 0;
  const bool is_dtype = parameter.type.rfind("ScalarType", 0) == 0;
  if (wants_number && !is_dtype && out.scalars.size() != argument.items.size())
    return broken_program("argument '" + parameter.name + "' must be " + parameter.type + ".");
  return out;
}

Result<void> ProgramImporter::define_missing(const ProgramNode& node) {
  for_each_tensor(node.outputs, [&](const std::string& name) {
    ProgramMeaning meaning;
    meaning.missing = true;
    names_.insert_or_assign(name, std::move(meaning));
  });
  return {};
}

Result<void> ProgramImporter::refuse(const ProgramNode& node, Error error) {
  const bool about_node = error.code == ErrorCode::unsupported || error.code == ErrorCode::invalid_model;
  if (options_.survey == nullptr || !about_node) return error;
  TRY_VOID(define_missing(node));
  const auto [domain, operator_name] = split_target(node.target);
  options_.survey->refuse(domain, operator_name, std::move(error));
  return {};
}

// What memory shares in PyTorch we do not share: a name that is read after another name of its memory was written would
// hold old numbers.
Result<void> ProgramImporter::check_aliases(const std::string& written) const {
  const int storage = names_.at(written).storage;
  for (const auto& [name, meaning] : names_) {
    if (meaning.storage != storage || name == written) continue;
    const auto last = last_use_.find(name);
    if (last == last_use_.end() || last->second <= at_) continue;
    return lacking("it writes into " + wire::quoted_name(written) + ", whose memory " + wire::quoted_name(name) +
                       " shares and is read later.",
                   "Save exported_program.run_decompositions({}), which has no writes in place.");
  }
  return {};
}

Result<void> ProgramImporter::check_result(const ProgramTensor& declared, const Value& value) {
  TRY(const DType dtype, dtype_of_scalar_type(declared.scalar_type));
  const Shape& shape = value.type.shape;
  bool same = dtype == value.type.dtype && declared.sizes.size() == static_cast<std::size_t>(shape.rank());
  std::string sizes;
  for (std::size_t axis = 0; axis < declared.sizes.size(); ++axis) {
    const ProgramNumber& size = declared.sizes[axis];
    sizes += (axis == 0 ? "" : ", ") + (size.number.has_value() ? std::to_string(*size.number) : std::string("?"));
    if (same && size.number.has_value()) same = !surely_different(shape[static_cast<int>(axis)], Dim(*size.number));
  }
  if (same) return {};
  return Error{ErrorCode::invalid_model,
               "the program declares the result as " + std::string(polyphase::name_of(dtype)) + "[" + sizes +
                   "], but the operator gives " + value.type.text() + " for these operands.",
               "The file is damaged or was changed by hand: save the program again."};
}

Result<void> ProgramImporter::define_results(const ProgramGraph& graph, const ProgramNode& node,
                                             const AtenConverter& converter, const Values& results) {
  std::size_t i = 0;
  std::size_t which = 0;
  for (const ProgramArgument& output : node.outputs) {
    const std::string alias =
        which < converter.schema.result_aliases.size() ? converter.schema.result_aliases[which] : "";
    ++which;
    for (const ProgramItem& item : output.items) {
      Value* const value = i < results.size() ? results[i] : nullptr;
      ++i;
      if (item.kind != ProgramItem::Kind::tensor) continue;
      ProgramMeaning meaning;
      meaning.value = value;
      meaning.storage = storages_++;
      if (value == nullptr) {
        meaning.problem = std::make_shared<Error>(
            lacking("result " + std::to_string(i - 1) + " (" + wire::quoted_name(item.text) + ") of operator " +
                        short_target(node.target) + " is not computed, but something uses it.",
                    "Change the network so that nothing uses it."));
      } else {
        if (const auto declared = graph.tensors.find(item.text); declared != graph.tensors.end()) {
          TRY_VOID(check_result(declared->second, *value));
          // Sizes that this node gives birth to.
          for (std::size_t axis = 0; axis < declared->second.sizes.size(); ++axis) {
            const ProgramNumber& size = declared->second.sizes[axis];
            const SymbolMeaning name_it = [&](std::string_view symbol) -> Result<Dim> {
              return symbols_.emplace(std::string(symbol), value->type.shape[static_cast<int>(axis)]).first->second;
            };
            if (size.expression.rfind("Symbol(", 0) == 0) (void)parse_symbolic(size.expression, name_it);
          }
        }
        tensors_.push_back({item.text, graph_->name, value->name});
      }
      // A view shares the memory of the operand with the same mark.
      for (const AtenParameter& parameter : converter.schema.parameters) {
        if (alias.empty() || parameter.alias.substr(0, 1) != alias.substr(0, 1)) continue;
        for (const auto& [name, argument] : node.inputs) {
          if (name != parameter.name) continue;
          for_each_tensor({argument},
                          [&](const std::string& operand) { meaning.storage = names_.at(operand).storage; });
        }
      }
      if (!names_.insert_or_assign(item.text, std::move(meaning)).second) {
        return Error{ErrorCode::corrupt, "the name " + wire::quoted_name(item.text) + " is given to two values.",
                     "Save the program again."};
      }
    }
  }
  return {};
}

Result<void> ProgramImporter::convert(const ProgramGraph& graph, const ProgramNode& node,
                                      const AtenConverter& converter, const std::string& name) {
  bool missing = false;
  std::map<std::string, AtenArgument, std::less<>> arguments;
  std::string written;
  for (const AtenParameter& parameter : converter.schema.parameters) {
    const auto given = std::find_if(node.inputs.begin(), node.inputs.end(),
                                    [&](const auto& input) { return input.first == parameter.name; });
    if (given == node.inputs.end() && !parameter.has_default)
      return broken_program("argument '" + parameter.name + "' is missing.");
    const ProgramArgument& argument = given == node.inputs.end() ? parameter.value : given->second;
    TRY(AtenArgument resolved, argument_of(graph, parameter, argument, missing));
    arguments.emplace(parameter.name, std::move(resolved));
    if (parameter.alias.find('!') != std::string::npos)
      for_each_tensor({argument}, [&](const std::string& tensor) { written = tensor; });
  }
  for (const auto& [given, argument] : node.inputs) {
    if (arguments.count(given) == 0)
      return broken_program("it has no argument '" + wire::printable(given) + "'; its declaration is " +
                            converter.schema.name + " of " + std::to_string(arguments.size()) + " arguments.");
  }
  if (missing) return define_missing(node);
  if (!written.empty()) TRY_VOID(check_aliases(written));
  std::vector<std::optional<DType>> declared;
  for_each_tensor(node.outputs, [&](const std::string& output) {
    const auto tensor = graph.tensors.find(output);
    const auto dtype =
        tensor == graph.tensors.end() ? Result<DType>(DType::f32) : dtype_of_scalar_type(tensor->second.scalar_type);
    declared.push_back(dtype.ok() && tensor != graph.tensors.end() ? std::optional(*dtype) : std::nullopt);
  });
  const std::size_t warned = warnings_.size();
  AtenNode context(*graph_, name, converter, std::move(arguments), std::move(declared), warnings_);
  auto results = converter.convert(context);
  if (warned >= most_warnings) warnings_.resize(warned);
  TRY_VOID(context.finish());
  if (!results.ok()) return std::move(results).error();
  if (!written.empty()) {
    // The operand keeps its dtype and shape, and has the result from here on.
    Value* const old = names_.at(written).value;
    Value*& result = results->at(0);
    if (result->type.dtype != old->type.dtype)
      result = graph_->must_add("cast", Attributes({{"to", old->type.dtype}}), {result}, name);
    names_.at(written).value = result;
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
    TRY_VOID(DimDemands(graph_->checks()).require(one.left, one.relation, one.right, words));
  return {};
}

// Gradients on or off change nothing here: the graph inside stands where the node stands.
Result<bool> ProgramImporter::inline_graph(const ProgramNode& node) {
  if (node.target != "torch.ops.higher_order.wrap_with_set_grad_enabled") return false;
  if (depth_ >= max_inlined_depth) return lacking("graphs lie too deep in one another.", "Flatten the module.");
  std::shared_ptr<const ProgramGraph> inner;
  std::vector<std::string> operands;
  for (const auto& [name, argument] : node.inputs) {
    for (const ProgramItem& item : argument.items) {
      if (item.kind == ProgramItem::Kind::graph) inner = item.graph;
      if (item.kind == ProgramItem::Kind::tensor) operands.push_back(item.text);
    }
  }
  std::vector<std::string> parameters;
  if (inner != nullptr) for_each_tensor(inner->inputs, [&](const std::string& name) { parameters.push_back(name); });
  if (inner == nullptr || parameters.size() != operands.size())
    return broken_program("the graph inside does not take what the node gives it.");
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const auto found = names_.find(operands[i]);
    if (found == names_.end())
      return broken_program("its operand " + wire::quoted_name(operands[i]) + " is not there.");
    names_.insert_or_assign(parameters[i], ProgramMeaning(found->second));
  }
  ++depth_;
  TRY_VOID(translate(*inner));
  --depth_;
  std::vector<std::string> results;
  for_each_tensor(inner->outputs, [&](const std::string& name) { results.push_back(name); });
  std::size_t i = 0;
  for_each_tensor(node.outputs, [&](const std::string& name) {
    if (i < results.size() && names_.count(results[i]) != 0)
      names_.insert_or_assign(name, ProgramMeaning(names_.at(results[i])));
    ++i;
  });
  if (i != results.size()) return broken_program("the graph inside gives another number of results than the node has.");
  return true;
}

Result<void> ProgramImporter::translate(const ProgramGraph& graph) {
  for (const ProgramNode& node : graph.nodes) {
    if (depth_ == 0) ++at_;
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
  auto inlined = inline_graph(node);
  if (!inlined.ok()) return refuse(node, located(std::move(inlined).error()));
  if (*inlined) return {};
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
