// The common part of every operator: attribute completion, guarded inference, contents, evaluation by the reference.
#include "ops/op.h"

#include <algorithm>

namespace polyphase {

std::string_view name_of(DimCheck::Relation relation) {
  switch (relation) {
    case DimCheck::Relation::equal:
      return "==";
    case DimCheck::Relation::less_equal:
      return "<=";
    case DimCheck::Relation::broadcast:
      return "broadcasts with";
  }
  return "?";
}

bool holds(DimCheck::Relation relation, std::int64_t left, std::int64_t right) {
  switch (relation) {
    case DimCheck::Relation::equal:
      return left == right;
    case DimCheck::Relation::less_equal:
      return left <= right;
    case DimCheck::Relation::broadcast:
      return left == right || (left == 1 && right != 0) || (right == 1 && left != 0);
  }
  return false;
}

Result<void> DimDemands::require(const Dim& left, DimCheck::Relation relation, const Dim& right,
                                 const std::string& message) const {
  bool proved = left == right;
  bool disproved = left.overflowed() || right.overflowed();
  if (left.is_constant() && right.is_constant()) {
    proved = holds(relation, left.value(), right.value());
    disproved = !proved;
  } else if (relation == DimCheck::Relation::equal) {
    disproved = disproved || surely_different(left, right);
  } else if (relation == DimCheck::Relation::less_equal) {
    proved = proved || surely_less_equal(left, right);
    disproved = disproved || surely_less_equal(right + 1, left);
  } else {
    disproved = disproved || (surely_different(left, right) && surely_different(left, 1) && surely_different(right, 1));
  }
  if (disproved) return Error{ErrorCode::invalid_model, message};
  if (proved) return {};
  DimCheck check{left, relation, right, message};
  if (std::find(checks_.begin(), checks_.end(), check) == checks_.end()) checks_.push_back(std::move(check));
  return {};
}

Result<Dim> InferContext::broadcast(const Dim& a, const Dim& b, const std::string& message) const {
  if (a == b || b == 1) return a;
  if (a == 1) return b;
  TRY_VOID(require(a, DimCheck::Relation::broadcast, b, message));
  if (surely_different(b, 1)) return b;
  if (surely_different(a, 1)) return a;
  return max(a, b);
}

const AttributeSpec* OpDef::find_attribute(std::string_view attribute_name) const {
  for (const AttributeSpec& spec : attributes) {
    if (spec.name == attribute_name) return &spec;
  }
  return nullptr;
}

Result<Attributes> OpDef::complete(Attributes given) const {
  for (const auto& [given_name, value] : given.values()) {
    const AttributeSpec* spec = find_attribute(given_name);
    if (spec == nullptr) {
      return Error{ErrorCode::invalid_argument, "operator " + name + " has no attribute '" + given_name + "'.",
                   "docs/operators.md lists the attributes of each operator."};
    }
    if (kind_of(value) != spec->kind) {
      return Error{ErrorCode::invalid_argument,
                   "attribute '" + given_name + "' of operator " + name + " must be of kind " +
                       std::string(name_of(spec->kind)) + ", found " + std::string(name_of(kind_of(value))) + ".",
                   "docs/operators.md lists the attributes of each operator."};
    }
    if (spec->kind == AttributeKind::word) {
      const std::string& word = std::get<std::string>(value);
      if (!spec->words.empty() && std::find(spec->words.begin(), spec->words.end(), word) == spec->words.end()) {
        std::string known;
        for (const std::string& allowed : spec->words) known += (known.empty() ? "" : ", ") + allowed;
        return Error{ErrorCode::invalid_argument,
                     "attribute '" + given_name + "' of operator " + name + " is '" + word.substr(0, 60) +
                         "'; it must be one of: " + known + ".",
                     "Use one of these words."};
      }
    }
  }
  for (const AttributeSpec& spec : attributes) {
    if (given.has(spec.name)) continue;
    if (!spec.default_value.has_value()) {
      return Error{ErrorCode::invalid_argument, "operator " + name + " needs the attribute '" + spec.name + "'.",
                   "docs/operators.md lists the attributes of each operator."};
    }
    given.set(spec.name, *spec.default_value);
  }
  return given;
}

namespace {

Result<void> check_operand_count(const OpDef& op, std::span<const OperandInfo> inputs) {
  const bool variadic = !op.inputs.empty() && op.inputs.back().variadic;
  if (inputs.size() > op.inputs.size() && !variadic) {
    return Error{ErrorCode::invalid_model, "operator " + op.name + " takes at most " +
                                               std::to_string(op.inputs.size()) + " operands, found " +
                                               std::to_string(inputs.size()) + "."};
  }
  for (std::size_t i = 0; i < op.inputs.size(); ++i) {
    const bool present = i < inputs.size() && inputs[i].present();
    if (!present && !op.inputs[i].optional) {
      return Error{ErrorCode::invalid_model, "operator " + op.name + " lacks its operand '" + op.inputs[i].name + "'."};
    }
  }
  for (std::size_t i = op.inputs.size(); i < inputs.size(); ++i) {
    if (!inputs[i].present())
      return Error{ErrorCode::invalid_model, "operator " + op.name + " lacks operand " + std::to_string(i) + "."};
  }
  return {};
}

Result<void> check_result(const OpDef& op, const Type& type) {
  if (type.shape.rank() > max_rank) {
    return Error{ErrorCode::unsupported,
                 "operator " + op.name + " would give a tensor of rank " + std::to_string(type.shape.rank()) +
                     "; the highest rank is " + std::to_string(max_rank) + ".",
                 "Use fewer axes."};
  }
  for (const Dim& dim : type.shape) {
    if (dim.overflowed()) {
      return Error{ErrorCode::invalid_model, "operator " + op.name + " would give a size beyond 64-bit arithmetic.",
                   "Use smaller sizes."};
    }
    if (dim.range().high < 0) {
      return Error{ErrorCode::invalid_model,
                   "operator " + op.name + " would give the negative size " + dim.text() + "."};
    }
  }
  const Dim bytes = type.shape.element_count() * Dim(static_cast<std::int64_t>(size_bytes(type.dtype)));
  if (bytes.overflowed() || bytes.range().low > (std::int64_t{1} << 47)) {
    return Error{ErrorCode::out_of_memory,
                 "operator " + op.name + " would give " + type.text() + ", more than any memory holds.",
                 "Use smaller sizes."};
  }
  return {};
}

Result<std::vector<Type>> checked_types(const OpDef& op, const Attributes& attributes,
                                        std::span<const OperandInfo> inputs, std::vector<DimCheck>& checks,
                                        std::span<const RegionTypes> regions) {
  TRY_VOID(check_operand_count(op, inputs));
  CHECK(op.infer != nullptr);
  TRY(std::vector<Type> types, op.infer(InferContext(op, attributes, inputs, checks, regions)));
  for (const Type& type : types) TRY_VOID(check_result(op, type));
  return types;
}

}  // namespace

Result<std::vector<Type>> infer_types(const OpDef& op, const Attributes& attributes,
                                      std::span<const OperandInfo> inputs, std::vector<DimCheck>& checks,
                                      std::span<const RegionTypes> regions) {
  auto types = checked_types(op, attributes, inputs, checks, regions);
  if (types.ok()) return types;
  Error error = std::move(types).error();
  if (error.hint.empty() && error.code == ErrorCode::invalid_model)
    error.hint = "docs/operators.md says what " + op.name + " takes; export the model again if a tool wrote it.";
  return error;
}

namespace {

bool has_symbols(const Attributes& attributes) {
  std::map<std::string, DimRange, std::less<>> symbols;
  attributes.collect_symbols(symbols);
  return !symbols.empty();
}

}  // namespace

Contents infer_contents(const OpDef& op, const Attributes& attributes, std::span<const OperandInfo> inputs,
                        const Type& result) {
  if (is_float(result.dtype) || !result.shape.is_static()) return std::nullopt;
  const auto count = result.shape.element_count().constant();
  if (!count.has_value() || *count < 0 || *count > max_contents) return std::nullopt;
  std::vector<DimCheck> unused;
  if (op.contents != nullptr) return op.contents(InferContext(op, attributes, inputs, unused));
  if (!op.moves_elements || op.reference == nullptr || has_symbols(attributes)) return std::nullopt;
  std::vector<Dim> table;
  std::vector<Tensor> numbers;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].present()) {
      numbers.emplace_back();
      continue;
    }
    if (inputs[i].contents == nullptr) return std::nullopt;
    const auto sizes = inputs[i].type->shape.evaluate({});
    if (!sizes.has_value()) return std::nullopt;
    std::vector<std::int64_t> values;
    // Operands of the result's dtype carry elements; others (indices) keep their values and so must be constant.
    const bool carries = inputs[i].type->dtype == result.dtype &&
                         (i == 0 || op.inputs.size() == 1 || op.inputs[std::min(i, op.inputs.size() - 1)].variadic);
    for (const Dim& dim : *inputs[i].contents) {
      if (carries) {
        values.push_back(static_cast<std::int64_t>(table.size()));
        table.push_back(dim);
      } else {
        if (!dim.is_constant()) return std::nullopt;
        values.push_back(dim.value());
      }
    }
    numbers.push_back(Tensor::from_integers(DType::i64, *sizes, values));
  }
  auto moved = evaluate_reference(op, attributes, numbers);
  if (!moved.ok() || moved->size() != 1 || moved->front().dtype() != DType::i64) return std::nullopt;
  std::vector<Dim> out;
  const TensorView& view = moved->front().view();
  for (std::int64_t i = 0; i < view.element_count(); ++i)
    out.push_back(table[static_cast<std::size_t>(view.as<std::int64_t>()[i])]);
  return out;
}

Result<void> run_reference(const OpDef& op, const ReferenceContext& context) {
  const auto empty = [](const TensorView& result) { return result.empty(); };
  if (std::all_of(context.outputs.begin(), context.outputs.end(), empty)) return {};
  auto done = op.reference({context.attributes, context.inputs, context.outputs, &op});
  if (done.ok()) return done;
  Error error = std::move(done).error();
  if (error.hint.empty()) error.hint = "The data given does not fit the model: check the values of the inputs.";
  return error;
}

Result<std::vector<Tensor>> evaluate_reference(const OpDef& op, const Attributes& attributes,
                                               std::span<const Tensor> inputs) {
  if (op.reference == nullptr || has_symbols(attributes)) {
    return Error{ErrorCode::unsupported,
                 "operator " + op.name + " cannot be computed on its own: it owns a graph or depends on unknown sizes.",
                 "Run it in a graph."};
  }
  std::vector<Type> types(inputs.size());
  std::vector<std::vector<Dim>> contents(inputs.size());
  std::vector<OperandInfo> infos(inputs.size());
  std::vector<TensorView> views(inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].valid()) continue;
    types[i] = inputs[i].type();
    infos[i].type = &types[i];
    views[i] = inputs[i].view();
    const TensorView& view = views[i];
    if (is_float(view.dtype) || view.element_count() > max_contents) continue;
    for_each_index<1>(view.size_span(), {view.strides.data()}, [&](const std::array<std::int64_t, 1>& at) {
      contents[i].emplace_back(
          load_integer(view.data + at[0] * static_cast<std::int64_t>(size_bytes(view.dtype)), view.dtype));
    });
    infos[i].contents = &contents[i];
  }
  std::vector<DimCheck> checks;
  TRY(const std::vector<Type> result_types, infer_types(op, attributes, infos, checks));
  CHECK(checks.empty(), "everything is constant here");
  std::vector<Tensor> results;
  std::vector<TensorView> result_views;
  for (const Type& type : result_types) {
    TRY(Tensor result, Tensor::allocate(type.dtype, type.shape.evaluate({}).value()));
    result_views.push_back(result.view());
    results.push_back(std::move(result));
  }
  TRY_VOID(run_reference(op, {attributes, views, result_views}));
  return results;
}

}  // namespace polyphase
