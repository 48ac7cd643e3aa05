// Composer: a converter's IR nodes in a row, without a check behind each. After the first refusal every later value is
// null, and result() hands the refusal back.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "import/compose/emitter.h"

namespace polyphase {

class Composer {
 public:
  using Integers = std::vector<std::int64_t>;
  using Sizes = std::vector<Dim>;

  explicit Composer(Emitter& node) : node_(node) {}

  bool ok() const { return !error_.has_value(); }
  // The value, or the first refusal.
  Result<Value*> result(Value* value) const;
  Result<Values> results(Values values) const;
  void refuse(Error error);
  // left == right, or a check at run time with this message.
  void require_equal(const Dim& left, const Dim& right, const std::string& message);

  // An operand may be null only where the operator's operand is optional: `optional` says so.
  Value* op(std::string_view op_name, Values operands, Attributes attributes = {});
  Value* with_optional(std::string_view op_name, Values operands, Attributes attributes = {});

  // Sizes of a value; after a refusal 1 and 0.
  int rank(const Value* value) const { return value == nullptr ? 0 : value->type.shape.rank(); }
  Dim size(const Value* value, int axis) const;  // axis may count from the end
  Sizes sizes(const Value* value) const;
  DType dtype(const Value* value) const { return value == nullptr ? DType::f32 : value->type.dtype; }

  Value* number(double value, DType of);  // rank 0
  Value* integers(Integers values);       // i64, rank 1
  Value* dims(Sizes values, bool scalar = false) { return node_.sizes_as_data(std::move(values), scalar); }
  Value* counting(Dim count, DType of);  // 0, 1, 2, …

  Value* add(Value* a, Value* b) { return op("add", {a, b}); }
  Value* sub(Value* a, Value* b) { return op("sub", {a, b}); }
  Value* mul(Value* a, Value* b) { return op("mul", {a, b}); }
  Value* div(Value* a, Value* b) { return op("div", {a, b}); }
  Value* add(Value* a, double b) { return op("add", {a, number(b, dtype(a))}); }
  Value* mul(Value* a, double b) { return b == 1 ? a : op("mul", {a, number(b, dtype(a))}); }
  // factor·value; of integers by a whole number, which may lie outside of their type: products wrap around.
  Value* scaled(Value* value, double factor);
  Value* where(Value* condition, Value* yes, Value* no) { return op("where", {condition, yes, no}); }
  Value* matmul(Value* a, Value* b) { return op("matmul", {a, b}); }
  Value* cast(Value* value, DType to);  // the value itself if it has that type
  Value* truncate(Value* value);        // of floats, towards 0
  Value* softmax(Value* value, std::int64_t axis) { return op("softmax", {value}, Attributes({{"axis", axis}})); }
  Value* reduce(std::string_view op_name, Value* value, Integers axes, bool keep);

  Value* reshape(Value* value, Sizes shape);  // the value itself if it has that shape
  Value* as_line(Value* value);               // a single number as a line of one element; others as they are
  Value* expand(Value* value, Sizes shape);
  Value* transpose(Value* value, Integers order);
  Value* swap_last(Value* value);  // the last two axes
  Value* unsqueeze(Value* value, int axis);
  Value* squeeze(Value* value, int axis);  // an axis of size 1
  Value* concat(Values values, std::int64_t axis);
  // Elements start … start + size of one axis, every step-th.
  Value* slice(Value* value, int axis, Dim start, Dim size, std::int64_t step = 1);
  Value* pad(Value* value, int axis, Dim before, Dim behind, double with = 0);
  Value* gather(Value* value, Value* indices, std::int64_t axis);

 private:
  Emitter& node_;
  std::optional<Error> error_;
};

}  // namespace polyphase
