// The nodes of a program, in order: arguments resolved, converted by the table, results held against what the program
// declares.
#include <algorithm>
#include <initializer_list>
#include <set>

#include "import/compose/bound_size.h"
#include "import/compose/composer.h"
#include "import/torch/importer.h"
#include "import/torch/sym_real.h"
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

void ProgramImporter::note_last_uses(const ProgramGraph& graph, ProgramScope& scope) {
  std::size_t number = 0;
  for (const ProgramNode& node : graph.nodes) {
    ++number;
    for (const auto& [name, argument] : node.inputs)
      for_each_tensor({argument}, [&](const std::string& used) { scope.last_use[used] = number; });
  }
  for_each_tensor(graph.outputs, [&](const std::string& used) { scope.last_use[used] = SIZE_MAX; });
}

Result<Value*> ProgramImporter::value_of(const std::string& name, bool& missing) {
  const auto found = scope_->names.find(name);
  if (found == scope_->names.end())
    return Error{ErrorCode::corrupt, "the value " + wire::quoted_name(name) + " is used, but nothing before gives it.",
                 "Save the program again."};
  ProgramMeaning& meaning = found->second;
  if (meaning.problem != nullptr) return Error(*meaning.problem);
  missing = missing || meaning.missing;
  if (meaning.value == nullptr && !meaning.weight.empty()) {
    Value*& weight = weights_[{scope_->graph, meaning.weight}];  // tied: several names, one weight
    if (weight == nullptr) {
      TRY(Tensor tensor, archive_.tensor(meaning.weight));
      std::string exchangeable = weight_in_use(meaning.weight);
      weight = scope_->graph->add_constant(std::move(tensor), wire::printable(meaning.weight, 200), nullptr,
                                           std::move(exchangeable));
      tensors_.push_back({meaning.weight, scope_->graph->name, weight->name});
    }
    meaning.value = weight;
  }
  return meaning.value;
}

Result<AtenScalar> ProgramImporter::scalar_of(const ProgramGraph& graph, const ProgramItem& item, Emitter& node) {
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
  if (const auto found = graph.reals.find(item.text); found != graph.reals.end()) {
    TRY(const SymbolicReal real, build_real(found->second, node, meaning, reals_));
    out.kind = AtenScalar::Kind::real;
    out.value = real.number;
    out.data = real.data;
    return out;
  }
  return lacking("the number " + wire::quoted_name(item.text) + " is a condition that follows from sizes.",
                 "Compute it from fixed numbers, or export the program with fixed sizes.");
}

Result<AtenArgument> ProgramImporter::argument_of(const ProgramGraph& graph, const AtenParameter& parameter,
                                                  const ProgramArgument& argument, bool& missing, Emitter& node) {
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
        TRY(AtenScalar scalar, scalar_of(graph, item, node));
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
    scope_->names.insert_or_assign(name, std::move(meaning));
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
// hold old numbers. Names outside of the graph that writes count as well; those that the written one is a view of do
// not: they are written too.
Result<void> ProgramImporter::check_aliases(const std::string& written) const {
  const int storage = scope_->names.at(written).storage;
  std::set<std::string_view> above;
  for (const std::string* name = &written; name != nullptr; name = viewed_by(*name)) above.insert(*name);
  for (const ProgramScope* scope = scope_; scope != nullptr; scope = scope->outer) {
    for (const auto& [name, meaning] : scope->names) {
      if (meaning.storage != storage || (scope == scope_ && above.count(name) != 0)) continue;
      const auto last = scope->last_use.find(name);
      if (last == scope->last_use.end() || last->second <= scope->at) continue;
      return lacking("it writes into " + wire::quoted_name(written) + ", whose memory " + wire::quoted_name(name) +
                         " shares and is read later.",
                     "Save exported_program.run_decompositions({}), which has no writes in place.");
    }
  }
  return {};
}

const std::string* ProgramImporter::viewed_by(const std::string& name) const {
  const auto found = scope_->names.find(name);
  if (found == scope_->names.end() || found->second.view == nullptr) return nullptr;
  const auto& inputs = found->second.view->inputs;
  if (inputs.empty() || inputs.front().second.items.size() != 1) return nullptr;
  return &inputs.front().second.items.front().text;
}

// The base of a view with `part` in the view's place; null: we have no way.
Result<Value*> ProgramImporter::put_back(const ProgramGraph& graph, const ProgramNode& view, Value* base, Value* part,
                                         const std::string& node_name) {
  const auto [domain, target] = split_target(view.target);
  const std::string kind = target.substr(0, target.find('.'));
  Emitter emitter(*scope_->graph, node_name);
  Composer c(emitter);
  const auto is_one_of = [&](std::initializer_list<std::string_view> kinds) {
    return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
  };
  // Not reshape, flatten and contiguous: those may have copied.
  const bool was_written = kind.back() == '_';  // the result of a write is the operand itself
  if (was_written || is_one_of({"alias", "detach", "view", "unflatten", "squeeze", "unsqueeze"}))
    return c.result(c.reshape(part, base->type.shape.dims()));
  // These undo themselves, or have an operator of their own for it.
  const bool undoes_itself = is_one_of({"t", "transpose", "swapaxes", "swapdims"});
  const AtenConverter* const converter = kind == "slice"    ? table_.find("torch.ops.aten.slice_scatter.default")
                                         : kind == "select" ? table_.find("torch.ops.aten.select_scatter.default")
                                                            : table_.find(view.target);
  if (converter == nullptr || !(undoes_itself || is_one_of({"slice", "select", "permute"})))
    return static_cast<Value*>(nullptr);
  bool missing = false;
  ProgramNode again = view;
  if (!undoes_itself && kind != "permute") again.inputs.emplace_back("src", view.inputs.front().second);
  TRY(auto arguments, arguments_of(graph, again, *converter, missing, emitter));
  arguments.at("self").tensors = {kind == "slice" || kind == "select" ? base : part};
  if (kind == "permute") {
    AtenArgument& dims = arguments.at("dims");
    const std::vector<AtenScalar> given = dims.scalars;
    const auto rank = static_cast<std::int64_t>(given.size());
    for (std::int64_t i = 0; i < rank; ++i) {
      const Dim& to = given[static_cast<std::size_t>(i)].size;
      if (!to.is_constant()) return static_cast<Value*>(nullptr);
      const std::int64_t axis = to.value() < 0 ? to.value() + rank : to.value();
      if (axis < 0 || axis >= rank) return static_cast<Value*>(nullptr);
      dims.scalars[static_cast<std::size_t>(axis)].size = i;
    }
  }
  if (const auto src = arguments.find("src"); src != arguments.end()) src->second.tensors = {part};
  AtenNode context(*scope_->graph, node_name, *converter, std::move(arguments), {part->type.dtype}, warnings_,
                   used_symbols_);
  TRY(const Values made, converter->convert(context));
  TRY_VOID(context.finish());
  return made.at(0);
}

Result<void> ProgramImporter::write_back(const ProgramGraph& graph, const std::string& written,
                                         const std::string& node_name) {
  const std::string* part = &written;
  while (const std::string* const base = viewed_by(*part)) {
    const auto found = scope_->names.find(*base);
    const ProgramMeaning& from = scope_->names.at(*part);
    if (found == scope_->names.end() || found->second.storage != from.storage) return {};
    bool missing = false;
    TRY(Value * old, value_of(*base, missing));
    if (missing || old == nullptr) return {};
    TRY(Value * whole, put_back(graph, *from.view, old, from.value, node_name));
    if (whole == nullptr) {
      for (const std::string* above = base; above != nullptr; above = viewed_by(*above)) {
        const auto last = scope_->last_use.find(*above);
        if (last == scope_->last_use.end() || last->second <= scope_->at) continue;
        return lacking("it writes into " + wire::quoted_name(*part) + ", which shares memory with " +
                           wire::quoted_name(*above) + " by " + short_target(from.view->target) + " and is read later.",
                       "Save exported_program.run_decompositions({}), which has no writes in place.");
      }
      return {};
    }
    scope_->names.at(*base).value = whole;
    part = base;
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

Result<void> ProgramImporter::define_tensor(const ProgramGraph& graph, const std::string& name,
                                            ProgramMeaning meaning) {
  if (const Value* const value = meaning.value; value != nullptr) {
    if (const auto declared = graph.tensors.find(name); declared != graph.tensors.end()) {
      TRY_VOID(check_result(declared->second, *value));
      // Sizes that the node gives birth to.
      for (std::size_t axis = 0; axis < declared->second.sizes.size(); ++axis) {
        const ProgramNumber& size = declared->second.sizes[axis];
        const SymbolMeaning name_it = [&](std::string_view symbol) -> Result<Dim> {
          return symbols_.emplace(std::string(symbol), value->type.shape[static_cast<int>(axis)]).first->second;
        };
        if (size.expression.rfind("Symbol(", 0) == 0) (void)parse_symbolic(size.expression, name_it);
      }
    }
    tensors_.push_back({name, scope_->graph->name, value->name});
  }
  if (!scope_->names.insert_or_assign(name, std::move(meaning)).second) {
    return Error{ErrorCode::corrupt, "the name " + wire::quoted_name(name) + " is given to two values.",
                 "Save the program again."};
  }
  return {};
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
      if (item.kind == ProgramItem::Kind::symbol && value != nullptr) {
        Emitter emitter(*scope_->graph, wire::printable(item.text, 200));
        TRY_VOID(define_number(graph, item, value, emitter));
      }
      if (item.kind != ProgramItem::Kind::tensor) continue;
      ProgramMeaning meaning;
      meaning.value = value;
      meaning.storage = storages_++;
      if (value == nullptr) {
        meaning.problem = std::make_shared<Error>(
            lacking("result " + std::to_string(i - 1) + " (" + wire::quoted_name(item.text) + ") of operator " +
                        short_target(node.target) + " is not computed, but something uses it.",
                    "Change the network so that nothing uses it."));
      }
      // A view shares the memory of the operand with the same mark.
      for (const AtenParameter& parameter : converter.schema.parameters) {
        if (alias.empty() || parameter.alias.substr(0, 1) != alias.substr(0, 1)) continue;
        for (const auto& [name, argument] : node.inputs) {
          if (name != parameter.name) continue;
          for_each_tensor({argument},
                          [&](const std::string& operand) { meaning.storage = scope_->names.at(operand).storage; });
          meaning.view = &node;
        }
      }
      TRY_VOID(define_tensor(graph, item.text, std::move(meaning)));
    }
  }
  return {};
}

// Inside of autocast the program does not write casts, only the dtypes that came out.
Result<void> ProgramImporter::cast_operands(std::map<std::string, AtenArgument, std::less<>>& arguments,
                                            const std::vector<std::optional<DType>>& declared, Emitter& node) {
  const auto casts = [](DType dtype) { return dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16; };
  if (declared.empty() || !declared.front().has_value() || !casts(*declared.front())) return {};
  for (auto& [parameter, argument] : arguments) {
    for (Value*& value : argument.tensors) {
      if (value == nullptr || !casts(value->type.dtype) || value->type.dtype == *declared.front()) continue;
      TRY(value, node.emit("cast", Attributes({{"to", *declared.front()}}), {value}));
    }
  }
  return {};
}

Result<std::map<std::string, AtenArgument, std::less<>>> ProgramImporter::arguments_of(const ProgramGraph& graph,
                                                                                       const ProgramNode& node,
                                                                                       const AtenConverter& converter,
                                                                                       bool& missing,
                                                                                       Emitter& emitter) {
  std::map<std::string, AtenArgument, std::less<>> arguments;
  for (const AtenParameter& parameter : converter.schema.parameters) {
    const auto given = std::find_if(node.inputs.begin(), node.inputs.end(),
                                    [&](const auto& input) { return input.first == parameter.name; });
    if (given == node.inputs.end() && !parameter.has_default)
      return broken_program("argument '" + parameter.name + "' is missing.");
    const ProgramArgument& argument = given == node.inputs.end() ? parameter.value : given->second;
    TRY(AtenArgument resolved, argument_of(graph, parameter, argument, missing, emitter));
    arguments.emplace(parameter.name, std::move(resolved));
  }
  return arguments;
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
  std::vector<std::optional<DType>> declared;
  for_each_tensor(node.outputs, [&](const std::string& output) {
    const auto tensor = graph.tensors.find(output);
    const auto dtype =
        tensor == graph.tensors.end() ? Result<DType>(DType::f32) : dtype_of_scalar_type(tensor->second.scalar_type);
    declared.push_back(dtype.ok() && tensor != graph.tensors.end() ? std::optional(*dtype) : std::nullopt);
  });
  if (scope_->autocast) TRY_VOID(cast_operands(arguments, declared, emitter));
  const std::size_t warned = warnings_.size();
  AtenNode context(*scope_->graph, name, converter, std::move(arguments), std::move(declared), warnings_,
                   used_symbols_);
  auto results = converter.convert(context);
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

// A number out of a tensor: the one symbol of its expression that has no meaning yet gets one.
Result<void> ProgramImporter::define_number(const ProgramGraph& graph, const ProgramItem& item, Value* value,
                                            Emitter& node) {
  std::string expression;
  if (const auto size = graph.symbols.find(item.text); size != graph.symbols.end()) {
    expression = size->second.expression;
  } else if (const auto real = graph.reals.find(item.text); real != graph.reals.end()) {
    expression = real->second;
  } else if (const auto condition = graph.conditions.find(item.text); condition != graph.conditions.end()) {
    expression = condition->second;
  }
  const std::string symbol = only_unknown(expression, [this](std::string_view name) {
    return symbols_.find(name) != symbols_.end() || reals_.find(name) != reals_.end();
  });
  if (symbol.empty()) return {};
  if (is_float(value->type.dtype)) {
    if (value->type.dtype != DType::f64) {
      TRY(value, node.emit("cast", Attributes({{"to", DType::f64}}), {value}));
    }
    reals_.emplace(symbol, value);
    return {};
  }
  DimRange range{INT64_MIN, INT64_MAX};
  if (const auto known = program_.ranges.find(symbol); known != program_.ranges.end())
    range = {known->second.first.value_or(INT64_MIN), known->second.second.value_or(INT64_MAX)};
  if (value->type.dtype == DType::boolean) range = {0, 1};
  TRY(Dim size, bound_size(node, value, range, used_symbols_));
  symbols_.emplace(symbol, std::move(size));
  return {};
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
