// The results of a program's nodes: held against what the program declares, and named.
#include "import/compose/bound_size.h"
#include "import/torch/importer.h"
#include "import/torch/node_words.h"
#include "import/torch/sym_real.h"
#include "wire/printable.h"

namespace polyphase {

Result<void> ProgramImporter::define_missing(const ProgramNode& node) {
  for_each_tensor(node.outputs, [&](const std::string& name) {
    ProgramMeaning meaning;
    meaning.missing = true;
    scope_->names.insert_or_assign(name, std::move(meaning));
  });
  return {};
}

Result<void> ProgramImporter::check_result(const ProgramTensor& declared, const Value& value) {
  const bool complex = is_complex_type(declared.scalar_type);  // then the value has the parts on a last axis
  TRY(const DType dtype, dtype_of_parts(declared.scalar_type));
  const Shape& shape = value.type.shape;
  const std::size_t rank = declared.sizes.size() + (complex ? 1 : 0);
  bool same = dtype == value.type.dtype && rank == static_cast<std::size_t>(shape.rank());
  if (same && complex) same = shape[shape.rank() - 1] == 2;
  std::string sizes;
  for (std::size_t axis = 0; axis < declared.sizes.size(); ++axis) {
    const ProgramNumber& size = declared.sizes[axis];
    sizes += (axis == 0 ? "" : ", ") + (size.number.has_value() ? std::to_string(*size.number) : std::string("?"));
    if (same && size.number.has_value()) same = !surely_different(shape[static_cast<int>(axis)], Dim(*size.number));
  }
  if (same) return {};
  return Error{ErrorCode::invalid_model,
               "the program declares the result as " + std::string(complex ? "complex " : "") +
                   std::string(polyphase::name_of(dtype)) + "[" + sizes + "], but the operator gives " +
                   value.type.text() + " for these operands.",
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

}  // namespace polyphase
