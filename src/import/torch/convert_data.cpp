// Numbers and sizes that data tell: item, nonzero, masks, repeats.
#include "import/compose/composer.h"
#include "import/torch/aten_node.h"
#include "import/torch/names.h"
#include "import/torch/places.h"

namespace polyphase {

// The count is born from data; then one row of indices per element that is not 0.
Result<Value*> nonzero_columns(AtenNode& node, Value* x) {
  Composer c(node);
  TRY(Value * count, c.result(c.op("count_nonzero", {x})));
  TRY(const Dim found, node.size_of(count, {0, x->type.shape.element_count().range().high}));
  return c.result(c.op("nonzero", {x}, Attributes({{"count", found}})));
}

namespace {

using Integers = Composer::Integers;
using Sizes = Composer::Sizes;

Result<Values> convert_item(AtenNode& node) {
  Composer c(node);
  Value* const self = node.tensor("self");
  c.require_equal(self->type.shape.element_count(), 1, "item() needs a tensor of one element.");
  return c.results({c.reshape(self, {})});
}

Result<Values> convert_nonzero(AtenNode& node) {
  Composer c(node);
  TRY(Value * columns, nonzero_columns(node, node.tensor("self")));
  return c.results({c.transpose(columns, {1, 0})});
}

// One list of indices per axis.
template <const char* parameter>
Result<Values> convert_nonzero_lists(AtenNode& node) {
  Composer c(node);
  Value* x = node.tensor(parameter);
  if (c.rank(x) == 0) x = c.reshape(x, {1});
  TRY(Value * columns, nonzero_columns(node, x));
  Values out;
  for (int axis = 0; axis < c.rank(x); ++axis) out.push_back(c.squeeze(c.slice(columns, 0, axis, 1), 0));
  return c.results(std::move(out));
}

// What both operands broadcast to.
Sizes common_sizes(Composer& c, Value* a, Value* b) {
  return c.sizes(c.op("or", {c.cast(a, DType::boolean), c.cast(b, DType::boolean)}));
}

Result<Values> convert_masked_select(AtenNode& node) {
  Composer c(node);
  Value* const self = node.tensor("self");
  Value* const mask = node.tensor("mask");
  if (c.dtype(mask) != DType::boolean) return broken_program("masked_select: expected BoolTensor for mask");
  const Sizes sizes = common_sizes(c, self, mask);
  Dim count = 1;
  for (const Dim& size : sizes) count *= size;
  TRY(Value * flat, c.result(c.reshape(c.expand(mask, sizes), {count})));
  TRY(Value * columns, nonzero_columns(node, flat));
  return c.results({c.gather(c.reshape(c.expand(self, sizes), {count}), c.squeeze(columns, 0), 0)});
}

// The k-th true element takes the k-th of `source`.
Result<Values> convert_masked_scatter(AtenNode& node) {
  Composer c(node);
  Value* const mask_given = c.cast(node.tensor("mask"), DType::boolean);
  Value* const self = c.where(mask_given, node.tensor("self"), node.tensor("self"));  // of the shape of both
  Value* const source = node.tensor("source");
  const Sizes sizes = c.sizes(self);
  Dim count = 1;
  for (const Dim& size : sizes) count *= size;
  Value* const mask = c.reshape(c.expand(mask_given, sizes), {count});
  Value* const places = c.op("cum_sum", {c.cast(mask, DType::i64)}, Attributes({{"axis", Dim(0)}}));
  Value* const index = c.op("max", {c.add(places, -1), c.number(0, DType::i64)});
  const Dim given = source->type.shape.element_count();
  // What is false looks at place 0 or before its turn, and is not used.
  Value* const last = c.op("sub", {c.dims({given}, true), c.number(1, DType::i64)});
  Value* const capped = c.where(mask, index, c.op("min", {index, last}));
  Value* const taken = c.gather(c.reshape(source, {given}), capped, 0);
  return c.results({c.where(c.reshape(mask, sizes), c.reshape(taken, sizes), self)});
}

// Place p of the result is of the element before which `ends <= p` elements end.
Result<Value*> repeated_places(AtenNode& node, Composer& c, Value* repeats) {
  repeats = c.cast(repeats, DType::i64);
  TRY(Value * total, c.result(c.reduce("reduce_sum", repeats, {0}, false)));
  TRY(const Dim count, node.size_of(total, {0, INT64_C(1) << 40}));
  Value* const ends = c.op("cum_sum", {repeats}, Attributes({{"axis", Dim(0)}}));
  Value* const places = c.unsqueeze(c.counting(count, DType::i64), 1);
  Value* const passed = c.cast(c.op("less_equal", {ends, places}), DType::i64);
  return c.result(c.reduce("reduce_sum", passed, {1}, false));
}

Result<Values> convert_repeats(AtenNode& node) {
  Composer c(node);
  TRY(Value * places, repeated_places(node, c, node.tensor("repeats")));
  return c.results({places});
}

Result<Values> convert_repeat_interleave(AtenNode& node) {
  Composer c(node);
  Value* x = node.tensor("self");
  if (!node.has("dim")) x = c.reshape(x, {x->type.shape.element_count()});
  std::int64_t axis = 0;
  if (node.has("dim")) {
    TRY(axis, node.axis("dim", c.rank(x)));
  }
  const int place = static_cast<int>(axis);
  Value* repeats = nullptr;
  if (node.is_number("repeats")) {
    const Dim count = node.size("repeats");
    Sizes sizes = c.sizes(x);
    sizes.insert(sizes.begin() + place + 1, count);
    Sizes merged = c.sizes(x);
    merged[static_cast<std::size_t>(axis)] *= count;
    return c.results({c.reshape(c.expand(c.unsqueeze(x, place + 1), std::move(sizes)), std::move(merged))});
  }
  repeats = c.expand(node.tensor("repeats"), {c.size(x, place)});
  TRY(Value * places, repeated_places(node, c, repeats));
  return c.results({c.gather(x, places, axis)});
}

// Whether index i of `classes` is the number; the count is an argument.
Result<Values> convert_one_hot(AtenNode& node) {
  Composer c(node);
  Value* const self = node.tensor("self");
  const std::int64_t classes = node.integer("num_classes");
  if (classes < 0)
    return lacking("one_hot without num_classes: how many there are only the data tell.", "Pass num_classes=.");
  Value* const same = c.op("equal", {c.unsqueeze(self, c.rank(self)), c.counting(classes, DType::i64)});
  return c.results({c.cast(same, DType::i64)});
}

}  // namespace

std::vector<AtenEntry> aten_data_entries() {
  return {
      {"_local_scalar_dense(Tensor self) -> Scalar", convert_item},
      {"argwhere(Tensor self) -> Tensor", convert_nonzero},
      {"item(Tensor self) -> Scalar", convert_item},
      {"masked_scatter(Tensor self, Tensor mask, Tensor source) -> Tensor", convert_masked_scatter, true},
      {"masked_select(Tensor self, Tensor mask) -> Tensor", convert_masked_select},
      {"nonzero(Tensor self) -> Tensor", convert_nonzero},
      {"nonzero_numpy(Tensor self) -> Tensor[]", convert_nonzero_lists<name_self>},
      {"one_hot(Tensor self, int num_classes=-1) -> Tensor", convert_one_hot},
      {"repeat_interleave.Tensor(Tensor repeats, *, SymInt? output_size=None) -> Tensor", convert_repeats},
      {"repeat_interleave.self_Tensor(Tensor self, Tensor repeats, int? dim=None, *, SymInt? output_size=None) -> "
       "Tensor",
       convert_repeat_interleave},
      {"repeat_interleave.self_int(Tensor self, SymInt repeats, int? dim=None, *, SymInt? output_size=None) -> Tensor",
       convert_repeat_interleave},
      {"where(Tensor condition) -> Tensor[]", convert_nonzero_lists<name_condition>},
  };
}

}  // namespace polyphase
