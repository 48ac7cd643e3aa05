// Arguments with the types that the schema promises.
#include "import/torch/aten_node.h"

#include <algorithm>

#include "base/check.h"
#include "import/compose/bound_size.h"
#include "import/torch/program.h"

namespace polyphase {

Error broken_program(std::string message) {
  return Error{ErrorCode::invalid_model, std::move(message), broken_program_advice};
}

const AtenArgument& AtenNode::argument(std::string_view parameter) const {
  const auto found = arguments_.find(parameter);
  CHECK(found != arguments_.end(), "a converter asks for a parameter that its schema lacks");
  return found->second;
}

Value* AtenNode::tensor(std::string_view parameter) {
  const AtenArgument& given = argument(parameter);
  if (given.none) return nullptr;
  if (!given.tensors.empty() && given.tensors.front() != nullptr) return given.tensors.front();
  using Kind = AtenScalar::Kind;
  const AtenScalar& number = scalar(parameter);
  return tensor_as(parameter, number.kind == Kind::real      ? DType::f32
                              : number.kind == Kind::boolean ? DType::boolean
                                                             : DType::i64);
}

bool AtenNode::is_number(std::string_view parameter) const {
  const AtenArgument& given = argument(parameter);
  return !given.none && !given.list && !given.scalars.empty();
}

const AtenScalar& AtenNode::scalar(std::string_view parameter) const {
  const AtenArgument& given = argument(parameter);
  CHECK(!given.scalars.empty(), "the argument is no number");
  return given.scalars.front();
}

Values AtenNode::tensors(std::string_view parameter) { return argument(parameter).tensors; }

Dim AtenNode::size(std::string_view parameter) const { return scalar(parameter).size; }

std::vector<Dim> AtenNode::sizes(std::string_view parameter, std::size_t count) const {
  std::vector<Dim> out;
  for (const AtenScalar& one : argument(parameter).scalars) out.push_back(one.size);
  if (out.size() == 1 && count > 1) out.resize(count, out.front());
  return out;
}

std::int64_t AtenNode::fixed(const AtenScalar& scalar, std::string_view parameter) {
  if (scalar.size.is_constant()) return scalar.size.value();
  refuse_later(lacking(
      "argument '" + std::string(parameter) + "' is the symbolic number " + scalar.size.text() + "; it must be fixed.",
      "Export the program with that number as a Python constant."));
  return 1;
}

std::int64_t AtenNode::integer(std::string_view parameter) { return fixed(scalar(parameter), parameter); }

std::vector<std::int64_t> AtenNode::integers(std::string_view parameter, std::size_t count) {
  std::vector<std::int64_t> out;
  for (const AtenScalar& one : argument(parameter).scalars) out.push_back(fixed(one, parameter));
  if (out.size() == 1 && count > 1) out.resize(count, out.front());
  return out;
}

bool AtenNode::is_complex(std::string_view parameter, std::size_t i) const {
  const AtenArgument& given = argument(parameter);
  return i < given.complex.size() && given.complex[i];
}

bool AtenNode::meets_complex() const {
  for (const auto& [name, given] : arguments_) {
    for (std::size_t i = 0; i < given.complex.size(); ++i) {
      if (given.complex[i]) return true;
    }
    for (const AtenScalar& number : given.scalars) {
      if (number.kind == AtenScalar::Kind::complex) return true;
    }
  }
  return std::any_of(declared_.begin(), declared_.end(), [](const AtenResult& one) { return one.is_complex; });
}

AtenArgument& AtenNode::change(std::string_view parameter) {
  const auto found = arguments_.find(parameter);
  CHECK(found != arguments_.end(), "a converter asks for a parameter that its schema lacks");
  return found->second;
}

double AtenNode::real(std::string_view parameter) {
  const AtenScalar& number = scalar(parameter);
  if (number.kind == AtenScalar::Kind::complex) {
    refuse_later(lacking("argument '" + std::string(parameter) + "' is a complex number.",
                         "Multiply by complex numbers with a plain product."));
    return 1;
  }
  if (number.data != nullptr)
    refuse_later(
        lacking("argument '" + std::string(parameter) + "' is a float that only a run tells; it must be fixed.",
                "Export the program with that number as a Python constant."));
  return number.kind == AtenScalar::Kind::real ? number.value : static_cast<double>(fixed(number, parameter));
}

std::vector<double> AtenNode::reals(std::string_view parameter) {
  std::vector<double> out;
  for (const AtenScalar& one : argument(parameter).scalars)
    out.push_back(one.kind == AtenScalar::Kind::real ? one.value : static_cast<double>(fixed(one, parameter)));
  return out;
}

bool AtenNode::flag(std::string_view parameter) const {
  const AtenArgument& given = argument(parameter);
  return !given.none && !given.scalars.empty() && !(given.scalars.front().size == 0);
}

std::optional<DType> AtenNode::dtype(std::string_view parameter) {
  const AtenArgument& given = argument(parameter);
  if (given.none) return std::nullopt;
  auto found = dtype_of_scalar_type(given.code);
  if (found.ok()) return *found;
  refuse_later(std::move(found).error());
  return DType::f32;
}

Result<std::vector<AtenMemory>> AtenNode::memories(std::string_view parameter) const {
  if (!memories_) return std::vector<AtenMemory>{};
  return memories_(parameter);
}

Result<Dim> AtenNode::size_of(Value* number, DimRange range) { return bound_size(*this, number, range, used_symbols_); }

std::optional<DType> AtenNode::result_dtype(std::size_t i) const {
  return i < declared_.size() ? declared_[i].dtype : std::nullopt;
}

namespace {

DType dtype_of_number(AtenScalar::Kind kind) {
  return kind == AtenScalar::Kind::real ? DType::f32 : kind == AtenScalar::Kind::integer ? DType::i64 : DType::boolean;
}

}  // namespace

DType AtenNode::promoted(const std::vector<std::string_view>& parameters) const {
  Promotion promotion;
  for (const std::string_view parameter : parameters) {
    const AtenArgument& given = argument(parameter);
    if (given.none) continue;
    for (const Value* value : given.tensors) {
      if (value != nullptr) promotion.add_tensor(value->type.dtype, value->type.shape.rank());
    }
    for (const AtenScalar& number : given.scalars) promotion.add_number(dtype_of_number(number.kind));
  }
  return promotion.result().value_or(DType::f32);
}

Value* AtenNode::tensor_as(std::string_view parameter, DType dtype) {
  const AtenArgument& given = argument(parameter);
  if (!given.tensors.empty() && given.tensors.front() != nullptr) {
    Value* const value = given.tensors.front();
    if (value->type.dtype == dtype) return value;
    return graph().must_add("cast", Attributes({{"to", dtype}}), {value}, name());
  }
  const AtenScalar& number = scalar(parameter);
  if (number.data != nullptr)
    return dtype == DType::f64 ? number.data
                               : graph().must_add("cast", Attributes({{"to", dtype}}), {number.data}, name());
  if (number.kind == AtenScalar::Kind::real) return Emitter::scalar(dtype, number.value);
  if (number.size.is_constant()) {
    const std::int64_t integer = number.size.value();
    if (is_integer(dtype)) return constant(Tensor::from_integers(dtype, {}, std::vector<std::int64_t>{integer}));
    return Emitter::scalar(dtype, static_cast<double>(integer));
  }
  Value* const size = sizes_as_data({number.size}, true);
  return dtype == DType::i64 ? size : graph().must_add("cast", Attributes({{"to", dtype}}), {size}, name());
}

namespace {

Result<std::int64_t> normal_axis(std::int64_t given, int rank, std::string_view parameter) {
  const std::int64_t count = std::max(rank, 1);
  if (given >= -count && given < count) return given < 0 ? given + count : given;
  return broken_program("argument '" + std::string(parameter) + "' is " + std::to_string(given) + "; for rank " +
                        std::to_string(rank) + " it must lie in [-" + std::to_string(count) + ", " +
                        std::to_string(count) + ").");
}

}  // namespace

Result<std::int64_t> AtenNode::axis(std::string_view parameter, int rank) {
  return normal_axis(integer(parameter), rank, parameter);
}

Result<std::vector<std::int64_t>> AtenNode::axes(std::string_view parameter, int rank) {
  std::vector<std::int64_t> out;
  for (const std::int64_t given : integers(parameter)) {
    TRY(const std::int64_t normal, normal_axis(given, rank, parameter));
    if (std::find(out.begin(), out.end(), normal) != out.end())
      return broken_program("argument '" + std::string(parameter) + "' names axis " + std::to_string(normal) +
                            " twice.");
    out.push_back(normal);
  }
  return out;
}

void AtenNode::refuse_later(Error error) {
  if (refusal_ == nullptr) refusal_ = std::make_shared<Error>(std::move(error));
}

Result<void> AtenNode::finish() const {
  if (refusal_ != nullptr) return Error(*refusal_);
  return {};
}

}  // namespace polyphase
