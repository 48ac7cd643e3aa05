// Reductions over axes and running sums.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "import/compose/composer.h"
#include "import/torch/aten_node.h"
#include "import/torch/names.h"

namespace polyphase {
namespace {

using Integers = Composer::Integers;

Integers all_axes(const Composer& c, const Value* x) {
  Integers axes(static_cast<std::size_t>(c.rank(x)));
  std::iota(axes.begin(), axes.end(), 0);
  return axes;
}

// Argument `dim`: a number, a list, None or an empty list for all axes; nothing in the schema: all.
Result<Integers> reduced_axes(AtenNode& node, Composer& c, Value* x) {
  if (!node.takes("dim") || !node.has("dim")) return all_axes(c, x);
  TRY(Integers axes, node.axes("dim", c.rank(x)));
  if (c.rank(x) == 0) return Integers{};
  return axes.empty() ? all_axes(c, x) : axes;
}

bool keeps(AtenNode& node) { return node.takes("keepdim") && node.flag("keepdim"); }

// In the dtype asked for; bools and integers add up as i64.
Value* summand(AtenNode& node, Composer& c, Value* x) {
  const auto asked = node.takes("dtype") ? node.dtype("dtype") : std::nullopt;
  if (asked.has_value()) return c.cast(x, *asked);
  return is_float(c.dtype(x)) ? x : c.cast(x, DType::i64);
}

template <const char* name>
Result<Values> convert_sum(AtenNode& node) {
  Composer c(node);
  Value* const x = node.tensor("self");
  TRY(Integers axes, reduced_axes(node, c, x));
  return c.results({c.reduce(name, summand(node, c, x), std::move(axes), keeps(node))});
}

Result<Values> convert_mean(AtenNode& node) {
  Composer c(node);
  Value* const x = node.tensor("self");
  TRY(Integers axes, reduced_axes(node, c, x));
  const auto asked = node.dtype("dtype");
  if (!asked.has_value() && !is_float(c.dtype(x)))
    return broken_program(
        "mean(): could not infer output dtype. Input dtype must be either a floating point or complex dtype.");
  return c.results({c.reduce("reduce_mean", asked.has_value() ? c.cast(x, *asked) : x, std::move(axes), keeps(node))});
}

// Bools have no order of their own here.
template <const char* name>
Result<Values> convert_extreme(AtenNode& node) {
  Composer c(node);
  Value* const x = node.tensor("self");
  TRY(Integers axes, reduced_axes(node, c, x));
  const bool is_bool = c.dtype(x) == DType::boolean;
  Value* const y = c.reduce(name, is_bool ? c.cast(x, DType::u8) : x, std::move(axes), keeps(node));
  return c.results({is_bool ? c.cast(y, DType::boolean) : y});
}

// any and all: of what is not 0.
template <const char* name>
Result<Values> convert_quantifier(AtenNode& node) {
  Composer c(node);
  Value* const x = node.tensor("self");
  TRY(Integers axes, reduced_axes(node, c, x));
  Value* const found = c.reduce(name, c.cast(c.cast(x, DType::boolean), DType::u8), std::move(axes), keeps(node));
  return c.results({c.dtype(x) == DType::u8 ? found : c.cast(found, DType::boolean)});
}

// Bools as numbers, which have an order.
Value* ordered_operand(AtenNode& node, Composer& c) {
  Value* const x = node.tensor("self");
  return c.dtype(x) == DType::boolean ? c.cast(x, DType::u8) : x;
}

// Values and where they are. An axis of a single number is kept no more than the number has axes.
template <const char* extreme, const char* arg>
Result<Values> convert_extreme_with_place(AtenNode& node) {
  Composer c(node);
  TRY(const std::int64_t axis, node.axis("dim", c.rank(node.tensor("self"))));
  Value* const x = ordered_operand(node, c);
  const bool keep = node.flag("keepdim") && c.rank(x) > 0;
  Value* const line = c.as_line(x);
  Value* const values = c.cast(c.reduce(extreme, line, {axis}, keep), c.dtype(node.tensor("self")));
  return c.results({values, c.op(arg, {line}, Attributes({{"axis", axis}, {"keep", keep}}))});
}

template <const char* arg>
Result<Values> convert_arg(AtenNode& node) {
  Composer c(node);
  Value* x = ordered_operand(node, c);
  const int rank = c.rank(x);
  const bool keep = node.flag("keepdim") && rank > 0;
  if (node.has("dim")) {
    TRY(const std::int64_t axis, node.axis("dim", rank));
    return c.results({c.op(arg, {c.as_line(x)}, Attributes({{"axis", axis}, {"keep", keep}}))});
  }
  Dim count = 1;
  for (const Dim& size : c.sizes(x)) count *= size;
  x = c.op(arg, {c.reshape(x, {count})}, Attributes({{"axis", std::int64_t{0}}, {"keep", false}}));
  return c.results({keep ? c.reshape(x, Composer::Sizes(static_cast<std::size_t>(rank), Dim(1))) : x});
}

// How many elements the axes have less a correction, as a float; never below 0.
Value* element_count(Composer& c, Value* x, const Integers& axes, double less) {
  Dim count = 1;
  for (const std::int64_t axis : axes) count *= c.size(x, static_cast<int>(axis));
  if (count.is_constant()) return c.number(std::max(0.0, static_cast<double>(count.value()) - less), c.dtype(x));
  Value* const rest = c.add(c.cast(c.dims({count}, true), c.dtype(x)), -less);
  return c.op("max", {rest, c.number(0, c.dtype(x))});
}

// Squares and powers of f16 overflow soon: they are summed in f32, as in PyTorch.
DType wide(DType dtype) { return is_float(dtype) && size_bytes(dtype) < 4 ? DType::f32 : dtype; }

struct Moments {
  Value* variance = nullptr;  // in the dtype of its computation
  Value* mean = nullptr;
};

// The sum of squares from the mean over (n - correction), from the mean itself: no difference of large numbers.
Result<Moments> moments(AtenNode& node, Composer& c) {
  Value* const x = c.cast(node.tensor("self"), wide(c.dtype(node.tensor("self"))));
  TRY(const Integers axes, reduced_axes(node, c, x));
  double correction = 1;
  if (node.takes("correction")) {
    correction = node.has("correction") ? node.real("correction") : 1;
  } else {
    correction = node.flag("unbiased") ? 1 : 0;
  }
  const bool keep = keeps(node);
  Value* const mean = c.reduce("reduce_mean", x, axes, true);
  Value* const squares = c.reduce("reduce_sum", c.op("square", {c.sub(x, mean)}), axes, keep);
  Moments out;
  out.variance = c.div(squares, element_count(c, x, axes, correction));
  out.mean = keep ? mean : c.reduce("reduce_mean", x, axes, false);
  return out;
}

Result<Values> convert_var(AtenNode& node) {
  Composer c(node);
  TRY(const Moments found, moments(node, c));
  return c.results({c.cast(found.variance, c.dtype(node.tensor("self")))});
}

Result<Values> convert_std(AtenNode& node) {
  Composer c(node);
  TRY(const Moments found, moments(node, c));
  return c.results({c.cast(c.op("sqrt", {found.variance}), c.dtype(node.tensor("self")))});
}

Result<Values> convert_var_mean(AtenNode& node) {
  Composer c(node);
  TRY(const Moments found, moments(node, c));
  const DType own = c.dtype(node.tensor("self"));
  return c.results({c.cast(found.variance, own), c.cast(found.mean, own)});
}

Value* norm(Composer& c, Value* x, Integers axes, double order, bool keep) {
  if (order == 0) {
    Value* const not_zero = c.op("not", {c.op("equal", {x, c.number(0, c.dtype(x))})});
    return c.reduce("reduce_sum", c.cast(not_zero, c.dtype(x)), std::move(axes), keep);
  }
  if (axes.empty()) return c.op("abs", {x});  // a single number
  if (order == 2) return c.reduce("reduce_l2", x, std::move(axes), keep);
  if (order == 1) return c.reduce("reduce_l1", x, std::move(axes), keep);
  if (std::isinf(order))
    return c.reduce(order > 0 ? "reduce_max" : "reduce_min", c.op("abs", {x}), std::move(axes), keep);
  Value* const powers = c.op("pow", {c.op("abs", {x}), c.number(order, c.dtype(x))});
  Value* const sum = c.reduce("reduce_sum", powers, std::move(axes), keep);
  return c.op("pow", {sum, c.number(1 / order, c.dtype(x))});
}

template <const char* parameter>
Result<Values> convert_vector_norm(AtenNode& node) {
  Composer c(node);
  const auto asked = node.takes("dtype") ? node.dtype("dtype") : std::nullopt;
  Value* x = node.tensor("self");
  if (asked.has_value()) x = c.cast(x, *asked);
  const DType own = c.dtype(x);
  x = c.cast(x, wide(own));
  TRY(Integers axes, reduced_axes(node, c, x));
  const double order = node.has(parameter) ? node.real(parameter) : 2;
  const bool keep = keeps(node);
  TRY(Value * y, c.result(norm(c, x, std::move(axes), order, keep)));
  return c.results({c.cast(y, own)});
}

template <const char* name>
Result<Values> convert_cumulate(AtenNode& node) {
  Composer c(node);
  Value* const x = summand(node, c, node.tensor("self"));
  TRY(const std::int64_t axis, node.axis("dim", c.rank(x)));
  if (c.rank(x) == 0) return c.results({x});
  return c.results({c.op(name, {x}, Attributes({{"axis", Dim(axis)}}))});
}

Result<Values> convert_std_mean(AtenNode& node) {
  Composer c(node);
  TRY(const Moments found, moments(node, c));
  const DType own = c.dtype(node.tensor("self"));
  return c.results({c.cast(c.op("sqrt", {found.variance}), own), c.cast(found.mean, own)});
}

Result<Values> convert_logsumexp(AtenNode& node) {
  Composer c(node);
  Value* const given = node.tensor("self");
  Value* const x = is_float(c.dtype(given)) ? given : c.cast(given, DType::f32);
  TRY(Integers axes, reduced_axes(node, c, x));
  return c.results({c.reduce("reduce_log_sum_exp", x, std::move(axes), keeps(node))});
}

Result<Values> convert_count_nonzero(AtenNode& node) {
  Composer c(node);
  Value* const x = node.tensor("self");
  TRY(Integers axes, reduced_axes(node, c, x));
  return c.results({c.reduce("reduce_sum", c.cast(c.cast(x, DType::boolean), DType::i64), std::move(axes), false)});
}

Result<Values> convert_log_cumulate(AtenNode& node) {
  Composer c(node);
  Value* const x = node.tensor("self");
  TRY(const std::int64_t axis, node.axis("dim", c.rank(x)));
  if (c.rank(x) == 0) return c.results({x});
  return c.results({c.op("cum_log_sum_exp", {x}, Attributes({{"axis", Dim(axis)}}))});
}

template <const char* name>
Result<Values> convert_softmax(AtenNode& node) {
  Composer c(node);
  Value* x = node.tensor("self");
  if (node.takes("dtype")) {
    const auto asked = node.dtype("dtype");
    if (asked.has_value()) x = c.cast(x, *asked);
  } else if (node.flag("half_to_float")) {
    x = c.cast(x, DType::f32);
  }
  TRY(const std::int64_t axis, node.axis("dim", c.rank(x)));
  return c.results({c.reshape(c.op(name, {c.as_line(x)}, Attributes({{"axis", axis}})), c.sizes(x))});
}

}  // namespace

std::vector<AtenEntry> aten_reduce_entries() {
  return {
      {"_log_softmax(Tensor self, int dim, bool half_to_float) -> Tensor", convert_softmax<name_log_softmax>},
      {"_softmax(Tensor self, int dim, bool half_to_float) -> Tensor", convert_softmax<name_softmax>},
      {"all(Tensor self) -> Tensor", convert_quantifier<name_reduce_min>},
      {"all.dim(Tensor self, int dim, bool keepdim=False) -> Tensor", convert_quantifier<name_reduce_min>},
      {"all.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor", convert_quantifier<name_reduce_min>},
      {"amax(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor", convert_extreme<name_reduce_max>},
      {"amin(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor", convert_extreme<name_reduce_min>},
      {"any(Tensor self) -> Tensor", convert_quantifier<name_reduce_max>},
      {"any.dim(Tensor self, int dim, bool keepdim=False) -> Tensor", convert_quantifier<name_reduce_max>},
      {"any.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor", convert_quantifier<name_reduce_max>},
      {"count_nonzero(Tensor self, int? dim=None) -> Tensor", convert_count_nonzero},
      {"count_nonzero.dim_IntList(Tensor self, int[] dim) -> Tensor", convert_count_nonzero},
      {"cumprod(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor", convert_cumulate<name_cum_prod>},
      {"logcumsumexp(Tensor self, int dim) -> Tensor", convert_log_cumulate},
      {"logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor", convert_logsumexp},
      {"std(Tensor self, bool unbiased=True) -> Tensor", convert_std},
      {"std.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> Tensor", convert_std},
      {"std_mean.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> (Tensor, Tensor)",
       convert_std_mean},
      {"std_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> (Tensor, "
       "Tensor)",
       convert_std_mean},
      {"var(Tensor self, bool unbiased=True) -> Tensor", convert_var},
      {"var_mean.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> (Tensor, Tensor)",
       convert_var_mean},
      {"norm.Scalar(Tensor self, Scalar p=2) -> Tensor", convert_vector_norm<name_p>},
      {"norm.ScalarOpt_dim(Tensor self, Scalar? p, int[1] dim, bool keepdim=False) -> Tensor",
       convert_vector_norm<name_p>},
      {"argmax(Tensor self, int? dim=None, bool keepdim=False) -> Tensor", convert_arg<name_arg_max>},
      {"argmin(Tensor self, int? dim=None, bool keepdim=False) -> Tensor", convert_arg<name_arg_min>},
      {"cumsum(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor", convert_cumulate<name_cum_sum>},
      {"linalg_vector_norm(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) "
       "-> "
       "Tensor",
       convert_vector_norm<name_ord>},
      {"log_softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor", convert_softmax<name_log_softmax>},
      {"max(Tensor self) -> Tensor", convert_extreme<name_reduce_max>},
      {"max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
       convert_extreme_with_place<name_reduce_max, name_arg_max>},
      {"mean(Tensor self, *, ScalarType? dtype=None) -> Tensor", convert_mean},
      {"mean.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor", convert_mean},
      {"min(Tensor self) -> Tensor", convert_extreme<name_reduce_min>},
      {"min.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
       convert_extreme_with_place<name_reduce_min, name_arg_min>},
      {"prod(Tensor self, *, ScalarType? dtype=None) -> Tensor", convert_sum<name_reduce_prod>},
      {"prod.dim_int(Tensor self, int dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
       convert_sum<name_reduce_prod>},
      {"softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor", convert_softmax<name_softmax>},
      {"std.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor",
       convert_std},
      {"sum(Tensor self, *, ScalarType? dtype=None) -> Tensor", convert_sum<name_reduce_sum>},
      {"sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
       convert_sum<name_reduce_sum>},
      {"var.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor",
       convert_var},
      {"var.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> Tensor", convert_var},
      {"var_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> (Tensor, "
       "Tensor)",
       convert_var_mean},
  };
}

}  // namespace polyphase
