// Composer: nodes of several operators with their attributes filled in.
#include "import/compose/composer.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"

namespace polyphase {

Result<Value*> Composer::result(Value* value) const {
  if (error_.has_value()) return Error(*error_);
  CHECK(value != nullptr);
  return value;
}

Result<Values> Composer::results(Values values) const {
  if (error_.has_value()) return Error(*error_);
  return values;
}

void Composer::refuse(Error error) {
  if (!error_.has_value()) error_ = std::move(error);
}

void Composer::require_equal(const Dim& left, const Dim& right, const std::string& message) {
  auto held = DimDemands(node_.graph().checks()).require(left, DimCheck::Relation::equal, right, message);
  if (!held.ok()) refuse(std::move(held).error());
}

Value* Composer::with_optional(std::string_view op_name, Values operands, Attributes attributes) {
  if (!ok()) return nullptr;
  auto value = node_.emit(op_name, std::move(attributes), std::move(operands));
  if (value.ok()) return *value;
  refuse(std::move(value).error());
  return nullptr;
}

Value* Composer::op(std::string_view op_name, Values operands, Attributes attributes) {
  if (!ok()) return nullptr;
  for (const Value* operand : operands) CHECK(operand != nullptr);
  return with_optional(op_name, std::move(operands), std::move(attributes));
}

Dim Composer::size(const Value* value, int axis) const {
  if (value == nullptr) return 1;
  CHECK(axis < rank(value) && axis >= -rank(value), "a converter asks for an axis that its operand does not have");
  return value->type.shape[axis < 0 ? axis + rank(value) : axis];
}

Composer::Sizes Composer::sizes(const Value* value) const {
  return value == nullptr ? Sizes{} : value->type.shape.dims();
}

Value* Composer::number(double value, DType of) { return node_.scalar(of, value); }

Value* Composer::integers(Integers values) {
  const auto count = static_cast<std::int64_t>(values.size());
  return node_.constant(Tensor::from_integers(DType::i64, std::vector<std::int64_t>{count}, values));
}

Value* Composer::counting(Dim count, DType of) {
  return cast(op("range", {}, Attributes({{"start", Dim(0)}, {"count", count}, {"step", std::int64_t{1}}})), of);
}

Value* Composer::cast(Value* value, DType to) {
  if (!ok() || value->type.dtype == to) return value;
  return op("cast", {value}, Attributes({{"to", to}}));
}

Value* Composer::truncate(Value* value) {
  Value* const below = op("less", {value, number(0, dtype(value))});
  return where(below, op("ceil", {value}), op("floor", {value}));
}

Value* Composer::scaled(Value* value, double factor) {
  if (factor == 1 || is_float(dtype(value))) return mul(value, factor);
  return cast(mul(cast(value, DType::i64), factor), dtype(value));
}

Value* Composer::reduce(std::string_view op_name, Value* value, Integers axes, bool keep) {
  if (axes.empty()) return value;
  return op(op_name, {value}, Attributes({{"axes", std::move(axes)}, {"keep", keep}}));
}

Value* Composer::reshape(Value* value, Sizes shape) {
  if (!ok() || value->type.shape == Shape(shape)) return value;
  return op("reshape", {value}, Attributes({{"shape", std::move(shape)}}));
}

Value* Composer::as_line(Value* value) { return rank(value) == 0 ? reshape(value, {Dim(1)}) : value; }

Value* Composer::expand(Value* value, Sizes shape) {
  if (!ok() || value->type.shape == Shape(shape)) return value;
  return op("expand", {value}, Attributes({{"shape", std::move(shape)}}));
}

Value* Composer::transpose(Value* value, Integers order) {
  if (std::is_sorted(order.begin(), order.end())) return value;
  return op("transpose", {value}, Attributes({{"order", std::move(order)}}));
}

Value* Composer::swap_last(Value* value) {
  Integers order(static_cast<std::size_t>(rank(value)));
  std::iota(order.begin(), order.end(), 0);
  if (order.size() < 2) return value;
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  return transpose(value, std::move(order));
}

Value* Composer::unsqueeze(Value* value, int axis) {
  if (!ok()) return nullptr;
  Sizes shape = sizes(value);
  CHECK(axis >= 0 && axis <= rank(value), "a converter adds an axis beyond its operand's");
  shape.insert(shape.begin() + axis, Dim(1));
  return reshape(value, std::move(shape));
}

Value* Composer::squeeze(Value* value, int axis) {
  if (!ok()) return nullptr;
  CHECK(axis >= 0 && axis < rank(value), "a converter drops an axis that its operand does not have");
  Sizes shape = sizes(value);
  shape.erase(shape.begin() + axis);
  return reshape(value, std::move(shape));
}

Value* Composer::concat(Values values, std::int64_t axis) {
  if (values.size() == 1) return values[0];
  return op("concat", std::move(values), Attributes({{"axis", axis}}));
}

Value* Composer::slice(Value* value, int axis, Dim start, Dim size, std::int64_t step) {
  if (!ok()) return nullptr;
  CHECK(axis < rank(value) && axis >= -rank(value), "a converter slices an axis that its operand does not have");
  const auto at = static_cast<std::size_t>(axis < 0 ? axis + rank(value) : axis);
  Sizes starts(static_cast<std::size_t>(rank(value)), Dim(0));
  Sizes counts = sizes(value);
  Integers steps(starts.size(), 1);
  if (start == 0 && counts[at] == size && step == 1) return value;
  starts[at] = std::move(start);
  counts[at] = std::move(size);
  steps[at] = step;
  return op("slice", {value},
            Attributes({{"start", std::move(starts)}, {"size", std::move(counts)}, {"step", std::move(steps)}}));
}

Value* Composer::pad(Value* value, int axis, Dim before, Dim behind, double with) {
  if (!ok() || (before == 0 && behind == 0)) return value;
  CHECK(axis < rank(value) && axis >= -rank(value), "a converter pads an axis that its operand does not have");
  const auto at = static_cast<std::size_t>(axis < 0 ? axis + rank(value) : axis);
  Sizes pre(static_cast<std::size_t>(rank(value)), Dim(0));
  Sizes post = pre;
  pre[at] = std::move(before);
  post[at] = std::move(behind);
  return op("pad", {value}, Attributes({{"pre", std::move(pre)}, {"post", std::move(post)}, {"value", with}}));
}

Value* Composer::gather(Value* value, Value* indices, std::int64_t axis) {
  return op("gather", {value, indices}, Attributes({{"axis", axis}}));
}

}  // namespace polyphase
