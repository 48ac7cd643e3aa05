// Operands of several dtypes: promoted by casts that bear their layer's name, refused where the network is strongly
// typed, computed in the dtype of the innermost precision scope.
#include <algorithm>

#include "base/scanner.h"
#include "import/network/builder.h"
#include "import/network/refuse.h"

namespace polyphase {
namespace {

const OperandSpec* spec_of(const OpDef& op, std::size_t i) {
  if (op.inputs.empty()) return nullptr;
  if (i < op.inputs.size()) return &op.inputs[i];
  return op.inputs.back().variadic ? &op.inputs.back() : nullptr;
}

bool must_agree(const OpDef& op, std::size_t i) {
  if (op.inputs.empty()) return false;
  const std::size_t spec = std::min(i, op.inputs.size() - 1);
  return (i < op.inputs.size() || op.inputs.back().variadic) && (op.one_dtype >> spec & 1U) != 0;
}

std::string operand_words(const OpDef& op, std::size_t i) {
  const OperandSpec* spec = spec_of(op, i);
  if (spec == nullptr) return std::to_string(i);
  return spec->variadic ? spec->name + std::to_string(i + 1 - op.inputs.size()) : spec->name;
}

bool is_number(const GivenOperand& given) { return given.index() >= 2; }

DType dtype_of_number(const GivenOperand& given) {
  if (std::holds_alternative<double>(given)) return DType::f32;
  return std::holds_alternative<bool>(given) ? DType::boolean : DType::i64;
}

// Two tensors among those that must agree, of two dtypes; `first` and `second` are equal where there are none.
struct Mixed {
  std::size_t first = 0;
  std::size_t second = 0;
};
Mixed mixed_types(const OpDef& op, const std::vector<Value*>& values) {
  std::optional<std::size_t> first;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] == nullptr || !must_agree(op, i)) continue;
    if (!first.has_value()) first = i;
    if (values[i]->type.dtype != values[*first]->type.dtype) return {*first, i};
  }
  return {};
}

// What all operands that must agree become; nothing: there are none.
std::optional<DType> common_dtype(const OpDef& op, const std::vector<Value*>& values, const GivenOperands& given,
                                  bool numbers_follow) {
  Promotion promotion;
  std::optional<DType> of_tensors;
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (!must_agree(op, i)) continue;
    if (values[i] != nullptr) {
      of_tensors = values[i]->type.dtype;
      promotion.add_tensor(values[i]->type.dtype, values[i]->type.shape.rank());
    } else if (is_number(given[i])) {
      promotion.add_number(dtype_of_number(given[i]));
    }
  }
  return numbers_follow && of_tensors.has_value() ? of_tensors : promotion.result();
}

}  // namespace

Result<Value*> NetworkBuilder::as_dtype(Value* value, DType dtype, const std::string& cast_name) {
  if (value->type.dtype == dtype) return value;
  TRY(Node * cast, emit("cast", Attributes({{"to", dtype}}), {value}, cast_name));
  return cast->output();
}

Result<Value*> NetworkBuilder::number_as(const GivenOperand& number, DType dtype, const std::string& layer,
                                         const std::string& operand) {
  const auto* real = std::get_if<double>(&number);
  const auto* boolean = std::get_if<bool>(&number);
  const std::int64_t integer = real != nullptr ? 0 : boolean != nullptr ? *boolean : std::get<std::int64_t>(number);
  TRY(Tensor tensor, Tensor::allocate(dtype, std::vector<std::int64_t>{}));
  if (real != nullptr || is_float(dtype)) {
    store_double(tensor.view().data, dtype, real != nullptr ? *real : static_cast<double>(integer));
  } else {
    store_integer(tensor.view().data, dtype, integer);
  }
  const bool fits = is_float(dtype) || (real != nullptr ? load_double(tensor.view().data, dtype) == *real
                                                        : load_integer(tensor.view().data, dtype) == integer);
  if (!fits) {
    return refused_call("operand '" + operand + "' is the number " +
                            (real != nullptr ? shortest(*real) : std::to_string(integer)) + ", which " +
                            std::string(polyphase::name_of(dtype)) + ", the dtype of the others, cannot hold.",
                        "Cast the others to a dtype that holds it, or give another number.")
        .at_node(layer);
  }
  return here().add_constant(std::move(tensor), layer + "/" + operand);
}

Result<std::vector<Value*>> NetworkBuilder::settle_operands(const OpDef& op, const GivenOperands& given,
                                                            const std::string& layer) {
  std::vector<Value*> values(given.size(), nullptr);
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (const auto* tensor = std::get_if<TensorNumber>(&given[i]); tensor != nullptr) {
      TRY(values[i], value_of(tensor->number, layer));
    }
  }
  if (settings_.strongly_typed) {
    const Mixed mixed = mixed_types(op, values);
    if (mixed.first != mixed.second) {
      return refused_call("operand '" + operand_words(op, mixed.first) + "' is " + values[mixed.first]->type.text() +
                              " and operand '" + operand_words(op, mixed.second) + "' is " +
                              values[mixed.second]->type.text() + ": operator " + op.name +
                              " takes one dtype, and a strongly typed network casts nothing by itself.",
                          "Add a layer `cast` for one of them, or build the network without strongly_typed.")
          .at_node(layer);
    }
  }
  std::optional<DType> common = common_dtype(op, values, given, settings_.strongly_typed);
  const bool scoped = !precisions_.empty();
  if (scoped && common.has_value() && is_float(*common)) common = precisions_.back();
  for (std::size_t i = 0; i < given.size(); ++i) {
    const std::string words = operand_words(op, i);
    const bool agrees = must_agree(op, i);
    if (is_number(given[i])) {
      TRY(values[i], number_as(given[i], agrees ? *common : dtype_of_number(given[i]), layer, words));
      continue;
    }
    if (values[i] == nullptr) continue;
    // What only moves elements keeps their dtype, and so does what says which it gives.
    const bool computes = i == 0 && op.one_dtype == 0 && !op.moves_elements && op.name != "cast";
    const bool narrowed = scoped && computes && is_float(values[i]->type.dtype);
    if (!agrees && !narrowed) continue;
    TRY(values[i], as_dtype(values[i], agrees ? *common : precisions_.back(), layer + "/cast_" + words));
  }
  return values;
}

Result<void> NetworkBuilder::push_precision(DType dtype) {
  if (settings_.strongly_typed) {
    return refused_call("a precision scope is opened in a strongly typed network, which casts nothing by itself.",
                        "Add layers `cast`, or build the network without strongly_typed.");
  }
  if (static_cast<int>(dtype) >= dtype_count || !is_float(dtype) || size_bytes(dtype) < 2) {
    const std::string found =
        static_cast<int>(dtype) < dtype_count ? std::string(polyphase::name_of(dtype)) : "unknown";
    return refused_call("a precision scope has the dtype " + found + ".", "Precisions are f64, f32, bf16 and f16.");
  }
  precisions_.push_back(dtype);
  return {};
}

void NetworkBuilder::pop_precision() {
  if (!precisions_.empty()) precisions_.pop_back();
}

}  // namespace polyphase
