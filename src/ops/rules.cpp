// The shared rules.
#include "ops/rules.h"

#include <algorithm>

namespace polyphase {

std::string_view name_of(DTypeSet set) {
  switch (set) {
    case DTypeSet::floats:
      return "a float (f64, f32, f16, bf16, f8e4m3, f8e5m2)";
    case DTypeSet::integers:
      return "an integer";
    case DTypeSet::numbers:
      return "a float or an integer";
    case DTypeSet::booleans:
      return "bool";
    case DTypeSet::integers_and_booleans:
      return "an integer or bool";
    case DTypeSet::any:
      return "any dtype";
  }
  return "?";
}

bool contains(DTypeSet set, DType dtype) {
  switch (set) {
    case DTypeSet::floats:
      return is_float(dtype);
    case DTypeSet::integers:
      return is_integer(dtype);
    case DTypeSet::numbers:
      return dtype != DType::boolean;
    case DTypeSet::booleans:
      return dtype == DType::boolean;
    case DTypeSet::integers_and_booleans:
      return !is_float(dtype);
    case DTypeSet::any:
      return true;
  }
  return false;
}

Error refuse(const InferContext& context, const std::string& message) {
  return {ErrorCode::invalid_model, context.op().name + ": " + message};
}

std::string operand_name(const InferContext& context, std::size_t i) {
  const std::vector<OperandSpec>& specs = context.op().inputs;
  if (specs.empty()) return "operand " + std::to_string(i);
  if (i + 1 < specs.size() || (i + 1 == specs.size() && !specs.back().variadic)) return "'" + specs[i].name + "'";
  return "'" + specs.back().name + "' " + std::to_string(i + 1 - specs.size());
}

Result<void> expect_dtype(const InferContext& context, std::size_t i, DTypeSet set) {
  const DType found = context.input(i).dtype;
  if (contains(set, found)) return {};
  return refuse(context, "operand " + operand_name(context, i) + " must be " + std::string(name_of(set)) + ", found " +
                             std::string(name_of(found)) + ".");
}

Result<void> expect_same_dtype(const InferContext& context, std::size_t i, std::size_t j) {
  const DType a = context.input(i).dtype;
  const DType b = context.input(j).dtype;
  if (a == b) return {};
  return refuse(context, "operands " + operand_name(context, i) + " and " + operand_name(context, j) +
                             " must have the same dtype, found " + std::string(name_of(a)) + " and " +
                             std::string(name_of(b)) + ".");
}

Result<int> expect_axis(const InferContext& context, std::string_view attribute, int rank) {
  const auto axis = context.attributes().get<std::int64_t>(attribute);
  if (axis >= 0 && axis < rank) return static_cast<int>(axis);
  return refuse(context, "attribute '" + std::string(attribute) +
                             "' must name an axis from 0 to rank - 1 of a tensor of rank " + std::to_string(rank) +
                             ", found " + std::to_string(axis) + ".");
}

Result<void> expect_entries(const InferContext& context, std::string_view attribute, std::size_t found, int rank) {
  if (found == static_cast<std::size_t>(rank)) return {};
  return refuse(context, "attribute '" + std::string(attribute) + "' must have one entry per axis, " +
                             std::to_string(rank) + " in all, found " + std::to_string(found) + ".");
}

Result<Dim> expect_equal(const InferContext& context, const Dim& left, const std::string& left_words, const Dim& right,
                         const std::string& right_words) {
  TRY_VOID(context.require(left, DimCheck::Relation::equal, right,
                           context.op().name + ": " + left_words + " (" + left.text() + ") must equal " + right_words +
                               " (" + right.text() + ")."));
  return left.is_constant() ? left : right;
}

Result<Shape> broadcast_shapes(const InferContext& context, const Shape& a, const std::string& a_words, const Shape& b,
                               const std::string& b_words) {
  const int rank = std::max(a.rank(), b.rank());
  std::vector<Dim> dims;
  for (int axis = 0; axis < rank; ++axis) {
    const int i = axis - (rank - a.rank());
    const int j = axis - (rank - b.rank());
    if (i < 0 || j < 0) {
      dims.push_back(i < 0 ? b[j] : a[i]);
      continue;
    }
    TRY(Dim dim,
        context.broadcast(a[i], b[j],
                          context.op().name + ": axis " + std::to_string(i) + " of " + a_words + " (" + a[i].text() +
                              ") and axis " + std::to_string(j) + " of " + b_words + " (" + b[j].text() +
                              ") must be equal, or one of them 1 (numpy's broadcasting), found " + a.text() + " and " +
                              b.text() + "."));
    dims.push_back(std::move(dim));
  }
  return Shape(std::move(dims));
}

Result<Shape> broadcast_operands(const InferContext& context, std::size_t i, std::size_t j) {
  return broadcast_shapes(context, context.shape(i), operand_name(context, i), context.shape(j),
                          operand_name(context, j));
}

TensorView broadcast_view(const TensorView& view, std::span<const std::int64_t> sizes) {
  TensorView out = view;
  out.rank = static_cast<int>(sizes.size());
  CHECK(view.rank <= out.rank);
  const auto missing = static_cast<std::size_t>(out.rank - view.rank);
  for (std::size_t axis = 0; axis < sizes.size(); ++axis) {
    out.sizes[axis] = sizes[axis];
    const bool stretched = axis < missing || view.sizes[axis - missing] == 1;
    CHECK(stretched || view.sizes[axis - missing] == sizes[axis]);
    out.strides[axis] = stretched ? 0 : view.strides[axis - missing];
  }
  return out;
}

}  // namespace polyphase
