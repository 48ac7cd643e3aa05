// Operators of PyTorch that are several of ours.
#include <algorithm>
#include <cmath>

#include "import/compose/composer.h"
#include "import/compose/einsum.h"
#include "import/torch/aten_node.h"
#include "import/torch/complex_parts.h"
#include "import/torch/names.h"

namespace polyphase {
namespace {

using Integers = Composer::Integers;
using Sizes = Composer::Sizes;

// A list of tensors in the dtype that they promote to.
Values promoted_list(AtenNode& node, Composer& c) {
  const DType dtype = node.promoted({"tensors"});
  Values out;
  for (Value* one : node.tensors("tensors")) out.push_back(c.cast(one, dtype));
  return out;
}

Result<Values> convert_einsum(AtenNode& node) {
  Composer c(node);
  TRY(Value * out, einsum(node, node.word("equation"), promoted_list(node, c)));
  return Values{out};
}

Result<Values> convert_broadcast_tensors(AtenNode& node) {
  Composer c(node);
  const Values given = node.tensors("tensors");
  if (given.empty()) return broken_program("broadcast_tensors expects at least one tensor.");
  Value* common = nullptr;
  for (Value* one : given) {
    Value* const as_bool = c.cast(one, DType::boolean);
    common = common == nullptr ? as_bool : c.op("or", {common, as_bool});
  }
  Values out;
  for (Value* one : given) out.push_back(c.expand(one, c.sizes(common)));
  return c.results(std::move(out));
}

// Result i varies along axis i; "xy" swaps the first two axes.
Result<Values> convert_meshgrid(AtenNode& node) {
  Composer c(node);
  const Values given = node.tensors("tensors");
  const bool swapped = node.takes("indexing") && node.word("indexing") == "xy" && given.size() > 1;
  Sizes sizes;
  for (Value* one : given) sizes.push_back(c.rank(one) == 0 ? Dim(1) : c.size(one, 0));
  const auto axis_of = [&](std::size_t i) { return swapped && i < 2 ? 1 - i : i; };
  if (swapped) std::swap(sizes[0], sizes[1]);
  Values out;
  for (std::size_t i = 0; i < given.size(); ++i) {
    Sizes own(given.size(), Dim(1));
    own[axis_of(i)] = sizes[axis_of(i)];
    out.push_back(c.expand(c.reshape(given[i], std::move(own)), sizes));
  }
  return c.results(std::move(out));
}

// Windows of `size` elements every `step`, on a new last axis.
Result<Values> convert_unfold(AtenNode& node) {
  Composer c(node);
  Value* const x = node.tensor("self");
  TRY(const std::int64_t axis, node.axis("dimension", c.rank(x)));
  const std::int64_t size = node.integer("size");
  const std::int64_t step = node.integer("step");
  if (size < 0 || step <= 0 || (c.rank(x) == 0 && size > 1))
    return broken_program("unfold needs a size that is not negative and not greater than the axis, and a step > 0.");
  if (c.rank(x) == 0) return c.results({c.slice(c.as_line(x), 0, 0, size)});
  const Dim windows = floor_div(c.size(x, static_cast<int>(axis)) - size, step) + 1;
  Value* const starts = c.op("range", {}, Attributes({{"start", Dim(0)}, {"count", windows}, {"step", step}}));
  Value* const places = c.add(c.unsqueeze(starts, 1), c.counting(size, DType::i64));
  Integers order;
  for (std::int64_t i = 0; i < c.rank(x) + 1; ++i) {
    if (i != axis + 1) order.push_back(i);
  }
  order.push_back(axis + 1);
  return c.results({c.transpose(c.gather(x, places, axis), std::move(order))});
}

// x[i + 1] - x[i], n times.
Result<Values> convert_diff(AtenNode& node) {
  Composer c(node);
  Value* x = node.tensor("self");
  TRY(const std::int64_t axis, node.axis("dim", c.rank(x)));
  if (c.rank(x) == 0) return broken_program("diff expects input to be at least one-dimensional");
  if (node.integer("n") == 0) return c.results({x});  // as it is: PyTorch looks at neither neighbour then
  Values parts;
  if (node.has("prepend")) parts.push_back(node.tensor("prepend"));
  parts.push_back(x);
  if (node.has("append")) parts.push_back(node.tensor("append"));
  if (parts.size() > 1) x = c.concat(std::move(parts), axis);
  const int at = static_cast<int>(axis);
  for (std::int64_t i = 0; i < std::min<std::int64_t>(node.integer("n"), 100); ++i) {
    const Dim left = max(c.size(x, at) - 1, Dim(0));
    Value* const next = c.slice(x, at, 1, left);
    Value* const here = c.slice(x, at, 0, left);
    x = c.dtype(x) == DType::boolean ? c.op("xor", {next, here}) : c.sub(next, here);
  }
  return c.results({x});
}

Value* reduced_loss(AtenNode& node, Composer& c, Value* loss) {
  const std::int64_t reduction = node.integer("reduction");
  if (reduction == 0) return loss;
  Integers axes;
  for (std::int64_t i = 0; i < c.rank(loss); ++i) axes.push_back(i);
  return c.reduce(reduction == 1 ? "reduce_mean" : "reduce_sum", loss, std::move(axes), false);
}

template <const char* name>
Result<Values> convert_loss(AtenNode& node) {
  Composer c(node);
  const DType dtype = node.promoted({"self", "target"});
  Value* const difference = c.sub(node.tensor_as("self", dtype), node.tensor_as("target", dtype));
  return c.results({reduced_loss(node, c, c.op(name, {difference}))});
}

// Elements (i, i + offset) of two axes, on a new last axis.
Result<Values> convert_diagonal(AtenNode& node) {
  Composer c(node);
  Value* const x = node.tensor("self");
  TRY(const std::int64_t first, node.axis("dim1", c.rank(x)));
  TRY(const std::int64_t second, node.axis("dim2", c.rank(x)));
  if (first == second) return broken_program("diagonal dimensions cannot be identical");
  const std::int64_t offset = node.integer("offset");
  Integers order{first, second};
  for (std::int64_t i = 0; i < c.rank(x); ++i) {
    if (i != first && i != second) order.push_back(i);
  }
  const Dim down = offset < 0 ? Dim(-offset) : Dim(0);
  const Dim right = offset > 0 ? Dim(offset) : Dim(0);
  const Dim count = max(min(c.size(x, static_cast<int>(first)) - down, c.size(x, static_cast<int>(second)) - right), 0);
  const auto places = [&](const Dim& start) {
    return c.unsqueeze(c.op("range", {}, Attributes({{"start", start}, {"count", count}, {"step", std::int64_t{1}}})),
                       1);
  };
  Value* const found = c.op("gather_nd", {c.transpose(x, order), c.concat({places(down), places(right)}, 1)});
  Integers back;
  for (std::int64_t i = 1; i < c.rank(found); ++i) back.push_back(i);
  back.push_back(0);
  return c.results({c.transpose(found, std::move(back))});
}

Result<Values> convert_outer(AtenNode& node) {
  Composer c(node);
  const DType dtype = node.promoted({"self", "vec2"});
  Value* const column = c.unsqueeze(node.tensor_as("self", dtype), 1);
  return c.results({c.op(dtype == DType::boolean ? "and" : "mul", {column, node.tensor_as("vec2", dtype)})});
}

template <const char* other>
Result<Values> convert_dot(AtenNode& node) {
  Composer c(node);
  return c.results({c.matmul(node.tensor("self"), node.tensor(other))});
}

Result<Values> convert_atan2(AtenNode& node) {
  Composer c(node);
  DType dtype = node.promoted({"self", "other"});
  if (!is_float(dtype)) dtype = DType::f32;
  return c.results({angle_of(c, node.tensor_as("self", dtype), node.tensor_as("other", dtype))});
}

Result<Values> convert_channel_shuffle(AtenNode& node) {
  Composer c(node);
  Value* const x = node.tensor("self");
  const std::int64_t groups = node.integer("groups");
  if (c.rank(x) < 3 || groups <= 0) return broken_program("channel_shuffle expects an image and groups > 0.");
  Sizes split = c.sizes(x);
  split[1] = floor_div(c.size(x, 1), groups);
  split.insert(split.begin() + 1, Dim(groups));
  Integers order{0, 2, 1};
  for (std::int64_t i = 3; i <= c.rank(x); ++i) order.push_back(i);
  return c.results({c.reshape(c.transpose(c.reshape(x, std::move(split)), std::move(order)), c.sizes(x))});
}

Result<Values> convert_is_finite(AtenNode& node) {
  Composer c(node);
  Value* const x = node.tensor("self");
  if (!is_float(c.dtype(x))) return c.results({c.expand(c.number(1, DType::boolean), c.sizes(x))});
  return c.results({c.op("not", {c.op("or", {c.op("is_inf", {x}), c.op("is_nan", {x})})})});
}

Result<Values> convert_nan_to_num(AtenNode& node) {
  Composer c(node);
  Value* x = node.tensor("self");
  const DType dtype = c.dtype(x);
  if (!is_float(dtype)) return c.results({x});
  const double most = dtype == DType::f64    ? 1.7976931348623157e308
                      : dtype == DType::f32  ? 3.4028234663852886e38
                      : dtype == DType::bf16 ? 3.3895313892515355e38
                                             : 65504.0;
  const auto number = [&](const char* parameter, double otherwise) {
    return c.number(node.has(parameter) ? node.real(parameter) : otherwise, dtype);
  };
  Value* const infinite = c.op("is_inf", {x});
  Value* const below = c.op("less", {x, c.number(0, dtype)});
  x = c.where(infinite, c.where(below, number("neginf", -most), number("posinf", most)), x);
  return c.results({c.where(c.op("is_nan", {x}), number("nan", 0), x)});
}

Result<Values> convert_threshold(AtenNode& node) {
  Composer c(node);
  Value* const x = node.tensor("self");
  const DType dtype = c.dtype(x);
  return c.results(
      {c.where(c.op("less_equal", {x, node.tensor_as("threshold", dtype)}), node.tensor_as("value", dtype), x)});
}

// How many boundaries lie before each number; with `right` those that equal it count as well.
Result<Value*> places_among(AtenNode& node, Composer& c, Value* boundaries, bool right) {
  const DType dtype = node.promoted({"self"});
  Value* const x = node.tensor_as("self", dtype);
  if (c.dtype(boundaries) != dtype) boundaries = c.cast(boundaries, dtype);
  if (c.rank(boundaries) != 1) {
    if (c.rank(x) != c.rank(boundaries))
      return broken_program("searchsorted(): boundaries must be of one axis, or of the axes of the numbers.");
    boundaries = c.unsqueeze(boundaries, c.rank(boundaries) - 1);
  }
  Value* const passed = c.op(right ? "less_equal" : "less", {boundaries, c.unsqueeze(x, c.rank(x))});
  Value* const count = c.reduce("reduce_sum", c.cast(passed, DType::i64), {c.rank(passed) - 1}, false);
  return c.result(node.flag("out_int32") ? c.cast(count, DType::i32) : count);
}

Result<Values> convert_bucketize(AtenNode& node) {
  Composer c(node);
  TRY(Value * places, places_among(node, c, node.tensor("boundaries"), node.flag("right")));
  return Values{places};
}

Result<Values> convert_searchsorted(AtenNode& node) {
  Composer c(node);
  if (node.has("sorter")) return lacking("searchsorted with a sorter.", "Sort the sequence first.");
  const bool right = node.has("side") ? node.word("side") == "right" : node.flag("right");
  TRY(Value * places, places_among(node, c, node.tensor("sorted_sequence"), right));
  return Values{places};
}

}  // namespace

std::vector<AtenEntry> aten_composite_entries() {
  return {
      {"atan2(Tensor self, Tensor other) -> Tensor", convert_atan2, true},
      {"broadcast_tensors(Tensor[] tensors) -> Tensor[]", convert_broadcast_tensors},
      {"bucketize.Tensor(Tensor self, Tensor boundaries, *, bool out_int32=False, bool right=False) -> Tensor",
       convert_bucketize},
      {"channel_shuffle(Tensor self, SymInt groups) -> Tensor", convert_channel_shuffle},
      {"diagonal(Tensor(a) self, int offset=0, int dim1=0, int dim2=1) -> Tensor(a)", convert_diagonal},
      {"diff(Tensor self, int n=1, int dim=-1, Tensor? prepend=None, Tensor? append=None) -> Tensor", convert_diff},
      {"dot(Tensor self, Tensor tensor) -> Tensor", convert_dot<name_tensor>},
      {"einsum(str equation, Tensor[] tensors, *, int[]? path=None) -> Tensor", convert_einsum},
      {"isfinite(Tensor self) -> Tensor", convert_is_finite},
      {"l1_loss(Tensor self, Tensor target, int reduction=1) -> Tensor", convert_loss<name_abs>},
      {"meshgrid(Tensor[] tensors) -> Tensor[]", convert_meshgrid},
      {"meshgrid.indexing(Tensor[] tensors, *, str indexing) -> Tensor[]", convert_meshgrid},
      {"mse_loss(Tensor self, Tensor target, int reduction=1) -> Tensor", convert_loss<name_square>},
      {"mv(Tensor self, Tensor vec) -> Tensor", convert_dot<name_vec>},
      {"nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None) -> Tensor", convert_nan_to_num,
       true},
      {"outer(Tensor self, Tensor vec2) -> Tensor", convert_outer},
      {"searchsorted.Tensor(Tensor sorted_sequence, Tensor self, *, bool out_int32=False, bool right=False, str? "
       "side=None, Tensor? sorter=None) -> Tensor",
       convert_searchsorted},
      {"threshold(Tensor self, Scalar threshold, Scalar value) -> Tensor", convert_threshold, true},
      {"unfold(Tensor(a) self, int dimension, int size, int step) -> Tensor(a)", convert_unfold},
      {"vdot(Tensor self, Tensor other) -> Tensor", convert_dot<name_other>},
  };
}

}  // namespace polyphase
