// The arguments of a program's nodes: names become values and numbers, as the schema promises them.
#include <algorithm>

#include "import/torch/importer.h"
#include "import/torch/sym_real.h"
#include "wire/printable.h"

namespace polyphase {

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
  if (item.kind == Kind::complex) {
    out.kind = AtenScalar::Kind::complex;
    out.value = item.real;
    out.imaginary = item.imaginary;
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

// Whether the program declares the tensor as complex, and it is laid out so.
Result<bool> ProgramImporter::holds_pairs(const ProgramGraph& graph, const std::string& name, const Value* value) {
  const auto declared = graph.tensors.find(name);
  if (declared == graph.tensors.end() || !is_complex_type(declared->second.scalar_type)) return false;
  if (value == nullptr) return true;
  const Type& type = value->type;
  const int rank = type.shape.rank();
  if (rank > 0 && type.shape[rank - 1] == 2 && (type.dtype == DType::f32 || type.dtype == DType::f64)) return true;
  return broken_program("the program declares " + wire::quoted_name(name) + " as complex, but it is " + type.text() +
                        " of real numbers.");
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
        TRY(const bool complex, holds_pairs(graph, item.text, value));
        out.tensors.push_back(value);
        out.complex.push_back(complex);
        break;
      }
      case Kind::none:
        if (!wants_tensor) return refused();
        out.tensors.push_back(nullptr);
        out.complex.push_back(false);
        break;
      case Kind::integer:
      case Kind::boolean:
      case Kind::real:
      case Kind::complex:
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

// Inside of autocast the program does not write casts, only the dtypes that came out.
Result<void> ProgramImporter::cast_operands(std::map<std::string, AtenArgument, std::less<>>& arguments,
                                            const std::vector<AtenResult>& declared, Emitter& node) {
  const auto casts = [](DType dtype) { return dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16; };
  if (declared.empty() || !declared.front().dtype.has_value() || !casts(*declared.front().dtype)) return {};
  const DType to = *declared.front().dtype;
  for (auto& [parameter, argument] : arguments) {
    for (Value*& value : argument.tensors) {
      if (value == nullptr || !casts(value->type.dtype) || value->type.dtype == to) continue;
      TRY(value, node.emit("cast", Attributes({{"to", to}}), {value}));
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

}  // namespace polyphase
