// Copies in which some elements are replaced or combined.
#include <cmath>

#include "import/compose/composer.h"
#include "import/torch/aten_node.h"
#include "import/torch/places.h"

namespace polyphase {
namespace {

using Integers = Composer::Integers;
using Sizes = Composer::Sizes;

Attributes with_reduction(const char* reduction) { return Attributes({{"reduction", std::string(reduction)}}); }

// self[indices] = values. One mask with one value is a choice; else tuples of indices.
Result<Values> convert_index_put(AtenNode& node) {
  Composer c(node);
  Value* const x = node.tensor("self");
  Value* const values = c.cast(node.tensor("values"), c.dtype(x));
  const bool adds = node.flag("accumulate");
  const Values given = node.tensors("indices");
  if (given.size() == 1 && given[0] != nullptr && c.dtype(given[0]) == DType::boolean && !adds &&
      values->type.shape.element_count() == 1) {
    Value* mask = given[0];
    while (c.ok() && c.rank(mask) < c.rank(x)) mask = c.unsqueeze(mask, c.rank(mask));
    return c.results({c.where(mask, c.reshape(values, {}), x)});
  }
  TRY(const IndexedAxes axes, indexed_axes(node, c, x));
  Value* const tuples = index_tuples(c, axes);
  Value* const moved = c.transpose(x, axes.order);
  if (!c.ok()) return c.results({});
  // The values have the shape of self[indices]; scatter_nd wants the indices' axes in front.
  const int leading = c.rank(tuples) - 1;
  const auto indexed = static_cast<int>(axes.indices.size());
  const int rank = leading + c.rank(x) - indexed;
  Sizes in_front;
  for (int i = 0; i < leading; ++i) in_front.push_back(c.size(tuples, i));
  for (int i = indexed; i < c.rank(moved); ++i) in_front.push_back(c.size(moved, i));
  const Integers order = result_order(axes, leading, rank);
  Sizes as_result;
  Integers back(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    as_result.push_back(in_front[static_cast<std::size_t>(order[i])]);
    back[static_cast<std::size_t>(order[i])] = static_cast<std::int64_t>(i);
  }
  Value* const updates = c.transpose(c.expand(values, as_result), back);
  Value* const put = c.op("scatter_nd", {moved, tuples, updates}, with_reduction(adds ? "add" : "none"));
  Integers home(axes.order.size());
  for (std::size_t i = 0; i < axes.order.size(); ++i)
    home[static_cast<std::size_t>(axes.order[i])] = static_cast<std::int64_t>(i);
  return c.results({c.transpose(put, home)});
}

// Only the part of `source` that the index covers counts.
Result<Value*> scattered(AtenNode& node, Composer& c, Value* x, Value* source, const char* reduction) {
  Value* index = c.cast(node.tensor("index"), DType::i64);
  TRY(const std::int64_t axis, node.axis("dim", c.rank(x)));
  if (c.rank(x) == 0) return lacking("scatter into a single number.", "Give the tensor an axis.");
  for (int i = 0; i < c.rank(source) && i < c.rank(index); ++i) {
    if (!(c.size(source, i) == c.size(index, i))) source = c.slice(source, i, 0, c.size(index, i));
  }
  Attributes attributes = with_reduction(reduction);
  attributes.set("axis", axis);
  return c.result(c.op("scatter_elements", {x, index, source}, std::move(attributes)));
}

Result<Values> convert_scatter(AtenNode& node) {
  Composer c(node);
  Value* const x = node.tensor("self");
  Value* const index = node.tensor("index");
  Value* const source = node.takes("value") ? c.expand(node.tensor_as("value", c.dtype(x)), c.sizes(index))
                                            : c.cast(node.tensor("src"), c.dtype(x));
  TRY(Value * out, scattered(node, c, x, source, "none"));
  return Values{out};
}

Result<Values> convert_scatter_add(AtenNode& node) {
  Composer c(node);
  TRY(Value * out, scattered(node, c, node.tensor("self"), node.tensor("src"), "add"));
  return Values{out};
}

// Without include_self the elements that the index names begin from what changes nothing.
Result<Values> convert_scatter_reduce(AtenNode& node) {
  Composer c(node);
  Value* x = node.tensor("self");
  Value* const source = node.tensor("src");
  const std::string word = node.word("reduce");
  const bool mean = word == "mean";
  const char* const reduction = word == "sum" || mean ? "add"
                                : word == "prod"      ? "mul"
                                : word == "amax"      ? "max"
                                : word == "amin"      ? "min"
                                                      : nullptr;
  if (reduction == nullptr)
    return broken_program("reduce argument must be either sum, prod, mean, amax or amin, got " + word);
  if (!is_float(c.dtype(x)) && (mean || word == "amax" || word == "amin") && !node.flag("include_self"))
    return lacking("scatter_reduce of integers without include_self.", "Convert to floats, or include self.");
  const double neutral = word == "prod" ? 1 : word == "amax" ? -INFINITY : word == "amin" ? INFINITY : 0;
  if (!node.flag("include_self")) {
    Value* const start = c.expand(c.number(neutral, c.dtype(x)), c.sizes(node.tensor("index")));
    TRY(x, scattered(node, c, x, start, "none"));
  }
  TRY(Value * out, scattered(node, c, x, source, reduction));
  if (!mean) return Values{out};
  Value* const ones = c.expand(c.number(1, c.dtype(x)), c.sizes(source));
  Value* counts = c.expand(c.number(node.flag("include_self") ? 1 : 0, c.dtype(x)), c.sizes(x));
  TRY(counts, scattered(node, c, counts, ones, "add"));
  Value* const shares = c.op("max", {counts, c.number(1, c.dtype(x))});
  if (is_float(c.dtype(x))) return c.results({c.div(out, shares)});
  Value* const rest = c.op("mod", {out, shares});
  return c.results({c.div(c.sub(out, rest), shares)});
}

// The index names whole slices along the axis: (n) → tuples of one.
Result<Value*> put_slices(AtenNode& node, Composer& c, Value* source, const char* reduction) {
  Value* const x = node.tensor("self");
  TRY(const std::int64_t axis, node.axis("dim", c.rank(x)));
  if (c.rank(x) == 0) return lacking("an index into a single number.", "Give the tensor an axis.");
  Integers order{axis};
  for (std::int64_t i = 0; i < c.rank(x); ++i) {
    if (i != axis) order.push_back(i);
  }
  Value* const index =
      c.reshape(c.cast(node.tensor("index"), DType::i64), {node.tensor("index")->type.shape.element_count()});
  Sizes sizes = c.sizes(x);
  sizes[static_cast<std::size_t>(axis)] = c.size(index, 0);
  Value* const updates = c.transpose(c.expand(source, std::move(sizes)), order);
  Value* const put =
      c.op("scatter_nd", {c.transpose(x, order), c.unsqueeze(index, 1), updates}, with_reduction(reduction));
  Integers home(order.size());
  for (std::size_t i = 0; i < order.size(); ++i)
    home[static_cast<std::size_t>(order[i])] = static_cast<std::int64_t>(i);
  return c.result(c.transpose(put, home));
}

Result<Values> convert_index_add(AtenNode& node) {
  Composer c(node);
  TRY(Value * out, put_slices(node, c, c.scaled(node.tensor("source"), node.real("alpha")), "add"));
  return Values{out};
}

Result<Values> convert_index_copy(AtenNode& node) {
  Composer c(node);
  TRY(Value * out, put_slices(node, c, node.tensor("source"), "none"));
  return Values{out};
}

Result<Values> convert_index_fill(AtenNode& node) {
  Composer c(node);
  TRY(Value * out, put_slices(node, c, node.tensor_as("value", node.tensor("self")->type.dtype), "none"));
  return Values{out};
}

// x with places start, start + step, … of the axis replaced.
Value* with_slice(Composer& c, Value* x, Value* part, int axis, const Dim& start, const Dim& count, std::int64_t step) {
  Sizes sizes = c.sizes(x);
  sizes[static_cast<std::size_t>(axis)] = count;
  part = c.expand(c.cast(part, c.dtype(x)), std::move(sizes));
  if (step == 1) {
    Values parts;
    if (!(start == 0)) parts.push_back(c.slice(x, axis, 0, start));
    parts.push_back(part);
    const Dim end = start + count;
    if (!(end == c.size(x, axis))) parts.push_back(c.slice(x, axis, end, c.size(x, axis) - end));
    return parts.size() == 1 ? part : c.concat(std::move(parts), axis);
  }
  Integers order{axis};
  for (std::int64_t i = 0; i < c.rank(x); ++i) {
    if (i != axis) order.push_back(i);
  }
  Value* const places = c.op("range", {}, Attributes({{"start", start}, {"count", count}, {"step", step}}));
  Value* const put = c.op("scatter_nd", {c.transpose(x, order), c.unsqueeze(places, 1), c.transpose(part, order)});
  Integers home(order.size());
  for (std::size_t i = 0; i < order.size(); ++i)
    home[static_cast<std::size_t>(order[i])] = static_cast<std::int64_t>(i);
  return c.transpose(put, home);
}

Result<Values> convert_slice_scatter(AtenNode& node) {
  Composer c(node);
  Value* const x = node.tensor("self");
  TRY(const PythonSlice slice, python_slice(node, c, x));
  return c.results({with_slice(c, x, node.tensor("src"), slice.axis, slice.start, slice.count, slice.step)});
}

Result<Values> convert_select_scatter(AtenNode& node) {
  Composer c(node);
  Value* const x = node.tensor("self");
  TRY(const std::int64_t axis, node.axis("dim", c.rank(x)));
  const Dim start = from_begin(node.size("index"), c.size(x, static_cast<int>(axis)));
  Value* const part = c.unsqueeze(node.tensor("src"), static_cast<int>(axis));
  return c.results({with_slice(c, x, part, static_cast<int>(axis), start, 1, 1)});
}

Result<Values> convert_copy(AtenNode& node) {
  Composer c(node);
  Value* const self = node.tensor("self");
  return c.results({c.expand(c.cast(node.tensor("src"), c.dtype(self)), c.sizes(self))});
}

Result<Values> convert_fill(AtenNode& node) {
  Composer c(node);
  Value* const self = node.tensor("self");
  return c.results({c.expand(node.tensor_as("value", c.dtype(self)), c.sizes(self))});
}

Result<Values> convert_zero(AtenNode& node) {
  Composer c(node);
  Value* const self = node.tensor("self");
  return c.results({c.expand(c.number(0, c.dtype(self)), c.sizes(self))});
}

}  // namespace

std::vector<AtenEntry> aten_scatter_entries() {
  return {
      {"_unsafe_index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor",
       convert_index_put},
      {"copy(Tensor self, Tensor src, bool non_blocking=False) -> Tensor", convert_copy, true},
      {"fill.Scalar(Tensor self, Scalar value) -> Tensor", convert_fill, true},
      {"fill.Tensor(Tensor self, Tensor value) -> Tensor", convert_fill, true},
      {"index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor", convert_index_add,
       true},
      {"index_copy(Tensor self, int dim, Tensor index, Tensor source) -> Tensor", convert_index_copy, true},
      {"index_fill.int_Scalar(Tensor self, int dim, Tensor index, Scalar value) -> Tensor", convert_index_fill, true},
      {"index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor", convert_index_put,
       true},
      {"scatter.src(Tensor self, int dim, Tensor index, Tensor src) -> Tensor", convert_scatter, true},
      {"scatter.value(Tensor self, int dim, Tensor index, Scalar value) -> Tensor", convert_scatter, true},
      {"scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor", convert_scatter_add, true},
      {"scatter_reduce.two(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, bool include_self=True) -> "
       "Tensor",
       convert_scatter_reduce, true},
      {"select_scatter(Tensor self, Tensor src, int dim, SymInt index) -> Tensor", convert_select_scatter},
      {"slice_scatter(Tensor self, Tensor src, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> "
       "Tensor",
       convert_slice_scatter},
      {"zero(Tensor self) -> Tensor", convert_zero, true},
  };
}

}  // namespace polyphase
